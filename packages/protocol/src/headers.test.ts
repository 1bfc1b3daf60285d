/** Every header: round trip, each field missing, wrong or unknown. */

import { describe, expect, it } from "vitest";
import {
  type ActivateHeader,
  activateHeader,
  type DeliverHeader,
  deliverHeader,
  type FinishedHeader,
  headerBounds,
  parseActivate,
  parseBlocked,
  parseCancelCall,
  parseConsole,
  parseDeliver,
  parseFinished,
  parseHostCall,
  parseRefused,
  type ScriptErrorData,
  workerHeader,
} from "./headers.js";
import { ProtocolError } from "./protocol-error.js";
import { type Untrusted, untrusted } from "./untrusted.js";

const error: ScriptErrorData = { name: "TypeError", message: "boom", stack: "at f (script.js:1:2)" };
const warnings = [{ code: "unhandled_rejection", message: "lost" }];

const activate: ActivateHeader = {
  activation: 7,
  clock: 1_700_000_000_000.25,
  seed: "0123456789abcdef".repeat(4),
  names: ["sleep", "tools.find"],
  limits: { hostCalls: 1, inFlight: 2, outputBytes: 3, resultBytes: 4, valueBytes: 5, bodyBytes: 6 },
  codeGeneration: true,
};

interface Parsed {
  readonly parse: (header: Untrusted<string>) => unknown;
  readonly good: readonly object[];
  /** Replacements of single fields that are refused. */
  readonly wrong: readonly object[];
}

const finished: readonly FinishedHeader[] = [
  { status: "completed", warnings: [], hostCalls: 0 },
  { status: "script_error", error, warnings, hostCalls: 3 },
  { status: "script_error", code: "deadlock", error, warnings: [], hostCalls: 0 },
  {
    status: "script_error",
    code: "not_found",
    error: { ...error, code: "E", cause: error, errors: [error, error] },
    warnings: [],
    hostCalls: 0,
  },
  { status: "budget_exceeded", reason: "memory", limit: 1, used: 2 },
  { status: "budget_exceeded", reason: "result_size", limit: 1, used: 2, warnings, hostCalls: 4 },
];

const deliver: readonly DeliverHeader[] = [
  { activation: 1, kind: "call", position: 2, ok: true, clock: 3 },
  {
    activation: 1,
    kind: "call",
    position: 2,
    ok: false,
    clock: 3,
    error: { code: "denied", message: "no", retryable: false },
  },
  {
    activation: 1,
    kind: "call",
    position: 2,
    ok: false,
    clock: 3.5,
    error: { code: "upstream", message: "", retryable: true, detail: { a: [1] }, name: "E" },
  },
  { activation: 1, kind: "timer", clock: -1 },
];

const long = (most: number): string => "x".repeat(most + 1);
let deep = error;
for (let level = 0; level < headerBounds.errorDepth; level++) deep = { ...error, cause: deep };

const messages: { readonly [name: string]: Parsed } = {
  HostCall: {
    parse: parseHostCall,
    good: [
      { position: 0, name: "sleep" },
      { position: 4_294_967_295, name: 'odd "name"\u00e9' },
      { position: 12, name: "a.b-c_$9" },
    ],
    wrong: [
      { position: -1 },
      { position: 0.5 },
      { position: 2 ** 32 },
      { position: "0" },
      { name: "" },
      { name: 1 },
      { name: long(headerBounds.callNameChars) },
      { extra: 1 },
    ],
  },
  CancelCall: {
    parse: parseCancelCall,
    good: [{ position: 3 }],
    wrong: [{ position: null }, { position: 1e300 }, { name: "x" }],
  },
  Console: {
    parse: parseConsole,
    good: ["debug", "log", "info", "warn", "error"].map((level) => ({
      seq: 1,
      level,
      timeMs: 1.5,
      text: "a\nb",
    })),
    wrong: [
      { seq: -1 },
      { level: "fatal" },
      { level: "constructor" },
      { timeMs: null },
      { timeMs: 9e15 },
      { text: 1 },
      { extra: 0 },
    ],
  },
  Blocked: {
    parse: parseBlocked,
    good: [
      { nextTimerAt: null, openCalls: 1, delivered: 0 },
      { nextTimerAt: 5.5, openCalls: 0, delivered: 12 },
    ],
    wrong: [
      { nextTimerAt: "1" },
      { nextTimerAt: 1e16 },
      { openCalls: -1 },
      { openCalls: null },
      { delivered: -1 },
      { delivered: "0" },
      { extra: 0 },
    ],
  },
  Finished: {
    parse: parseFinished,
    good: finished,
    wrong: [
      { status: "suspended" },
      { status: 1 },
      { warnings: {} },
      { warnings: [1] },
      { warnings: [{ code: 1, message: "" }] },
      { warnings: new Array(headerBounds.warnings + 1).fill(warnings[0]) },
      { hostCalls: -1 },
      { extra: 0 },
    ],
  },
  Refused: {
    parse: parseRefused,
    good: [{ error }, { error: { ...error, stack: "" } }],
    wrong: [
      { error: null },
      { error: [] },
      { error: { ...error, name: 1 } },
      { error: { ...error, message: long(headerBounds.errorMessageChars) } },
      { error: { ...error, stack: long(headerBounds.errorStackChars) } },
      { error: { ...error, name: long(headerBounds.errorNameChars) } },
      { error: { ...error, extra: 1 } },
      { error: { ...error, errors: new Array(headerBounds.errorMembers + 1).fill(error) } },
      { error: deep },
      { error: { name: "x", message: "y" } },
    ],
  },
  Activate: {
    parse: parseActivate,
    good: [activate],
    wrong: [
      { seed: "00" },
      { seed: "G".repeat(64) },
      { names: "x" },
      { names: [1] },
      { limits: {} },
      { limits: { ...activate.limits, cpuMs: 1 } },
      { codeGeneration: 1 },
      { clock: "now" },
      { activation: -1 },
      { extra: 0 },
    ],
  },
  Deliver: {
    parse: parseDeliver,
    good: deliver,
    wrong: [{ kind: "x" }, { clock: null }, { activation: 0.5 }, { extra: 1 }],
  },
};

function badHeader(parse: Parsed["parse"], header: string): string {
  try {
    parse(untrusted(header));
  } catch (thrown) {
    if (thrown instanceof ProtocolError && thrown.name === "bad_header") return thrown.detail;
    throw thrown;
  }
  return "";
}

describe.each(Object.entries(messages))("the header of %s", (name, { parse, good, wrong }) => {
  it("is read back as it was written", () => {
    for (const header of good) expect(parse(untrusted(JSON.stringify(header)))).toEqual(header);
  });

  it("is refused without any one of its fields", () => {
    for (const header of good) {
      for (const field of Object.keys(header)) {
        const rest = Object.fromEntries(Object.entries(header).filter(([key]) => key !== field));
        const optional = name === "Finished" && ["code", "warnings", "hostCalls"].includes(field);
        if (!optional) expect(badHeader(parse, JSON.stringify(rest))).toContain(name);
      }
    }
  });

  it("is refused with a wrong or unknown field", () => {
    for (const change of wrong)
      expect(badHeader(parse, JSON.stringify({ ...good[0], ...change }))).toContain(name);
  });

  it("is refused when it is no JSON object", () => {
    for (const header of ["", "null", "[]", "1", '"x"', "{", "{}x", "\u0000"])
      expect(badHeader(parse, header)).toContain(name);
  });

  it("takes no field from a prototype", () => {
    for (const header of good)
      expect(badHeader(parse, `{"__proto__":${JSON.stringify(header)}}`)).toContain(name);
  });
});

describe("parseFinished", () => {
  it("takes as code only a reason of the table or a host error's", () => {
    const header = (code: string): string =>
      JSON.stringify({ status: "script_error", code, error, warnings: [], hostCalls: 0 });
    for (const code of ["uncaught", "no_entry", "unsendable", "denied", "internal"]) {
      expect(parseFinished(untrusted(header(code)))).toMatchObject({ code });
    }
    for (const code of ["cpu", "toString", "", "DENIED"])
      expect(badHeader(parseFinished, header(code))).toBe("Finished.code");
  });

  it("takes as reason only a budget's", () => {
    for (const reason of ["uncaught", "constructor", ""]) {
      const header = JSON.stringify({ status: "budget_exceeded", reason, limit: 1, used: 1 });
      expect(badHeader(parseFinished, header)).toBe("Finished.reason");
    }
  });
});

describe("the writers", () => {
  it("write what the parsers read", () => {
    expect(parseActivate(untrusted(activateHeader(activate)))).toEqual(activate);
    for (const header of deliver) expect(parseDeliver(untrusted(deliverHeader(header)))).toEqual(header);
    for (const header of finished) expect(parseFinished(untrusted(workerHeader(header)))).toEqual(header);
  });

  it("write one line", () => {
    const headers = [...deliver.map(deliverHeader), activateHeader({ ...activate, names: ["a\nb"] })];
    for (const header of headers) expect(header).not.toContain("\n");
  });
});
