// What may be tried again.
import type { CallHead, DeliveryHead } from "@flowcell/journal";
import { describe, expect, test } from "vitest";
import { backoffMs, hasUnknownEffect, mayPass } from "./after-run.js";

function call(over: Partial<CallHead>): CallHead {
  return {
    position: 0,
    name: "tools.x",
    effect: "once",
    digest: "d",
    argsBytes: 2,
    idempotencyKey: "k",
    madeAt: 0,
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

function delivery(position: number, code: "outcome_unknown" | "upstream" | null): DeliveryHead {
  const outcome =
    code === null
      ? ({ ok: true, bytes: 2 } as const)
      : ({ ok: false, error: { code, message: "", retryable: false } } as const);
  return { order: position, kind: "call", guestClockMs: 0, at: 0, position, outcome };
}

describe("an effect is unknown", () => {
  test("when a call of effect once was begun and has no outcome, or the outcome says so", () => {
    expect(hasUnknownEffect({ calls: [call({})], deliveries: [] })).toBe(true);
    expect(hasUnknownEffect({ calls: [call({})], deliveries: [delivery(0, "outcome_unknown")] })).toBe(true);
    expect(hasUnknownEffect({ calls: [call({ unknownReason: "?" })], deliveries: [] })).toBe(true);
  });

  test("not when it is known, was not begun, or may be repeated", () => {
    expect(hasUnknownEffect({ calls: [], deliveries: [] })).toBe(false);
    expect(hasUnknownEffect({ calls: [call({})], deliveries: [delivery(0, null)] })).toBe(false);
    expect(hasUnknownEffect({ calls: [call({})], deliveries: [delivery(0, "upstream")] })).toBe(false);
    expect(hasUnknownEffect({ calls: [call({ attempts: 0 })], deliveries: [] })).toBe(false);
    for (const effect of ["read", "keyed", "local"] as const) {
      expect(hasUnknownEffect({ calls: [call({ effect })], deliveries: [] }), effect).toBe(false);
    }
  });
});

test("errors of the script and of flowcell may pass, decisions and limits do not", () => {
  for (const status of ["script_error", "worker_lost", "internal", "sandbox_unavailable"] as const) {
    expect(mayPass({ status, reason: null }), status).toBe(true);
  }
  for (const status of [
    "completed",
    "cancelled",
    "denied",
    "budget_exceeded",
    "timed_out",
    "violation",
  ] as const) {
    expect(mayPass({ status, reason: null }), status).toBe(false);
  }
  expect(mayPass({ status: "overloaded", reason: "skipped" })).toBe(false);
});

test("attempts come later and later, an hour at most", () => {
  expect([2, 3, 4].map((attempt) => backoffMs(1000, attempt))).toEqual([1000, 2000, 4000]);
  expect(backoffMs(3_600_000, 10)).toBe(3_600_000);
  expect(backoffMs(0, 5)).toBe(0);
});
