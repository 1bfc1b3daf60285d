/**
 * The guest's writing half of the value codec: the same text as packages/protocol/src/value.ts specifies, held to the same
 * vectors, without calling anything that a script can replace. Called for the arguments of host calls and for the result.
 *
 * The JSON form is written by the engine's own JSON.stringify, after a scan that has seen every property and found nothing
 * that JSON would change: no accessor, no class, nothing that has or inherits a `toJSON`, no object twice. If the scan finds
 * anything else, or if this activation has made a proxy, the devalue form is written property by property, each read once.
 * (The scan does not look for accessors among the elements of arrays: those would be read twice.)
 *
 * Guest code that runs here (getters, traps) runs under the budget like any other; what it throws becomes an
 * `EncodeFailure` with the path, but for the engine's own failures, which are passed on as they are.
 */

import { valueBounds } from "./bounds.js";
import { classTag } from "./class-tag.js";
import { dataProperty } from "./error-text.js";
import { isEngineFailure } from "./failures.js";
import { ItemPiece, type PathPiece, pathText } from "./path-text.js";
import {
  ArrayBufferPrototype,
  ArrayBufferPrototypeGetByteLength,
  ArrayIsArray,
  ArrayPrototype,
  accepts,
  BigIntPrototypeToString,
  DataViewPrototype,
  DataViewPrototypeGetBuffer,
  DataViewPrototypeGetByteLength,
  DataViewPrototypeGetByteOffset,
  DatePrototype,
  DatePrototypeGetTime,
  DatePrototypeToISOString,
  descriptorOf,
  ErrorIsError,
  ErrorPrototype,
  JSONStringify,
  MapPrototype,
  MapPrototypeForEach,
  MapPrototypeGet,
  MapPrototypeGetSize,
  MapPrototypeSet,
  NativeArrayBuffer,
  NativeMap,
  NativeSet,
  NativeUint8Array,
  NumberIsNaN,
  ObjectGetOwnPropertySymbols,
  ObjectGetPrototypeOf,
  ObjectHasOwn,
  ObjectKeys,
  ObjectPrototype,
  ObjectPrototypeIsPrototypeOf,
  ObjectPrototypeLookupGetter,
  PromisePrototype,
  RegExpPrototype,
  RegExpPrototypeGetSource,
  record,
  SetPrototype,
  SetPrototypeAdd,
  SetPrototypeForEach,
  SetPrototypeGetSize,
  TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetByteLength,
  TypedArrayPrototypeGetByteOffset,
  TypedArrayPrototypeGetLength,
  TypedArrayPrototypeGetToStringTag,
  TypedArrayPrototypeSet,
} from "./primordials.js";
import { anyProxy, isProxy } from "./proxies.js";
import { regExpFlags } from "./regexp-flags.js";
import { exceedsUtf8, quote } from "./text.js";
import { typedArrayPrototypes } from "./typed-arrays.js";

export interface Encoded {
  readonly text: string;
  readonly devalue: boolean;
  /** All attachments, each as u32 LE length and bytes. */
  readonly attachments: ArrayBuffer | undefined;
}

/** As the protocol's ValueErrorCode, with text and bytes told apart. */
export type EncodeFailureCode =
  | "unsupported"
  | "unreadable"
  | "too_deep"
  | "too_many"
  | "text_bytes"
  | "body_bytes";

/** Why a value cannot be sent. No Error: what becomes of it is the caller's to say. */
export class EncodeFailure {
  readonly code: EncodeFailureCode;
  readonly what: string;
  readonly path: string;

  constructor(code: EncodeFailureCode, what: string, path: string) {
    this.code = code;
    this.what = what;
    this.path = path;
  }
}

/** Throws EncodeFailure, or what the engine throws when it runs out of memory or stack. */
export function encodeValue(value: unknown, textBytes: number, bodyBytes: number): Encoded {
  textMost = textBytes;
  bodyMost = bodyBytes;
  const json = jsonText(value);
  const encoded =
    json === undefined ? devalueText(value) : { text: json, devalue: false, attachments: undefined };
  if (exceedsUtf8(encoded.text, textBytes)) throw tooMuchText();
  return encoded;
}

/** `encodeValue` of an argument list, quicker for the few plain values that most calls have. */
export function encodeArguments(args: readonly unknown[], textBytes: number, bodyBytes: number): Encoded {
  const { length } = args;
  if (length > quickArguments) return encodeValue(args, textBytes, bodyBytes);
  let text = "[";
  for (let at = 0; at < length; at++) {
    const value = args[at];
    let item: string;
    if (typeof value === "string" && value.length < quickChars) item = quote(value);
    else if (typeof value === "number" && isJsonNumber(value)) item = `${value}`;
    else if (typeof value === "boolean" || value === null) item = `${value}`;
    else return encodeValue(args, textBytes, bodyBytes);
    text += at === 0 ? item : `,${item}`;
  }
  text += "]";
  if (exceedsUtf8(text, textBytes)) return encodeValue(args, textBytes, bodyBytes);
  return { text, devalue: false, attachments: undefined };
}

const quickArguments = 4;
const quickChars = 1_000;

let textMost = 0;
let bodyMost = 0;

function tooMuchText(): EncodeFailure {
  return new EncodeFailure("text_bytes", `cannot send a value of more than ${textMost} bytes of text`, "");
}

function tooManyValues(): EncodeFailure {
  return new EncodeFailure(
    "too_many",
    `cannot send more than ${valueBounds.nodes} values in one`,
    pathText(path, depth),
  );
}

// ------------------------------------------------------------------------------------------------------------ the JSON form

/** A lower bound of the text's length, so that a rope of 256 MiB is refused before anything flattens it. */
let chars = 0;
/** At least what the reader counts. */
let parts = 0;
let containers = 0;
/** The containers met: the first few one by one, because a Set costs more than most values have. */
let seen1: object | undefined;
let seen2: object | undefined;
let seen3: object | undefined;
let seenMore: Set<object> | undefined;

function jsonText(value: unknown): string | undefined {
  chars = 0;
  parts = 1;
  switch (typeof value) {
    case "string":
      if (value.length > textMost) throw tooMuchText();
      return quote(value);
    case "boolean":
      return value ? "true" : "false";
    case "number":
      return isJsonNumber(value) ? `${value}` : undefined;
    case "object":
      break;
    default:
      return undefined;
  }
  if (value === null) return "null";
  if (anyProxy || stringifyIsTampered()) return undefined;
  containers = 0;
  seen1 = seen2 = seen3 = seenMore = undefined;
  if (!isJson(value, 1)) return undefined;
  // Each container was added once: fewer members are an object met twice.
  if (seenMore !== undefined && SetPrototypeGetSize(seenMore) !== containers - 3) return undefined;
  return JSONStringify(value);
}

/**
 * Whether JSON.stringify would run guest code: plain objects or arrays have got a `toJSON`, or a prototype that may have one,
 * or a setter for indices, which the engine meets when it notes the arrays and objects it is in.
 */
function stringifyIsTampered(): boolean {
  return (
    ObjectHasOwn(ObjectPrototype, 0) ||
    ObjectHasOwn(ArrayPrototype, 0) ||
    ObjectHasOwn(ObjectPrototype, "toJSON") ||
    ObjectHasOwn(ArrayPrototype, "toJSON") ||
    ObjectGetPrototypeOf(ArrayPrototype) !== ObjectPrototype
  );
}

/** Finite and not -0. */
function isJsonNumber(value: number): boolean {
  return value - value === 0 && (value !== 0 || 1 / value > 0);
}

function isJson(value: object, level: number): boolean {
  if (level > valueBounds.depth) return false;
  if (isSeenAgain(value)) return false;
  const prototype = ObjectGetPrototypeOf(value);
  if (prototype === ObjectPrototype) return !ArrayIsArray(value) && isJsonObject(value as PlainObject, level); // its prototype says so
  return prototype === ArrayPrototype && ArrayIsArray(value) && isJsonArray(value, level);
}

/** Notes a container. True if it is one of the first few again; of the rest the count tells. */
function isSeenAgain(value: object): boolean {
  if (value === seen1 || value === seen2 || value === seen3) return true;
  switch (containers++) {
    case 0:
      seen1 = value;
      break;
    case 1:
      seen2 = value;
      break;
    case 2:
      seen3 = value;
      break;
    default:
      seenMore ??= new NativeSet();
      SetPrototypeAdd(seenMore, value);
  }
  return false;
}

type PlainObject = { readonly [key: string]: unknown };

function isJsonObject(object: PlainObject, level: number): boolean {
  if (ObjectGetOwnPropertySymbols(object).length > 0) return false;
  const keys = ObjectKeys(object);
  const { length } = keys;
  grow(length);
  for (let at = 0; at < length; at++) {
    const key = keys[at] as string; // below its length
    if (ObjectPrototypeLookupGetter(object, key) !== undefined) return false;
    chars += key.length + 4;
    const item = object[key];
    switch (typeof item) {
      case "string":
        chars += item.length;
        if (chars > textMost) throw tooMuchText();
        break;
      case "number":
        if (!isJsonNumber(item)) return false;
        break;
      case "boolean":
        break;
      case "object":
        if (item !== null && !isJson(item, level + 1)) return false;
        break;
      default:
        return false;
    }
  }
  return true;
}

function isJsonArray(array: readonly unknown[], level: number): boolean {
  const { length } = array;
  if (length > valueBounds.nodes) return false;
  grow(length);
  chars += 2 * length;
  if (chars > textMost) throw tooMuchText();
  for (let at = 0; at < length; at++) {
    const item = array[at];
    switch (typeof item) {
      case "string":
        chars += item.length;
        if (chars > textMost) throw tooMuchText();
        break;
      case "number":
        if (!isJsonNumber(item)) return false;
        break;
      case "boolean":
        break;
      case "object":
        if (item !== null && !isJson(item, level + 1)) return false;
        break;
      default:
        // A hole reads as undefined.
        return false;
    }
  }
  return true;
}

function grow(by: number): void {
  parts += by;
  if (parts > valueBounds.nodes) throw tooManyValues();
}

// --------------------------------------------------------------------------------------------------------- the devalue form

const referenceUndefined = -1;
const referenceHole = -2;
const referenceNaN = -3;
const referenceInfinity = -4;
const referenceNegativeInfinity = -5;
const referenceNegativeZero = -6;
const sparseMark = -7;

/** Node of each string, object, null and boolean met. */
let met = new NativeMap<unknown, number>();
let nodes = record<string>();
/** Parts of each node as a tree, as the reader counts them; 1 while the node is being written. */
let sizes = record<number>();
let nodeCount = 0;
let path = record<PathPiece>();
let depth = 0;
let views = record<PartialView>();
let viewCount = 0;
let pieces = record<Piece>();
let pieceCount = 0;
let pieceBytes = 0;

/** A view of a part of its buffer, whose `["Bytes", payload]` node is written and whose payload waits for the end. */
interface PartialView {
  readonly payload: number;
  readonly kind: string;
  readonly buffer: ArrayBuffer;
  readonly offset: number;
  readonly bytes: number;
  readonly elementBytes: number;
}

/** One attachment: bytes of a buffer. */
interface Piece {
  readonly buffer: ArrayBuffer;
  readonly offset: number;
  readonly bytes: number;
  /** Zero bytes before them, for alignment. */
  readonly padding: number;
}

function devalueText(value: unknown): Encoded {
  met = new NativeMap();
  nodes = record();
  sizes = record();
  nodeCount = 0;
  path = record();
  depth = 0;
  views = record();
  viewCount = 0;
  pieces = record();
  pieceCount = 0;
  pieceBytes = 0;
  chars = 0;
  parts = 0;
  const root = reference(value);
  if (root < 0) return { text: `${root}`, devalue: true, attachments: undefined };
  writePartialViews();
  let text = `[${nodes[0] as string}`; // the root is a node
  for (let index = 1; index < nodeCount; index++) text += `,${nodes[index] as string}`; // below the count
  return { text: `${text}]`, devalue: true, attachments: joinPieces() };
}

function fail(code: EncodeFailureCode, what: string): never {
  throw new EncodeFailure(code, what, pathText(path, depth));
}

/** What a getter or a trap threw. */
function unreadable(error: unknown): never {
  if (error instanceof EncodeFailure || isEngineFailure(error)) throw error;
  return fail("unreadable", "cannot read a property whose getter throws");
}

function newNode(): number {
  if (nodeCount >= valueBounds.nodes) throw tooManyValues();
  return nodeCount++;
}

function checkGrowth(text: string): void {
  if (chars + text.length > textMost) throw tooMuchText();
}

function setNode(index: number, text: string): number {
  chars += text.length + 1;
  if (chars > textMost) throw tooMuchText();
  nodes[index] = text;
  return index;
}

function leaf(text: string): number {
  return setNode(newNode(), text);
}

function reference(value: unknown): number {
  switch (typeof value) {
    case "undefined":
      grow(1);
      return referenceUndefined;
    case "number":
      return numberReference(value);
    case "string":
      if (value.length > textMost) throw tooMuchText();
      return knownLeaf(value, true);
    case "boolean":
      return knownLeaf(value, false);
    case "bigint":
      return bigintReference(value);
    case "function":
      return fail("unsupported", "cannot send a function");
    case "symbol":
      return fail("unsupported", "cannot send a symbol");
    default:
      return value === null ? knownLeaf(null, false) : objectReference(value as object); // all that is left
  }
}

function numberReference(value: number): number {
  grow(1);
  if (NumberIsNaN(value)) return referenceNaN;
  if (value === 1 / 0) return referenceInfinity;
  if (value === -1 / 0) return referenceNegativeInfinity;
  if (value === 0 && 1 / value < 0) return referenceNegativeZero;
  return leaf(`${value}`);
}

/** Leaves that are written once. */
function knownLeaf(value: string | boolean | null, isString: boolean): number {
  grow(1);
  const known = MapPrototypeGet(met, value);
  if (known !== undefined) return known;
  const index = leaf(isString ? quote(value as string) : `${value}`); // the caller says which
  MapPrototypeSet(met, value, index);
  return index;
}

function bigintReference(value: bigint): number {
  grow(1);
  const negative = value < 0n;
  // Decimal conversion of a huge number is the slow part: hexadecimal length first, linear in the number.
  if ((negative ? -value : value) >> bigintBits !== 0n) tooLongBigint();
  const digits = BigIntPrototypeToString(value);
  if (digits.length - (negative ? 1 : 0) > valueBounds.bigintDigits) tooLongBigint();
  return leaf(`["BigInt","${digits}"]`);
}

/** More bits than this many decimal digits can have. */
const bigintBits = 33_300n;

function tooLongBigint(): never {
  return fail("too_many", `cannot send a bigint of more than ${valueBounds.bigintDigits} digits`);
}

function objectReference(value: object): number {
  const known = MapPrototypeGet(met, value);
  if (known !== undefined) {
    grow(sizes[known] as number); // set when it was met
    return known;
  }
  if (depth >= valueBounds.depth) {
    fail("too_deep", `cannot send a value nested deeper than ${valueBounds.depth} levels`);
  }
  const index = newNode();
  MapPrototypeSet(met, value, index);
  const outer = parts;
  parts = 1;
  sizes[index] = 1;
  let text: string | undefined;
  // Arrays and plain objects are told here: each function in between takes stack for every level of the value.
  if (!isProxy(value)) {
    const prototype = ObjectGetPrototypeOf(value);
    if (ArrayIsArray(value)) {
      if (prototype === ArrayPrototype) text = arrayNode(value);
    } else if (prototype === ObjectPrototype || prototype === null) {
      text = plainNode(value as PlainObject, prototype === null); // its prototype says so
    }
  }
  setNode(index, text ?? otherNode(value));
  sizes[index] = parts;
  const size = parts;
  parts = outer;
  grow(size);
  return index;
}

function otherNode(value: object): string {
  if (isProxy(value)) return proxyNode(value);
  if (ErrorIsError(value) || ObjectPrototypeIsPrototypeOf(ErrorPrototype, value)) return errorNode(value);
  return nativeNode(value, ObjectGetPrototypeOf(value)) ?? refuseInstance(value);
}

/** A proxy of a plain object or array is read like one; its traps may throw. */
function proxyNode(value: object): string {
  let isArray = false;
  let prototype: object | null = null;
  try {
    isArray = ArrayIsArray(value);
    prototype = ObjectGetPrototypeOf(value);
  } catch (error) {
    unreadable(error);
  }
  if (isArray) return arrayNode(value as unknown as readonly unknown[]); // ArrayIsArray looks through proxies
  if (prototype === ObjectPrototype || prototype === null)
    return plainNode(value as PlainObject, prototype === null); // read as one
  return fail("unsupported", "cannot send a proxy of a class instance");
}

/** Values of the language's own classes, by their intrinsic prototype and their internals. */
function nativeNode(value: object, prototype: object | null): string | undefined {
  const kind = TypedArrayPrototypeGetToStringTag(value);
  if (kind !== undefined)
    return prototype === typedArrayPrototypes[kind] ? typedArrayNode(value, kind) : undefined;
  switch (prototype) {
    case DatePrototype:
      return accepts(DatePrototypeGetTime, value) ? dateNode(value as Date) : undefined; // accepted
    case MapPrototype:
      return accepts(MapPrototypeGetSize, value) ? mapNode(value) : undefined;
    case SetPrototype:
      return accepts(SetPrototypeGetSize, value) ? setItemsNode(value) : undefined;
    case RegExpPrototype:
      return accepts(RegExpPrototypeGetSource, value) ? regExpNode(value) : undefined;
    case ArrayBufferPrototype:
      return accepts(ArrayBufferPrototypeGetByteLength, value) ? bufferNode(value as ArrayBuffer) : undefined; // accepted
    case DataViewPrototype:
      return accepts(DataViewPrototypeGetByteLength, value) ? dataViewNode(value) : undefined;
    default:
      return undefined;
  }
}

function refuseInstance(value: object): never {
  if (ObjectPrototypeIsPrototypeOf(PromisePrototype, value)) {
    fail("unsupported", "cannot send a promise that was not awaited");
  }
  const tag = classTag(value);
  return fail("unsupported", `cannot send an instance of ${tag === "" ? "a class" : tag}`);
}

/** `reference` of a value that lies at `piece` of the present one. */
function child(piece: PathPiece, value: unknown): number {
  path[depth++] = piece;
  const index = reference(value);
  depth--;
  return index;
}

function property(object: PlainObject, key: string): number {
  path[depth++] = key;
  let value: unknown;
  try {
    value = object[key];
  } catch (error) {
    unreadable(error);
  }
  const index = reference(value);
  depth--;
  return index;
}

/** Own enumerable string keys; an enumerable symbol among the keys is refused. */
function keysOf(object: object): string[] {
  try {
    const symbols = ObjectGetOwnPropertySymbols(object);
    for (let at = 0; at < symbols.length; at++) {
      if (descriptorOf(object, symbols[at] as symbol)?.enumerable === true) {
        fail("unsupported", "cannot send a property whose key is a symbol");
      }
    }
    return ObjectKeys(object);
  } catch (error) {
    return unreadable(error);
  }
}

function plainNode(object: PlainObject, isNull: boolean): string {
  const keys = keysOf(object);
  const { length } = keys;
  let text = isNull ? '["null"' : "{";
  for (let at = 0; at < length; at++) {
    const key = keys[at] as string; // below its length
    path[depth++] = key;
    let value: unknown;
    try {
      value = object[key];
    } catch (error) {
      unreadable(error);
    }
    text += isNull ? `,${quote(key)},` : `${at === 0 ? "" : ","}${quote(key)}:`;
    text += reference(value);
    depth--;
    checkGrowth(text);
  }
  return text + (isNull ? "]" : "}");
}

function arrayNode(array: readonly unknown[]): string {
  let length = 0;
  try {
    length = array.length;
  } catch (error) {
    unreadable(error);
  }
  let dense = false;
  let text = "";
  for (let index = 0; index < length; index++) {
    if (index > 0) text += ",";
    path[depth++] = index;
    let present = false;
    let value: unknown;
    try {
      present = ObjectHasOwn(array, index);
      if (present) value = array[index];
    } catch (error) {
      unreadable(error);
    }
    if (present) text += reference(value);
    depth--;
    if (!present) {
      if (!dense) {
        const present = presentIndices(array, length);
        if (sparseIsShorter(length, present.count)) return sparseNode(array, length, present);
        if (length > valueBounds.nodes) throw tooManyValues();
        dense = true;
      }
      grow(1);
      text += referenceHole;
    }
    checkGrowth(text);
  }
  return `[${text}]`;
}

interface Indices {
  [at: number]: number;
  count: number;
}

function presentIndices(array: object, length: number): Indices {
  const indices = record<number>() as unknown as Indices; // given its count in the next line
  indices.count = 0;
  const keys = keysOf(array);
  for (let at = 0; at < keys.length; at++) {
    const key = keys[at] as string; // below its length
    const index = +key;
    // The keys that are indices come first and ascend.
    if (`${index}` !== key || !(index >= 0 && index < length) || index % 1 !== 0) break;
    indices[indices.count++] = index;
  }
  return indices;
}

/** devalue's rule for the form of an array with holes. */
function sparseIsShorter(length: number, present: number): boolean {
  const digits = `${length}`.length;
  return 4 + digits + present * (digits + 1) < 3 * (length - present);
}

function sparseNode(array: readonly unknown[], length: number, present: Indices): string {
  if (length > valueBounds.nodes) {
    fail("too_many", `cannot send an array with holes that is longer than ${valueBounds.nodes}`);
  }
  grow(length);
  let text = `[${sparseMark},${length}`;
  for (let at = 0; at < present.count; at++) {
    const index = present[at] as number; // below the count
    text += `,${index},${property(array as unknown as PlainObject, index as unknown as string)}`; // an index is a key
    checkGrowth(text);
  }
  return `${text}]`;
}

function dateNode(date: Date): string {
  const time = DatePrototypeGetTime(date);
  return NumberIsNaN(time) ? '["Date",""]' : `["Date","${DatePrototypeToISOString(date)}"]`;
}

function isNumeric(value: unknown): boolean {
  return typeof value === "number" || typeof value === "bigint";
}

function mapNode(map: object): string {
  let text = '["Map"';
  let numbers = 0;
  let item = 0;
  MapPrototypeForEach(map, (value, key) => {
    if (isNumeric(key) && ++numbers > valueBounds.numericKeys) tooManyNumbers("Map");
    text += `,${child(new ItemPiece("keys", item++), key)},${child(new ItemPiece("get", key), value)}`;
    checkGrowth(text);
  });
  return `${text}]`;
}

function setItemsNode(set: object): string {
  let text = '["Set"';
  let numbers = 0;
  let item = 0;
  SetPrototypeForEach(set, (member) => {
    if (isNumeric(member) && ++numbers > valueBounds.numericKeys) tooManyNumbers("Set");
    text += `,${child(new ItemPiece("values", item++), member)}`;
    checkGrowth(text);
  });
  return `${text}]`;
}

function tooManyNumbers(what: string): never {
  return fail(
    "too_many",
    `cannot send a ${what} with more than ${valueBounds.numericKeys} keys that are numbers`,
  );
}

function regExpNode(value: object): string {
  const source = RegExpPrototypeGetSource(value);
  if (source.length > valueBounds.regExpChars) {
    fail("too_many", `cannot send a RegExp of more than ${valueBounds.regExpChars} characters`);
  }
  const flags = regExpFlags(value);
  return flags === "" ? `["RegExp",${quote(source)}]` : `["RegExp",${quote(source)},"${flags}"]`;
}

/** Without its stack: positions in it are those of the bundle, which mean nothing to whoever gets the value. */
function errorNode(error: object): string {
  const payload = newNode();
  const nameData = dataProperty(error, "name");
  const messageData = dataProperty(error, "message");
  const name = knownLeaf(checked(typeof nameData === "string" ? nameData : "Error"), true);
  const message = knownLeaf(checked(typeof messageData === "string" ? messageData : ""), true);
  let cause: number = referenceHole;
  if (ObjectHasOwn(error, "cause")) cause = property(error as PlainObject, "cause"); // its own
  let errors: number = referenceHole;
  const hasErrors = ArrayIsArray(descriptorOf(error, "errors")?.value);
  if (hasErrors) errors = property(error as PlainObject, "errors"); // its own
  const properties = errorProperties(error as PlainObject, hasErrors); // read by its own keys
  setNode(payload, `[${name},${message},${referenceHole},${cause},${errors},${properties}]`);
  return `["Error",${payload}]`;
}

function checked(text: string): string {
  if (text.length > textMost) throw tooMuchText();
  return text;
}

function errorProperties(error: PlainObject, hasErrors: boolean): number {
  const keys = keysOf(error);
  let index = referenceHole;
  let text = "";
  for (let at = 0; at < keys.length; at++) {
    const key = keys[at] as string; // below its length
    if (key === "name" || key === "message" || key === "stack" || key === "cause") continue;
    if (key === "errors" && hasErrors) continue;
    if (index === referenceHole) index = newNode();
    text += `${text === "" ? "" : ","}${quote(key)}:${property(error, key)}`;
    checkGrowth(text);
  }
  return index === referenceHole ? index : setNode(index, `{${text}}`);
}

// ------------------------------------------------------------------------------------------------------------------- bytes

/** 64 bytes of a view count as one part. */
const bytesPerPartShift = 6;

function bufferNode(buffer: ArrayBuffer): string {
  const payload = newNode();
  const kind = knownLeaf("ArrayBuffer", true);
  const bytes = ArrayBufferPrototypeGetByteLength(buffer);
  grow(1 + (bytes >>> bytesPerPartShift));
  const attachment = leaf(`${attach(buffer, 0, bytes, 0)}`);
  setNode(payload, `[${kind},${attachment}]`);
  return `["Bytes",${payload}]`;
}

function typedArrayNode(view: object, kind: string): string {
  const bytes = TypedArrayPrototypeGetByteLength(view);
  const length = TypedArrayPrototypeGetLength(view);
  return viewNode({
    payload: newNode(),
    kind,
    buffer: TypedArrayPrototypeGetBuffer(view),
    offset: TypedArrayPrototypeGetByteOffset(view),
    bytes,
    elementBytes: length === 0 ? elementBytesOf(kind) : bytes / length,
  });
}

/** Only empty arrays are asked for: the next larger alignment does no harm there. */
function elementBytesOf(kind: string): number {
  return kind === "Uint8Array" || kind === "Int8Array" || kind === "Uint8ClampedArray" ? 1 : 8;
}

function dataViewNode(view: object): string {
  return viewNode({
    payload: newNode(),
    kind: "DataView",
    buffer: DataViewPrototypeGetBuffer(view),
    offset: DataViewPrototypeGetByteOffset(view),
    bytes: DataViewPrototypeGetByteLength(view),
    elementBytes: 1,
  });
}

function viewNode(view: PartialView): string {
  grow(view.bytes >>> bytesPerPartShift);
  if (
    view.bytes === ArrayBufferPrototypeGetByteLength(view.buffer) ||
    MapPrototypeGet(met, view.buffer) !== undefined
  ) {
    const kind = knownLeaf(view.kind, true);
    setNode(view.payload, viewPayload(kind, view, child("buffer", view.buffer), view.offset));
  } else {
    // The buffer that it will get, which is written when nothing else is left.
    grow(6 + (view.bytes >>> bytesPerPartShift));
    views[viewCount++] = view;
  }
  return `["Bytes",${view.payload}]`;
}

function viewPayload(kind: number, view: PartialView, buffer: number, offset: number): string {
  grow(2);
  return `[${kind},${buffer},${leaf(`${offset}`)},${leaf(`${view.bytes / view.elementBytes}`)}]`;
}

/**
 * Of a buffer that is not in the value itself and that no view covers, only what the views show is sent. Views that overlap
 * keep sharing memory.
 */
function writePartialViews(): void {
  for (let at = 0; at < viewCount; at++) {
    const view = views[at];
    if (view === undefined) continue;
    const whole = MapPrototypeGet(met, view.buffer);
    if (whole === undefined) continue;
    setNode(view.payload, viewPayload(knownLeaf(view.kind, true), view, whole, view.offset));
    delete views[at];
  }
  for (let at = 0; at < viewCount; at++) {
    const view = views[at];
    if (view !== undefined) writeSegments(view.buffer, at);
  }
}

/** Writes all views of one buffer from place `from` on, run by run of overlapping ones in order of their offsets. */
function writeSegments(buffer: ArrayBuffer, from: number): void {
  for (;;) {
    const first = firstView(buffer, from);
    if (first === undefined) return;
    let end = first.offset + first.bytes;
    let alignment = 1;
    // Each pass may reach further; the number of views bounds it.
    for (let grew = true; grew; ) {
      grew = false;
      for (let at = from; at < viewCount; at++) {
        const view = views[at];
        if (view === undefined || view.buffer !== buffer || !isInRun(view, first, end)) continue;
        if (view.elementBytes > alignment) alignment = view.elementBytes;
        if (view.offset + view.bytes > end) {
          end = view.offset + view.bytes;
          grew = true;
        }
      }
    }
    writeSegment(buffer, from, first, end, alignment);
  }
}

function isInRun(view: PartialView, first: PartialView, end: number): boolean {
  return view === first || view.offset < end;
}

function firstView(buffer: ArrayBuffer, from: number): PartialView | undefined {
  let first: PartialView | undefined;
  for (let at = from; at < viewCount; at++) {
    const view = views[at];
    if (view === undefined || view.buffer !== buffer) continue;
    if (first === undefined || view.offset < first.offset) first = view;
  }
  return first;
}

function writeSegment(
  buffer: ArrayBuffer,
  from: number,
  first: PartialView,
  end: number,
  alignment: number,
): void {
  const begin = first.offset;
  const padding = begin % alignment;
  const bufferIndex = newNode();
  const payload = newNode();
  const kind = knownLeaf("ArrayBuffer", true);
  setNode(payload, `[${kind},${leaf(`${attach(buffer, begin, end - begin, padding)}`)}]`);
  setNode(bufferIndex, `["Bytes",${payload}]`);
  for (;;) {
    const next = firstInRun(buffer, from, first, end);
    if (next < 0) return;
    const view = views[next] as PartialView; // the place of one
    delete views[next];
    setNode(
      view.payload,
      viewPayload(knownLeaf(view.kind, true), view, bufferIndex, view.offset - begin + padding),
    );
  }
}

/** Place of the run's first view by offset, -1 when there is none left. */
function firstInRun(buffer: ArrayBuffer, from: number, first: PartialView, end: number): number {
  let found = -1;
  for (let at = from; at < viewCount; at++) {
    const view = views[at];
    if (view === undefined || view.buffer !== buffer || !isInRun(view, first, end)) continue;
    if (found < 0 || view.offset < (views[found] as PartialView).offset) found = at; // the place of one
  }
  return found;
}

function attach(buffer: ArrayBuffer, offset: number, bytes: number, padding: number): number {
  pieceBytes += bytes + padding;
  if (pieceBytes > bodyMost) {
    fail("body_bytes", `cannot send more than ${bodyMost} bytes of binary data in one value`);
  }
  if (pieceCount >= valueBounds.attachments) {
    fail("too_many", `cannot send more than ${valueBounds.attachments} buffers in one value`);
  }
  pieces[pieceCount] = { buffer, offset, bytes, padding };
  return pieceCount++;
}

function joinPieces(): ArrayBuffer | undefined {
  if (pieceCount === 0) return undefined;
  const joined = new NativeArrayBuffer(pieceBytes + 4 * pieceCount);
  const into = new NativeUint8Array(joined);
  let to = 0;
  for (let index = 0; index < pieceCount; index++) {
    const { buffer, offset, bytes, padding } = pieces[index] as Piece; // below the count
    const size = bytes + padding;
    into[to] = size;
    into[to + 1] = size >>> 8;
    into[to + 2] = size >>> 16;
    into[to + 3] = size >>> 24;
    // A detached buffer is empty, and no view can be made of it.
    if (bytes > 0)
      TypedArrayPrototypeSet(into, new NativeUint8Array(buffer, offset, bytes), to + 4 + padding);
    to += 4 + size;
  }
  return joined;
}
