// What a run's journal looks like to callers.
import {
  type CallRow,
  type Delivery,
  headsOf,
  type LogRow,
  type RunHistory,
  type RunRow,
} from "@flowcell/journal";
import { type CallOutcome, encodeValue } from "@flowcell/protocol";
import { describe, expect, test } from "vitest";
import { runReport } from "./service-report.js";

const nothing = encodeValue(undefined);

const run: RunRow = {
  runId: "run_x",
  flow: "f",
  versionHash: "h",
  trigger: { kind: "manual", by: "me" },
  deduplicationKey: null,
  concurrencyKey: "",
  input: nothing,
  seed: "00",
  guestStartMs: 0,
  createdAt: 0,
  notBefore: 0,
  deadlineMs: 1000,
  attempt: 1,
  state: "running",
  status: null,
  reason: null,
  startedAt: 10,
  finishedAt: null,
  changedAt: 10,
  activeMs: 5,
  dueAt: null,
  activations: 1,
  failures: 0,
  cpuUs: 1500,
  heapPeakBytes: 7,
  fingerprint: "e",
  endOrder: null,
  endStatus: null,
  result: null,
  errorJson: null,
  warningsJson: "[]",
  confinementJson: null,
  cancelRequestedBy: null,
  owner: "o",
  generation: 1,
  nextOrder: 0,
  guestClockMs: 0,
  nextLog: 0,
};

function call(position: number, over: Partial<CallRow> = {}): CallRow {
  return {
    position,
    name: "tools.x",
    effect: "once",
    digest: "d",
    args: encodeValue([1]),
    idempotencyKey: `k${position}`,
    madeAt: 20,
    note: null,
    wait: null,
    dueAt: null,
    callId: null,
    attempts: 1,
    cancelled: false,
    unknownReason: null,
    ...over,
  };
}

function delivered(position: number, outcome: CallOutcome): Delivery {
  return { order: position, kind: "call", guestClockMs: 0, at: 50, position, outcome };
}

const failed = (code: "upstream" | "cancelled" | "outcome_unknown"): CallOutcome => ({
  ok: false,
  error: { code, message: "m", retryable: false },
});

const reportOf = (history: RunHistory, logs: readonly LogRow[], now: number): ReturnType<typeof runReport> =>
  runReport(headsOf(history), logs, now);

const waits = { effect: "wait", attempts: 0, callId: "call_x" } as const;

describe("calls", () => {
  const history = (over: Partial<RunRow>): RunHistory => ({
    run: { ...run, ...over },
    calls: [
      call(0),
      call(1),
      call(2),
      call(3),
      call(4),
      call(5, { attempts: 0 }),
      call(6, { unknownReason: "crash" }),
      call(7, { ...waits, wait: { kind: "time", waitMs: 5 } }),
    ],
    deliveries: [
      delivered(0, { ok: true, value: encodeValue("four") }),
      delivered(1, failed("upstream")),
      delivered(2, failed("cancelled")),
      delivered(3, failed("outcome_unknown")),
    ],
  });
  const states = (over: Partial<RunRow>): string[] =>
    reportOf(history(over), [], 60).calls.map(({ state }) => state);

  test("say whether each ran, while the run goes on and when it is over", () => {
    const settled = ["done", "failed", "cancelled", "unknown"];
    expect(states({})).toEqual([...settled, "running", "running", "unknown", "waiting"]);
    expect(states({ state: "finished", status: "cancelled", finishedAt: 60 })).toEqual([
      ...settled,
      "unknown",
      "not_started",
      "unknown",
      "cancelled",
    ]);
  });

  test("have sizes, durations and codes", () => {
    const [done, wrong] = reportOf(history({}), [], 60).calls;
    expect(done).toMatchObject({
      durationMs: 30,
      inputBytes: 3,
      outputBytes: 6,
      code: null,
      idempotencyKey: "k0",
    });
    expect(wrong).toMatchObject({ durationMs: 30, outputBytes: 0, code: "upstream" });
  });
});

describe("what is pending", () => {
  test("is said for every open wait and every unknown call, with what is asked", () => {
    const detail = encodeValue({ amount: 3 });
    const calls = [
      call(0, { ...waits, name: "sleep", wait: { kind: "time", waitMs: 5 }, dueAt: 25 }),
      call(1, { ...waits, wait: { kind: "signal", name: 'a"b', timeoutMs: null } }),
      call(2, { ...waits, wait: { kind: "approval", title: "May I?", detail, timeoutMs: null } }),
      call(3, { ...waits, wait: { kind: "run", runId: "run_y", timeoutMs: null } }),
      call(4, { unknownReason: "crash" }),
      call(5, { ...waits, wait: { kind: "time", waitMs: 5 }, cancelled: true }),
      call(6),
    ];
    const suspended = { ...run, state: "suspended", status: "suspended", reason: "waiting" } as const;
    const report = reportOf({ run: suspended, calls, deliveries: [] }, [], 60);
    expect(report.pending.map(({ position, waitsFor }) => [position, waitsFor])).toEqual([
      [0, "its time"],
      [1, 'the signal "a\\"b"'],
      [2, "an answer"],
      [3, "the run run_y"],
      [4, "an operator: what became of the call is unknown (crash)"],
    ]);
    expect(report.pending[2]).toMatchObject({ callId: "call_x", title: "May I?", args: { amount: 3 } });
    expect(report.pending[0]).toMatchObject({ dueAt: 25 });
    expect(report.dueAt).toBeNull();
    const over = { ...run, state: "finished", status: "cancelled", finishedAt: 60 } as const;
    expect(reportOf({ run: over, calls, deliveries: [] }, [], 60).pending).toEqual([]);
  });
});

test("a suspended run says when it is due, also for a timer of the script, which is no call", () => {
  const suspended = {
    ...run,
    state: "suspended",
    status: "suspended",
    reason: "waiting",
    dueAt: 90,
  } as const;
  expect(reportOf({ run: suspended, calls: [], deliveries: [] }, [], 60)).toMatchObject({
    pending: [],
    dueAt: 90,
  });
  const retried = { ...run, state: "pending", dueAt: 90 } as const;
  expect(reportOf({ run: retried, calls: [], deliveries: [] }, [], 60).dueAt).toBeNull();
});

describe("the whole", () => {
  test("has the value only when the run completed, the error otherwise, and time while it goes on", () => {
    const going = reportOf({ run, calls: [], deliveries: [] }, [], 60);
    expect(going).toMatchObject({ ok: false, status: null, usage: { cpuMs: 1.5, wallMs: 55, hostCalls: 0 } });
    const done = {
      ...run,
      state: "finished",
      status: "completed",
      finishedAt: 60,
      result: encodeValue([1]),
    } as const;
    expect(reportOf({ run: done, calls: [], deliveries: [] }, [], 99)).toMatchObject({
      ok: true,
      value: [1],
      usage: { wallMs: 5 },
    });
    const error = { code: "uncaught", name: "E", message: "m" };
    const wrong = { ...done, status: "script_error", errorJson: JSON.stringify(error) } as const;
    const report = reportOf({ run: wrong, calls: [], deliveries: [] }, [], 99);
    expect(report).toMatchObject({ ok: false, status: "script_error", error });
    expect("value" in report).toBe(false);
  });

  test("shows logs by the script's clock, one that no Date holds too", () => {
    const logs = [
      { seq: 0, level: "log", guestTimeMs: 0, text: "a" },
      { seq: 1, level: "warn", guestTimeMs: 9e15, text: "b" },
    ] as const;
    expect(reportOf({ run, calls: [], deliveries: [] }, logs, 0).logs).toEqual([
      { level: "log", time: "1970-01-01T00:00:00.000Z", text: "a" },
      { level: "warn", time: "9000000000000000", text: "b" },
    ]);
  });

  test("says so when a value cannot be read any more", () => {
    const result = { text: "{", devalue: false, attachments: [] };
    const broken = { ...run, state: "finished", status: "completed", finishedAt: 60, result } as const;
    expect(reportOf({ run: broken, calls: [], deliveries: [] }, [], 0).value).toMatch(/cannot be read/);
  });
});
