/**
 * The writing half of the codec of `value.ts` (read its head first). Called with what host functions return, with inputs
 * and with arguments of tests. The value is a host's, so its code is not hostile, but a getter or a proxy may throw, change
 * its answers or never end in depth: every property is read once, what throws is reported with its path, and everything is
 * bounded.
 *
 * The JSON form is tried first, because nearly every value has it; the first thing that JSON cannot say ends the attempt
 * and the devalue form is written from the start, which also finds the path of what cannot be sent at all.
 */

import { types } from "node:util";
import { valueAttachmentsMost } from "./messages.js";
import {
  type ByteKind,
  bigintDigits,
  type EncodedValue,
  type EncodeOptions,
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

const noAttachments: readonly Uint8Array[] = Object.freeze([]);

/** Text and attachments for a value; throws ValueError, never anything else. */
export function encodeValue(value: unknown, options: EncodeOptions = {}): EncodedValue {
  const bounds: ValueBounds = {
    textBytes: options.textBytes ?? valueBounds.textBytes,
    attachmentBytes: options.attachmentBytes ?? valueBounds.attachmentBytes,
    depth: options.depth ?? valueBounds.depth,
    nodes: options.nodes ?? valueBounds.nodes,
  };
  try {
    const json = jsonText(value, bounds);
    const encoded =
      json === undefined
        ? new DevalueWriter(bounds, options.stacks ?? false).write(value)
        : { text: json, devalue: false, attachments: noAttachments };
    checkTextBytes(encoded.text, bounds);
    return encoded;
  } catch (error) {
    if (error instanceof ValueError) throw error;
    // A proxy's trap, the end of the stack under a deep caller, the longest string of the engine.
    throw new ValueError("unreadable", "cannot read the value", "", error);
  }
}

/** UTF-8 length, computed only when the string's length leaves it open. */
function checkTextBytes(text: string, bounds: ValueBounds): void {
  if (
    text.length > bounds.textBytes ||
    (text.length * 3 > bounds.textBytes && Buffer.byteLength(text) > bounds.textBytes)
  ) {
    throw tooMuchText(bounds);
  }
}

function tooMuchText(bounds: ValueBounds): ValueError {
  return new ValueError(
    "too_large",
    `cannot send a value of more than ${bounds.textBytes} bytes of text`,
    "",
  );
}

// ------------------------------------------------------------------------------------------------------------ the JSON form

/** Ends the attempt: JSON cannot say this. */
const notJson = Symbol("notJson");

function jsonText(value: unknown, bounds: ValueBounds): string | undefined {
  const writer = new JsonWriter(bounds);
  try {
    writer.write(value, 0);
    return writer.text;
  } catch (error) {
    if (error instanceof ValueError) throw error;
    return undefined; // notJson, or what a getter threw: the other form's writer knows the path
  }
}

/** Objects in one value beyond which a Set is quicker than looking through a list. */
const listed = 8;

/** Text that JSON puts between quotes as it is; beyond some length JSON.stringify looks faster than this can. */
const plainText = /^[\x20\x21\x23-\x5b\x5d-\x7e]{0,100}$/;

function quoted(text: string): string {
  return plainText.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** Writes while it checks, so that every property is read once. Pieces are appended: one flat text is built, not a tree. */
class JsonWriter {
  readonly #bounds: ValueBounds;
  readonly #few: object[] = [];
  #many: Set<object> | undefined;
  text = "";

  constructor(bounds: ValueBounds) {
    this.#bounds = bounds;
  }

  write(value: unknown, depth: number): void {
    switch (typeof value) {
      case "string":
        this.text += quoted(value);
        if (this.text.length > this.#bounds.textBytes) throw tooMuchText(this.#bounds);
        return;
      case "number":
        // Not finite: the difference is NaN. JSON has no -0.
        if (value - value !== 0 || (value === 0 && Object.is(value, -0))) throw notJson;
        this.text += value;
        return;
      case "boolean":
        this.text += value ? "true" : "false";
        return;
      case "object":
        if (value === null) this.text += "null";
        else this.#container(value, depth);
        return;
      default:
        throw notJson;
    }
  }

  #container(value: object, depth: number): void {
    if (depth >= this.#bounds.depth || this.#met(value)) throw notJson;
    const prototype: unknown = Object.getPrototypeOf(value);
    if (Array.isArray(value)) {
      if (prototype !== Array.prototype) throw notJson;
      this.#array(value, depth + 1);
    } else {
      if (prototype !== Object.prototype) throw notJson;
      this.#object(value as Record<string, unknown>, depth + 1); // a plain object
    }
  }

  #array(array: readonly unknown[], depth: number): void {
    const length = array.length;
    // It does not fit, unless nearly all of it is holes.
    if (2 * length > this.#bounds.textBytes) throw notJson;
    this.text += "[";
    for (let index = 0; index < length; index++) {
      if (index > 0) this.text += ",";
      // A hole reads as undefined, which JSON cannot say either.
      this.write(array[index], depth);
    }
    this.text += "]";
  }

  #object(object: Record<string, unknown>, depth: number): void {
    if (Object.getOwnPropertySymbols(object).length > 0) throw notJson;
    let separator = "{";
    for (const key of Object.keys(object)) {
      this.text += `${separator}${quoted(key)}:`;
      separator = ",";
      this.write(object[key], depth);
    }
    this.text += separator === "{" ? "{}" : "}";
    if (this.text.length > this.#bounds.textBytes) throw tooMuchText(this.#bounds);
  }

  #met(value: object): boolean {
    if (this.#many !== undefined) {
      const { size } = this.#many;
      return this.#many.add(value).size === size;
    }
    if (this.#few.includes(value)) return true;
    this.#few.push(value);
    if (this.#few.length > listed) this.#many = new Set(this.#few);
    return false;
  }
}

// --------------------------------------------------------------------------------------------------------- the devalue form

/** A piece of the path to what is being written: `.key`, `[3]`, `.get("k")`, ready to print or made so on demand. */
type PathPiece =
  | string
  | number
  | { readonly mapKey: unknown }
  | { readonly mapItem: number }
  | { readonly setItem: number };

/** A view of a part of its buffer, whose `["Bytes", payload]` node is written and whose payload waits for the end. */
interface PartialView {
  readonly payload: number;
  readonly kind: ByteKind;
  readonly view: ArrayBufferView;
}

class DevalueWriter {
  readonly #bounds: ValueBounds;
  readonly #stacks: boolean;
  /** Index of the node of each string, object, null and boolean met. Numbers stay out: V8 hashes them without a seed. */
  readonly #met = new Map<unknown, number>();
  readonly #nodes: string[] = [];
  #chars = 0;
  readonly #path: PathPiece[] = [];
  readonly #partialViews: PartialView[] = [];
  readonly #attachments: Uint8Array[] = [];
  #attachmentBytes = 0;

  constructor(bounds: ValueBounds, stacks: boolean) {
    this.#bounds = bounds;
    this.#stacks = stacks;
  }

  write(value: unknown): EncodedValue {
    const root = this.#reference(value);
    if (root < 0) return { text: String(root), devalue: true, attachments: noAttachments };
    this.#writePartialViews();
    return { text: `[${this.#nodes.join(",")}]`, devalue: true, attachments: this.#attachments };
  }

  #fail(code: "unsupported" | "unreadable" | "too_large", what: string, cause?: unknown): never {
    throw new ValueError(code, what, pathText(this.#path), cause);
  }

  /** Called while a node's text grows, which holds no nodes when it is references to undefined alone. */
  #checkGrowth(text: string): void {
    if (this.#chars + text.length > this.#bounds.textBytes) throw tooMuchText(this.#bounds);
  }

  #newNode(): number {
    const index = this.#nodes.length;
    if (index >= this.#bounds.nodes)
      this.#fail("too_large", `cannot send more than ${this.#bounds.nodes} values in one`);
    this.#nodes.push("");
    return index;
  }

  #set(index: number, text: string): number {
    this.#chars += text.length + 1;
    if (this.#chars > this.#bounds.textBytes) throw tooMuchText(this.#bounds);
    this.#nodes[index] = text;
    return index;
  }

  #leaf(text: string): number {
    return this.#set(this.#newNode(), text);
  }

  #reference(value: unknown): number {
    switch (typeof value) {
      case "undefined":
        return referenceUndefined;
      case "number":
        return this.#number(value);
      case "string":
        return this.#string(value);
      case "boolean":
        return this.#shared(value, value ? "true" : "false");
      case "bigint":
        return this.#bigint(value);
      case "function":
        return this.#fail("unsupported", "cannot send a function");
      case "symbol":
        return this.#fail("unsupported", "cannot send a symbol");
      default:
        return value === null ? this.#shared(value, "null") : this.#object(value as object); // "object" is all that is left
    }
  }

  #number(value: number): number {
    if (Number.isNaN(value)) return referenceNaN;
    if (value === Number.POSITIVE_INFINITY) return referenceInfinity;
    if (value === Number.NEGATIVE_INFINITY) return referenceNegativeInfinity;
    if (Object.is(value, -0)) return referenceNegativeZero;
    return this.#leaf(`${value}`);
  }

  /** The node of null, true or false. */
  #shared(value: boolean | null, text: string): number {
    const met = this.#met.get(value);
    if (met !== undefined) return met;
    const index = this.#leaf(text);
    this.#met.set(value, index);
    return index;
  }

  #string(value: string): number {
    const met = this.#met.get(value);
    if (met !== undefined) return met;
    const index = this.#leaf(quoted(value));
    this.#met.set(value, index);
    return index;
  }

  #bigint(value: bigint): number {
    // 4 bits per hexadecimal digit; conversion to decimal is the slow part and comes after the check.
    if (BigInt.asIntN(Math.ceil(bigintDigits * 3.33), value) !== value) this.#tooLongBigint();
    const digits = value.toString();
    if (digits.length - (value < 0n ? 1 : 0) > bigintDigits) this.#tooLongBigint();
    return this.#leaf(`["BigInt","${digits}"]`);
  }

  #tooLongBigint(): never {
    return this.#fail("too_large", `cannot send a bigint of more than ${bigintDigits} digits`);
  }

  #object(value: object): number {
    const met = this.#met.get(value);
    if (met !== undefined) return met;
    if (this.#path.length >= this.#bounds.depth) {
      this.#fail("too_large", `cannot send a value nested deeper than ${this.#bounds.depth} levels`);
    }
    const index = this.#newNode();
    this.#met.set(value, index);
    return this.#set(index, this.#container(value));
  }

  #container(value: object): string {
    if (types.isProxy(value)) return this.#proxy(value);
    const chain = prototypeChain(value);
    if (Array.isArray(value) && chain === 2) return this.#array(value);
    if (isPlain(value, chain)) return this.#plain(value as Record<string, unknown>); // its prototype says so
    if (types.isNativeError(value) || value instanceof Error) return this.#error(value);
    if (ArrayBuffer.isView(value)) return this.#view(value, chain);
    if (chain === 2) {
      if (types.isDate(value)) return this.#date(value);
      if (types.isMap(value)) return this.#map(value);
      if (types.isSet(value)) return this.#setOf(value);
      if (types.isRegExp(value)) return this.#regExp(value);
      if (types.isArrayBuffer(value)) return this.#buffer(value);
    }
    if (types.isPromise(value)) this.#fail("unsupported", "cannot send a promise that was not awaited");
    return this.#fail("unsupported", `cannot send an instance of ${className(value)}`);
  }

  /** A proxy of a plain object or array is read like one; its traps may throw. */
  #proxy(value: object): string {
    const prototype = this.#read(() => Object.getPrototypeOf(value) as unknown); // typed any by the library
    if (Array.isArray(value)) return this.#array(value);
    if (prototype === Object.prototype || prototype === null)
      return this.#plain(value as Record<string, unknown>); // read as one
    return this.#fail("unsupported", "cannot send a proxy of a class instance");
  }

  /** Runs code of the value: a getter, a proxy's trap. */
  #read<T>(get: () => T): T {
    try {
      return get();
    } catch (error) {
      if (error instanceof ValueError) throw error;
      return this.#fail("unreadable", "cannot read a property whose getter throws", error);
    }
  }

  #child(piece: PathPiece, value: unknown): number {
    this.#path.push(piece);
    const reference = this.#reference(value);
    this.#path.pop();
    return reference;
  }

  #property(object: Record<string, unknown>, key: string): number {
    this.#path.push(key);
    const reference = this.#reference(this.#read(() => object[key]));
    this.#path.pop();
    return reference;
  }

  #plain(object: Record<string, unknown>): string {
    const keys = this.#keys(object);
    if (this.#read(() => Object.getPrototypeOf(object) as unknown) === null) {
      let text = '["null"';
      for (const key of keys) text += `,${quoted(key)},${this.#property(object, key)}`;
      return `${text}]`;
    }
    let text = "{";
    for (const key of keys) {
      text += `${text.length === 1 ? "" : ","}${quoted(key)}:${this.#property(object, key)}`;
    }
    return `${text}}`;
  }

  /** Own enumerable string keys; an enumerable symbol among the keys is refused. */
  #keys(object: object): string[] {
    return this.#read(() => {
      for (const symbol of Object.getOwnPropertySymbols(object)) {
        if (Object.getOwnPropertyDescriptor(object, symbol)?.enumerable === true) {
          this.#fail("unsupported", "cannot send a property whose key is a symbol");
        }
      }
      return Object.keys(object);
    });
  }

  #array(array: readonly unknown[]): string {
    const length = this.#read(() => array.length);
    let dense = false;
    let text = "";
    for (let index = 0; index < length; index++) {
      if (index > 0) text += ",";
      if (this.#read(() => Object.hasOwn(array, index))) {
        this.#path.push(index);
        text += this.#reference(this.#read(() => array[index]));
        this.#path.pop();
        this.#checkGrowth(text);
        continue;
      }
      if (!dense) {
        const present = this.#read(() => presentIndices(array));
        if (sparseIsShorter(length, present.length)) return this.#sparse(array, length, present);
        if (length > this.#bounds.nodes)
          this.#fail("too_large", `cannot send more than ${this.#bounds.nodes} values in one`);
        dense = true;
      }
      text += referenceHole;
    }
    return `[${text}]`;
  }

  #sparse(array: readonly unknown[], length: number, present: readonly number[]): string {
    if (length > this.#bounds.nodes) {
      this.#fail("too_large", `cannot send an array with holes that is longer than ${this.#bounds.nodes}`);
    }
    let text = `[${sparseMark},${length}`;
    for (const index of present)
      text += `,${index},${this.#child(
        index,
        this.#read(() => array[index]),
      )}`;
    return `${text}]`;
  }

  #date(date: Date): string {
    const time = date.getTime();
    return Number.isNaN(time) ? '["Date",""]' : `["Date","${new Date(time).toISOString()}"]`;
  }

  #map(map: Map<unknown, unknown>): string {
    let text = '["Map"';
    let numbers = 0;
    let item = 0;
    for (const [key, value] of Map.prototype.entries.call(map)) {
      if (isNumeric(key) && ++numbers > numericKeys) this.#tooManyNumbers("Map");
      text += `,${this.#child({ mapItem: item++ }, key)}`;
      text += `,${this.#child({ mapKey: key }, value)}`;
      this.#checkGrowth(text);
    }
    return `${text}]`;
  }

  #setOf(set: Set<unknown>): string {
    let text = '["Set"';
    let numbers = 0;
    let item = 0;
    for (const member of Set.prototype.values.call(set)) {
      if (isNumeric(member) && ++numbers > numericKeys) this.#tooManyNumbers("Set");
      text += `,${this.#child({ setItem: item++ }, member)}`;
      this.#checkGrowth(text);
    }
    return `${text}]`;
  }

  #tooManyNumbers(what: string): never {
    return this.#fail(
      "too_large",
      `cannot send a ${what} with more than ${numericKeys} keys that are numbers`,
    );
  }

  #regExp(regExp: RegExp): string {
    const { source, flags } = this.#read(() => ({ source: regExp.source, flags: regExp.flags }));
    if (source.length > regExpChars) {
      this.#fail("too_large", `cannot send a RegExp of more than ${regExpChars} characters`);
    }
    return flags === ""
      ? `["RegExp",${JSON.stringify(source)}]`
      : `["RegExp",${JSON.stringify(source)},${JSON.stringify(flags)}]`;
  }

  #error(error: Error): string {
    const payload = this.#newNode();
    const name = this.#string(this.#read(() => textOr(error.name, "Error")));
    const message = this.#string(this.#read(() => textOr(error.message, "")));
    const stack = this.#stacks ? this.#read(() => error.stack) : undefined;
    const stackReference = typeof stack === "string" ? this.#string(stack) : referenceHole;
    let cause: number = referenceHole;
    if (this.#read(() => Object.hasOwn(error, "cause")))
      cause = this.#child(
        "cause",
        this.#read(() => error.cause),
      );
    let errors: number = referenceHole;
    const members = this.#read(() =>
      Object.hasOwn(error, "errors") ? (error as { errors?: unknown }).errors : undefined,
    ); // looked at next
    if (Array.isArray(members)) errors = this.#child("errors", members);
    const properties = this.#errorProperties(error, Array.isArray(members));
    this.#set(payload, `[${name},${message},${stackReference},${cause},${errors},${properties}]`);
    return `["Error",${payload}]`;
  }

  #errorProperties(error: Error, withoutErrors: boolean): number {
    const keys = this.#keys(error).filter(
      (key) => !errorFields.has(key) && !(withoutErrors && key === "errors"),
    );
    if (keys.length === 0) return referenceHole;
    const index = this.#newNode();
    let text = "{";
    const object = error as unknown as Record<string, unknown>; // its own enumerable keys are read
    for (const key of keys) {
      text += `${text.length === 1 ? "" : ","}${quoted(key)}:${this.#property(object, key)}`;
    }
    return this.#set(index, `${text}}`);
  }

  #buffer(buffer: ArrayBuffer): string {
    const payload = this.#newNode();
    const kind = this.#string("ArrayBuffer");
    const attachment = this.#leaf(String(this.#attach(new Uint8Array(buffer.slice(0)))));
    this.#set(payload, `[${kind},${attachment}]`);
    return `["Bytes",${payload}]`;
  }

  #view(view: ArrayBufferView, chain: number): string {
    const isBuffer = Buffer.isBuffer(view);
    const kind: string = types.isDataView(view) ? "DataView" : typedArrayName(view);
    if (!isByteKind(kind) || (!isBuffer && chain !== (kind === "DataView" ? 2 : 3))) {
      return this.#fail("unsupported", `cannot send an instance of ${className(view)}`);
    }
    const { buffer } = view;
    if (!types.isArrayBuffer(buffer)) this.#fail("unsupported", "cannot send shared memory");
    const payload = this.#newNode();
    if (view.byteLength === buffer.byteLength || this.#met.has(buffer)) {
      const kindNode = this.#string(kind);
      this.#set(payload, this.#viewPayload(kindNode, view, this.#child("buffer", buffer), view.byteOffset));
    } else {
      this.#partialViews.push({ payload, kind, view });
    }
    return `["Bytes",${payload}]`;
  }

  #viewPayload(kind: number, view: ArrayBufferView, buffer: number, byteOffset: number): string {
    const length = view.byteLength / elementBytes(view);
    return `[${kind},${buffer},${this.#leaf(String(byteOffset))},${this.#leaf(String(length))}]`;
  }

  /**
   * Of a buffer that is not in the value itself and that no view covers, only what the views show is sent: Node's pools
   * put bytes of unrelated origin beside them. Views that overlap keep sharing memory.
   */
  #writePartialViews(): void {
    const byBuffer = new Map<ArrayBufferLike, PartialView[]>();
    for (const partial of this.#partialViews) {
      const { buffer } = partial.view;
      const whole = this.#met.get(buffer);
      if (whole !== undefined) {
        const { payload, kind, view } = partial;
        this.#set(payload, this.#viewPayload(this.#string(kind), view, whole, view.byteOffset));
        continue;
      }
      const views = byBuffer.get(buffer);
      if (views === undefined) byBuffer.set(buffer, [partial]);
      else views.push(partial);
    }
    for (const views of byBuffer.values()) {
      views.sort((a, b) => a.view.byteOffset - b.view.byteOffset);
      for (const segment of overlapping(views)) this.#writeSegment(segment);
    }
  }

  #writeSegment(views: readonly PartialView[]): void {
    const first = views[0];
    if (first === undefined) return;
    const alignment = Math.max(...views.map(({ view }) => elementBytes(view)));
    const begin = first.view.byteOffset;
    const start = begin - (begin % alignment);
    const end = Math.max(...views.map(({ view }) => view.byteOffset + view.byteLength));
    const bytes = new Uint8Array(end - start);
    bytes.set(new Uint8Array(first.view.buffer, begin, end - begin), begin - start);
    const buffer = this.#newNode();
    const payload = this.#newNode();
    this.#set(payload, `[${this.#string("ArrayBuffer")},${this.#leaf(String(this.#attach(bytes)))}]`);
    this.#set(buffer, `["Bytes",${payload}]`);
    for (const { payload: at, kind, view } of views) {
      this.#set(at, this.#viewPayload(this.#string(kind), view, buffer, view.byteOffset - start));
    }
  }

  #attach(bytes: Uint8Array): number {
    this.#attachmentBytes += bytes.byteLength;
    if (this.#attachmentBytes > this.#bounds.attachmentBytes) {
      this.#fail(
        "too_large",
        `cannot send more than ${this.#bounds.attachmentBytes} bytes of binary data in one value`,
      );
    }
    if (this.#attachments.length >= valueAttachmentsMost) {
      this.#fail("too_large", `cannot send more than ${valueAttachmentsMost} buffers in one value`);
    }
    return this.#attachments.push(bytes) - 1;
  }
}

/** Fields of an error that its node has a place for. */
const errorFields: ReadonlySet<string> = new Set(["name", "message", "stack", "cause"]);

const typedArrayTag = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype),
  Symbol.toStringTag,
)?.get;

/** The intrinsic name: the getter looks at the view's kind, not at what somebody put on it. */
function typedArrayName(view: ArrayBufferView): string {
  return String(typedArrayTag?.call(view));
}

function elementBytes(view: ArrayBufferView): number {
  return types.isDataView(view) ? 1 : (view as Uint8Array).BYTES_PER_ELEMENT; // every other view is a typed array
}

/** Runs of views, sorted by offset, in which each overlaps the bytes before it. */
function overlapping(views: readonly PartialView[]): PartialView[][] {
  const runs: PartialView[][] = [];
  let end = -1;
  for (const partial of views) {
    const { byteOffset, byteLength } = partial.view;
    const run = runs.at(-1);
    if (run === undefined || byteOffset >= end) runs.push([partial]);
    else run.push(partial);
    end = Math.max(end, byteOffset + byteLength);
  }
  return runs;
}

/** Prototypes above an object: 0 none, 1 a plain object, 2 an array, Map, Date …, 3 a typed array. At most 5 are counted. */
function prototypeChain(value: object): number {
  let count = 0;
  let prototype: unknown = Object.getPrototypeOf(value);
  while (prototype !== null && count < 5) {
    count++;
    prototype = Object.getPrototypeOf(prototype);
  }
  return count;
}

/** An object without a prototype, or with the Object.prototype of this realm or another. */
function isPlain(value: object, chain: number): boolean {
  if (chain > 1 || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (
    prototype === null ||
    prototype === Object.prototype ||
    Object.hasOwn(prototype as object, "isPrototypeOf")
  ); // not null here
}

function className(value: object): string {
  try {
    const name: unknown = (Object.getPrototypeOf(value) as { constructor?: { name?: unknown } } | null)
      ?.constructor?.name; // any chain of gets may throw
    if (typeof name === "string" && /^[A-Za-z_$][\w$]{0,63}$/.test(name)) return name;
  } catch {
    // A getter in the way; the fallback says enough.
  }
  return "a class";
}

function isNumeric(value: unknown): boolean {
  return typeof value === "number" || typeof value === "bigint";
}

function textOr(value: unknown, fallback: string): string {
  return typeof value === "string" ? value : fallback;
}

function presentIndices(array: readonly unknown[]): number[] {
  const indices: number[] = [];
  for (const key of Object.keys(array)) {
    const index = Number(key);
    // The keys that are indices come first and ascend.
    if (String(index) !== key || !Number.isInteger(index) || index < 0 || index >= array.length) break;
    indices.push(index);
  }
  return indices;
}

/** devalue's rule for the form of an array with holes. */
export function sparseIsShorter(length: number, present: number): boolean {
  const digits = String(length).length;
  return 4 + digits + present * (digits + 1) < 3 * (length - present);
}

const pathCharsMost = 200;

function pathText(path: readonly PathPiece[]): string {
  // A path of a thousand levels is told by its two ends.
  const shown = path.length <= 40 ? path : [...path.slice(0, 20), { setItem: -1 }, ...path.slice(-20)];
  const text = shown.map(pieceText).join("");
  return text.length <= pathCharsMost ? text : `${text.slice(0, 100)}…${text.slice(-90)}`;
}

function pieceText(piece: PathPiece): string {
  if (typeof piece === "number") return `[${piece}]`;
  if (typeof piece === "string")
    return /^[A-Za-z_$][\w$]*$/.test(piece) ? `.${piece}` : `[${JSON.stringify(piece)}]`;
  if ("setItem" in piece) return piece.setItem < 0 ? "…" : `.values()[${piece.setItem}]`;
  if ("mapItem" in piece) return `.keys()[${piece.mapItem}]`;
  const { mapKey } = piece;
  if (typeof mapKey === "string") return `.get(${JSON.stringify(mapKey)})`;
  return typeof mapKey === "object" || typeof mapKey === "symbol" || typeof mapKey === "function"
    ? ".get(…)"
    : `.get(${String(mapKey)})`;
}
