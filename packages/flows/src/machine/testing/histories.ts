/** Histories and options for tests of the machine: short to write, whole in content. */

import type { CallRow, Delivery, RunHistory, RunProgress, RunRow } from "@flowcell/journal";
import type { CallOutcome, Effect, EncodedValue } from "@flowcell/protocol";
import type { ActivationEnd, MachineOptions } from "../types.js";

export const startMs = 1_000_000;

export function value(of: unknown): EncodedValue {
  return { text: JSON.stringify(of), devalue: false, attachments: [] };
}

export function ok(of: unknown): CallOutcome {
  return { ok: true, value: value(of) };
}

export const fresh: RunProgress = Object.freeze({
  state: "pending",
  status: null,
  reason: null,
  startedAt: null,
  finishedAt: null,
  changedAt: startMs,
  activeMs: 0,
  dueAt: null,
  activations: 0,
  failures: 0,
  cpuUs: 0,
  heapPeakBytes: 0,
  fingerprint: null,
  endOrder: null,
  endStatus: null,
  result: null,
  errorJson: null,
  warningsJson: "[]",
  confinementJson: null,
  cancelRequestedBy: null,
});

export function row(over: Partial<RunRow> = {}): RunRow {
  return {
    runId: "run_1",
    flow: "flow",
    versionHash: "hash",
    trigger: { kind: "manual", by: "test" },
    deduplicationKey: null,
    concurrencyKey: "",
    input: value(null),
    seed: "00".repeat(32),
    guestStartMs: startMs,
    createdAt: startMs,
    notBefore: startMs,
    deadlineMs: 600_000,
    attempt: 1,
    ...fresh,
    owner: "me",
    generation: 1,
    nextOrder: 0,
    guestClockMs: startMs,
    nextLog: 0,
    ...over,
  };
}

export function callRow(position: number, effect: Effect, over: Partial<CallRow> = {}): CallRow {
  return {
    position,
    name: effect,
    effect,
    digest: `digest ${position}`,
    args: value([position]),
    idempotencyKey: `key.${position}`,
    madeAt: startMs,
    note: null,
    wait: null,
    dueAt: null,
    callId: null,
    attempts: effect === "wait" ? 0 : 1,
    cancelled: false,
    unknownReason: null,
    ...over,
  };
}

export type Given =
  | { readonly call: number; readonly outcome: CallOutcome; readonly clock?: number }
  | { readonly timer: number };

/** The row's counters follow from the deliveries. */
export function history(
  run: Partial<RunRow> = {},
  calls: readonly CallRow[] = [],
  given: readonly Given[] = [],
): RunHistory {
  let guestClockMs = startMs;
  const deliveries = given.map((one, order): Delivery => {
    if ("timer" in one) {
      guestClockMs = one.timer;
      return { order, kind: "timer", guestClockMs, at: guestClockMs };
    }
    guestClockMs = one.clock ?? guestClockMs;
    return { order, kind: "call", guestClockMs, position: one.call, outcome: one.outcome, at: guestClockMs };
  });
  return { run: row({ nextOrder: deliveries.length, guestClockMs, ...run }), calls, deliveries };
}

export function options(of: RunHistory, over: Partial<MachineOptions> = {}): MachineOptions {
  return {
    history: of,
    fingerprint: "engine-1",
    blockedMostMs: 10_000,
    suspendAfterMs: 1_000,
    wallMs: 60_000,
    failuresMost: 3,
    recordedBytesMost: 1_000_000,
    timersMost: 1_000,
    virtualTime: false,
    idempotencyKey: (position) => `key.${position}`,
    ...over,
  };
}

export function end(status: ActivationEnd["status"], over: Partial<ActivationEnd> = {}): ActivationEnd {
  return {
    status,
    reason: null,
    value: null,
    errorJson: null,
    warnings: [],
    liveCpuUs: 100,
    heapPeakBytes: 1_000,
    confinementJson: null,
    started: true,
    ...over,
  };
}
