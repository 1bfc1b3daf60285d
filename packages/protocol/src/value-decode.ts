/**
 * The reading half of the codec of `value.ts` (read its head first). Called by the pool and by host functions with what a
 * worker sent, and by tests.
 *
 * TRUST: the text is chosen by a hostile script, perhaps through a subverted engine, so it need not be what any encoder
 * writes. What `decodeValue` establishes about its result: nothing but intrinsic prototypes of this realm, no prototype
 * touched, `__proto__` only as an own data property, no getter, nothing callable, every bound of `value.ts` kept, also when
 * the result is walked as a tree with shared parts visited each time. Work and memory are linear in text plus attachments.
 */

import {
  type ByteKind,
  bigintDigits,
  type DecodeOptions,
  type EncodedValue,
  isByteKind,
  numericKeys,
  referenceHole,
  referenceInfinity,
  referenceNaN,
  referenceNegativeInfinity,
  referenceNegativeZero,
  referenceUndefined,
  regExpChars,
  sparseMark,
  type ValueBounds,
  ValueError,
  valueBounds,
} from "./value.js";

/** The value; throws ValueError, never anything else. */
export function decodeValue(encoded: EncodedValue, options: DecodeOptions = {}): unknown {
  const bounds: ValueBounds = {
    textBytes: options.textBytes ?? valueBounds.textBytes,
    attachmentBytes: options.attachmentBytes ?? valueBounds.attachmentBytes,
    depth: options.depth ?? valueBounds.depth,
    nodes: options.nodes ?? valueBounds.nodes,
  };
  const { text, attachments } = encoded;
  if (text.length > bounds.textBytes) tooLarge(`more than ${bounds.textBytes} bytes of text`);
  const attachmentBytes = attachments.reduce((sum, bytes) => sum + bytes.byteLength, 0);
  if (attachmentBytes > bounds.attachmentBytes)
    tooLarge(`more than ${bounds.attachmentBytes} bytes of binary data`);
  scanJson(text, encoded.devalue ? flatDepth : bounds.depth, bounds.nodes, encoded.devalue);
  const parsed = parseJson(text);
  if (!encoded.devalue) {
    if (attachments.length > 0) malformed("binary data beside JSON text");
    return parsed;
  }
  try {
    return new DevalueReader(bounds, options.regExps ?? "revive", attachments).read(parsed);
  } catch (error) {
    if (error instanceof ValueError) throw error;
    // The end of the stack under a deep caller.
    throw new ValueError("too_large", "cannot read the value", "", error);
  }
}

/** The flat form is an array of arrays and objects of references. */
const flatDepth = 2;

function tooLarge(what: string): never {
  throw new ValueError("too_large", `cannot read a value with ${what}`, "");
}

function malformed(what: string): never {
  throw new ValueError("malformed", `cannot read a value with ${what}`, "");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown; // any by the library
  } catch {
    return malformed("text that is not JSON");
  }
}

const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/**
 * Bounds depth and number of values of a JSON text before it is parsed, in one pass. It need not judge the syntax: of a
 * text that JSON.parse accepts the counts are upper bounds, and any other text JSON.parse refuses. `flat`: the text is
 * devalue's, in which more depth is not a size but a mistake.
 */
export function scanJson(text: string, depthMost: number, nodesMost: number, flat = false): void {
  // Each level takes two characters and each value at least one: short texts cannot exceed the bounds.
  if (text.length <= depthMost * 2 && text.length <= nodesMost) return;
  let depth = 0;
  let nodes = 1;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote:
        at = stringEnd(text, at);
        break;
      case openBracket:
      case openBrace:
        nodes++;
        if (++depth > depthMost) {
          if (flat) malformed("nodes inside of nodes");
          tooLarge(`more than ${depthMost} levels`);
        }
        break;
      case closeBracket:
      case closeBrace:
        depth--;
        break;
      case comma:
        nodes++;
        break;
      default:
        break;
    }
    if (nodes > nodesMost) tooLarge(`more than ${nodesMost} parts`);
  }
}

/** The place of the quote that ends the string which begins at `start`, or the text's end. */
function stringEnd(text: string, start: number): number {
  let from = start + 1;
  for (;;) {
    const end = text.indexOf('"', from);
    if (end === -1) return text.length;
    let slashes = end;
    while (slashes > from && text.charCodeAt(slashes - 1) === backslash) slashes--;
    if ((end - slashes) % 2 === 0) return end;
    from = end + 1;
  }
}

type Node = null | boolean | number | string | readonly unknown[] | Readonly<Record<string, unknown>>;

/** Sizes of nodes as trees; a node that is being read (a cycle leads back to it) counts as one. */
const inProgress = 1;

class DevalueReader {
  readonly #bounds: ValueBounds;
  readonly #regExps: "revive" | "refuse";
  readonly #attachments: readonly Uint8Array[];
  readonly #used: boolean[] = [];
  #nodes: readonly unknown[] = [];
  #values: unknown[] = [];
  /** 0: not read yet. */
  #sizes: Float64Array = new Float64Array(0);
  #depth = 0;
  /** Size of the node being read, so far. */
  #size = 0;

  constructor(bounds: ValueBounds, regExps: "revive" | "refuse", attachments: readonly Uint8Array[]) {
    this.#bounds = bounds;
    this.#regExps = regExps;
    this.#attachments = attachments;
  }

  read(parsed: unknown): unknown {
    if (typeof parsed === "number") {
      if (this.#attachments.length > 0) malformed("binary data that nothing refers to");
      return Object.is(parsed, -0) ? malformed("an unknown reference") : this.#special(parsed);
    }
    if (!Array.isArray(parsed) || parsed.length === 0) malformed("text that is not an array of nodes");
    this.#nodes = parsed;
    this.#values = new Array(parsed.length);
    this.#sizes = new Float64Array(parsed.length);
    const value = this.#value(0);
    for (let index = 0; index < this.#attachments.length; index++) {
      if (this.#used[index] !== true) malformed("binary data that nothing refers to");
    }
    return value;
  }

  #special(reference: number): unknown {
    switch (reference) {
      case referenceUndefined:
        return undefined;
      case referenceNaN:
        return Number.NaN;
      case referenceInfinity:
        return Number.POSITIVE_INFINITY;
      case referenceNegativeInfinity:
        return Number.NEGATIVE_INFINITY;
      case referenceNegativeZero:
        return -0;
      default:
        return malformed("an unknown reference");
    }
  }

  #grow(size: number): void {
    this.#size += size;
    if (this.#size > this.#bounds.nodes) tooLarge(`more than ${this.#bounds.nodes} parts`);
  }

  #node(reference: unknown): Node {
    if (typeof reference !== "number" || !Number.isInteger(reference) || reference < 0)
      malformed("an unknown reference");
    if (reference >= this.#nodes.length) malformed("a reference beyond its nodes");
    return this.#nodes[reference] as Node; // JSON.parse made it
  }

  #value(reference: unknown): unknown {
    if (typeof reference === "number" && reference < 0) {
      this.#grow(1);
      return this.#special(reference);
    }
    const node = this.#node(reference);
    const index = reference as number; // `#node` admits nothing else
    const size = this.#sizes[index] ?? 0;
    if (size !== 0) {
      this.#grow(size);
      return this.#values[index];
    }
    if (node === null || typeof node !== "object") {
      this.#sizes[index] = 1;
      this.#grow(1);
      this.#values[index] = node;
      return node;
    }
    if (this.#depth >= this.#bounds.depth) tooLarge(`more than ${this.#bounds.depth} levels`);
    const outer = this.#size;
    this.#depth++;
    this.#size = 1;
    this.#sizes[index] = inProgress;
    const value = Array.isArray(node)
      ? this.#array(node, index)
      : this.#object(node as Readonly<Record<string, unknown>>, index); // neither null nor an array
    this.#sizes[index] = this.#size;
    this.#depth--;
    this.#size = outer;
    this.#grow(this.#sizes[index] ?? 1);
    return value;
  }

  #keep<T>(index: number, value: T): T {
    this.#values[index] = value;
    return value;
  }

  #object(node: Readonly<Record<string, unknown>>, index: number): object {
    const object: Record<string, unknown> = this.#keep(index, {});
    for (const key of Object.keys(node)) define(object, key, this.#value(node[key]));
    return object;
  }

  #array(node: readonly unknown[], index: number): unknown {
    const [first] = node;
    if (typeof first === "string") return this.#tagged(first, node, index);
    if (first === sparseMark) return this.#sparse(node, index);
    const array: unknown[] = this.#keep(index, new Array(node.length));
    for (let at = 0; at < node.length; at++) {
      const reference = node[at];
      if (reference === referenceHole) this.#grow(1);
      else array[at] = this.#value(reference);
    }
    return array;
  }

  #sparse(node: readonly unknown[], index: number): unknown[] {
    const length = node[1];
    if (typeof length !== "number" || !Number.isInteger(length) || length < 0 || node.length % 2 !== 0) {
      malformed("an array whose length is none");
    }
    this.#grow(length);
    const array: unknown[] = this.#keep(index, []);
    // No storage for the holes: 65,536 such arrays of a million would take all memory from a 1 MiB text.
    array[sparsePlace] = undefined;
    delete array[sparsePlace];
    array.length = length;
    let last = -1;
    for (let at = 2; at < node.length; at += 2) {
      const place = node[at];
      if (typeof place !== "number" || !Number.isInteger(place) || place <= last || place >= length) {
        malformed("an array whose places do not ascend");
      }
      array[place] = this.#value(node[at + 1]);
      last = place;
    }
    return array;
  }

  #tagged(tag: string, node: readonly unknown[], index: number): unknown {
    switch (tag) {
      case "null":
        return this.#nullObject(node, index);
      case "Date":
        return this.#keep(index, readDate(only(node, 1)));
      case "Map":
        return this.#map(node, index);
      case "Set":
        return this.#set(node, index);
      case "RegExp":
        return this.#keep(index, this.#regExp(node));
      case "BigInt":
        return this.#keep(index, readBigint(only(node, 1)));
      case "Error":
        return this.#error(only(node, 1), index);
      case "Bytes":
        return this.#bytes(only(node, 1), index);
      default:
        return malformed("an unknown kind of node");
    }
  }

  #nullObject(node: readonly unknown[], index: number): object {
    if (node.length % 2 !== 1) malformed("a key without a value");
    const object = this.#keep(index, Object.create(null) as Record<string, unknown>); // any by the library
    for (let at = 1; at < node.length; at += 2) {
      const key = node[at];
      if (typeof key !== "string") malformed("a key that is not text");
      define(object, key, this.#value(node[at + 1]));
    }
    return object;
  }

  #map(node: readonly unknown[], index: number): Map<unknown, unknown> {
    if (node.length % 2 !== 1) malformed("a key without a value");
    const map = this.#keep(index, new Map<unknown, unknown>());
    let numbers = 0;
    for (let at = 1; at < node.length; at += 2) {
      const key = this.#value(node[at]);
      if (isNumeric(key) && ++numbers > numericKeys)
        tooLarge(`a Map of more than ${numericKeys} keys that are numbers`);
      map.set(key, this.#value(node[at + 1]));
    }
    return map;
  }

  #set(node: readonly unknown[], index: number): Set<unknown> {
    const set = this.#keep(index, new Set<unknown>());
    let numbers = 0;
    for (let at = 1; at < node.length; at++) {
      const member = this.#value(node[at]);
      if (isNumeric(member) && ++numbers > numericKeys) tooLarge(`a Set of more than ${numericKeys} numbers`);
      set.add(member);
    }
    return set;
  }

  #regExp(node: readonly unknown[]): RegExp {
    const source = node[1];
    const flags = node.length === 3 ? node[2] : "";
    if (node.length > 3 || typeof source !== "string" || typeof flags !== "string")
      malformed("a RegExp that is none");
    if (this.#regExps === "refuse") throw new ValueError("unsupported", "a RegExp is not taken here", "");
    if (source.length > regExpChars || flags.length > 8)
      tooLarge(`a RegExp of more than ${regExpChars} characters`);
    try {
      return new RegExp(source, flags); // parsed, not run
    } catch {
      return malformed("a RegExp that this runtime does not understand");
    }
  }

  #error(reference: unknown, index: number): Error {
    const node = this.#node(reference);
    if (!Array.isArray(node) || node.length !== 6) malformed("an error that is none");
    const [nameReference, messageReference, stackReference, cause, errors, properties] =
      node as readonly unknown[]; // JSON's
    const name = this.#text(nameReference);
    const message = this.#text(messageReference);
    const stack = stackReference === referenceHole ? `${name}: ${message}` : this.#text(stackReference);
    const error = this.#keep(index, newError(name, message, stack));
    if (cause !== referenceHole) hide(error, "cause", this.#value(cause));
    if (errors !== referenceHole) {
      const list = this.#value(errors);
      if (!Array.isArray(list)) malformed("an error whose errors are no array");
      hide(error, "errors", list);
    }
    if (properties !== referenceHole) this.#errorProperties(error, properties);
    return error;
  }

  #errorProperties(error: Error, reference: unknown): void {
    const node = this.#node(reference);
    if (node === null || typeof node !== "object" || Array.isArray(node))
      malformed("an error whose properties are no object");
    const fields = node as Readonly<Record<string, unknown>>; // neither null nor an array
    for (const key of Object.keys(fields)) {
      if (errorFields.has(key)) malformed("an error with a field twice");
      define(error as unknown as Record<string, unknown>, key, this.#value(fields[key])); // an ordinary object
    }
  }

  #text(reference: unknown): string {
    const text = this.#node(reference);
    if (typeof text !== "string") malformed("text that is none");
    this.#grow(1);
    return text;
  }

  #count(reference: unknown): number {
    const count = this.#node(reference);
    if (typeof count !== "number" || !Number.isSafeInteger(count) || count < 0)
      malformed("a count that is none");
    this.#grow(1);
    return count;
  }

  #bytes(reference: unknown, index: number): ArrayBuffer | ArrayBufferView {
    const node = this.#node(reference);
    if (!Array.isArray(node)) malformed("binary data that is none");
    const kind = this.#text(node[0]);
    if (!isByteKind(kind)) malformed("an unknown kind of binary data");
    if (kind === "ArrayBuffer") {
      if (node.length !== 2) malformed("binary data that is none");
      return this.#keep(index, this.#attachment(this.#count(node[1])));
    }
    if (node.length !== 4) malformed("binary data that is none");
    const buffer = this.#arrayBuffer(node[1]);
    return this.#keep(index, this.#view(kind, buffer, this.#count(node[2]), this.#count(node[3])));
  }

  #attachment(place: number): ArrayBuffer {
    const bytes = this.#attachments[place];
    if (bytes === undefined) malformed("binary data that is not there");
    // Twice the same bytes would let a text of 1 MiB ask for 50,000 copies of 16 MiB.
    if (this.#used[place] === true) malformed("binary data that is referred to twice");
    this.#used[place] = true;
    this.#grow(bytes.byteLength >>> bytesPerPartShift);
    const buffer = new ArrayBuffer(bytes.byteLength);
    new Uint8Array(buffer).set(bytes);
    return buffer;
  }

  #arrayBuffer(reference: unknown): ArrayBuffer {
    // Looked at before it is read: a view of a view would go round in circles.
    const node = this.#node(reference);
    if (!Array.isArray(node) || node[0] !== "Bytes") malformed("a view of what is no ArrayBuffer");
    const payload = this.#node(node[1]);
    if (!Array.isArray(payload) || payload.length !== 2) malformed("a view of what is no ArrayBuffer");
    const buffer = this.#value(reference);
    if (!(buffer instanceof ArrayBuffer)) malformed("a view of what is no ArrayBuffer");
    return buffer;
  }

  #view(
    kind: Exclude<ByteKind, "ArrayBuffer">,
    buffer: ArrayBuffer,
    byteOffset: number,
    length: number,
  ): ArrayBufferView {
    const make = viewMakers[kind];
    if (make === undefined) malformed(`a ${kind}, which this runtime does not have`);
    const { bytes, view } = make;
    if (byteOffset % bytes !== 0 || byteOffset + length * bytes > buffer.byteLength) {
      malformed("a view that reaches beyond its buffer");
    }
    this.#grow((length * bytes) >>> bytesPerPartShift);
    return view(buffer, byteOffset, length);
  }
}

/** 64 bytes of a view count as one part. */
const bytesPerPartShift = 6;

/** The largest index an array can have: writing there makes V8 keep the array as a dictionary. */
const sparsePlace = 2 ** 32 - 2;

const errorFields: ReadonlySet<string> = new Set(["name", "message", "stack", "cause", "errors"]);

interface ViewMaker {
  readonly bytes: number;
  readonly view: (buffer: ArrayBuffer, byteOffset: number, length: number) => ArrayBufferView;
}

interface TypedArrayClass {
  new (buffer: ArrayBuffer, byteOffset: number, length: number): ArrayBufferView;
  readonly BYTES_PER_ELEMENT: number;
}

function typedArray(ArrayClass: TypedArrayClass): ViewMaker {
  return {
    bytes: ArrayClass.BYTES_PER_ELEMENT,
    view: (buffer, byteOffset, length) => new ArrayClass(buffer, byteOffset, length),
  };
}

// Node 20 has no Float16Array; the engine has.
const float16: unknown = Reflect.get(globalThis, "Float16Array");

const viewMakers: { readonly [kind in Exclude<ByteKind, "ArrayBuffer">]: ViewMaker | undefined } = {
  DataView: { bytes: 1, view: (buffer, byteOffset, length) => new DataView(buffer, byteOffset, length) },
  Int8Array: typedArray(Int8Array),
  Uint8Array: typedArray(Uint8Array),
  Uint8ClampedArray: typedArray(Uint8ClampedArray),
  Int16Array: typedArray(Int16Array),
  Uint16Array: typedArray(Uint16Array),
  Int32Array: typedArray(Int32Array),
  Uint32Array: typedArray(Uint32Array),
  Float16Array: float16 === undefined ? undefined : typedArray(float16 as TypedArrayClass), // every typed array class is one
  Float32Array: typedArray(Float32Array),
  Float64Array: typedArray(Float64Array),
  BigInt64Array: typedArray(BigInt64Array),
  BigUint64Array: typedArray(BigUint64Array),
};

const errorConstructors: ReadonlyMap<string, new (message: string) => Error> = new Map<
  string,
  new (
    message: string,
  ) => Error
>([
  ["Error", Error],
  ["EvalError", EvalError],
  ["RangeError", RangeError],
  ["ReferenceError", ReferenceError],
  ["SyntaxError", SyntaxError],
  ["TypeError", TypeError],
  ["URIError", URIError],
]);

function newError(name: string, message: string, stack: string): Error {
  const known = errorConstructors.get(name);
  // The stack of this very place is of no use to anybody and costs most of the construction.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  let error: Error;
  try {
    if (known !== undefined) error = new known(message);
    else if (name === "AggregateError") error = new AggregateError([], message);
    else error = new Error(message);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
  hide(error, "message", message);
  hide(error, "stack", stack);
  if (known === undefined && name !== "AggregateError") hide(error, "name", name);
  return error;
}

/** An own property as an error's own fields are: not enumerable. */
function hide(object: object, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, writable: true, enumerable: false, configurable: true });
}

/** An own data property, `__proto__` too. */
function define(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    object[key] = value;
  }
}

/** The only operand of a node. */
function only(node: readonly unknown[], count: 1): unknown {
  if (node.length !== count + 1) malformed("a node with operands that it does not take");
  return node[1];
}

const isoDate = /^(?:[0-9]{4}|[+-][0-9]{6})-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$/;

function readDate(text: unknown): Date {
  if (text === "") return new Date(Number.NaN);
  if (typeof text !== "string" || !isoDate.test(text)) malformed("a Date that is none");
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) malformed("a Date that is none");
  return date;
}

function readBigint(text: unknown): bigint {
  if (typeof text !== "string") malformed("a bigint that is none");
  if (text.length - (text.startsWith("-") ? 1 : 0) > bigintDigits)
    tooLarge(`a bigint of more than ${bigintDigits} digits`);
  if (!/^-?[0-9]+$/.test(text)) malformed("a bigint that is none");
  return BigInt(text);
}

function isNumeric(value: unknown): boolean {
  return typeof value === "number" || typeof value === "bigint";
}
