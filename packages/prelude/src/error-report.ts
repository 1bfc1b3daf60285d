/**
 * What a script threw, as the JSON of the header of Finished and Refused (`ScriptErrorData` of the protocol): name,
 * message, stack, code, cause, errors. Non-errors are described. Everything is bounded as the protocol's header bounds say,
 * and in total, so that the frame's cap holds whatever was thrown. Runs no guest code.
 */

import { headerBounds } from "./bounds.js";
import { asError, errorCode, errorMessage, errorName, errorStack, noData, ownData } from "./error-text.js";
import { inspect } from "./inspect.js";
import { clarifyReferenceError } from "./missing-names.js";
import { ArrayIsArray, NativeReferenceError, ObjectPrototypeIsPrototypeOf } from "./primordials.js";
import { proxyTarget } from "./proxies.js";
import { cut, quote, utf8Length } from "./text.js";

/** Bytes of one error with all that it holds. Finished and Refused may have 256 KiB; warnings take up to 80. */
const totalBytes = 150 * 1024;

let left = 0;

/** JSON of `thrown`, whatever it is. */
export function errorJson(thrown: unknown): string {
  left = totalBytes;
  return describe(thrown, 1);
}

/** JSON of what the engine says about a text that it cannot compile. */
export function syntaxErrorJson(error: unknown): string {
  const known = asError(error);
  if (known === undefined) return errorJson(error);
  left = totalBytes;
  const message = `the script is not valid JavaScript: ${errorMessage(known)}`;
  return `{${fields(errorName(known), message, errorStack(known))}}`;
}

/** JSON of an error of the runtime's own making. */
export function ownErrorJson(name: string, message: string): string {
  left = totalBytes;
  return `{${fields(name, message, "")}}`;
}

/** `Name: message` in one line, for warnings. */
export function errorLine(thrown: unknown, most: number): string {
  const error = asError(thrown);
  if (error === undefined) return inspect(thrown, most);
  const message = messageOf(error);
  return cut(message === "" ? errorName(error) : `${errorName(error)}: ${message}`, most);
}

function messageOf(error: object): string {
  const message = errorMessage(error);
  return ObjectPrototypeIsPrototypeOf(NativeReferenceError.prototype, error)
    ? clarifyReferenceError(message)
    : message;
}

function describe(thrown: unknown, depth: number): string {
  const error = asError(thrown);
  if (error === undefined) {
    const text = inspect(thrown, headerBounds.errorMessageChars - 16);
    return `{${fields("Error", depth === 1 ? `Uncaught ${text}` : text, "")}}`;
  }
  const own = fields(errorName(error), messageOf(error), errorStack(error));
  return `{${own}${codeField(error)}${causeField(error, depth)}${errorsField(error, depth)}}`;
}

function fields(name: string, message: string, stack: string): string {
  return (
    `"name":${within(name, headerBounds.errorNameChars)},` +
    `"message":${within(message, headerBounds.errorMessageChars)},` +
    `"stack":${within(stack, headerBounds.errorStackChars)}`
  );
}

/** Quoted text of at most `most` characters, next to nothing once the total is used up. */
function within(text: string, most: number): string {
  let quoted = quote(cut(text, most));
  if (utf8Length(quoted) > left) quoted = quote(cut(text, 64));
  left -= utf8Length(quoted);
  return quoted;
}

function codeField(error: object): string {
  const code = errorCode(error);
  return code === undefined ? "" : `,"code":${within(code, headerBounds.errorCodeChars)}`;
}

function causeField(error: object, depth: number): string {
  if (depth >= headerBounds.errorDepth || left <= 0) return "";
  const cause = ownData(error, "cause");
  return cause === noData || cause === undefined ? "" : `,"cause":${describe(cause, depth + 1)}`;
}

function errorsField(error: object, depth: number): string {
  if (depth >= headerBounds.errorDepth) return "";
  const own = ownData(error, "errors");
  const errors = typeof own === "object" && own !== null ? proxyTarget(own) : undefined;
  if (!ArrayIsArray(errors)) return "";
  let text = "";
  for (let at = 0; at < errors.length && at < headerBounds.errorMembers && left > 0; at++) {
    const member = ownData(errors, at);
    if (member !== noData) text += `${text === "" ? "" : ","}${describe(member, depth + 1)}`;
  }
  return `,"errors":[${text}]`;
}
