/**
 * Values as text, for console lines and for what a script threw. Runs no guest code: properties are read from their
 * descriptors (an accessor shows as [Getter]), a proxy shows as what it stands for, names of classes come from data
 * properties. Bounded in depth, entries, string lengths and total length, so that a line costs little whatever it shows.
 *
 * The form is the one of Node's console, because that is what authors and models expect to read.
 */

import { classTag } from "./class-tag.js";
import { stackOf } from "./error-text.js";
import { isIdentifier } from "./path-text.js";
import {
  ArrayBufferPrototype,
  ArrayBufferPrototypeGetByteLength,
  ArrayIsArray,
  accepts,
  BigIntPrototype,
  BigIntPrototypeToString,
  BigIntPrototypeValueOf,
  BooleanPrototype,
  BooleanPrototypeValueOf,
  DataViewPrototype,
  DatePrototype,
  DatePrototypeGetTime,
  DatePrototypeToISOString,
  descriptorOf,
  ErrorIsError,
  FunctionPrototypeToString,
  MapPrototype,
  MapPrototypeForEach,
  MapPrototypeGetSize,
  NumberIsNaN,
  NumberPrototype,
  NumberPrototypeValueOf,
  ObjectGetPrototypeOf,
  ObjectHasOwn,
  ObjectPrototype,
  PromisePrototype,
  ReflectOwnKeys,
  RegExpPrototype,
  RegExpPrototypeGetSource,
  record,
  SetPrototype,
  SetPrototypeForEach,
  SetPrototypeGetSize,
  StringPrototype,
  StringPrototypeCharCodeAt,
  StringPrototypeIncludes,
  StringPrototypeRepeat,
  StringPrototypeSlice,
  StringPrototypeStartsWith,
  StringPrototypeValueOf,
  SymbolPrototypeToString,
  TypedArrayPrototypeGetLength,
  TypedArrayPrototypeGetToStringTag,
  WeakMapPrototype,
  WeakSetPrototype,
} from "./primordials.js";
import { proxyTarget } from "./proxies.js";
import { regExpFlags } from "./regexp-flags.js";
import { cut, quote } from "./text.js";

const entriesMost = 100;
const stringMost = 10_000;
const nestedStringMost = 1_000;
const lineWidth = 72;
const defaultDepth = 4;

/** Characters that one value may still produce. */
let left = 0;
let depthMost = defaultDepth;

/** What an object shows as, if not its own properties: the host object lists what was granted. */
let listingOf: (value: object) => object | undefined = () => undefined;

export function setListing(listing: typeof listingOf): void {
  listingOf = listing;
}

/** `value` as text of at most about `most` characters. */
export function inspect(value: unknown, most: number, depth = defaultDepth): string {
  left = most;
  depthMost = depth;
  return cut(show(value, 0, "", undefined), most);
}

/** The containers around the one being shown, innermost first. */
interface Enclosing {
  readonly value: object;
  readonly outer: Enclosing | undefined;
}

function show(value: unknown, depth: number, indent: string, enclosing: Enclosing | undefined): string {
  if (left <= 0) return "…";
  let text: string;
  switch (typeof value) {
    case "string":
      text = showString(value, depth === 0 ? stringMost : nestedStringMost);
      break;
    case "number":
      text = value === 0 && 1 / value < 0 ? "-0" : `${value}`;
      break;
    case "bigint":
      text = `${cut(BigIntPrototypeToString(value), nestedStringMost)}n`;
      break;
    case "symbol":
      text = SymbolPrototypeToString(value);
      break;
    case "function":
      return showObject(value, depth, indent, enclosing);
    case "object":
      if (value !== null) return showObject(value, depth, indent, enclosing);
      text = "null";
      break;
    default:
      text = `${value as undefined | boolean}`; // all that is left of the types
  }
  left -= text.length;
  return text;
}

/** Single quotes unless the text holds one, as Node picks them. */
function showString(value: string, most: number): string {
  const shown = value.length > most ? StringPrototypeSlice(value, 0, most) : value;
  const rest = value.length > most ? `... ${value.length - most} more characters` : "";
  const json = quote(shown);
  if (StringPrototypeIncludes(shown, "'")) return json + rest;
  if (!StringPrototypeIncludes(shown, '"')) {
    return `'${StringPrototypeSlice(json, 1, json.length - 1)}'${rest}`;
  }
  // JSON escaped the double quotes, which need none between single ones.
  let text = "";
  for (let at = 1; at < json.length - 1; at++) {
    const unit = StringPrototypeCharCodeAt(json, at);
    if (unit === 0x5c) {
      const next = StringPrototypeCharCodeAt(json, at + 1);
      text += next === 0x22 ? '"' : StringPrototypeSlice(json, at, at + 2);
      at++;
    } else text += StringPrototypeSlice(json, at, at + 1);
  }
  return `'${text}'${rest}`;
}

/** Entries of one container, as they come; joined into one line or many by `compose`. */
interface Entries {
  [index: number]: string;
  count: number;
}

function newEntries(): Entries {
  const entries = record<string>() as unknown as Entries; // given its count in the next line
  entries.count = 0;
  return entries;
}

function add(entries: Entries, text: string): void {
  entries[entries.count++] = text;
}

function showObject(raw: object, depth: number, indent: string, enclosing: Enclosing | undefined): string {
  const value = listingOf(raw) ?? proxyTarget(raw);
  if (value === undefined) return spend("[Proxy]");
  for (let outer = enclosing; outer !== undefined; outer = outer.outer) {
    if (outer.value === value) return spend("[Circular]");
  }
  const inner: Enclosing = { value, outer: enclosing };
  const entries = newEntries();
  const tag = classTag(value);
  if (typeof value === "function") {
    return withProperties(functionHead(value, tag), value, depth, indent, inner, isPlainFunctionKey);
  }
  if (ErrorIsError(value)) return showError(value, depth, indent, inner);
  if (ArrayIsArray(value)) {
    const head = tag === "Array" ? "" : `${tag}(${value.length}) `;
    if (depth > depthMost) return spend(`[${tag}]`);
    showElements(value, value.length, entries, depth, indent, inner, true);
    // Listing a long array's keys costs more than the line is worth.
    if (value.length <= 1_000) showProperties(value, entries, depth, indent, inner, isElementKey);
    return compose(head, "[", entries, "]", indent, true);
  }
  const special = showSpecial(value, tag, depth, indent, inner);
  if (special !== undefined) return special;
  const head = plainHead(value, tag);
  if (depth > depthMost) return spend(`[${tag === "" ? "Object: null prototype" : tag}]`);
  showProperties(value, entries, depth, indent, inner, noKey);
  return compose(head, "{", entries, "}", indent, false);
}

function spend(text: string): string {
  left -= text.length;
  return text;
}

function plainHead(value: object, tag: string): string {
  if (tag === "Object") return "";
  if (tag !== "") return `${tag} `;
  return ObjectGetPrototypeOf(value) === null ? "[Object: null prototype] " : "";
}

/** What the prototype says a value is, checked with the value's own internals. Undefined: an ordinary object. */
function showSpecial(
  value: object,
  tag: string,
  depth: number,
  indent: string,
  inner: Enclosing,
): string | undefined {
  const kind = TypedArrayPrototypeGetToStringTag(value);
  if (kind !== undefined) {
    const entries = newEntries();
    const length = TypedArrayPrototypeGetLength(value);
    showElements(
      value as { readonly [index: number]: unknown },
      length,
      entries,
      depth,
      indent,
      inner,
      false,
    ); // its tag says so
    return compose(`${tag === "" ? kind : tag}(${length}) `, "[", entries, "]", indent, true);
  }
  switch (nativePrototype(value)) {
    case DatePrototype:
      if (!accepts(DatePrototypeGetTime, value)) return undefined;
      return spend(showDate(value as Date)); // accepted
    case RegExpPrototype:
      if (!accepts(RegExpPrototypeGetSource, value)) return undefined;
      return spend(cut(`/${RegExpPrototypeGetSource(value)}/${regExpFlags(value)}`, nestedStringMost));
    case MapPrototype:
      if (!accepts(MapPrototypeGetSize, value)) return undefined;
      return showMap(value, tag, depth, indent, inner);
    case SetPrototype:
      if (!accepts(SetPrototypeGetSize, value)) return undefined;
      return showSet(value, tag, depth, indent, inner);
    case ArrayBufferPrototype:
      if (!accepts(ArrayBufferPrototypeGetByteLength, value)) return undefined;
      return spend(`ArrayBuffer { byteLength: ${ArrayBufferPrototypeGetByteLength(value)} }`);
    case DataViewPrototype:
      return spend("DataView {}");
    case PromisePrototype:
      return spend("Promise {}");
    case WeakMapPrototype:
      return spend("WeakMap { <items unknown> }");
    case WeakSetPrototype:
      return spend("WeakSet { <items unknown> }");
    case NumberPrototype:
      return boxed("Number", NumberPrototypeValueOf, value);
    case StringPrototype:
      return boxed("String", StringPrototypeValueOf, value);
    case BooleanPrototype:
      return boxed("Boolean", BooleanPrototypeValueOf, value);
    case BigIntPrototype:
      return boxed("BigInt", BigIntPrototypeValueOf, value);
    default:
      return undefined;
  }
}

function boxed(name: string, read: (self: unknown) => unknown, value: object): string | undefined {
  if (!accepts(read, value)) return undefined;
  return `[${name}: ${show(read(value), 1, "", undefined)}]`;
}

function showDate(date: Date): string {
  const time = DatePrototypeGetTime(date);
  return NumberIsNaN(time) ? "Invalid Date" : DatePrototypeToISOString(date);
}

/** The prototype of a built-in class on the value's chain, Object's if there is none. */
function nativePrototype(value: object): object | null {
  let prototype = ObjectGetPrototypeOf(value);
  for (let steps = 0; prototype !== null && steps < 8; steps++) {
    switch (prototype) {
      case DatePrototype:
      case RegExpPrototype:
      case MapPrototype:
      case SetPrototype:
      case ArrayBufferPrototype:
      case DataViewPrototype:
      case PromisePrototype:
      case WeakMapPrototype:
      case WeakSetPrototype:
      case NumberPrototype:
      case StringPrototype:
      case BooleanPrototype:
      case BigIntPrototype:
      case ObjectPrototype:
        return prototype;
      default:
        prototype = ObjectGetPrototypeOf(prototype);
    }
  }
  return null;
}

function functionHead(value: object, tag: string): string {
  const own = descriptorOf(value, "name")?.value as unknown; // any value at all
  const name = typeof own === "string" && own !== "" ? cut(own, 100) : "(anonymous)";
  const source = FunctionPrototypeToString(value);
  if (StringPrototypeStartsWith(source, "class")) {
    const parent = ObjectGetPrototypeOf(value);
    const parentName = parent === null ? undefined : (descriptorOf(parent, "name")?.value as unknown); // any value at all
    return typeof parentName === "string" && parentName !== ""
      ? `[class ${name} extends ${cut(parentName, 100)}]`
      : `[class ${name}]`;
  }
  const kind = tag === "" ? "Function" : tag;
  return name === "(anonymous)" ? `[${kind} ${name}]` : `[${kind}: ${name}]`;
}

function showError(error: object, depth: number, indent: string, inner: Enclosing): string {
  const head = spend(stackOf(error, nestedStringMost * 4));
  if (depth > depthMost) return head;
  const entries = newEntries();
  showProperties(error, entries, depth, indent, inner, isErrorKey);
  showHidden(error, "cause", entries, depth, indent, inner);
  showHidden(error, "errors", entries, depth, indent, inner);
  return entries.count === 0 ? head : compose(`${head} `, "{", entries, "}", indent, false);
}

/** An own property of an error that is not enumerable, in brackets as Node has it. */
function showHidden(
  error: object,
  key: string,
  entries: Entries,
  depth: number,
  indent: string,
  inner: Enclosing,
): void {
  const descriptor = descriptorOf(error, key);
  if (descriptor === undefined || descriptor.enumerable === true) return;
  add(entries, `[${key}]: ${showProperty(error, key, depth, indent, inner)}`);
}

/** `head`, followed by the own properties in braces if there are any. */
function withProperties(
  head: string,
  value: object,
  depth: number,
  indent: string,
  inner: Enclosing,
  hidden: (key: string | symbol) => boolean,
): string {
  spend(head);
  if (depth > depthMost) return head;
  const entries = newEntries();
  showProperties(value, entries, depth, indent, inner, hidden);
  return entries.count === 0 ? head : compose(`${head} `, "{", entries, "}", indent, false);
}

function showElements(
  value: { readonly [index: number]: unknown },
  length: number,
  entries: Entries,
  depth: number,
  indent: string,
  inner: Enclosing,
  holes: boolean,
): void {
  let missing = 0;
  let shown = 0;
  let at = 0;
  for (; at < length && shown < entriesMost && left > 0; at++) {
    if (holes && !ObjectHasOwn(value, at)) {
      missing++;
      // A gap of billions must not be walked.
      if (missing > 10_000) {
        missing += length - at - 1;
        at = length;
        break;
      }
      continue;
    }
    if (missing > 0) {
      add(entries, emptyItems(missing));
      shown++;
    }
    missing = 0;
    shown++;
    add(
      entries,
      holes ? showProperty(value, at, depth, indent, inner) : show(value[at], depth + 1, indent, inner),
    );
  }
  if (missing > 0) add(entries, emptyItems(missing));
  if (at < length) add(entries, `... ${length - at} more item${length - at === 1 ? "" : "s"}`);
}

function emptyItems(count: number): string {
  return `<${count} empty item${count === 1 ? "" : "s"}>`;
}

/** The value of one own property, without running an accessor. */
function showProperty(
  owner: object,
  key: PropertyKey,
  depth: number,
  indent: string,
  inner: Enclosing,
): string {
  const descriptor = descriptorOf(owner, key);
  if (descriptor === undefined) return "undefined";
  if (descriptor.get !== undefined)
    return spend(descriptor.set === undefined ? "[Getter]" : "[Getter/Setter]");
  if (descriptor.set !== undefined) return spend("[Setter]");
  return show(descriptor.value, depth + 1, `${indent}  `, inner);
}

function showProperties(
  value: object,
  entries: Entries,
  depth: number,
  indent: string,
  inner: Enclosing,
  hidden: (key: string | symbol) => boolean,
): void {
  const keys = ReflectOwnKeys(value);
  const { length } = keys;
  for (let at = 0, shown = 0; at < length && left > 0; at++) {
    const key = keys[at] as string | symbol; // below its length
    if (hidden(key) || descriptorOf(value, key)?.enumerable !== true) continue;
    if (shown++ >= entriesMost) {
      add(entries, "... more properties");
      return;
    }
    const name = showKey(key);
    left -= name.length + 2;
    add(entries, `${name}: ${showProperty(value, key, depth, indent, inner)}`);
  }
}

function showKey(key: string | symbol): string {
  if (typeof key === "symbol") return `[${SymbolPrototypeToString(key)}]`;
  return isIdentifier(key) ? key : showString(key, nestedStringMost);
}

const noKey = (): boolean => false;
const isPlainFunctionKey = (key: string | symbol): boolean =>
  key === "prototype" || key === "name" || key === "length";
const isErrorKey = (key: string | symbol): boolean => key === "stack" || key === "message" || key === "name";

function isElementKey(key: string | symbol): boolean {
  if (typeof key === "symbol" || key.length === 0 || key.length > 10) return false;
  for (let at = 0; at < key.length; at++) {
    const unit = StringPrototypeCharCodeAt(key, at);
    if (unit < 0x30 || unit > 0x39) return false;
  }
  return true;
}

function showMap(value: object, tag: string, depth: number, indent: string, inner: Enclosing): string {
  const entries = newEntries();
  const size = MapPrototypeGetSize(value);
  const head = `${tag === "" ? "Map" : tag}(${size}) `;
  if (depth > depthMost) return spend(`[${head}]`);
  let seen = 0;
  MapPrototypeForEach(value, (item, key) => {
    if (seen++ >= entriesMost || left <= 0) return;
    const shownKey = show(key, depth + 1, `${indent}  `, inner);
    add(entries, `${shownKey} => ${show(item, depth + 1, `${indent}  `, inner)}`);
  });
  if (size > entries.count) add(entries, `... ${size - entries.count} more items`);
  return compose(head, "{", entries, "}", indent, false);
}

function showSet(value: object, tag: string, depth: number, indent: string, inner: Enclosing): string {
  const entries = newEntries();
  const size = SetPrototypeGetSize(value);
  const head = `${tag === "" ? "Set" : tag}(${size}) `;
  if (depth > depthMost) return spend(`[${head}]`);
  let seen = 0;
  SetPrototypeForEach(value, (item) => {
    if (seen++ >= entriesMost || left <= 0) return;
    add(entries, show(item, depth + 1, `${indent}  `, inner));
  });
  if (size > entries.count) add(entries, `... ${size - entries.count} more items`);
  return compose(head, "{", entries, "}", indent, false);
}

/** One line if it fits, else one entry a line; short elements of a list share lines. */
function compose(
  head: string,
  open: string,
  entries: Entries,
  close: string,
  indent: string,
  isList: boolean,
): string {
  const { count } = entries;
  if (count === 0) return spend(`${head}${open}${close}`);
  let width = head.length + 2;
  let longest = 0;
  let breaks = false;
  for (let at = 0; at < count; at++) {
    const text = entries[at] as string; // below its count
    width += text.length + 2;
    if (text.length > longest) longest = text.length;
    if (StringPrototypeIncludes(text, "\n")) breaks = true;
  }
  if (!breaks && width + indent.length <= lineWidth) {
    let line = `${head}${open} `;
    for (let at = 0; at < count; at++)
      line += at === 0 ? (entries[at] as string) : `, ${entries[at] as string}`; // below its count
    return `${line} ${close}`;
  }
  const share = isList && !breaks && longest <= 24;
  const next = `\n${indent}  `;
  left -= count * next.length;
  let text = `${head}${open}`;
  let column = lineWidth;
  for (let at = 0; at < count; at++) {
    const entry = entries[at] as string; // below its count
    if (share && column + entry.length + 2 <= lineWidth) {
      text += ` ${entry}`;
      column += entry.length + 2;
    } else {
      text += next + entry;
      column = indent.length + 2 + entry.length;
    }
    if (at < count - 1) text += ",";
  }
  return `${text}\n${indent}${close}`;
}

/** Spaces of a group's indentation. */
export function indentation(levels: number): string {
  return StringPrototypeRepeat("  ", levels);
}
