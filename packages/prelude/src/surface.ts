/**
 * The globals of the guest realm, in the order in which they depend on each other. The exact list is pinned by
 * `surface.test.ts` and documented in docs/GUEST.md. Runs once, while the image is made.
 */

import { installClock } from "./clock.js";
import { installConsole, log } from "./console.js";
import { defineClasses, defineGlobals, defineMethods, removeGlobals } from "./define.js";
import { HostError } from "./host-error.js";
import { setSpecialFunctions } from "./host-object.js";
import { installLocale } from "./locale.js";
import { installMicrotasks } from "./microtasks.js";
import { FunctionPrototype, NativeFunctionToString } from "./primordials.js";
import { installProxy } from "./proxies.js";
import { Crypto, installRandom } from "./random.js";
import { installThrowers } from "./throwers.js";
import { installTimers } from "./timers.js";
import { installAbort } from "./web/abort.js";
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
  setSpecialFunctions(log, fetch);
}
