/**
 * HostError as scripts see it: what a host call is rejected with, and what the runtime itself says about calls that it
 * refuses. A global, so that `error instanceof HostError` works.
 *
 * `code` is one of the closed list of the protocol, but for errors of the called function itself (`upstream`): those carry
 * the class name and the code that the function's own error had. `wireCode` keeps the closed one for the run's outcome.
 */

import { trimStack } from "./boundary.js";
import { withoutPreludeFrames } from "./error-text.js";
import {
  defineData,
  ErrorPrototype,
  NativeError,
  NativeWeakMap,
  ObjectCreate,
  ObjectDefineProperty,
  ObjectSetPrototypeOf,
  ReflectConstruct,
  WeakMapPrototypeGet,
  WeakMapPrototypeSet,
} from "./primordials.js";

export interface HostErrorFields {
  readonly code: string;
  readonly message: string;
  readonly detail?: unknown;
  readonly retryable: boolean;
  /** The class name to show, HostError if absent. */
  readonly name?: string | undefined;
}

const wireCodes = new NativeWeakMap<object, { readonly code: string }>();

/** `new HostError(message, { code, detail, retryable })`: scripts may make their own, for tests of their code. */
export function HostError(this: unknown, message?: string, options?: Partial<HostErrorFields>): object {
  const error = trimStack(
    ReflectConstruct(NativeError, message === undefined ? [] : [message], new.target ?? HostError) as object, // Error's constructor makes one
  );
  if (typeof options === "object" && options !== null)
    fill(error, options.code, options.detail, options.retryable);
  return error;
}

HostError.prototype = ObjectCreate(ErrorPrototype, {
  constructor: { value: HostError, writable: true, configurable: true },
  name: { value: "HostError", writable: true, configurable: true },
});
ObjectDefineProperty(HostError, "prototype", { writable: false });
const hostErrorPrototype: object = HostError.prototype;

function fill(error: object, code: unknown, detail: unknown, retryable: unknown): void {
  defineData(error, "code", code ?? "internal");
  if (detail !== undefined) defineData(error, "detail", detail);
  defineData(error, "retryable", retryable === true);
}

/** An error for the script. `stack` is the place of the call; without it, the place that is running now. */
export function makeHostError(fields: HostErrorFields, stack?: string): Error {
  const error = new NativeError(fields.message);
  ObjectSetPrototypeOf(error, hostErrorPrototype);
  defineData(error, "stack", withoutPreludeFrames(stack ?? (error.stack as string)), false); // its own, just made
  if (fields.name !== undefined) defineData(error, "name", fields.name, false);
  fill(error, ownCode(fields), fields.detail, fields.retryable);
  WeakMapPrototypeSet(wireCodes, error, { __proto__: null, code: fields.code });
  return error;
}

/** The code of the function's own error, which the parent puts into `detail.code`. */
function ownCode(fields: HostErrorFields): string {
  const { code, detail } = fields;
  if (code !== "upstream" || typeof detail !== "object" || detail === null) return code;
  const own = (detail as { code?: unknown }).code; // JSON data
  return typeof own === "string" ? own : code;
}

/** The closed code of an error that the runtime made, undefined for every other value. */
export function wireCode(thrown: unknown): string | undefined {
  if (typeof thrown !== "object" || thrown === null) return undefined;
  return WeakMapPrototypeGet(wireCodes, thrown)?.code;
}
