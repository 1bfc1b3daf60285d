/**
 * Warnings of a result: rejections that nobody handled, host calls that nobody waited for, exceptions of callbacks after
 * the script had settled. Bounded in number and in bytes, so that they fit into the header of Finished beside an error.
 */

import { headerBounds } from "./bounds.js";
import { errorLine } from "./error-report.js";
import {
  MapPrototypeDelete,
  MapPrototypeForEach,
  MapPrototypeGetSize,
  MapPrototypeSet,
  NativeMap,
} from "./primordials.js";
import { cut, quote, utf8Length } from "./text.js";

const totalBytes = 80 * 1024;
/** Rejected promises kept until the end; a script that makes more has its first ones reported. */
const rejectionsMost = 256;

const rejections = new NativeMap<unknown, unknown>();
let list = "";
let count = 0;
let bytes = 0;

/** From the engine: a promise was rejected without a handler, or one was attached to it later. */
export function trackRejection(reason: unknown, promise: unknown, handled: boolean): void {
  if (handled) MapPrototypeDelete(rejections, promise);
  else if (MapPrototypeGetSize(rejections) < rejectionsMost) MapPrototypeSet(rejections, promise, reason);
}

export function warn(code: string, message: string): void {
  if (count >= headerBounds.warnings) return;
  const text = `${count === 0 ? "" : ","}{"code":${quote(code)},"message":${quote(cut(message, headerBounds.warningMessageChars))}}`;
  const size = utf8Length(text);
  if (bytes + size > totalBytes) return;
  bytes += size;
  count++;
  list += text;
}

/** JSON of all warnings. Called once, at the end. */
export function warningsJson(): string {
  MapPrototypeForEach(rejections, (reason) => {
    if (count < headerBounds.warnings)
      warn("unhandled_rejection", `a promise was rejected and nothing handled it: ${errorLine(reason, 900)}`);
  });
  return `[${list}]`;
}
