// What is printed below a run, for reports of every kind.
import type { RunReport } from "@flowcell/flows";
import { expect, test } from "vitest";
import { summaryText } from "./run-text.js";

const report: RunReport = {
  runId: "run_1",
  flow: "order",
  versionHash: "",
  state: "suspended",
  ok: false,
  status: "needs_reconcile",
  createdAt: 0,
  startedAt: 0,
  finishedAt: null,
  trigger: { kind: "manual", by: "me" },
  attempt: 1,
  activations: 1,
  usage: { cpuMs: 1, wallMs: 1, heapPeakBytes: 1, hostCalls: 1 },
  logs: [],
  calls: [
    {
      position: 4,
      name: "fetch",
      effect: "once",
      state: "unknown",
      code: null,
      idempotencyKey: "key-4",
      madeAt: 0,
      durationMs: null,
      inputBytes: 1,
      outputBytes: 0,
    },
  ],
  pending: [],
  dueAt: null,
  warnings: [],
  confinement: null,
};

test("a run that waits for what somebody finds out says how to tell it", () => {
  expect(summaryText(report)).toContain("find out, then: flowcell reconcile run_1 4 --observed");
});

test("a run that is over names the key, and no command that would refuse", () => {
  const text = summaryText({ ...report, state: "finished", status: "cancelled" });
  expect(text).toContain("call 4 fetch: nobody knows whether it happened (idempotency key key-4)");
  expect(text).toContain("the run is over");
  expect(text).not.toContain("flowcell reconcile");
});
