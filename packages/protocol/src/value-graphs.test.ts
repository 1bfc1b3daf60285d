/**
 * The value codec over arbitrary graphs of its whole set, with devalue as a second opinion.
 *
 * Graphs, not trees: nodes are made first and linked after, each link to any node, so that shared parts and cycles of
 * every kind appear.
 */

import * as devalue from "devalue";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { difference } from "./testing/same-value.js";
import type { EncodedValue } from "./value.js";
import { decodeValue } from "./value-decode.js";
import { encodeValue } from "./value-encode.js";

interface NodeSeed {
  readonly kind: number;
  readonly links: readonly number[];
  readonly keys: readonly string[];
  readonly leaf: unknown;
  readonly bytes: Uint8Array;
  readonly pick: number;
}

/** What a graph may hold, so that it can be compared with libraries that know less. */
interface GraphOptions {
  readonly errors: boolean;
  readonly bytes: boolean;
  readonly protoKeys: boolean;
}

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    "\ud800",
    "a\udc00",
    "\0",
    '"\\\n',
    "\u2028",
    "<",
    "x".repeat(300),
    "",
    "__proto",
    "toJSON",
    "then",
  ),
);

const leaf = fc.oneof(
  text,
  fc.double(),
  fc.integer(),
  fc.constantFrom(
    undefined,
    null,
    true,
    false,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    -0,
    0,
    1e21,
  ),
  fc.bigInt(),
);

const views = [
  DataView,
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
] as const;

interface ViewClass {
  new (buffer: ArrayBuffer, byteOffset: number, length: number): ArrayBufferView;
  readonly BYTES_PER_ELEMENT?: number;
}

const errorClasses = [
  Error,
  TypeError,
  RangeError,
  SyntaxError,
  EvalError,
  ReferenceError,
  URIError,
] as const;

function anyGraph(options: GraphOptions): fc.Arbitrary<unknown> {
  const key = options.protoKeys
    ? fc.oneof(text, fc.constantFrom("__proto__", "constructor", "0", "7", "-1", "prototype"))
    : text.filter((name) => name !== "__proto__");
  const node = fc.record({
    kind: fc.nat(11),
    links: fc.array(fc.nat(), { maxLength: 5 }),
    keys: fc.uniqueArray(key, { minLength: 5, maxLength: 5 }),
    leaf,
    bytes: fc.uint8Array({ maxLength: 40 }),
    pick: fc.nat(),
  });
  return fc.array(node, { minLength: 1, maxLength: 16 }).map((nodes) => build(nodes, options));
}

/** A finite JSON tree: what the JSON form must carry. */
function anyTree(): fc.Arbitrary<unknown> {
  return fc.jsonValue({ maxDepth: 4 }).map((value) => withoutNegativeZero(value));
}

function withoutNegativeZero(value: unknown): unknown {
  if (typeof value === "number") return value + 0;
  if (Array.isArray(value)) return value.map(withoutNegativeZero);
  if (typeof value !== "object" || value === null) return value;
  const object = {};
  for (const [key, part] of Object.entries(value)) own(object, key, withoutNegativeZero(part));
  return object;
}

function own(object: object, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}

function build(seeds: readonly NodeSeed[], options: GraphOptions): unknown {
  const made = seeds.map((seed) => shell(seed, options));
  const buffers = made.filter((value) => value instanceof ArrayBuffer);
  made.forEach((value, index) => {
    const seed = seeds[index];
    if (seed !== undefined && seed.kind === 11 && options.bytes) made[index] = view(seed, buffers);
    else made[index] = value;
  });
  seeds.forEach((seed, index) => {
    fill(made[index], seed, (link) => made[link % made.length]);
  });
  return made[0];
}

function shell(seed: NodeSeed, options: GraphOptions): unknown {
  switch (seed.kind) {
    case 0:
    case 1:
      return {};
    case 2:
      return Object.create(null);
    case 3:
    case 4:
      return [];
    case 5:
      return new Map();
    case 6:
      return new Set();
    case 7:
      return new Date(seed.pick % 7 === 0 ? Number.NaN : (seed.pick - 2 ** 30) * 1e6);
    case 8:
      return new RegExp(
        ["a", "^b+$", "(?:)", "[\\]/]", "\\u{61}"][seed.pick % 5] ?? "",
        ["", "g", "giu", "su"][seed.pick % 4],
      );
    case 9:
      return options.errors ? error(seed) : {};
    case 10:
      return options.bytes ? seed.bytes.slice().buffer : [];
    default:
      return seed.leaf;
  }
}

function error(seed: NodeSeed): Error {
  const [message = ""] = seed.keys;
  if (seed.pick % 9 === 0) return new AggregateError([], message);
  if (seed.pick % 5 === 0) {
    // The class of an error is told by its name: only a plain Error can have one of its own.
    return Object.defineProperty(new Error(message), "name", { value: "CustomError", enumerable: false });
  }
  const ErrorClass: new (message: string) => Error = errorClasses[seed.pick % errorClasses.length] ?? Error;
  return new ErrorClass(message);
}

function view(seed: NodeSeed, buffers: readonly ArrayBuffer[]): unknown {
  const buffer = buffers[seed.pick % Math.max(1, buffers.length)] ?? seed.bytes.slice().buffer;
  const View: ViewClass = views[seed.pick % views.length] ?? Uint8Array;
  const size = View.BYTES_PER_ELEMENT ?? 1;
  const [first = 0, second = 0] = seed.links;
  const most = Math.floor(buffer.byteLength / size);
  const start = first % (most + 1);
  return new View(buffer, start * size, second % (most - start + 1));
}

function fill(value: unknown, seed: NodeSeed, at: (link: number) => unknown): void {
  if (typeof value !== "object" || value === null) return;
  const { links, keys } = seed;
  if (Array.isArray(value)) {
    for (const link of links) {
      if (link % 6 === 5) value.length += (link % 90) + 1;
      else value.push(at(link));
    }
  } else if (value instanceof Map) {
    for (const link of links) value.set(at(link + 1), at(link));
  } else if (value instanceof Set) {
    for (const link of links) value.add(at(link));
  } else if (value instanceof Error) {
    fillError(value, seed, at);
  } else if (seed.kind <= 2 || seed.kind === 9) {
    links.forEach((link, index) => {
      own(value, keys[index] ?? "", at(link));
    });
  }
}

function fillError(value: Error, { links, keys }: NodeSeed, at: (link: number) => unknown): void {
  const taken = ["name", "message", "stack", "cause", "errors"];
  links.forEach((link, index) => {
    const key = keys[index] ?? "";
    if (index === 0)
      Object.defineProperty(value, "cause", { value: at(link), enumerable: false, writable: true });
    else if (value instanceof AggregateError) value.errors.push(at(link));
    else if (!taken.includes(key)) own(value, key, at(link));
  });
}

function encodedText(text: string): EncodedValue {
  return { text, devalue: true, attachments: [] };
}

function roundTrip(value: unknown): unknown {
  return decodeValue(encodeValue(value));
}

describe("encodeValue and decodeValue", () => {
  it("carry any graph of the whole set, with what is shared shared", () => {
    fc.assert(
      fc.property(anyGraph({ errors: true, bytes: true, protoKeys: true }), (value) => {
        expect(difference(roundTrip(value), value)).toBeUndefined();
      }),
      { numRuns: 2000 },
    );
  });

  it("carry JSON trees as JSON.stringify writes them", () => {
    fc.assert(
      fc.property(anyTree(), (value) => {
        expect(encodeValue(value)).toEqual({ text: JSON.stringify(value), devalue: false, attachments: [] });
        expect(difference(roundTrip(value), value)).toBeUndefined();
      }),
    );
  });

  it("write what devalue reads", () => {
    fc.assert(
      fc.property(anyGraph({ errors: false, bytes: false, protoKeys: false }), (value) => {
        const encoded = encodeValue(value);
        const read: unknown = encoded.devalue ? devalue.parse(encoded.text) : JSON.parse(encoded.text);
        expect(difference(read, value)).toBeUndefined();
      }),
      { numRuns: 1000 },
    );
  });

  it("read what devalue writes", () => {
    fc.assert(
      fc.property(anyGraph({ errors: false, bytes: false, protoKeys: false }), (value) => {
        expect(difference(decodeValue(encodedText(devalue.stringify(value))), value)).toBeUndefined();
      }),
      { numRuns: 1000 },
    );
  });

  it("write errors and bytes so that devalue reads them with a reviver for each", () => {
    const { text, attachments } = encodeValue({ e: new TypeError("boom"), b: new Uint16Array([1, 2]) });
    const revived: unknown = devalue.parse(text, {
      Error: ([name, message]: [string, string]) => `${name}: ${message}`,
      Bytes: ([kind, ...rest]: unknown[]) =>
        kind === "ArrayBuffer" ? attachments[Number(rest[0])] : [kind, ...rest],
    });
    expect(revived).toEqual({ e: "TypeError: boom", b: ["Uint16Array", new Uint8Array([1, 0, 2, 0]), 0, 2] });
  });

  it("write one text for one value, every time", () => {
    fc.assert(
      fc.property(anyGraph({ errors: true, bytes: false, protoKeys: true }), (value) => {
        const first = encodeValue(value);
        expect(encodeValue(value)).toEqual(first);
        expect(encodeValue(decodeValue(first)).text).toBe(first.text);
      }),
    );
  });
});
