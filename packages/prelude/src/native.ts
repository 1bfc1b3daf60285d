/**
 * The prelude's side of the seam to C: the senders, and what the engine last refused. C puts them on the global as
 * `__flowcell_native` while it makes the image; they are taken off here, before any guest code exists.
 *
 * Everything that leaves the guest realm leaves through these functions, as JSON text that the prelude built. Headers are
 * one line; a value's text follows after a line feed. C refuses an argument that is no string and ends the worker.
 */

import { ReflectDeleteProperty } from "./primordials.js";

const native = globalThis.__flowcell_native;
if (native === undefined) throw new Error("the prelude needs __flowcell_native on the global object");
ReflectDeleteProperty(globalThis, "__flowcell_native");

export const {
  hostCall0: sendHostCallJson,
  hostCall1: sendHostCallDevalue,
  cancelCall: sendCancelCall,
  console: sendConsole,
  blocked: sendBlocked,
  finished0: sendFinishedJson,
  finished1: sendFinishedDevalue,
  refused: sendRefused,
} = native.send;

/** "memory" or "stack" if the engine ran out of it and has not been heard of since, else "". */
export const { lastFailure } = native;
