/**
 * Errors read without running guest code: data properties only, found on the object or its prototypes; an accessor that a
 * script put in their place is not invoked, and a proxy is read as what it stands for. Stacks are the engine's text without
 * the prelude's own frames.
 */

import { classTag } from "./class-tag.js";
import {
  descriptorOf,
  ErrorIsError,
  ObjectGetPrototypeOf,
  StringPrototypeEndsWith,
  StringPrototypeIncludes,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
  StringPrototypeStartsWith,
} from "./primordials.js";
import { proxyTarget } from "./proxies.js";
import { cut } from "./text.js";

/** What `dataProperty` gives for a property that is absent or an accessor. */
export const noData: unique symbol = Symbol("no data");

const chainMost = 16;

/** The value of a data property on the value or its prototypes. */
export function dataProperty(value: object, key: PropertyKey): unknown {
  let holder: object | null = value;
  for (let steps = 0; holder !== null && steps < chainMost; steps++) {
    const target = proxyTarget(holder);
    if (target === undefined) return noData;
    const descriptor = descriptorOf(target, key);
    if (descriptor !== undefined) {
      return descriptor.get === undefined && descriptor.set === undefined ? descriptor.value : noData;
    }
    holder = ObjectGetPrototypeOf(target);
  }
  return noData;
}

/** Like `dataProperty`, for a property that must be the value's own. */
export function ownData(value: object, key: PropertyKey): unknown {
  const target = proxyTarget(value);
  const descriptor = target === undefined ? undefined : descriptorOf(target, key);
  if (descriptor === undefined || descriptor.get !== undefined || descriptor.set !== undefined) return noData;
  return descriptor.value;
}

/** The error itself, or the one that a proxy stands for; undefined for everything that is no error. */
export function asError(value: unknown): object | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const target = proxyTarget(value);
  return target !== undefined && ErrorIsError(target) ? target : undefined;
}

/** A name for people: the error's own, else its class's. */
export function errorName(error: object): string {
  const name = dataProperty(error, "name");
  if (typeof name === "string" && name !== "") return name;
  const tag = classTag(error);
  return tag === "" ? "Error" : tag;
}

export function errorMessage(error: object): string {
  const message = dataProperty(error, "message");
  if (typeof message === "string") return message;
  return typeof message === "number" || typeof message === "boolean" ? `${message}` : "";
}

/** The frames of the guest, one a line, without a line feed at the end. */
export function errorStack(error: object): string {
  const stack = dataProperty(error, "stack");
  return typeof stack === "string" ? withoutPreludeFrames(stack) : "";
}

/** The code that many errors carry: a text, or a number as one. */
export function errorCode(error: object): string | undefined {
  const code = dataProperty(error, "code");
  if (typeof code === "string" && code !== "") return code;
  return typeof code === "number" ? `${code}` : undefined;
}

/** The whole error as a console shows it: `Name: message`, then the frames. */
export function stackOf(error: object, most: number): string {
  const name = errorName(error);
  const message = errorMessage(error);
  const head = cut(message === "" ? name : `${name}: ${message}`, most);
  const stack = cut(errorStack(error), most);
  if (stack === "") return head;
  // A stack that a library wrote begins with the message already, as other engines have it.
  return StringPrototypeStartsWith(stack, name) ? stack : `${head}\n${stack}`;
}

/** Every function of the prelude has this file name: the one it is evaluated under. */
export const preludeFile = "prelude.js:";

const nativeFrame = " (native)";
const callerFrame = "    at apply (native)\n";

export function withoutPreludeFrames(stack: string): string {
  let text = stack;
  if (StringPrototypeIncludes(stack, preludeFile)) {
    text = "";
    let from = 0;
    // Frames of the engine's own functions belong to whoever called them, which is the next line.
    let natives = "";
    while (from < stack.length) {
      const found = StringPrototypeIndexOf(stack, "\n", from);
      const to = found < 0 ? stack.length : found + 1;
      const line = StringPrototypeSlice(stack, from, to);
      if (StringPrototypeIncludes(line, preludeFile)) {
        natives = "";
      } else if (StringPrototypeIncludes(line, nativeFrame)) {
        natives += line;
      } else {
        text += natives + line;
        natives = "";
      }
      from = to;
    }
    text += natives;
  }
  let end = text.length;
  // A callback with arguments is called through Reflect.apply, with nothing of the script's below.
  if (StringPrototypeEndsWith(text, callerFrame)) end -= callerFrame.length;
  while (end > 0 && StringPrototypeSlice(text, end - 1, end) === "\n") end--;
  return StringPrototypeSlice(text, 0, end);
}
