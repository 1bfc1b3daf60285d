/**
 * `console`: every call is one Console frame with its sequence number, level and the guest's time. Text is bounded per line
 * and by the activation's `outputBytes`; when that is used up one line says so and the rest is dropped: logging never fails
 * a script. Values are shown by `inspect.ts`, so no guest code runs for them; `%s` and the like are Node's.
 */

import { tableText } from "./console-table.js";
import { defineMethods } from "./define.js";
import { errorStack, ownData } from "./error-text.js";
import { indentation, inspect } from "./inspect.js";
import { sendConsole } from "./native.js";
import {
  NativeError,
  record,
  StringPrototypeIncludes,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
} from "./primordials.js";
import { clock, ended, limits } from "./state.js";
import { cut, quote, utf8Length } from "./text.js";

type Level = "debug" | "log" | "info" | "warn" | "error";

/** Characters of one line: enough for a big object, and no line takes the whole budget by accident. */
const lineChars = 32_768;
/** One line's values together. */
const inspectChars = 16_384;

let seq = 0;
let usedBytes = 0;
let truncated = false;
let groupLevel = 0;

function emit(level: Level, text: string): void {
  if (ended || truncated) return;
  let line = cut(text, lineChars);
  if (groupLevel > 0) line = indented(line, indentation(groupLevel));
  const left = limits.outputBytes - usedBytes;
  // The line's end counts, so that empty lines come to an end too.
  const bytes = utf8Length(line) + 1;
  if (bytes > left) {
    truncated = true;
    // A third in characters fits in bytes whatever they are.
    const part = left > 96 ? StringPrototypeSlice(line, 0, (left - 96) / 3) : "";
    send("warn", `${part}… output is cut here: it reached ${limits.outputBytes} bytes (limits.outputBytes)`);
    return;
  }
  usedBytes += bytes;
  send(level, line);
}

function send(level: Level, line: string): void {
  sendConsole(`{"seq":${seq++},"level":"${level}","timeMs":${clock},"text":${quote(line)}}`);
}

function indented(line: string, indent: string): string {
  let text = indent;
  for (let from = 0; ; ) {
    const end = StringPrototypeIndexOf(line, "\n", from);
    if (end < 0) return text + StringPrototypeSlice(line, from);
    text += StringPrototypeSlice(line, from, end + 1) + indent;
    from = end + 1;
  }
}

/** Arguments as Node joins them: text as it is, other values inspected, `%` directives of a leading text filled in. */
function format(args: readonly unknown[]): string {
  const { length } = args;
  if (length === 0) return "";
  const first = args[0];
  let text = "";
  let at = 0;
  if (typeof first === "string") {
    at = 1;
    if (length > 1 && StringPrototypeIncludes(first, "%")) {
      const filled = fill(first, args);
      text = filled.text;
      at = filled.used;
    } else text = cut(first, lineChars);
  }
  for (; at < length && text.length < lineChars; at++) {
    const value = args[at];
    const shown = typeof value === "string" ? cut(value, lineChars) : inspect(value, inspectChars);
    text += at === 0 ? shown : ` ${shown}`;
  }
  return text;
}

function fill(template: string, args: readonly unknown[]): { readonly text: string; readonly used: number } {
  let text = "";
  let used = 1;
  let from = 0;
  for (;;) {
    const at = StringPrototypeIndexOf(template, "%", from);
    if (at < 0 || at + 1 >= template.length || text.length > lineChars) {
      return { text: text + cut(StringPrototypeSlice(template, from), lineChars), used };
    }
    text += StringPrototypeSlice(template, from, at);
    from = at + 2;
    const directive = StringPrototypeSlice(template, at + 1, from);
    if (directive === "%") {
      text += "%";
    } else if (used < args.length && isDirective(directive)) {
      text += filledIn(directive, args[used++]);
    } else {
      text += `%${directive}`;
    }
  }
}

function isDirective(letter: string): boolean {
  switch (letter) {
    case "s":
    case "d":
    case "i":
    case "f":
    case "j":
    case "o":
    case "O":
    case "c":
      return true;
    default:
      return false;
  }
}

function filledIn(directive: string, value: unknown): string {
  switch (directive) {
    case "s":
      return typeof value === "string" ? cut(value, lineChars) : inspect(value, inspectChars, 1);
    case "d":
    case "f":
      return numberText(value, false);
    case "i":
      return numberText(value, true);
    case "c":
      return "";
    default:
      return inspect(value, inspectChars);
  }
}

/** Objects would have to be asked for a number, which is guest code: they show as NaN. */
function numberText(value: unknown, whole: boolean): string {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "symbol" || typeof value === "object" || typeof value === "function") return "NaN";
  const number = +(value as number); // a primitive that has a number
  return `${whole ? number - (number % 1) : number}`;
}

const counts = record<number>();
const timers = record<number>();

function labelOf(label: unknown): string {
  if (label === undefined) return "default";
  return typeof label === "string" ? cut(label, 200) : inspect(label, 200, 0);
}

function elapsed(label: unknown, args: readonly unknown[]): void {
  const name = labelOf(label);
  const start = timers[name];
  if (start === undefined) emit("warn", `console.time: there is no timer "${name}"`);
  else emit("log", `${name}: ${clock - start}ms${args.length === 0 ? "" : ` ${format(args)}`}`);
}

function group(...args: unknown[]): void {
  if (args.length > 0) emit("log", format(args));
  if (groupLevel < 16) groupLevel++;
}

function table(data: unknown, columns?: unknown): void {
  const text = typeof data === "object" && data !== null ? tableText(data, columns) : undefined;
  emit("log", text ?? format([data]));
}

function trace(...args: unknown[]): void {
  const text = format(args);
  emit("debug", `Trace${text === "" ? "" : `: ${text}`}\n${errorStack(new NativeError())}`);
}

function depthOption(options: unknown): number | undefined {
  if (typeof options !== "object" || options === null) return undefined;
  const depth = ownData(options, "depth");
  if (depth === null) return 100;
  return typeof depth === "number" && depth >= 0 && depth <= 100 ? depth : undefined;
}

/** `host.log`, too. */
export const log = (...args: unknown[]): void => emit("log", format(args));

/** For exceptions of event listeners and the like, which have nobody else to tell. */
export function logError(error: unknown): void {
  emit("error", format([error]));
}

export function installConsole(): void {
  const console = {};
  defineMethods(console, {
    debug: (...args: unknown[]) => emit("debug", format(args)),
    log,
    info: (...args: unknown[]) => emit("info", format(args)),
    warn: (...args: unknown[]) => emit("warn", format(args)),
    error: (...args: unknown[]) => emit("error", format(args)),
    trace,
    dir: (value: unknown, options?: unknown) =>
      emit("log", inspect(value, inspectChars, depthOption(options))),
    dirxml: (...args: unknown[]) => emit("log", format(args)),
    table,
    assert: (condition: unknown, ...args: unknown[]) => {
      if (condition) return;
      emit("error", args.length === 0 ? "Assertion failed" : `Assertion failed: ${format(args)}`);
    },
    count: (label?: unknown) => {
      const name = labelOf(label);
      const count = (counts[name] ?? 0) + 1;
      counts[name] = count;
      emit("log", `${name}: ${count}`);
    },
    countReset: (label?: unknown) => {
      delete counts[labelOf(label)];
    },
    group,
    groupCollapsed: group,
    groupEnd: () => {
      if (groupLevel > 0) groupLevel--;
    },
    time: (label?: unknown) => {
      timers[labelOf(label)] = clock;
    },
    timeLog: (label?: unknown, ...args: unknown[]) => elapsed(label, args),
    timeEnd: (label?: unknown) => {
      elapsed(label, []);
      delete timers[labelOf(label)];
    },
    clear: () => {},
  });
  Object.defineProperty(console, Symbol.toStringTag, { value: "console", configurable: true });
  Object.defineProperty(globalThis, "console", { value: console, writable: true, configurable: true });
}
