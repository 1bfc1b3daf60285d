/** The value codec: golden vectors and what is refused. Arbitrary graphs are in value-graphs.test.ts. */

import { readFileSync } from "node:fs";
import { runInNewContext, runInThisContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { difference } from "./testing/same-value.js";
import { type EncodedValue, numericKeys, ValueError, valueBounds } from "./value.js";
import { decodeValue, scanJson } from "./value-decode.js";
import { encodeValue } from "./value-encode.js";

interface Encoded {
  readonly devalue: boolean;
  readonly text: string;
  readonly attachments: readonly string[];
}

interface ValueVectors {
  readonly values: readonly (Encoded & { readonly name: string; readonly js: string })[];
  readonly readable: readonly (Encoded & { readonly name: string; readonly holds: string })[];
  readonly unreadable: readonly (Encoded & { readonly name: string; readonly code: string })[];
  readonly unsendable: readonly {
    readonly name: string;
    readonly js: string;
    readonly code: string;
    readonly message: string;
  }[];
}

const file = new URL("../../../test/vectors/values.json", import.meta.url);
const vectors = JSON.parse(readFileSync(file, "utf8")) as ValueVectors; // our own file

function fromHex({ text, devalue: isDevalue, attachments }: Encoded): EncodedValue {
  return { text, devalue: isDevalue, attachments: attachments.map((hex) => Buffer.from(hex, "hex")) };
}

function evaluate(js: string): unknown {
  return runInThisContext(`(${js})`) as unknown; // any by the library
}

function valueErrorOf(act: () => unknown): ValueError {
  try {
    act();
  } catch (error) {
    if (error instanceof ValueError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

function encodedText(text: string, attachments: readonly Uint8Array[] = []): EncodedValue {
  return { text, devalue: true, attachments };
}

function roundTrip(value: unknown): unknown {
  return decodeValue(encodeValue(value));
}

describe("the golden vectors", () => {
  it.each(vectors.values.map((vector) => [vector.name, vector] as const))(
    "are written and read: %s",
    (_, vector) => {
      const value = evaluate(vector.js);
      const encoded = encodeValue(value);
      expect({
        devalue: encoded.devalue,
        text: encoded.text,
        attachments: encoded.attachments.map((bytes) => Buffer.from(bytes).toString("hex")),
      }).toEqual({ devalue: vector.devalue, text: vector.text, attachments: vector.attachments });
      expect(difference(decodeValue(fromHex(vector)), value)).toBeUndefined();
    },
  );

  it.each(vectors.readable.map((vector) => [vector.name, vector] as const))("are read: %s", (_, vector) => {
    const value = decodeValue(fromHex(vector));
    const holds = runInThisContext(`(v) => ${vector.holds}`) as (v: unknown) => boolean; // an expression of our own file
    expect(holds(value)).toBe(true);
  });

  it.each(vectors.unreadable.map((vector) => [vector.name, vector] as const))(
    "are refused: %s",
    (_, vector) => {
      expect(valueErrorOf(() => decodeValue(fromHex(vector))).code).toBe(vector.code);
    },
  );

  it.each(vectors.unsendable.map((vector) => [vector.name, vector] as const))(
    "are not sent: %s",
    (_, vector) => {
      const error = valueErrorOf(() => encodeValue(evaluate(vector.js)));
      expect({ code: error.code, message: error.message }).toEqual({
        code: vector.code,
        message: vector.message,
      });
    },
  );
});

describe("encodeValue", () => {
  it("sends of a pool only the bytes that a view shows", () => {
    const pool = Buffer.from("secret-visible-secret");
    const { attachments } = encodeValue({ data: pool.subarray(7, 14) });
    expect(attachments.map((bytes) => Buffer.from(bytes).toString())).toEqual(["visible"]);
    const typed = new Uint8Array(pool.buffer, pool.byteOffset + 7, 7);
    expect(encodeValue([typed]).attachments.map((bytes) => Buffer.from(bytes).toString())).toEqual([
      "visible",
    ]);
  });

  it("keeps views sharing memory where they overlap, and only there", () => {
    const memory = new ArrayBuffer(64);
    new Uint8Array(memory).fill(9);
    const value = [
      new Uint8Array(memory, 3, 6),
      new Uint32Array(memory, 8, 2),
      new Uint8Array(memory, 32, 4),
    ];
    const encoded = encodeValue(value);
    expect(encoded.attachments.map((bytes) => bytes.byteLength).sort()).toEqual([16, 4].sort());
    const [low, high, far] = decodeValue(encoded) as [Uint8Array, Uint32Array, Uint8Array]; // as in `value`
    expect([low.length, high.length, far.length]).toEqual([6, 2, 4]);
    low[5] = 1;
    expect((high[0] ?? 0) & 0xff).toBe(1);
    expect(low.buffer).not.toBe(far.buffer);
  });

  it("copies bytes, so that a later write does not change what was sent", () => {
    const bytes = new Uint8Array([1, 2]);
    const encoded = encodeValue(bytes);
    bytes[0] = 9;
    expect(decodeValue(encoded)).toEqual(new Uint8Array([1, 2]));
  });

  it("reads each property once, so that a getter cannot show two faces", () => {
    let reads = 0;
    const value = {
      get x(): unknown {
        reads++;
        return reads === 1 ? "first" : () => 1;
      },
    };
    expect(decodeValue(encodeValue(value))).toEqual({ x: "first" });
    expect(reads).toBe(1);
  });

  it("reports what a getter threw as the cause, not in the message", () => {
    const secret = new Error("/etc/secret");
    const error = valueErrorOf(() =>
      encodeValue({
        get x() {
          throw secret;
        },
      }),
    );
    expect(error.message).toBe("cannot read a property whose getter throws: .x");
    expect(error.cause).toBe(secret);
  });

  it("never calls toJSON, then or toString of a value", () => {
    const calls: string[] = [];
    const note =
      (name: string): (() => string) =>
      () => {
        calls.push(name);
        return "called";
      };
    const value = Object.create({ toJSON: note("toJSON"), toString: note("toString") }) as object; // any by the library
    expect(valueErrorOf(() => encodeValue(value)).code).toBe("unsupported");
    expect(valueErrorOf(() => encodeValue({ toJSON: note("own toJSON") })).path).toBe(".toJSON");
    // biome-ignore lint/suspicious/noThenProperty: it is what the test is about
    const thenable = { then: note("then") };
    expect(valueErrorOf(() => encodeValue(thenable)).path).toBe(".then");
    const date = new Date(0);
    date.toJSON = note("date");
    expect(roundTrip(date)).toEqual(new Date(0));
    expect(calls).toEqual([]);
  });

  it("survives proxies: reads plain ones, names the path of a trap that throws", () => {
    expect(roundTrip(new Proxy({ a: [1] }, {}))).toEqual({ a: [1] });
    expect(roundTrip([undefined, new Proxy([1, 2], {})])).toEqual([undefined, [1, 2]]);
    const trap = (): never => {
      throw new Error("trap");
    };
    const traps = new Proxy({}, { ownKeys: trap });
    expect(valueErrorOf(() => encodeValue({ p: traps })).code).toBe("unreadable");
    const endless: object = new Proxy(
      { x: 1 },
      {
        get: () => new Proxy(endless, {}),
      },
    );
    expect(valueErrorOf(() => encodeValue({ p: endless })).code).toBe("too_large");
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(valueErrorOf(() => encodeValue({ p: proxy })).code).toBe("unreadable");
  });

  it("refuses depth beyond its bound with both ends of the path", () => {
    let deep: object = {};
    for (let level = 0; level < 5000; level++) deep = { in: deep };
    const error = valueErrorOf(() => encodeValue(deep));
    expect(error.code).toBe("too_large");
    expect(error.message.length).toBeLessThan(300);
    let allowed: unknown[] = [];
    for (let level = 1; level < valueBounds.depth; level++) allowed = [allowed];
    expect(decodeValue(encodeValue(allowed))).toEqual(allowed);
  });

  it("stops at the text's bound before it has written much more", () => {
    const big = "x".repeat(100_000);
    for (const value of [
      big,
      [big],
      { [big]: 1 },
      new Set([big]),
      Array(100_000).fill(1),
      Array(100_000).fill(undefined),
    ]) {
      expect(valueErrorOf(() => encodeValue(value, { textBytes: 50_000 })).code).toBe("too_large");
    }
    expect(encodeValue("é".repeat(10), { textBytes: 22 }).text).toHaveLength(12);
    expect(valueErrorOf(() => encodeValue("é".repeat(10), { textBytes: 21 })).code).toBe("too_large");
  });

  it("stops at the bounds of bytes, buffers and nodes", () => {
    expect(valueErrorOf(() => encodeValue(new Uint8Array(100), { attachmentBytes: 99 })).code).toBe(
      "too_large",
    );
    expect(encodeValue(new Uint8Array(99), { attachmentBytes: 99 }).attachments).toHaveLength(1);
    const many = Array.from({ length: 1025 }, () => new ArrayBuffer(0));
    expect(valueErrorOf(() => encodeValue(many)).code).toBe("too_large");
    expect(valueErrorOf(() => encodeValue([1n, 2, 3, 4, 5], { nodes: 5 })).code).toBe("too_large");
  });

  it("does not expand what is shared", () => {
    let doubled: unknown[] = [];
    for (let level = 0; level < 60; level++) doubled = [doubled, doubled];
    expect(encodeValue(doubled).text.length).toBeLessThan(2000);
  });

  it("takes plain objects and arrays of another realm, and refuses its class instances", () => {
    const foreign: unknown = runInNewContext('({ a: [1, { b: new Map([["k", new Date(0)]]) }] })');
    expect(difference(roundTrip(foreign), { a: [1, { b: new Map([["k", new Date(0)]]) }] })).toBeUndefined();
    const instance: unknown = runInNewContext("new (class Foreign {})()");
    expect(valueErrorOf(() => encodeValue({ instance })).message).toBe(
      "cannot send an instance of Foreign: .instance",
    );
  });

  it("refuses what only looks plain", () => {
    for (const value of [
      Object.create(Object.create(null)),
      Object.create({}),
      new (class extends Array {})(),
      new String("x"),
    ]) {
      expect(valueErrorOf(() => encodeValue([value])).code).toBe("unsupported");
    }
    expect(valueErrorOf(() => encodeValue(new SharedArrayBuffer(8))).code).toBe("unsupported");
    expect(valueErrorOf(() => encodeValue(new Uint8Array(new SharedArrayBuffer(8)))).code).toBe(
      "unsupported",
    );
  });

  it("keeps a host's stacks unless it is told to send them", () => {
    const error = new Error("x");
    expect(encodeValue(error).text).not.toContain("value.test");
    const sent = decodeValue(encodeValue(error, { stacks: true })) as Error; // an error went in
    expect(sent.stack).toBe(error.stack);
    expect((roundTrip(error) as Error).stack).toBe("Error: x"); // likewise
  });
});

describe("decodeValue", () => {
  it("touches no prototype, whatever the keys are", () => {
    const before = Object.getOwnPropertyNames(Object.prototype).length;
    for (const text of [
      '[{"__proto__":1},{"polluted":2},true]',
      '[["null","__proto__",1],{"polluted":2},true]',
      '[{"constructor":1},{"prototype":2},{"polluted":3},true]',
      '[["Error",1],[2,2,-2,-2,-2,3],"x",{"__proto__":4},{"polluted":5},true]',
    ]) {
      const value = decodeValue(encodedText(text));
      expect(Object.getPrototypeOf(value) ?? {}).not.toHaveProperty("polluted");
    }
    expect(
      decodeValue({ text: '{"__proto__":{"polluted":true}}', devalue: false, attachments: [] }),
    ).not.toHaveProperty("polluted");
    expect({}).not.toHaveProperty("polluted");
    expect(Object.getOwnPropertyNames(Object.prototype)).toHaveLength(before);
  });

  it("makes no storage for the holes of a sparse array", () => {
    const sparse = decodeValue(encodedText("[[-7,1000000]]")) as unknown[]; // says so
    expect(sparse).toHaveLength(1_000_000);
    expect(Object.keys(sparse)).toEqual([]);
    const text = `[[${Array.from({ length: 1000 }, (_, at) => at + 1).join(",")}],${Array(1000).fill("[-7,1000]").join(",")}]`;
    const before = process.memoryUsage().heapUsed;
    const many = decodeValue(encodedText(text), { nodes: 2_000_000 });
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(50_000_000);
    expect(many).toHaveLength(1000);
  });

  it("counts a shared part as often as it is reached", () => {
    const doubling = (levels: number): string =>
      `[${Array.from({ length: levels }, (_, at) => `[${at + 1},${at + 1}]`).join(",")},1]`;
    expect(decodeValue(encodedText(doubling(10)))).toHaveLength(2);
    expect(valueErrorOf(() => decodeValue(encodedText(doubling(20)))).code).toBe("too_large");
    expect(valueErrorOf(() => decodeValue(encodedText(doubling(900)))).code).toBe("too_large");
  });

  it("counts views of one buffer as what they show", () => {
    const views = 200;
    const nodes = ['["Bytes",1]', "[2,3]", '"ArrayBuffer"', "0", '"Uint8Array"', "0", "1000000"];
    for (let at = 0; at < views; at++) nodes.push(`["Bytes",${7 + views + at}]`);
    for (let at = 0; at < views; at++) nodes.push("[4,8,5,6]");
    const list = Array.from({ length: views }, (_, at) => at + 8);
    const text = `[[${list.join(",")}],${nodes.join(",")}]`.replaceAll(
      /\["Bytes",(\d+)\]/g,
      (_, n) => `["Bytes",${Number(n) + 1}]`,
    );
    const shifted = text.replaceAll("[2,3]", "[3,4]").replaceAll("[4,8,5,6]", "[5,1,6,7]");
    expect(valueErrorOf(() => decodeValue(encodedText(shifted, [new Uint8Array(1_000_000)]))).code).toBe(
      "too_large",
    );
    expect(
      decodeValue(encodedText(shifted, [new Uint8Array(1_000_000)]), { nodes: 10_000_000 }),
    ).toHaveLength(views);
  });

  it("refuses numbers that V8 could be made to hash into one bucket", () => {
    const many = Array.from({ length: numericKeys + 1 }, (_, at) => at + 1);
    const numbers = many.join(",");
    expect(valueErrorOf(() => decodeValue(encodedText(`[["Set",${numbers}],${numbers}]`))).code).toBe(
      "too_large",
    );
    expect(valueErrorOf(() => encodeValue(new Set(many))).code).toBe("too_large");
    expect(valueErrorOf(() => encodeValue(new Map(many.map((key) => [key, 1])))).code).toBe("too_large");
    expect(roundTrip(new Set(many.map(String)))).toEqual(new Set(many.map(String)));
  });

  it("refuses a RegExp where it would be run", () => {
    const encoded = encodeValue(/^(a+)+$/);
    expect(decodeValue(encoded)).toEqual(/^(a+)+$/);
    expect(valueErrorOf(() => decodeValue(encoded, { regExps: "refuse" })).code).toBe("unsupported");
  });

  it("gives fresh memory for bytes, not the frame's", () => {
    const frame = new Uint8Array([1, 2, 3]);
    const value = decodeValue(
      encodedText('[["Bytes",1],[2,3],"ArrayBuffer",0]', [frame.subarray(1)]),
    ) as ArrayBuffer; // says so
    frame.fill(0);
    expect(new Uint8Array(value)).toEqual(new Uint8Array([2, 3]));
    expect(value.byteLength).toBe(2);
  });

  it("refuses attachments beside JSON text and beyond their bound", () => {
    const json = { text: "1", devalue: false, attachments: [new Uint8Array(1)] };
    expect(valueErrorOf(() => decodeValue(json)).code).toBe("malformed");
    const bytes = encodeValue(new Uint8Array(100));
    expect(valueErrorOf(() => decodeValue(bytes, { attachmentBytes: 99 })).code).toBe("too_large");
  });

  it("bounds depth and parts of JSON before it is parsed", () => {
    const nested = (levels: number): EncodedValue => ({
      text: "[".repeat(levels) + "]".repeat(levels),
      devalue: false,
      attachments: [],
    });
    expect(decodeValue(nested(valueBounds.depth))).toHaveLength(1);
    expect(valueErrorOf(() => decodeValue(nested(valueBounds.depth + 1))).code).toBe("too_large");
    expect(valueErrorOf(() => decodeValue(nested(500_000))).code).toBe("too_large");
    const wide = { text: `[${"1,".repeat(99)}1]`, devalue: false, attachments: [] };
    expect(decodeValue(wide, { nodes: 101 })).toHaveLength(100);
    expect(valueErrorOf(() => decodeValue(wide, { nodes: 100 })).code).toBe("too_large");
  });

  it("leaves Error.stackTraceLimit as it was", () => {
    const { stackTraceLimit } = Error;
    decodeValue(encodeValue(new AggregateError([new Error("a")], "b")));
    expect(Error.stackTraceLimit).toBe(stackTraceLimit);
  });
});

describe("scanJson", () => {
  it("counts brackets and commas outside of strings only, escapes or not", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary" }), { maxLength: 8 }), (strings) => {
        const text = JSON.stringify(strings);
        expect(() => scanJson(text, 1, 1 + Math.max(1, strings.length))).not.toThrow();
        expect(() => scanJson(text, 1, Math.max(1, strings.length))).toThrow(ValueError);
      }),
    );
  });

  it("never counts less depth than there is", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        const depth = (part: unknown): number =>
          typeof part === "object" && part !== null ? 1 + Math.max(0, ...Object.values(part).map(depth)) : 0;
        const text = JSON.stringify(value);
        const levels = depth(value);
        expect(() => scanJson(text, levels, text.length + 1)).not.toThrow();
        if (levels > 0)
          expect(() => scanJson(text + " ".repeat(levels * 2), levels - 1, text.length * 9)).toThrow(
            ValueError,
          );
      }),
    );
  });
});
