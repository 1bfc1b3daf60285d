/**
 * The `host` object that the entry gets: what the activation was granted, by name. A dotted name makes objects: with
 * "kv.get" granted there is `host.kv.get`. The object is made with the image and nothing below it before it is asked for;
 * what was made is kept, so that `host.kv === host.kv`. It cannot be changed.
 *
 * A name that is not granted gives a function all the same, which fails with a HostError `denied` that says what was asked
 * for and what is granted, because "undefined is not a function" helps nobody. Names that the language and libraries ask of
 * any object (`then`, `toJSON`, all that Object.prototype has, symbols) are never host functions.
 */

import { callHost } from "./calls.js";
import { makeHostError } from "./host-error.js";
import { setListing } from "./inspect.js";
import {
  defineData,
  FunctionPrototype,
  MathMin,
  NativeError,
  NativeWeakMap,
  ObjectFreeze,
  ObjectHasOwn,
  ObjectPrototype,
  ObjectSetPrototypeOf,
  record,
  StringPrototypeCharCodeAt,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
  StringPrototypeStartsWith,
  WeakMapPrototypeGet,
  WeakMapPrototypeSet,
} from "./primordials.js";
import { makeProxy } from "./proxies.js";
import { quote } from "./text.js";

/** Granted names, as the header of Activate lists them. */
let names: readonly string[] = [];

export function grantNames(granted: readonly string[]): void {
  names = granted;
}

export function isGranted(name: string): boolean {
  const { length } = names;
  for (let at = 0; at < length; at++) if (names[at] === name) return true;
  return false;
}

/** Whether a granted name lies below `name`. */
function isNamespace(name: string): boolean {
  const prefix = `${name}.`;
  const { length } = names;
  for (let at = 0; at < length; at++) if (StringPrototypeStartsWith(names[at] as string, prefix)) return true; // below its length
  return false;
}

/** Host functions that are not plain calls: `log` needs no grant, `fetch` speaks in Request and Response. */
const special = record<object>();

export function setSpecialFunctions(log: object, fetch: object): void {
  special["log"] = log;
  special["fetch"] = fetch;
}

const neverNames = record<boolean>();
const askedOfAnything = [
  "then",
  "catch",
  "toJSON",
  "inspect",
  "prototype",
  "nodeType",
  "tagName",
  "$$typeof",
  "asymmetricMatch",
];
for (const name of [...Object.getOwnPropertyNames(Object.prototype), ...askedOfAnything])
  neverNames[name] = true;

/** One level of the host object; `this` of its traps. */
class Namespace {
  readonly prefix: string;
  readonly made = record<object>();

  constructor(prefix: string) {
    this.prefix = prefix;
  }

  get(_target: object, key: string | symbol): unknown {
    if (typeof key === "symbol" || neverNames[key] === true) return undefined;
    const known = this.made[key];
    if (known !== undefined) return known;
    const value = this.make(key) ?? missing(this.prefix + key);
    this.made[key] = value;
    return value;
  }

  has(_target: object, key: string | symbol): boolean {
    return typeof key === "string" && neverNames[key] !== true && this.exists(key);
  }

  ownKeys(): string[] {
    return childKeys(this.prefix);
  }

  getOwnPropertyDescriptor(target: object, key: string | symbol): PropertyDescriptor | undefined {
    if (!this.has(target, key)) return undefined;
    const descriptor = {
      __proto__: null,
      value: this.get(target, key),
      enumerable: true,
      configurable: true,
    };
    return descriptor as PropertyDescriptor; // its prototype is all that the type does not know
  }

  set(): boolean {
    return false;
  }

  defineProperty(): boolean {
    return false;
  }

  deleteProperty(): boolean {
    return false;
  }

  setPrototypeOf(): boolean {
    return false;
  }

  preventExtensions(): boolean {
    return false;
  }

  exists(key: string): boolean {
    const name = this.prefix + key;
    return isGranted(name) || isNamespace(name) || name === "log";
  }

  /** What `key` is, undefined if nothing of that name is granted. */
  make(key: string): object | undefined {
    const name = this.prefix + key;
    if (name === "log") return special["log"];
    if (isGranted(name)) return name === "fetch" ? special["fetch"] : hostFunction(name, key);
    return isNamespace(name) ? makeNamespace(`${name}.`) : undefined;
  }
}

// A trap that is not there is looked for on the prototypes, and Object.prototype is the guest's.
Object.setPrototypeOf(Namespace.prototype, null);

/** Proxies of this file, for console lines. */
const namespaces = new NativeWeakMap<object, Namespace>();

function makeNamespace(prefix: string): object {
  const namespace = new Namespace(prefix);
  const proxy = makeProxy(record(), namespace as ProxyHandler<object>, record()); // its methods are traps
  WeakMapPrototypeSet(namespaces, proxy, namespace);
  return proxy;
}

/** The host object of every activation. */
export const host = makeNamespace("");

/** First parts of the names below a prefix, each once, in the order in which they were granted. */
function childKeys(prefix: string): string[] {
  const seen = record<boolean>();
  const keys: string[] = [];
  const { length } = names;
  for (let at = 0; at < length; at++) {
    const name = names[at] as string; // below its length
    if (!StringPrototypeStartsWith(name, prefix)) continue;
    const dot = StringPrototypeIndexOf(name, ".", prefix.length);
    const key = StringPrototypeSlice(name, prefix.length, dot < 0 ? name.length : dot);
    if (seen[key] === true || neverNames[key] === true) continue;
    seen[key] = true;
    defineData(keys, keys.length, key);
  }
  if (prefix === "" && seen["log"] !== true) defineData(keys, keys.length, "log");
  return keys;
}

function hostFunction(name: string, key: string): object {
  const quoted = quote(name);
  const call = (...args: unknown[]): Promise<unknown> => callHost(name, quoted, args, new NativeError());
  defineData(call, "name", key, false);
  if (isNamespace(name)) {
    const below = new Namespace(`${name}.`);
    const keys = below.ownKeys();
    for (let at = 0; at < keys.length; at++) {
      const child = keys[at] as string; // below its length
      defineData(call, child, below.make(child));
    }
  }
  return ObjectFreeze(call);
}

setListing((value) => {
  const namespace = WeakMapPrototypeGet(namespaces, value);
  if (namespace === undefined) return undefined;
  const listing = record<unknown>();
  const keys = namespace.ownKeys();
  for (let at = 0; at < keys.length; at++)
    listing[keys[at] as string] = namespace.get(listing, keys[at] as string); // below its length
  return ObjectSetPrototypeOf(listing, ObjectPrototype) as object; // the same object
});

// ----------------------------------------------------------------------------------------------------------- missing names

/** Stands for a name that is not granted; `this` of its traps. */
class Missing {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  apply(): never {
    throw denied(this.name);
  }

  construct(): never {
    throw denied(this.name);
  }

  get(_target: object, key: string | symbol): unknown {
    if (typeof key === "symbol" || neverNames[key] === true) return undefined;
    // `call`, `bind`, `name` and the like belong to any function.
    if (ObjectHasOwn(FunctionPrototype, key)) return undefined;
    return missing(`${this.name}.${key}`);
  }

  set(): boolean {
    return false;
  }

  defineProperty(): boolean {
    return false;
  }
}

Object.setPrototypeOf(Missing.prototype, null);

function missing(name: string): object {
  // What a proxy can be used as, its target must be.
  function target(): void {}
  defineData(target, "name", name, false);
  return makeProxy(target, new Missing(name) as ProxyHandler<object>, target); // its methods are traps
}

const listedMost = 12;

export function denied(name: string): Error {
  const near = nearest(name);
  const hint = near === undefined ? "" : ` Did you mean host.${near}?`;
  const detail = record<unknown>();
  detail["name"] = name;
  return makeHostError({
    code: "denied",
    message: `host.${name} is not granted to this script; ${grantedText()}.${hint}`,
    detail,
    retryable: false,
  });
}

function grantedText(): string {
  const { length } = names;
  if (length === 0) return "it is granted no host function";
  let text = "";
  for (let at = 0; at < length && at < listedMost; at++)
    text += `${at === 0 ? "" : ", "}${names[at] as string}`; // below its length
  return length > listedMost ? `granted are ${text} and ${length - listedMost} more` : `granted: ${text}`;
}

/** The granted name that `name` is probably a misspelling of. */
function nearest(name: string): string | undefined {
  let best: string | undefined;
  let distance = 3;
  const { length } = names;
  if (name.length > 64) return undefined;
  for (let at = 0; at < length && at < 1_000; at++) {
    const candidate = names[at] as string; // below its length
    const difference = candidate.length - name.length;
    if (difference > 2 || difference < -2) continue;
    const between = editDistance(name, candidate);
    if (between < distance) {
      distance = between;
      best = candidate;
    }
  }
  return best;
}

function editDistance(one: string, other: string): number {
  const row = record<number>();
  for (let at = 0; at <= other.length; at++) row[at] = at;
  for (let i = 1; i <= one.length; i++) {
    let diagonal = row[0] as number; // filled above
    row[0] = i;
    for (let j = 1; j <= other.length; j++) {
      const above = row[j] as number; // filled above
      const same = StringPrototypeCharCodeAt(one, i - 1) === StringPrototypeCharCodeAt(other, j - 1);
      row[j] = MathMin(diagonal + (same ? 0 : 1), above + 1, (row[j - 1] as number) + 1); // filled in this pass
      diagonal = above;
    }
  }
  return row[other.length] as number; // filled by the last pass
}
