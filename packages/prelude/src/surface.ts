/**
 * The globals of the guest realm, in the order in which they depend on each other. The exact list is pinned by
 * `surface.test.ts` and documented in docs/GUEST.md. Runs once, while the image is made.
 */

import { type ClassRule, guardClass, guardMembers, guardProperty } from "./boundary.js";
import { installClock } from "./clock.js";
import { installConsole, log } from "./console.js";
import { defineClasses, defineGlobals, defineMethods, removeGlobals } from "./define.js";
import { HostError } from "./host-error.js";
import { setSpecialFunctions } from "./host-object.js";
import { inspect } from "./inspect.js";
import { installLocale } from "./locale.js";
import { installMicrotasks } from "./microtasks.js";
import {
  ArrayPrototype,
  BigIntPrototype,
  DatePrototype,
  FunctionPrototype,
  NativeFunctionToString,
  NumberPrototype,
  StringPrototype,
  StringPrototypeSlice,
  StringPrototypeStartsWith,
  TypedArrayPrototype,
} from "./primordials.js";
import { installProxy } from "./proxies.js";
import { Crypto, installRandom } from "./random.js";
import { cut, quote } from "./text.js";
import { installThrowers } from "./throwers.js";
import { installTimers } from "./timers.js";
import { installAbort } from "./web/abort.js";
import { BodyReader } from "./web/body.js";
import { DOMException } from "./web/dom-exception.js";
import { installEncoding } from "./web/encoding.js";
import { installEvents } from "./web/events.js";
import { fetch } from "./web/fetch.js";
import { Headers } from "./web/headers.js";
import { installPolyfills } from "./web/polyfills.js";
import { Request } from "./web/request.js";
import { Response } from "./web/response.js";

/** Shared memory and what sees garbage collection: neither repeats in a replay. */
const removed = ["SharedArrayBuffer", "Atomics", "WeakRef", "FinalizationRegistry"];

export function installSurface(): void {
  installPolyfills();
  // core-js replaces it, to make its own functions look native.
  defineMethods(FunctionPrototype, { toString: NativeFunctionToString });
  removeGlobals(removed);
  installProxy();
  installConsole();
  installClock();
  installTimers();
  installMicrotasks();
  installEncoding();
  installEvents();
  installAbort();
  installLocale();
  installThrowers();
  defineClasses({ HostError, DOMException, Crypto, Headers, Request, Response });
  defineGlobals({ fetch, crypto: installRandom() });
  guardSurface();
  setSpecialFunctions(log, fetch);
}

/** Parents before the classes that derive from them. */
const guardedClasses: readonly (readonly [name: string, rule?: ClassRule])[] = [
  ["EventTarget"],
  ["Event", { required: "the type of the event" }],
  ["CustomEvent", { required: "the type of the event" }],
  ["AbortSignal"],
  ["AbortController"],
  ["Crypto"],
  ["Headers"],
  ["Performance"],
  ["Request"],
  ["Response"],
  ["TextDecoder", { reword: rewordDecoder }],
  ["TextEncoder"],
  ["URL", { reword: rewordURL }],
  ["URLSearchParams"],
];

/** Every public function that may throw and does not trim its errors itself. */
function guardSurface(): void {
  for (const [name, rule] of guardedClasses) guardClass(name, rule);
  guardMembers(BodyReader.prototype, "Body");
  for (const name of [
    "atob",
    "btoa",
    "clearInterval",
    "clearTimeout",
    "queueMicrotask",
    "setInterval",
    "setTimeout",
    "structuredClone",
  ])
    guardProperty(globalThis, name, name);
  for (const name of ["fromBase64", "fromHex"]) guardProperty(Uint8Array, name, name);
  for (const name of ["setFromBase64", "setFromHex", "toBase64", "toHex"])
    guardProperty(Uint8Array.prototype, name, name);
  guardProperty(Array, "fromAsync", "Array.fromAsync");
  for (const owner of [NumberPrototype, BigIntPrototype, DatePrototype, ArrayPrototype, TypedArrayPrototype])
    guardProperty(owner, "toLocaleString", "toLocaleString");
  for (const name of ["toLocaleDateString", "toLocaleTimeString"]) guardProperty(DatePrototype, name, name);
  for (const name of ["localeCompare", "toLocaleLowerCase", "toLocaleUpperCase"])
    guardProperty(StringPrototype, name, name);
}

function shown(value: unknown): string {
  return typeof value === "string" ? quote(cut(value, 200)) : inspect(value, 200, 0);
}

/** The library says "Invalid scheme" and the like, of no address in particular. */
function rewordURL(message: string, args: readonly unknown[], what: string): string | undefined {
  if (!StringPrototypeStartsWith(message, "Invalid ")) return undefined;
  const why = `i${StringPrototypeSlice(message, 1)}`;
  if (args[1] === undefined) return `${what}: ${shown(args[0])} is not an absolute URL (${why})`;
  return `${what}: ${shown(args[0])} with the base ${shown(args[1])} is not a URL (${why})`;
}

function rewordDecoder(message: string, args: readonly unknown[], what: string): string | undefined {
  if (message !== "Unknown encoding") return undefined;
  return `${what}: ${shown(args[0])} is no encoding that is known here; there are utf-8, utf-16le, utf-16be and latin1`;
}
