/** `queueMicrotask`: a job of the engine's own queue. What the callback throws ends the script, as in a timer. */

import { calling } from "./activation.js";
import { defineGlobals } from "./define.js";
import { bindCall } from "./guest-code.js";
import { NativeTypeError, PromisePrototypeThen } from "./primordials.js";

const noArguments: readonly unknown[] = [];

function queueMicrotask(callback: unknown): void {
  if (typeof callback !== "function")
    throw new NativeTypeError("queueMicrotask: the callback must be a function");
  PromisePrototypeThen(calling, bindCall(callback, noArguments));
}

export function installMicrotasks(): void {
  defineGlobals({ queueMicrotask });
}
