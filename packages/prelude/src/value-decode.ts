/**
 * The guest's reading half of the value codec: packages/protocol/src/value.ts specifies the text. It reads what the parent
 * wrote, so the form is trusted; objects are made without meeting setters or iterators that a script may have put on the
 * shared prototypes. Parsed arrays and objects have own properties in every place already, and are filled in where they are.
 */

import {
  ArrayBufferPrototypeGetByteLength,
  ArrayIsArray,
  defineData,
  JSONParse,
  MapPrototypeSet,
  NativeArrayBuffer,
  NativeBigInt,
  NativeDate,
  NativeError,
  NativeMap,
  NativeRegExp,
  NativeSet,
  NativeUint8Array,
  ObjectKeys,
  ReflectConstruct,
  ReflectDeleteProperty,
  record,
  SetPrototypeAdd,
  TypedArrayPrototypeSet,
} from "./primordials.js";
import { viewConstructors } from "./typed-arrays.js";

const referenceUndefined = -1;
const referenceHole = -2;
const referenceNaN = -3;
const referenceInfinity = -4;
const referenceNegativeInfinity = -5;
const referenceNegativeZero = -6;
const sparseMark = -7;

/** The value of a text. `attachments` are u32 LE length and bytes, one after another. */
export function decodeValue(text: string, devalue: boolean, attachments: ArrayBuffer | undefined): unknown {
  const parsed = JSONParse(text);
  if (!devalue) return parsed;
  if (typeof parsed === "number") return special(parsed);
  if (!ArrayIsArray(parsed)) return malformed();
  nodes = parsed;
  done = record();
  bytes = splitAttachments(attachments);
  const value = read(0);
  nodes = [];
  done = record();
  bytes = record();
  return value;
}

/** Parsed nodes, replaced by their values as they are read. */
let nodes: unknown[] = [];
let done = record<boolean>();
let bytes = record<ArrayBuffer>();

function malformed(): never {
  throw new NativeError("flowcell: the parent sent a value that is malformed");
}

function special(reference: number): unknown {
  switch (reference) {
    case referenceUndefined:
      return undefined;
    case referenceNaN:
      return 0 / 0;
    case referenceInfinity:
      return 1 / 0;
    case referenceNegativeInfinity:
      return -1 / 0;
    case referenceNegativeZero:
      return -0;
    default:
      return malformed();
  }
}

function node(index: unknown): unknown {
  if (typeof index !== "number" || !(index >= 0) || index >= nodes.length) malformed();
  return nodes[index];
}

function read(reference: unknown): unknown {
  if (typeof reference === "number" && reference < 0) return special(reference);
  const index = reference as number; // `node` refuses anything else
  const value = node(index);
  if (typeof value !== "object" || value === null || done[index] === true) return value;
  done[index] = true;
  return ArrayIsArray(value) ? readArray(value, index) : readObject(value as { [key: string]: unknown }); // JSON.parse made it
}

function keep<T>(index: number, value: T): T {
  nodes[index] = value;
  return value;
}

function readObject(object: { [key: string]: unknown }): object {
  const keys = ObjectKeys(object);
  const { length } = keys;
  for (let at = 0; at < length; at++) {
    const key = keys[at] as string; // below its length
    object[key] = read(object[key]);
  }
  return object;
}

function readArray(array: unknown[], index: number): unknown {
  const { length } = array;
  if (length === 0) return array;
  const first = array[0];
  if (typeof first === "string") return readTagged(first, array, index);
  if (first === sparseMark) return readSparse(array, index);
  for (let at = 0; at < length; at++) {
    if (array[at] === referenceHole) ReflectDeleteProperty(array, at);
    else array[at] = read(array[at]);
  }
  return array;
}

function readSparse(parsed: unknown[], index: number): unknown[] {
  const array: unknown[] = keep(index, []);
  array.length = parsed[1] as number; // the parent's
  const { length } = parsed;
  for (let at = 2; at < length; at += 2) defineData(array, parsed[at] as number, read(parsed[at + 1])); // the parent's
  return array;
}

function readTagged(tag: string, array: unknown[], index: number): unknown {
  switch (tag) {
    case "null": {
      const object = keep(index, record<unknown>());
      for (let at = 1; at < array.length; at += 2) object[array[at] as string] = read(array[at + 1]); // a key
      return object;
    }
    case "Date":
      return keep(index, array[1] === "" ? new NativeDate(0 / 0) : new NativeDate(array[1] as string)); // the parent's
    case "Map": {
      const map = keep(index, new NativeMap());
      for (let at = 1; at < array.length; at += 2) MapPrototypeSet(map, read(array[at]), read(array[at + 1]));
      return map;
    }
    case "Set": {
      const set = keep(index, new NativeSet());
      for (let at = 1; at < array.length; at++) SetPrototypeAdd(set, read(array[at]));
      return set;
    }
    case "RegExp":
      return keep(index, new NativeRegExp(array[1] as string, array.length > 2 ? (array[2] as string) : "")); // the parent's
    case "BigInt":
      return keep(index, NativeBigInt(array[1] as string)); // the parent's
    case "Error":
      return readError(node(array[1]) as unknown[], index); // the parent's
    case "Bytes":
      return keep(index, readBytes(node(array[1]) as unknown[])); // the parent's
    default:
      return malformed();
  }
}

const errorClasses = record<new (message: string) => Error>();
for (const value of [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError]) {
  errorClasses[value.name] = value;
}
const NativeAggregateError = AggregateError;

function readError(parsed: unknown[], index: number): Error {
  const name = node(parsed[0]) as string; // the parent's, as are all
  const message = node(parsed[1]) as string;
  const known = errorClasses[name];
  const error = keep(index, known === undefined ? newError(name, message) : new known(message));
  const stack = parsed[2] === referenceHole ? `${name}: ${message}` : node(parsed[2]);
  defineData(error, "stack", stack, false);
  if (parsed[3] !== referenceHole) defineData(error, "cause", read(parsed[3]), false);
  if (parsed[4] !== referenceHole) defineData(error, "errors", read(parsed[4]), false);
  if (parsed[5] !== referenceHole) {
    const properties = node(parsed[5]) as { [key: string]: unknown };
    const keys = ObjectKeys(properties);
    for (let at = 0; at < keys.length; at++) {
      const key = keys[at] as string; // below its length
      defineData(error, key, read(properties[key]));
    }
  }
  return error;
}

function newError(name: string, message: string): Error {
  if (name === "AggregateError") {
    // Its constructor iterates what it is given.
    const error = ReflectConstruct(NativeError, [message], NativeAggregateError) as Error; // Error's constructor makes one
    return error;
  }
  const error = new NativeError(message);
  defineData(error, "name", name, false);
  return error;
}

function readBytes(parsed: unknown[]): ArrayBuffer | ArrayBufferView {
  const kind = node(parsed[0]) as string; // the parent's, as are all
  if (kind === "ArrayBuffer") return bytes[node(parsed[1]) as number] ?? malformed();
  const Constructor = viewConstructors[kind] ?? malformed();
  return new Constructor(
    read(parsed[1]) as ArrayBuffer,
    node(parsed[2]) as number,
    node(parsed[3]) as number,
  );
}

function splitAttachments(attachments: ArrayBuffer | undefined): typeof bytes {
  const split = record<ArrayBuffer>();
  if (attachments === undefined) return split;
  const from = new NativeUint8Array(attachments);
  // Not `from.length`: that is an accessor of the shared prototype.
  const length = ArrayBufferPrototypeGetByteLength(attachments);
  let count = 0;
  for (let at = 0; at + 4 <= length; ) {
    const size =
      byte(from, at) +
      byte(from, at + 1) * 0x100 +
      byte(from, at + 2) * 0x1_0000 +
      byte(from, at + 3) * 0x100_0000;
    const buffer = new NativeArrayBuffer(size);
    TypedArrayPrototypeSet(new NativeUint8Array(buffer), new NativeUint8Array(attachments, at + 4, size));
    split[count++] = buffer;
    at += 4 + size;
  }
  return split;
}

function byte(bytes: Uint8Array, at: number): number {
  return bytes[at] as number; // inside
}
