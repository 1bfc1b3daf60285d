/** What a process does about calls that another one left, and about those that only an operator can decide. */

import type { CallRow } from "@flowcell/journal";
import type { Effect } from "@flowcell/protocol";
import { describe, expect, test } from "vitest";
import { failed } from "./outcomes.js";
import { approval, Driver, keyed, once, read } from "./testing/driver.js";
import { callRow, history, ok, startMs } from "./testing/histories.js";

/** A process takes up a run that another left, and the replay has just come to its end. */
function recovered(effect: Effect, over: Partial<CallRow> = {}): { driver: Driver; said: readonly string[] } {
  const driver = new Driver(history({ state: "running" }, [callRow(0, effect, over)]));
  driver.begin();
  return { driver, said: driver.call(0, effect) };
}

describe("a call that another process left", () => {
  test("goes on waiting when it is a wait", () => {
    const wait = { kind: "time", waitMs: 500 } as const;
    const { driver, said } = recovered("wait", { wait, dueAt: startMs + 500 });
    expect(said).toEqual(["frontier"]);
    expect(driver.alarm).toBe(500);
  });

  test("is due at once when its time passed meanwhile", () => {
    const wait = { kind: "time", waitMs: 500 } as const;
    const driver = new Driver(
      history({ state: "running" }, [callRow(0, "wait", { wait, dueAt: startMs + 500 })]),
    );
    expect(driver.at(900).start()).toEqual(["wake", "commit #0 +900 0=-1"]);
  });

  test("is answered as cancelled when it is a wait that the script had given up", () => {
    const wait = { kind: "time", waitMs: 500 } as const;
    const { said } = recovered("wait", { wait, cancelled: true });
    expect(said).toEqual(["frontier", "commit #0 +0 0=cancelled"]);
  });

  test("is sent again with its key when it is keyed, after one more attempt is recorded", () => {
    const { driver, said } = recovered("keyed");
    expect(said).toEqual(["frontier", "classify 0 without note"]);
    expect(driver.is(0, keyed)).toEqual(["commit attempt 0"]);
    expect(driver.ack()).toEqual(["dispatch 0 key.0"]);
  });

  test("uses the key of its row, whatever keys are made of now", () => {
    const driver = new Driver(
      history({ state: "running" }, [callRow(0, "keyed", { idempotencyKey: "old" })]),
    );
    driver.begin();
    driver.call(0, "keyed");
    driver.is(0, keyed);
    expect(driver.ack()).toEqual(["dispatch 0 old"]);
  });

  test("is proven when it is once, and delivered when it was done", () => {
    const { driver, said } = recovered("once", { note: { size: 7 } });
    expect(said).toEqual(["frontier", "classify 0 without note"]);
    expect(driver.is(0, once)).toEqual(['recover 0 {"size":7}']);
    const recovery = { state: "applied", outcome: ok("done") } as const;
    expect(driver.send({ kind: "recovered", position: 0, recovery })).toEqual(['commit #0 +0 0="done"']);
  });

  test("is begun when it is once and proven not to have happened", () => {
    const { driver } = recovered("once");
    driver.is(0, once);
    expect(driver.send({ kind: "recovered", position: 0, recovery: { state: "not_applied" } })).toEqual([
      "commit attempt 0",
    ]);
    expect(driver.ack()).toEqual(["dispatch 0 key.0"]);
  });

  test("is begun when its intent says that it never was", () => {
    for (const effect of ["keyed", "once"] as const) {
      const { driver, said } = recovered(effect, { attempts: 0 });
      expect(said).toEqual(["frontier", "classify 0 without note"]);
      expect(driver.is(0, effect === "once" ? once : keyed)).toEqual(["commit attempt 0"]);
    }
  });

  test.each(["keyed", "once"] as const)(
    "is answered as cancelled when it is %s, given up and never begun",
    (effect) => {
      const { said } = recovered(effect, { attempts: 0, cancelled: true });
      expect(said).toEqual(["frontier", "commit #0 +0 0=cancelled"]);
    },
  );

  test("needs an operator when nothing can be proven", () => {
    const { driver } = recovered("once");
    driver.is(0, once);
    expect(driver.send({ kind: "recovered", position: 0, recovery: { state: "unknown" } })).toEqual([
      "endWorker needs_reconcile/outcome_unknown",
      "commit unknown 0",
    ]);
    expect(driver.ended("needs_reconcile")).toEqual([]);
    expect(driver.ack()).toEqual(["commit run suspended needs_reconcile/outcome_unknown"]);
    expect(driver.ack()).toEqual(["rest suspended"]);
    expect(driver.alarm).toBeNull();
  });

  test.each([
    ["keyed", "answered"],
    ["keyed", "once"],
    ["once", "answered"],
    ["once", "read"],
  ] as const)("needs an operator when it was begun as %s and its function is %s now", (effect, now) => {
    const { driver } = recovered(effect);
    const outcome = failed("denied", "the grant is gone");
    const as =
      now === "answered" ? ({ kind: "answered", effect, outcome } as const) : now === "once" ? once : read;
    expect(driver.is(0, as)).toEqual(["endWorker needs_reconcile/outcome_unknown", "commit unknown 0"]);
  });

  test("is answered as its function says now when it never happened", () => {
    const { driver } = recovered("once", { attempts: 0 });
    const outcome = failed("denied", "the grant is gone");
    expect(driver.is(0, { kind: "answered", effect: "once", outcome })).toEqual(["commit #0 +0 0=denied"]);
    expect(recovered("once", { attempts: 0 }).driver.is(0, read)).toEqual(["commit #0 +0 0=unavailable"]);
  });
});

describe("the outcome of a call that is sent again", () => {
  function again(): Driver {
    const { driver } = recovered("keyed");
    driver.is(0, keyed);
    driver.settle();
    return driver;
  }

  test.each(["upstream", "conflict", "not_found", "result_too_large", "outcome_unknown"] as const)(
    "counts when the other side says %s",
    (code) => {
      expect(again().outcome(0, failed(code, "no"))).toEqual([`commit #0 +0 0=${code}`]);
    },
  );

  test.each(["unavailable", "timeout", "cancelled", "denied", "limit", "io_error", "internal"] as const)(
    "is unknown when this attempt alone ended as %s: the one before may have taken effect",
    (code) => {
      expect(again().outcome(0, failed(code, "no"))).toEqual(["commit #0 +0 0=outcome_unknown"]);
    },
  );
});

describe("a run that needs an operator", () => {
  const unknown = { unknownReason: "nobody knows" };
  const state = { state: "suspended", status: "needs_reconcile", reason: "outcome_unknown" } as const;

  function asked(...rows: readonly CallRow[]): Driver {
    const driver = new Driver(history(state, rows));
    expect(driver.start()).toEqual(["rest suspended"]);
    return driver;
  }

  test("goes on with what the operator saw, by the unit that says so", () => {
    const driver = asked(callRow(0, "once", unknown));
    const decision = { kind: "observed", outcome: ok("seen") } as const;
    expect(driver.send({ kind: "reconcile", position: 0, decision })).toEqual([
      'commit known 0; #0 +0 0="seen"; run pending',
    ]);
    expect(driver.ack()).toEqual(["wake"]);
  });

  test("begins the call in the next activation when it did not happen, without another proof", () => {
    const driver = asked(callRow(0, "once", unknown));
    expect(driver.send({ kind: "reconcile", position: 0, decision: { kind: "not_applied" } })).toEqual([
      "commit known 0; run pending",
    ]);
    expect(driver.ack()).toEqual(["wake"]);
    driver.send({ kind: "go" });
    driver.settle();
    expect(driver.call(0, "once")).toEqual(["frontier", "classify 0 without note"]);
    expect(driver.is(0, once)).toEqual(["commit attempt 0"]);
    expect(driver.ack()).toEqual(["dispatch 0 key.0"]);
  });

  test("waits for all of its unknown calls, and does not rest while it remembers an answer", () => {
    const driver = asked(callRow(0, "once", unknown), callRow(1, "once", unknown));
    driver.send({ kind: "reconcile", position: 1, decision: { kind: "not_applied" } });
    expect(driver.settle()).toEqual([]);
    const decision = { kind: "observed", outcome: ok("seen") } as const;
    expect(driver.send({ kind: "reconcile", position: 0, decision })).toEqual([
      'commit known 0; #0 +0 0="seen"; run pending',
    ]);
  });

  test("records what else comes, and does not go on for it", () => {
    const wait = { kind: "approval", title: "?", detail: null, timeoutMs: null } as const;
    const driver = asked(callRow(0, "once", unknown), callRow(1, "wait", { wait, callId: "call_1" }));
    expect(driver.send({ kind: "waitDone", position: 1, outcome: ok("yes") })).toEqual([
      'commit #0 +0 1="yes"',
    ]);
    expect(driver.ack()).toEqual(["rest suspended"]);
  });

  test("hears a decision about another call only to keep it aside", () => {
    const driver = asked(callRow(0, "once", unknown), callRow(1, "once"));
    const decision = { kind: "observed", outcome: ok("seen") } as const;
    expect(driver.send({ kind: "reconcile", position: 1, decision })).toEqual(["quarantine 1 late"]);
    expect(driver.send({ kind: "reconcile", position: 7, decision })).toEqual(["quarantine 7 unknown_call"]);
    expect(driver.send({ kind: "reconcile", position: 1, decision: { kind: "not_applied" } })).toEqual([]);
  });

  test("takes a signal that came before it was taken up only when the operator has spoken", () => {
    const wait = { kind: "signal", name: "s", timeoutMs: null } as const;
    const driver = asked(callRow(0, "once", unknown), callRow(1, "wait", { wait }));
    expect(driver.send({ kind: "reconcile", position: 0, decision: { kind: "not_applied" } })).toEqual([
      "commit known 0; #0 1=signal s; run pending",
    ]);
  });

  test("is suspended as such when the process was killed before that was stored", () => {
    const driver = new Driver(history({ state: "running" }, [callRow(0, "once", unknown)]));
    expect(driver.start()).toEqual(["commit run suspended needs_reconcile/outcome_unknown"]);
    expect(driver.ack()).toEqual(["rest suspended"]);
  });

  test("goes on at once when the answer comes before its worker is gone", () => {
    const { driver } = recovered("once");
    driver.is(0, once);
    driver.send({ kind: "recovered", position: 0, recovery: { state: "unknown" } });
    driver.settle();
    driver.send({ kind: "reconcile", position: 0, decision: { kind: "not_applied" } });
    driver.settle();
    expect(driver.ended("needs_reconcile")).toEqual(["commit run pending"]);
    expect(driver.ack()).toEqual(["wake"]);
  });

  test("begins no activation while that is on its way to the store", () => {
    const { driver } = recovered("once");
    driver.is(0, once);
    driver.ended("worker_lost");
    driver.settle();
    driver.at(1_000).send({ kind: "recovered", position: 0, recovery: { state: "unknown" } });
    expect(driver.pending?.operations.map(({ kind }) => kind)).toEqual(["unknown", "run"]);
    expect(driver.send({ kind: "go" })).toEqual([]);
    expect(driver.settle()).toEqual(["rest suspended"]);
  });

  test("records calls that go on in this process", () => {
    const driver = new Driver(history({ state: "running" }, [callRow(0, "once"), callRow(1, "keyed")]));
    driver.begin();
    driver.call(0, "once");
    driver.call(1, "keyed");
    driver.is(1, keyed);
    driver.is(0, once);
    driver.settle();
    driver.send({ kind: "recovered", position: 0, recovery: { state: "unknown" } });
    driver.ended("needs_reconcile");
    expect(driver.settle()).toEqual(["commit run suspended needs_reconcile/outcome_unknown"]);
    expect(driver.outcome(1)).toEqual(["commit #0 +0 1=1"]);
    expect(driver.ack()).toEqual(["rest suspended"]);
  });
});

test("an activation that finds nothing to recover begins nothing", () => {
  const driver = new Driver(
    history({ state: "running" }, [callRow(0, "read")], [{ call: 0, outcome: ok(0) }]),
  );
  driver.begin();
  expect(driver.call(0, "read")).toEqual(["deliver 0 0 +0", "frontier"]);
  expect(driver.made(1, approval)).toEqual(["classify 1", "commit call 1 wait x0"]);
});
