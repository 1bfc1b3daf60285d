/**
 * Telling the engine's own failures from a script's errors. When the engine runs out of memory or stack it throws an
 * InternalError (null, if there is not even memory for that), which a script may catch like any other; C remembers that it
 * happened. An uncaught null, InternalError or RangeError takes that as its cause. The message text plays no part.
 */

import { lastFailure } from "./native.js";
import {
  ErrorIsError,
  NativeInternalError,
  NativeRangeError,
  ObjectPrototypeIsPrototypeOf,
} from "./primordials.js";

const internalErrorPrototype = NativeInternalError.prototype;
const rangeErrorPrototype = NativeRangeError.prototype;

/** What the engine throws when it fails: it must not be wrapped or described away. */
export function isEngineFailure(thrown: unknown): boolean {
  if (thrown === null) return true;
  return (
    typeof thrown === "object" &&
    ErrorIsError(thrown) &&
    ObjectPrototypeIsPrototypeOf(internalErrorPrototype, thrown)
  );
}

/** "memory" or "stack" if `thrown` is the engine's failure and C has seen one, else undefined. */
export function failureReason(thrown: unknown): "memory" | "stack" | undefined {
  if (!isEngineFailure(thrown) && !isRangeError(thrown)) return undefined;
  const failure = lastFailure();
  return failure === "memory" || failure === "stack" ? failure : undefined;
}

function isRangeError(thrown: unknown): boolean {
  return (
    typeof thrown === "object" &&
    thrown !== null &&
    ErrorIsError(thrown) &&
    ObjectPrototypeIsPrototypeOf(rangeErrorPrototype, thrown)
  );
}
