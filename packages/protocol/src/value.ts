/**
 * Values on the wire: this file is the Node half of the codec, the guest half is in packages/prelude (it may not call an
 * intrinsic that a script can replace). Both are held to test/vectors/values.json. Host code encodes arguments of its
 * answers and inputs here; pool and host decode what a worker sent.
 *
 * ## The set of values
 * undefined, null, booleans, numbers (NaN, ±Infinity, -0), bigints, strings (lone surrogates, NUL), plain objects, objects
 * without a prototype, arrays (holes), Date, Map, Set, RegExp, errors, ArrayBuffer, typed arrays, DataView; shared
 * references and cycles between them. Everything else is refused with its path. Not carried: own properties of an array
 * beside its elements, non-enumerable properties, property attributes, lastIndex of a RegExp.
 *
 * ## The text
 * JSON text (frame flag bit 0 clear) if the value is a tree of null, booleans, finite numbers other than -0, strings,
 * arrays without holes or undefined, and plain objects, in which no object occurs twice. Else devalue text (bit set):
 *
 * devalue text is JSON text of either one negative number, or a non-empty array of nodes of which node 0 is the value. A
 * *reference* is an integer: from 0 the index of a node, else -1 undefined, -2 hole, -3 NaN, -4 Infinity, -5 -Infinity,
 * -6 the number -0 (-2 only where a hole can be). A node is
 *   null, true, false, a number, a string     itself
 *   {"key": reference, …}                     a plain object
 *   [reference, …]                            an array; -2 is a hole
 *   [-7, length, index, reference, …]         an array with more holes than elements; indices ascend
 *   ["null", "key", reference, …]             an object without a prototype
 *   ["Date", "ISO 8601, UTC, ms"]             a Date, "" if invalid
 *   ["Map", reference, reference, …]          keys and values alternate
 *   ["Set", reference, …]
 *   ["RegExp", "source"], ["RegExp", "source", "flags"]
 *   ["BigInt", "decimal digits"]
 *   ["Error", index]                          index of an array node [name, message, stack, cause, errors, properties]
 *                                             of references: name and message are strings; stack is a string or -2; cause is
 *                                             anything, -2 if the error has none; errors is an array or -2; properties is
 *                                             a plain object of the other own enumerable properties (code among them) or -2
 *   ["Bytes", index]                          index of an array node ["ArrayBuffer", attachment] or
 *                                             [kind, buffer, byteOffset, length] of references: kind is "DataView" or the name
 *                                             of a typed array class; buffer refers to the ["Bytes", …] node of an
 *                                             ArrayBuffer; length counts elements (bytes for a DataView); attachment is
 *                                             the place of the bytes among the value's attachments, each used once
 * These are devalue 6's own forms with two custom types, so that `devalue.parse` with two revivers reads it, and one
 * extension: a key `__proto__` is written like any other (devalue refuses it) and is only ever an own property.
 *
 * Writers number nodes in the order in which they first meet a value, a container before what it contains; a string or an
 * object met again is referred to, and so are null, true and false; numbers and bigints are not, each gets a node. Keys are
 * in property order. Of the two array forms with holes the one with less structure is taken, by devalue's rule:
 * [-7…] if 4 + d + n·(d + 1) < 3·(length - n), where n elements are present and length has d digits; asked at the
 * first hole. Strings are as JSON.stringify writes them.
 *
 * ## Bounds, which readers enforce and writers keep to
 * depth (container in container, also through references), nodes (JSON values, or references followed, each shared one as
 * often as it is reached, so that a short text cannot unfold into a huge structure; holes and every 64 bytes of a view
 * count as well), `bigintDigits`, `regExpChars`, `numericKeys` per Map or Set, text and attachment bytes.
 */

/** A value as text and bytes. The text is only ever made by an encoder; what is in it is not trusted. */
export interface EncodedValue {
  readonly text: string;
  readonly devalue: boolean;
  readonly attachments: readonly Uint8Array[];
}

export interface ValueBounds {
  readonly textBytes: number;
  /** All attachments together. */
  readonly attachmentBytes: number;
  readonly depth: number;
  readonly nodes: number;
}

export interface EncodeOptions extends Partial<ValueBounds> {
  /** Send the stack of errors. Off: a host's stack names its files, and scripts must not see those. */
  readonly stacks?: boolean;
}

export interface DecodeOptions extends Partial<ValueBounds> {
  /** A RegExp from a script can be made to run for ever: refuse it where the value goes to code that executes it. */
  readonly regExps?: "revive" | "refuse";
}

const MiB = 1024 * 1024;

/** What a 1 MiB text can need, and no more depth than recursive code can follow from any caller. */
export const valueBounds: ValueBounds = Object.freeze({
  textBytes: MiB,
  attachmentBytes: 16 * MiB,
  depth: 1000,
  nodes: MiB,
});

/** BigInt's parser is not linear: 10,000 digits take 0.5 ms, a million 190 ms. */
export const bigintDigits = 10_000;
export const regExpChars = 4096;
/** V8 hashes numbers without a seed: 4,096 colliding ones cost 20 ms, 65,536 over a second. */
export const numericKeys = 4096;

export type ValueErrorCode =
  /** The value is of a kind that does not travel. */
  | "unsupported"
  /** Reading the value ran code that threw. */
  | "unreadable"
  /** A bound was exceeded. */
  | "too_large"
  /** The text is not what an encoder writes. */
  | "malformed";

/** Why a value cannot be sent or read; the message ends with the path. It never holds text of the value but its keys. */
export class ValueError extends Error {
  override readonly name = "ValueError";
  readonly code: ValueErrorCode;
  readonly path: string;

  constructor(code: ValueErrorCode, what: string, path: string, cause?: unknown) {
    super(`${what}: ${path === "" ? "the value itself" : path}`, cause === undefined ? undefined : { cause });
    this.code = code;
    this.path = path;
  }
}

export const byteKinds = [
  "ArrayBuffer",
  "DataView",
  "Int8Array",
  "Uint8Array",
  "Uint8ClampedArray",
  "Int16Array",
  "Uint16Array",
  "Int32Array",
  "Uint32Array",
  "Float16Array",
  "Float32Array",
  "Float64Array",
  "BigInt64Array",
  "BigUint64Array",
] as const;

export type ByteKind = (typeof byteKinds)[number];

export function isByteKind(name: string): name is ByteKind {
  return (byteKinds as readonly string[]).includes(name); // widened to compare with any text
}

export const referenceUndefined = -1;
export const referenceHole = -2;
export const referenceNaN = -3;
export const referenceInfinity = -4;
export const referenceNegativeInfinity = -5;
export const referenceNegativeZero = -6;
export const sparseMark = -7;
