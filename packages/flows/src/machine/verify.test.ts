/** Replaying a history without doing anything, to find where a script differs from it. */

import { describe, expect, test } from "vitest";
import { callRow, end, history, ok, value } from "./testing/histories.js";
import { HistoryVerifier, type VerifyCommand, type VerifyEvent } from "./verify.js";

const finished = {
  state: "finished",
  status: "completed",
  result: value("result"),
  finishedAt: 1_000_200,
} as const;
const calls = [callRow(0, "keyed"), callRow(1, "read")];
const given = [
  { call: 0, outcome: ok("zero"), clock: 1_000_010 },
  { timer: 1_000_100 },
  { call: 1, outcome: ok("one"), clock: 1_000_110 },
] as const;

function kinds(commands: readonly VerifyCommand[]): readonly string[] {
  return commands.map(({ kind }) => kind);
}

function called(position: number, name: string): VerifyEvent {
  return { kind: "called", position, name, digest: `digest ${position}`, args: value([]) };
}

function ended(of: unknown): VerifyEvent {
  return { kind: "ended", end: end("completed", { value: value(of) }) };
}

/** Follows the record until the script's end. */
function replayed(run: Parameters<typeof history>[0] = finished): HistoryVerifier {
  const verifier = new HistoryVerifier(history(run, calls, given));
  expect(kinds(verifier.start())).toEqual([]);
  expect(kinds(verifier.handle(called(0, "keyed")))).toEqual(["deliver"]);
  expect(kinds(verifier.handle({ kind: "blocked", nextTimerAt: 1_000_090, openCalls: 0 }))).toEqual([
    "fireTimer",
  ]);
  return verifier;
}

describe("the record of a finished run", () => {
  test("matches when the script does all of it and ends as it did", () => {
    const verifier = replayed();
    expect(kinds(verifier.handle(called(1, "read")))).toEqual(["deliver", "frontier"]);
    expect(verifier.finding).toBeNull();
    verifier.handle(ended("result"));
    expect(verifier.finding).toEqual({ matched: true, divergence: null, deliveries: 3, calls: 2 });
  });

  test("differs when the script ends with another result", () => {
    const verifier = replayed();
    verifier.handle(called(1, "read"));
    verifier.handle(ended("other"));
    expect(verifier.finding?.divergence).toEqual({
      position: null,
      order: null,
      expected: { kind: "end", status: "completed", reason: null, value: '"result"' },
      actual: { kind: "end", status: "completed", reason: null, value: '"other"' },
    });
  });

  test("differs when the script makes another call, and nothing more is given to it", () => {
    const verifier = replayed();
    expect(kinds(verifier.handle(called(1, "write")))).toEqual(["endWorker"]);
    expect(verifier.finding?.divergence).toMatchObject({
      position: 1,
      expected: { name: "read" },
      actual: { name: "write" },
    });
    expect(verifier.handle(ended("result"))).toEqual([]);
    expect(verifier.finding?.matched).toBe(false);
  });

  test("differs when the script ends early, or waits where it had ended", () => {
    const early = replayed();
    early.handle(ended("result"));
    expect(early.finding?.divergence).toMatchObject({ position: 1, order: 2, actual: { kind: "end" } });
    const late = replayed();
    late.handle(called(1, "read"));
    late.handle(called(2, "more"));
    expect(kinds(late.handle({ kind: "blocked", nextTimerAt: null, openCalls: 1 }))).toEqual(["endWorker"]);
    expect(late.finding?.divergence).toMatchObject({
      expected: { kind: "end" },
      actual: { kind: "blocked" },
    });
  });

  test("gives the script nothing that came after its end", () => {
    const verifier = new HistoryVerifier(
      history(
        { ...finished, endOrder: 0, endStatus: "completed" },
        [callRow(0, "keyed")],
        [{ call: 0, outcome: ok(0) }],
      ),
    );
    verifier.start();
    expect(kinds(verifier.handle(called(0, "keyed")))).toEqual(["frontier"]);
    verifier.handle(ended("result"));
    expect(verifier.finding?.matched).toBe(true);
  });

  test.each(["worker_lost", "sandbox_unavailable", "overloaded"] as const)(
    "is neither confirmed nor refuted by an activation that ended as %s",
    (status) => {
      const verifier = replayed();
      verifier.handle({ kind: "ended", end: end(status) });
      expect(verifier.finding).toBeNull();
    },
  );
});

describe("the record of a run that did not end by itself", () => {
  test.each([
    [{ state: "suspended", status: "suspended", reason: "waiting" }],
    [{ state: "finished", status: "cancelled", reason: "caller" }],
    [{ state: "finished", status: "budget_exceeded", reason: "cpu" }],
  ] as const)("matches as far as it goes: %o", (run) => {
    const verifier = replayed(run);
    expect(kinds(verifier.handle(called(1, "read")))).toEqual(["deliver", "frontier", "endWorker"]);
    expect(verifier.finding).toEqual({ matched: true, divergence: null, deliveries: 3, calls: 2 });
  });

  test("matches at once when it is empty", () => {
    const verifier = new HistoryVerifier(history({ state: "finished", status: "cancelled" }));
    expect(kinds(verifier.start())).toEqual(["frontier", "endWorker"]);
    expect(verifier.finding?.matched).toBe(true);
  });
});
