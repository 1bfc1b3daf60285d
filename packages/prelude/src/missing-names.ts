/**
 * What to use instead of globals that other runtimes have and this realm lacks. They stay absent, so that libraries which
 * ask `typeof Buffer` find the truth; a script that dies of the missing name is told in the error's message. (Names whose
 * absence libraries cope with badly, or that models call without asking, are throwers: `throwers.ts`.)
 */

import {
  ObjectHasOwn,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
  StringPrototypeStartsWith,
} from "./primordials.js";

const unavailable = "it does not exist here";
const noPage = "there is no browser page here";
const modules = "scripts are ES modules: use import and export";

const hints: { readonly [name: string]: string } = {
  __proto__: null as unknown as string, // the prototype itself: names are looked up in this table alone
  Atomics: unavailable,
  Blob: "use Uint8Array",
  Buffer: "use Uint8Array, TextEncoder and TextDecoder, Uint8Array.fromBase64 and toBase64",
  Bun: unavailable,
  Deno: unavailable,
  File: "use Uint8Array",
  FinalizationRegistry: unavailable,
  FormData: "use URLSearchParams, or build the body yourself",
  ReadableStream: "streams do not exist here: bodies are read whole",
  SharedArrayBuffer: "use ArrayBuffer",
  Temporal: "use Date; it is in UTC",
  WeakRef: unavailable,
  WebAssembly: unavailable,
  WebSocket: unavailable,
  Worker: unavailable,
  XMLHttpRequest: "use fetch, if it is granted",
  __dirname: modules,
  __filename: modules,
  alert: noPage,
  clearImmediate: "use clearTimeout",
  document: noPage,
  exports: modules,
  global: "use globalThis",
  localStorage: noPage,
  module: modules,
  navigator: noPage,
  self: "use globalThis",
  sessionStorage: noPage,
  setImmediate: "use setTimeout(f, 0)",
  window: noPage,
};

const tail = "' is not defined";

/** The message of a ReferenceError as other engines word it, with a hint for a name that is missed often. */
export function clarifyReferenceError(message: string): string {
  if (!StringPrototypeStartsWith(message, "'") || message.length > 300) return message;
  const end = StringPrototypeIndexOf(message, tail);
  if (end < 1 || end + tail.length !== message.length) return message;
  const name = StringPrototypeSlice(message, 1, end);
  const plain = `${name} is not defined`;
  return ObjectHasOwn(hints, name) ? `${plain}: ${hints[name] as string}` : plain; // its own entry
}
