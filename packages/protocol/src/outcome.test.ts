/** The outcome table is total and keeps the product's promises. */

import { describe, expect, it } from "vitest";
import { hostErrorTable, isHostErrorCode } from "./host-error.js";
import {
  exitCodes,
  isReasonOf,
  isStatus,
  outcomeAnchor,
  outcomeTable,
  statuses,
  statusRow,
} from "./outcome.js";

describe("the outcome table", () => {
  it("has exactly the statuses that the product promises", () => {
    expect([...statuses].sort()).toEqual(
      [
        "budget_exceeded",
        "cancelled",
        "completed",
        "denied",
        "engine_mismatch",
        "internal",
        "invalid_input",
        "needs_reconcile",
        "overloaded",
        "replay_diverged",
        "sandbox_unavailable",
        "script_error",
        "suspended",
        "timed_out",
        "violation",
        "worker_lost",
      ].sort(),
    );
  });

  it("gives every status the promised exit code", () => {
    expect(Object.fromEntries(statuses.map((status) => [status, statusRow(status).exitCode]))).toEqual({
      completed: 0,
      script_error: 1,
      invalid_input: 2,
      denied: 3,
      budget_exceeded: 4,
      timed_out: 4,
      violation: 5,
      worker_lost: 5,
      sandbox_unavailable: 6,
      cancelled: 7,
      suspended: 8,
      needs_reconcile: 8,
      overloaded: 9,
      replay_diverged: 10,
      engine_mismatch: 10,
      internal: 70,
    });
  });

  it("says exit code 0 for completed alone", () => {
    for (const status of statuses) expect(statusRow(status).exitCode === 0).toBe(status === "completed");
    expect(Object.values(exitCodes)).not.toContain(0);
  });

  it("has for every status a legal HTTP status, a meaning and, unless it is completed, a reason", () => {
    for (const status of statuses) {
      const row = statusRow(status);
      expect(row.httpStatus >= 200 && row.httpStatus < 600).toBe(true);
      expect(row.httpStatus < 300).toBe(status === "completed" || status === "suspended");
      expect(row.meaning).not.toBe("");
      expect(Object.keys(row.reasons).length > 0).toBe(status !== "completed");
      for (const [reason, meaning] of Object.entries(row.reasons)) {
        expect(reason).toMatch(/^[a-z][a-z_]*$/);
        expect(meaning).not.toBe("");
      }
    }
  });

  it("blames nobody only when there is nothing to blame", () => {
    for (const status of statuses) {
      expect(statusRow(status).fault === "nobody").toBe(status === "completed" || status === "suspended");
    }
  });

  it("has an anchor for each status, all different", () => {
    expect(new Set(statuses.map(outcomeAnchor)).size).toBe(statuses.length);
  });

  it("has the budgets that callers see as error.code", () => {
    expect(Object.keys(outcomeTable.budget_exceeded.reasons)).toEqual([
      "cpu",
      "wall",
      "memory",
      "stack",
      "host_calls",
      "result_size",
      "record_size",
    ]);
  });

  it("keeps a script's own reasons apart from codes of host errors, which stand in the same field", () => {
    for (const code of Object.keys(hostErrorTable)) expect(isReasonOf("script_error", code)).toBe(false);
    for (const reason of Object.keys(outcomeTable.script_error.reasons))
      expect(isHostErrorCode(reason)).toBe(false);
  });

  it("knows no status or reason by a name of Object.prototype", () => {
    expect(isStatus("constructor")).toBe(false);
    expect(isReasonOf("violation", "toString")).toBe(false);
    expect(isHostErrorCode("valueOf")).toBe(false);
  });
});
