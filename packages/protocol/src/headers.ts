/**
 * The header of each message: its shape, a strict parser and a writer. Parsers are for whoever receives: the pool for
 * messages of a worker, tests and tools for messages of the parent. (The guest half reads its headers in the prelude.)
 *
 * TRUST: a parser establishes that the header is one JSON object with exactly the fields of its message, each of its type,
 * range and length. Meaning is not checked here: whether a position is open or a name granted is the pool's to judge.
 * Every failure is ProtocolError `bad_header` naming the field.
 */

import {
  type HostErrorCode,
  type HostErrorData,
  hostErrorMessageChars,
  isHostErrorCode,
} from "./host-error.js";
import type { SizeLimits } from "./messages.js";
import { type BudgetReason, isReasonOf, type ReasonOf } from "./outcome.js";
import { ProtocolError } from "./protocol-error.js";
import { type Untrusted, verify } from "./untrusted.js";

export interface HostCallHeader {
  readonly position: number;
  readonly name: string;
}

export interface CancelCallHeader {
  readonly position: number;
}

export type ConsoleLevel = "debug" | "log" | "info" | "warn" | "error";

export interface ConsoleHeader {
  /** 0, 1, 2 … within the activation. */
  readonly seq: number;
  readonly level: ConsoleLevel;
  /** The guest's clock, epoch milliseconds. */
  readonly timeMs: number;
  readonly text: string;
}

export interface BlockedHeader {
  /** The guest's clock, epoch milliseconds; null when no timer is set. */
  readonly nextTimerAt: number | null;
  readonly openCalls: number;
  /** Deliver messages of this activation that were applied before: tells whether one is still on its way. */
  readonly delivered: number;
}

/** What a script threw, as text. `stack` may be empty; positions in it are the bundle's. */
export interface ScriptErrorData {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  readonly code?: string;
  readonly cause?: ScriptErrorData;
  readonly errors?: readonly ScriptErrorData[];
}

export interface WarningData {
  readonly code: string;
  readonly message: string;
}

/** Why a script_error: a reason of the outcome table, or the code of the HostError that nobody caught. */
export type ScriptErrorCode = ReasonOf<"script_error"> | HostErrorCode;

export type FinishedHeader =
  | { readonly status: "completed"; readonly warnings: readonly WarningData[]; readonly hostCalls: number }
  | {
      readonly status: "script_error";
      /** Absent: uncaught. */
      readonly code?: ScriptErrorCode;
      readonly error: ScriptErrorData;
      readonly warnings: readonly WarningData[];
      readonly hostCalls: number;
    }
  | {
      readonly status: "budget_exceeded";
      readonly reason: BudgetReason;
      readonly limit: number;
      readonly used: number;
      /** Absent when C wrote the frame because the prelude no longer could. */
      readonly warnings?: readonly WarningData[];
      readonly hostCalls?: number;
    };

export interface RefusedHeader {
  readonly error: ScriptErrorData;
}

export interface ActivateHeader {
  readonly activation: number;
  /** Epoch milliseconds at which the guest's clock starts. */
  readonly clock: number;
  /** 32 bytes as lower-case hexadecimal. */
  readonly seed: string;
  readonly names: readonly string[];
  readonly limits: ActivateLimits;
  /** Whether `eval` and `Function` work inside the guest. */
  readonly codeGeneration: boolean;
}

/** What the prelude enforces itself. */
export interface ActivateLimits extends Omit<SizeLimits, "inputBytes" | "sourceBytes"> {
  readonly hostCalls: number;
  readonly inFlight: number;
}

export type DeliverHeader =
  | {
      readonly activation: number;
      readonly kind: "call";
      readonly position: number;
      readonly ok: true;
      readonly clock: number;
    }
  | {
      readonly activation: number;
      readonly kind: "call";
      readonly position: number;
      readonly ok: false;
      readonly clock: number;
      readonly error: HostErrorData;
    }
  | { readonly activation: number; readonly kind: "timer"; readonly clock: number };

/** Bounds of texts in headers; the guest half cuts to them. Their worst case in JSON is bounded by the frame's cap. */
export const headerBounds = {
  callNameChars: 256,
  errorNameChars: 256,
  errorCodeChars: 256,
  errorMessageChars: 8192,
  errorStackChars: 16384,
  /** An error, its cause, the cause's cause … */
  errorDepth: 8,
  /** Members of an AggregateError. */
  errorMembers: 32,
  warnings: 32,
  warningCodeChars: 64,
  warningMessageChars: 1024,
  names: 4096,
} as const;

// ECMAScript's largest time value, in milliseconds on both sides of 1970.
const timeMost = 8.64e15;
const positionMost = 0xffff_ffff;

// ---------------------------------------------------------------------------------------------------------------- readers

/** A JSON object's fields, each of any type yet: the names of all messages, so that a mistyped one is a type error. */
type Fields = {
  readonly [name in
    | "activation"
    | "bodyBytes"
    | "cause"
    | "clock"
    | "code"
    | "codeGeneration"
    | "detail"
    | "error"
    | "errors"
    | "hostCalls"
    | "inFlight"
    | "kind"
    | "level"
    | "limit"
    | "limits"
    | "message"
    | "name"
    | "names"
    | "nextTimerAt"
    | "ok"
    | "openCalls"
    | "delivered"
    | "outputBytes"
    | "position"
    | "reason"
    | "resultBytes"
    | "retryable"
    | "seed"
    | "seq"
    | "stack"
    | "status"
    | "text"
    | "timeMs"
    | "used"
    | "valueBytes"
    | "warnings"]?: unknown;
};

class HeaderReader {
  readonly #message: string;

  constructor(message: string) {
    this.#message = message;
  }

  fail(field: string): never {
    throw new ProtocolError("bad_header", field === "" ? this.#message : `${this.#message}.${field}`);
  }

  parse(text: string): Fields {
    let parsed: unknown;
    try {
      parsed = JSON.parse(text);
    } catch {
      return this.fail("");
    }
    return this.object(parsed, "");
  }

  object(value: unknown, field: string): Fields {
    if (typeof value !== "object" || value === null || Array.isArray(value)) this.fail(field);
    return value as Fields; // from JSON.parse: own data properties only
  }

  /** All of `required`, and beside them nothing but `optional`. */
  only(fields: Fields, required: readonly string[], optional: readonly string[], field: string): void {
    const prefix = field === "" ? "" : `${field}.`;
    for (const name of required) if (!Object.hasOwn(fields, name)) this.fail(`${prefix}${name}`);
    for (const name of Object.keys(fields)) {
      if (!required.includes(name) && !optional.includes(name)) this.fail(`${prefix}unknown field`);
    }
  }

  whole(value: unknown, most: number, field: string): number {
    if (typeof value !== "number" || !Number.isInteger(value) || value < 0 || value > most) this.fail(field);
    return value + 0; // -0 becomes 0
  }

  time(value: unknown, field: string): number {
    if (typeof value !== "number" || !(value >= -timeMost && value <= timeMost)) this.fail(field);
    return value;
  }

  text(value: unknown, most: number, field: string): string {
    if (typeof value !== "string" || value.length > most) this.fail(field);
    return value;
  }

  flag(value: unknown, field: string): boolean {
    if (typeof value !== "boolean") this.fail(field);
    return value;
  }

  list(value: unknown, most: number, field: string): readonly unknown[] {
    if (!Array.isArray(value) || value.length > most) this.fail(field);
    return value;
  }

  error(value: unknown, field: string, depth = 1): ScriptErrorData {
    if (depth > headerBounds.errorDepth) this.fail(field);
    const fields = this.object(value, field);
    this.only(fields, ["name", "message", "stack"], ["code", "cause", "errors"], field);
    const data: { -readonly [key in keyof ScriptErrorData]: ScriptErrorData[key] } = {
      name: this.text(fields.name, headerBounds.errorNameChars, `${field}.name`),
      message: this.text(fields.message, headerBounds.errorMessageChars, `${field}.message`),
      stack: this.text(fields.stack, headerBounds.errorStackChars, `${field}.stack`),
    };
    if (Object.hasOwn(fields, "code")) {
      data.code = this.text(fields.code, headerBounds.errorCodeChars, `${field}.code`);
    }
    if (Object.hasOwn(fields, "cause")) data.cause = this.error(fields.cause, `${field}.cause`, depth + 1);
    if (Object.hasOwn(fields, "errors")) {
      const members = this.list(fields.errors, headerBounds.errorMembers, `${field}.errors`);
      data.errors = members.map((member) => this.error(member, `${field}.errors`, depth + 1));
    }
    return data;
  }

  warnings(value: unknown): readonly WarningData[] {
    return this.list(value, headerBounds.warnings, "warnings").map((entry) => {
      const fields = this.object(entry, "warnings");
      this.only(fields, ["code", "message"], [], "warnings");
      return {
        code: this.text(fields.code, headerBounds.warningCodeChars, "warnings.code"),
        message: this.text(fields.message, headerBounds.warningMessageChars, "warnings.message"),
      };
    });
  }
}

const readers = {
  HostCall: new HeaderReader("HostCall"),
  CancelCall: new HeaderReader("CancelCall"),
  Console: new HeaderReader("Console"),
  Blocked: new HeaderReader("Blocked"),
  Finished: new HeaderReader("Finished"),
  Refused: new HeaderReader("Refused"),
  Activate: new HeaderReader("Activate"),
  Deliver: new HeaderReader("Deliver"),
} as const;

// The forms in which nearly every header of a kind comes, read without JSON.parse; any other form goes through it.

const plainHostCall = /^\{"position":(0|[1-9][0-9]{0,8}),"name":"([A-Za-z0-9_$.-]{1,256})"\}$/;

export function parseHostCall(header: Untrusted<string>): HostCallHeader {
  return verify(header, (text) => {
    const plain = plainHostCall.exec(text);
    if (plain !== null) {
      const [, position, name] = plain;
      if (position !== undefined && name !== undefined) return { position: Number(position), name };
    }
    const reader = readers.HostCall;
    const fields = reader.parse(text);
    reader.only(fields, ["position", "name"], [], "");
    const name = reader.text(fields.name, headerBounds.callNameChars, "name");
    if (name === "") reader.fail("name");
    return { position: reader.whole(fields.position, positionMost, "position"), name };
  });
}

export function parseCancelCall(header: Untrusted<string>): CancelCallHeader {
  return verify(header, (text) => {
    const reader = readers.CancelCall;
    const fields = reader.parse(text);
    reader.only(fields, ["position"], [], "");
    return { position: reader.whole(fields.position, positionMost, "position") };
  });
}

function isConsoleLevel(value: unknown): value is ConsoleLevel {
  return value === "debug" || value === "log" || value === "info" || value === "warn" || value === "error";
}

export function parseConsole(header: Untrusted<string>): ConsoleHeader {
  return verify(header, (text) => {
    const reader = readers.Console;
    const fields = reader.parse(text);
    reader.only(fields, ["seq", "level", "timeMs", "text"], [], "");
    const level = fields.level;
    if (!isConsoleLevel(level)) return reader.fail("level");
    return {
      seq: reader.whole(fields.seq, positionMost, "seq"),
      level,
      timeMs: reader.time(fields.timeMs, "timeMs"),
      text: reader.text(fields.text, Number.MAX_SAFE_INTEGER, "text"),
    };
  });
}

const plainBlocked =
  /^\{"nextTimerAt":null,"openCalls":(0|[1-9][0-9]{0,8}),"delivered":(0|[1-9][0-9]{0,8})\}$/;

export function parseBlocked(header: Untrusted<string>): BlockedHeader {
  return verify(header, (text) => {
    const plain = plainBlocked.exec(text);
    if (plain !== null)
      return { nextTimerAt: null, openCalls: Number(plain[1]), delivered: Number(plain[2]) };
    const reader = readers.Blocked;
    const fields = reader.parse(text);
    reader.only(fields, ["nextTimerAt", "openCalls", "delivered"], [], "");
    const next = fields.nextTimerAt;
    return {
      nextTimerAt: next === null ? null : reader.time(next, "nextTimerAt"),
      openCalls: reader.whole(fields.openCalls, positionMost, "openCalls"),
      delivered: reader.whole(fields.delivered, positionMost, "delivered"),
    };
  });
}

const plainCompleted = /^\{"status":"completed","warnings":\[\],"hostCalls":(0|[1-9][0-9]{0,8})\}$/;

export function parseFinished(header: Untrusted<string>): FinishedHeader {
  return verify(header, (text) => {
    const plain = plainCompleted.exec(text);
    if (plain !== null) return { status: "completed", warnings: [], hostCalls: Number(plain[1]) };
    const reader = readers.Finished;
    const fields = reader.parse(text);
    switch (fields.status) {
      case "completed":
        reader.only(fields, ["status", "warnings", "hostCalls"], [], "");
        return {
          status: "completed",
          warnings: reader.warnings(fields.warnings),
          hostCalls: reader.whole(fields.hostCalls, positionMost, "hostCalls"),
        };
      case "script_error":
        return finishedScriptError(reader, fields);
      case "budget_exceeded":
        return finishedBudget(reader, fields);
      default:
        return reader.fail("status");
    }
  });
}

function finishedScriptError(reader: HeaderReader, fields: Fields): FinishedHeader {
  reader.only(fields, ["status", "error", "warnings", "hostCalls"], ["code"], "");
  const finished = {
    status: "script_error",
    error: reader.error(fields.error, "error"),
    warnings: reader.warnings(fields.warnings),
    hostCalls: reader.whole(fields.hostCalls, positionMost, "hostCalls"),
  } as const;
  if (!Object.hasOwn(fields, "code")) return finished;
  const code = reader.text(fields.code, headerBounds.errorCodeChars, "code");
  if (isHostErrorCode(code) || isReasonOf("script_error", code)) return { ...finished, code };
  return reader.fail("code");
}

function finishedBudget(reader: HeaderReader, fields: Fields): FinishedHeader {
  reader.only(fields, ["status", "reason", "limit", "used"], ["warnings", "hostCalls"], "");
  const reason = reader.text(fields.reason, headerBounds.errorCodeChars, "reason");
  if (!isReasonOf("budget_exceeded", reason)) reader.fail("reason");
  return {
    status: "budget_exceeded",
    reason,
    limit: reader.whole(fields.limit, Number.MAX_SAFE_INTEGER, "limit"),
    used: reader.whole(fields.used, Number.MAX_SAFE_INTEGER, "used"),
    ...(Object.hasOwn(fields, "warnings") ? { warnings: reader.warnings(fields.warnings) } : {}),
    ...(Object.hasOwn(fields, "hostCalls")
      ? { hostCalls: reader.whole(fields.hostCalls, positionMost, "hostCalls") }
      : {}),
  };
}

export function parseRefused(header: Untrusted<string>): RefusedHeader {
  return verify(header, (text) => {
    const reader = readers.Refused;
    const fields = reader.parse(text);
    reader.only(fields, ["error"], [], "");
    return { error: reader.error(fields.error, "error") };
  });
}

export function parseActivate(header: Untrusted<string>): ActivateHeader {
  return verify(header, (text) => {
    const reader = readers.Activate;
    const fields = reader.parse(text);
    reader.only(fields, ["activation", "clock", "seed", "names", "limits", "codeGeneration"], [], "");
    const seed = reader.text(fields.seed, 64, "seed");
    if (!/^[0-9a-f]{64}$/.test(seed)) reader.fail("seed");
    return {
      activation: reader.whole(fields.activation, Number.MAX_SAFE_INTEGER, "activation"),
      clock: reader.time(fields.clock, "clock"),
      seed,
      names: reader
        .list(fields.names, headerBounds.names, "names")
        .map((name) => reader.text(name, headerBounds.callNameChars, "names")),
      limits: activateLimits(reader, fields.limits),
      codeGeneration: reader.flag(fields.codeGeneration, "codeGeneration"),
    };
  });
}

const activateLimitNames = [
  "hostCalls",
  "inFlight",
  "outputBytes",
  "resultBytes",
  "valueBytes",
  "bodyBytes",
] as const satisfies readonly (keyof ActivateLimits)[];

function activateLimits(reader: HeaderReader, value: unknown): ActivateLimits {
  const fields = reader.object(value, "limits");
  reader.only(fields, activateLimitNames, [], "limits");
  const limit = (name: keyof ActivateLimits): number =>
    reader.whole(fields[name], positionMost, `limits.${name}`);
  return {
    hostCalls: limit("hostCalls"),
    inFlight: limit("inFlight"),
    outputBytes: limit("outputBytes"),
    resultBytes: limit("resultBytes"),
    valueBytes: limit("valueBytes"),
    bodyBytes: limit("bodyBytes"),
  };
}

export function parseDeliver(header: Untrusted<string>): DeliverHeader {
  return verify(header, (text) => {
    const reader = readers.Deliver;
    const fields = reader.parse(text);
    const base = {
      activation: reader.whole(fields.activation, Number.MAX_SAFE_INTEGER, "activation"),
      clock: reader.time(fields.clock, "clock"),
    };
    if (fields.kind === "timer") {
      reader.only(fields, ["activation", "kind", "clock"], [], "");
      return { ...base, kind: "timer" };
    }
    if (fields.kind !== "call") reader.fail("kind");
    const position = reader.whole(fields.position, positionMost, "position");
    if (reader.flag(fields.ok, "ok")) {
      reader.only(fields, ["activation", "kind", "position", "ok", "clock"], [], "");
      return { ...base, kind: "call", position, ok: true };
    }
    reader.only(fields, ["activation", "kind", "position", "ok", "clock", "error"], [], "");
    return { ...base, kind: "call", position, ok: false, error: hostError(reader, fields.error) };
  });
}

function hostError(reader: HeaderReader, value: unknown): HostErrorData {
  const fields = reader.object(value, "error");
  reader.only(fields, ["code", "message", "retryable"], ["detail", "name"], "error");
  const code = reader.text(fields.code, headerBounds.errorCodeChars, "error.code");
  if (!isHostErrorCode(code)) reader.fail("error.code");
  return {
    code,
    message: reader.text(fields.message, hostErrorMessageChars, "error.message"),
    retryable: reader.flag(fields.retryable, "error.retryable"),
    ...(Object.hasOwn(fields, "detail") ? { detail: fields.detail } : {}),
    ...(Object.hasOwn(fields, "name")
      ? { name: reader.text(fields.name, headerBounds.errorNameChars, "error.name") }
      : {}),
  };
}

// ---------------------------------------------------------------------------------------------------------------- writers

/** A pool sends the same list of names with every activation of a flow: its JSON is kept as long as the list is. */
const namesJson = new WeakMap<readonly string[], string>();

export function activateHeader(header: ActivateHeader): string {
  let names = namesJson.get(header.names);
  if (names === undefined) {
    names = JSON.stringify(header.names);
    namesJson.set(header.names, names);
  }
  const { hostCalls, inFlight, outputBytes, resultBytes, valueBytes, bodyBytes } = header.limits;
  return (
    `{"activation":${header.activation},"clock":${header.clock},"seed":${JSON.stringify(header.seed)},"names":${names},` +
    `"limits":{"hostCalls":${hostCalls},"inFlight":${inFlight},"outputBytes":${outputBytes},` +
    `"resultBytes":${resultBytes},"valueBytes":${valueBytes},"bodyBytes":${bodyBytes}},` +
    `"codeGeneration":${header.codeGeneration}}`
  );
}

export function deliverHeader(header: DeliverHeader): string {
  if (header.kind === "timer") {
    return `{"activation":${header.activation},"kind":"timer","clock":${header.clock}}`;
  }
  const start = `{"activation":${header.activation},"kind":"call","position":${header.position}`;
  if (header.ok) return `${start},"ok":true,"clock":${header.clock}}`;
  return `${start},"ok":false,"clock":${header.clock},"error":${JSON.stringify(header.error)}}`;
}

/** For the worker's messages; fake workers of tests write with it. */
export function workerHeader(
  header: HostCallHeader | CancelCallHeader | ConsoleHeader | BlockedHeader | FinishedHeader | RefusedHeader,
): string {
  return JSON.stringify(header);
}
