/** How activations and runs end: what is let go, what is waited for, and what is stored on the way. */

import { describe, expect, test } from "vitest";
import { approval, Driver, keyed, kv, once, read } from "./testing/driver.js";
import { callRow, end, history, ok, startMs, value } from "./testing/histories.js";

function live(): Driver {
  const driver = new Driver();
  driver.begin();
  return driver;
}

describe("a script that ends by itself", () => {
  test.each([
    ["completed", null],
    ["script_error", "uncaught"],
    ["denied", "denied"],
    ["budget_exceeded", "cpu"],
    ["violation", "protocol"],
    ["invalid_input", "source_too_large"],
  ] as const)("as %s finishes its run with one unit when nothing is open", (status, reason) => {
    const driver = live();
    const line = { seq: 0, level: "log", guestTimeMs: startMs, text: "bye" } as const;
    driver.send({ kind: "logged", line });
    expect(driver.at(9).ended(status, { reason, value: value(1), liveCpuUs: 77 })).toEqual([
      `commit logs 0; run finished ${status}/${reason ?? "-"}`,
    ]);
    expect(driver.pending?.operations[1]).toMatchObject({
      patch: { result: value(1), finishedAt: startMs + 9, activeMs: 9, cpuUs: 77, dueAt: null },
    });
    expect(driver.ack()).toEqual(["rest finished"]);
    expect(driver.alarm).toBeNull();
  });

  test("gives up its waits and reads, and begins nothing that it had made", () => {
    const driver = live();
    driver.made(0, read);
    driver.made(1, approval);
    driver.call(2);
    driver.call(3);
    driver.is(3, keyed);
    const flying = driver.pending;
    driver.call(4);
    driver.is(4, once);
    expect(driver.ended("completed")).toEqual(["abort 0"]);
    expect(driver.pending).toBe(flying);
    expect(driver.ack()).toEqual(["commit run running ends completed/- at 0; #0 +0 3=cancelled"]);
    expect(driver.ack()).toEqual(["commit run finished completed/-"]);
    expect(driver.is(2, keyed)).toEqual([]);
    expect(driver.outcome(0)).toEqual([]);
  });

  test("is finished though what it last made is not recorded any more", () => {
    const driver = new Driver();
    driver.start();
    driver.send({ kind: "go" });
    driver.call(0);
    driver.is(0, approval);
    expect(driver.ended("completed")).toEqual([]);
    expect(driver.settle()).toEqual(["commit run finished completed/-", "rest finished"]);
  });

  test.each([keyed, once])("waits for the effects that it began, having stored how it ended", (as) => {
    const driver = live();
    driver.made(0, as);
    expect(driver.ended("completed", { value: value("result") })).toEqual([
      "commit run running ends completed/- at 0",
    ]);
    expect(driver.pending?.operations[0]).toMatchObject({ patch: { result: value("result") } });
    expect(driver.settle()).toEqual([]);
    expect(driver.outcome(0)).toEqual(["commit #0 +0 0=0"]);
    expect(driver.settle()).toEqual(["commit run finished completed/-", "rest finished"]);
  });

  test("records a local effect that is on its way, and does not begin one that is not", () => {
    const driver = live();
    driver.call(0);
    driver.call(1);
    driver.is(0, kv);
    driver.is(1, kv);
    driver.ended("completed");
    expect(driver.settle()).toEqual([
      "commit run running ends completed/- at 1",
      "commit run finished completed/-",
      "rest finished",
    ]);
  });
});

describe("a run whose script had ended, taken up by another process", () => {
  const ended = { state: "running", endOrder: 0, endStatus: "completed", result: value(7) } as const;

  test("has no activation: what it began is sent again with its key, or proven", () => {
    const driver = new Driver(history(ended, [callRow(0, "keyed"), callRow(1, "once"), callRow(2, "once")]));
    expect(driver.start()).toEqual([
      "classify 0 without note",
      "classify 1 without note",
      "classify 2 without note",
    ]);
    expect(driver.is(0, keyed)).toEqual(["commit attempt 0"]);
    expect(driver.ack()).toEqual(["dispatch 0 key.0"]);
    driver.is(1, once);
    driver.is(2, once);
    driver.send({ kind: "recovered", position: 1, recovery: { state: "unknown" } });
    driver.send({ kind: "recovered", position: 2, recovery: { state: "applied", outcome: ok("done") } });
    driver.settle();
    expect(driver.outcome(0)).toEqual(["commit #2 +0 0=0"]);
    expect(driver.settle()).toEqual(["commit run finished completed/-", "rest finished"]);
  });

  test("records as unknown what cannot be proven, and as not begun what did not happen", () => {
    const driver = new Driver(history(ended, [callRow(0, "once"), callRow(1, "once")]));
    driver.start();
    driver.is(0, once);
    driver.is(1, once);
    expect(driver.send({ kind: "recovered", position: 0, recovery: { state: "unknown" } })).toEqual([
      "commit #0 +0 0=outcome_unknown",
    ]);
    driver.send({ kind: "recovered", position: 1, recovery: { state: "not_applied" } });
    expect(driver.settle()).toEqual([
      "commit #1 +0 1=cancelled",
      "commit run finished completed/-",
      "rest finished",
    ]);
  });

  test("does not wait for its waits, and is finished with the stored result", () => {
    const wait = { kind: "time", waitMs: 500 } as const;
    const driver = new Driver(history(ended, [callRow(0, "wait", { wait, dueAt: startMs + 500 })]));
    expect(driver.start()).toEqual(["commit run finished completed/-"]);
    expect(driver.pending?.operations[0]).toMatchObject({ patch: { result: value(7) } });
  });

  test.each([
    [{ endStatus: "replay_diverged", reason: "call" }],
    [{ endStatus: "cancelled", reason: "revoked" }],
    [{ endStatus: "timed_out", reason: "deadline" }],
  ] as const)("sends nothing again when it ended as %o", (over) => {
    const driver = new Driver(history({ ...ended, ...over }, [callRow(0, "keyed")]));
    expect(driver.start()).toEqual(["commit #0 +0 0=outcome_unknown"]);
  });
});

describe("an activation that fails for no fault of the script", () => {
  test.each(["worker_lost", "sandbox_unavailable", "internal"] as const)(
    "as %s is tried again after a while, so and so often, then ends the run",
    (status) => {
      const driver = live();
      for (const [failures, backOff] of [
        [1, 1_000],
        [2, 2_000],
        [3, 4_000],
      ] as const) {
        const due = driver.now - startMs + backOff;
        expect(driver.ended(status)).toEqual([`commit run pending due +${due} failures ${failures}`]);
        expect(driver.ack()).toEqual([`wake +${due}`]);
        driver.at(due).send({ kind: "go" });
        driver.settle();
      }
      expect(driver.ended(status, { reason: "x" })).toEqual([`commit run finished ${status}/x failures 4`]);
    },
  );

  test("counts in a row: one that was suspended begins anew", () => {
    const driver = live();
    driver.ended("worker_lost");
    driver.settle();
    driver.at(1_000).send({ kind: "go" });
    driver.settle();
    driver.made(0, approval);
    driver.blocked(null, 1);
    driver.ended("suspended");
    expect(driver.pending?.operations[0]).toMatchObject({ patch: { failures: 0 } });
  });

  test.each(["overloaded", "cancelled"] as const)("as %s is tried again and not counted", (status) => {
    const driver = live();
    for (let times = 0; times < 10; times++) {
      const due = driver.now - startMs + Math.min(60_000, 1_000 * 2 ** times);
      expect(driver.ended(status)).toEqual([`commit run pending due +${due}`]);
      driver.ack();
      driver.at(due).send({ kind: "go" });
      driver.settle();
    }
  });

  test("keeps its back-off over a restart", () => {
    const driver = new Driver(history({ state: "pending", dueAt: startMs + 900, failures: 1 }));
    expect(driver.start()).toEqual(["wake +900"]);
  });

  test("lets calls go on that were begun", () => {
    const driver = live();
    driver.made(0, keyed);
    driver.ended("worker_lost");
    driver.settle();
    expect(driver.outcome(0)).toEqual(["commit #0 +0 0=0"]);
  });
});

describe("a version that may not run", () => {
  const revoked = { kind: "refused", end: end("cancelled", { reason: "revoked", started: false }) } as const;

  test("ends its run in place of the activation, whatever is recorded, and sends nothing again", () => {
    const driver = new Driver(history({ state: "running" }, [callRow(0, "keyed")]));
    driver.start();
    driver.send({ kind: "go" });
    driver.settle();
    expect(driver.send(revoked)).toEqual([
      "commit run running ends cancelled/revoked at 0; #0 +0 0=outcome_unknown",
    ]);
    expect(driver.settle()).toEqual(["commit run finished cancelled/revoked", "rest finished"]);
  });

  test("ends a run that was about to ask an operator", () => {
    const driver = new Driver(history({ state: "running" }, [callRow(0, "once")]));
    driver.begin();
    driver.call(0, "once");
    driver.is(0, once);
    driver.ended("worker_lost");
    driver.settle();
    driver.at(1_000).send({ kind: "go" });
    driver.settle();
    driver.send({ kind: "recovered", position: 0, recovery: { state: "unknown" } });
    expect(driver.send(revoked)).toEqual([]);
    expect(driver.settle()).toEqual([
      "commit run running ends cancelled/revoked at 0; #0 +1000 0=outcome_unknown",
      "commit run finished cancelled/revoked failures 1",
      "rest finished",
    ]);
  });
});

describe("a cancel", () => {
  const cancel = { kind: "cancel", by: "alice", reason: "caller" } as const;

  test("of a run that waits for a worker finishes it", () => {
    const driver = new Driver();
    driver.start();
    expect(driver.send(cancel)).toEqual(["commit run finished cancelled/caller"]);
    expect(driver.pending?.operations[0]).toMatchObject({ patch: { cancelRequestedBy: "alice" } });
    expect(driver.ack()).toEqual(["rest finished"]);
  });

  test.each(["caller", "revoked", "superseded"] as const)(
    "for the reason %s stores it before the worker is gone",
    (reason) => {
      const driver = live();
      expect(driver.send({ ...cancel, reason })).toEqual([
        `endWorker cancelled/${reason}`,
        `commit run running ends cancelled/${reason} at 0`,
      ]);
      expect(driver.pending?.operations[0]).toMatchObject({ patch: { cancelRequestedBy: "alice" } });
      driver.settle();
      expect(driver.ended("completed", { value: value(1) })).toEqual([
        `commit run finished cancelled/${reason}`,
      ]);
      expect(driver.pending?.operations[0]).toMatchObject({ patch: { result: null } });
    },
  );

  test("of a suspended run needs no worker", () => {
    const wait = { kind: "approval", title: "?", detail: null, timeoutMs: null } as const;
    const state = { state: "suspended", status: "suspended", reason: "waiting" } as const;
    const driver = new Driver(history(state, [callRow(0, "wait", { wait })]));
    driver.start();
    expect(driver.send(cancel)).toEqual(["commit run finished cancelled/caller"]);
  });

  test("of a run that needs an operator leaves its call unknown for ever", () => {
    const state = { state: "suspended", status: "needs_reconcile", reason: "outcome_unknown" } as const;
    const driver = new Driver(history(state, [callRow(0, "once", { unknownReason: "?" })]));
    driver.start();
    expect(driver.send(cancel)).toEqual([
      "commit run running ends cancelled/caller at 0; #0 +0 0=outcome_unknown",
    ]);
    expect(driver.settle()).toEqual(["commit run finished cancelled/caller", "rest finished"]);
  });

  test("waits for effects that were begun", () => {
    const driver = live();
    driver.made(0, once);
    driver.send(cancel);
    driver.settle();
    driver.ended("cancelled");
    expect(driver.settle()).toEqual([]);
    driver.outcome(0);
    expect(driver.settle()).toEqual(["commit run finished cancelled/caller", "rest finished"]);
  });

  test("that was asked for before a crash is carried out after it", () => {
    const driver = new Driver(history({ state: "running", cancelRequestedBy: "alice" }));
    expect(driver.start()).toEqual(["commit run finished cancelled/caller"]);
  });

  test("for a revocation, after the script's end, sends nothing again", () => {
    const over = { state: "running", endOrder: 0, endStatus: "completed" } as const;
    const driver = new Driver(history(over, [callRow(0, "keyed"), callRow(1, "keyed")]));
    driver.start();
    driver.is(0, keyed);
    expect(driver.send({ ...cancel, reason: "revoked" })).toEqual([]);
    expect(driver.is(1, keyed)).toEqual([]);
    expect(driver.settle()).toEqual([
      "commit #0 +0 0=outcome_unknown; #1 +0 1=outcome_unknown",
      "commit run finished completed/-",
      "rest finished",
    ]);
  });

  test("after the script's end changes nothing", () => {
    const driver = live();
    driver.made(0, keyed);
    driver.ended("completed");
    driver.settle();
    expect(driver.send(cancel)).toEqual([]);
  });
});

describe("a run that somebody else has taken", () => {
  test("is let go of at once: its worker and calls end, and nothing more is stored", () => {
    const driver = live();
    driver.made(0, keyed);
    driver.call(1);
    driver.is(1, keyed);
    driver.outcome(0);
    expect(driver.send({ kind: "fenced", token: 3 })).toEqual(["endWorker cancelled/closing"]);
    expect(driver.alarm).toBeNull();
    expect(driver.outcome(1)).toEqual([]);
    expect(driver.ended("cancelled")).toEqual(["rest fenced"]);
  });

  test("aborts what it has under way", () => {
    const driver = live();
    driver.made(0, keyed);
    driver.call(1);
    driver.is(1, keyed);
    expect(driver.send({ kind: "fenced", token: 3 })).toEqual(["endWorker cancelled/closing", "abort 0"]);
  });
});

test("bugs are thrown: an end of no activation, an acknowledgement of no unit, a finished run", () => {
  const driver = live();
  driver.ended("completed");
  expect(() => driver.ended("completed")).toThrow("was not begun");
  expect(() => driver.send({ kind: "committed", token: 99, results: [] })).toThrow("not on its way");
  expect(() => new Driver(history({ state: "finished", status: "completed" })).start()).toThrow(
    "is finished",
  );
  expect(() => live().ended("suspended")).toThrow("by itself");
});
