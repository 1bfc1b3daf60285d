/** Timers, virtual time, suspension, drains and the deadline. */

import { describe, expect, test } from "vitest";
import { approval, Driver, keyed, kv, read, sleepFor } from "./testing/driver.js";
import { callRow, history, startMs } from "./testing/histories.js";

function live(over = {}): Driver {
  const driver = new Driver(history(), over);
  driver.begin();
  return driver;
}

describe("a timer of the script", () => {
  test("fires when the clock has come so far, by a unit of its own, and not before that is stored", () => {
    const driver = live();
    expect(driver.blocked(50, 0)).toEqual([]);
    expect(driver.alarm).toBe(50);
    expect(driver.at(49).send({ kind: "alarm" })).toEqual([]);
    expect(driver.alarm).toBe(50);
    expect(driver.at(51).send({ kind: "alarm" })).toEqual(["commit #0 +51 timer"]);
    expect(driver.ack()).toEqual(["fireTimer +51"]);
  });

  test("fires at once when it is late already", () => {
    const driver = live();
    expect(driver.at(80).blocked(50, 0)).toEqual(["commit #0 +80 timer"]);
  });

  test("waits for what is on its way: an outcome makes it moot until the script waits again", () => {
    const driver = live();
    driver.made(0, read);
    driver.blocked(50, 1);
    driver.at(50).outcome(0);
    expect(driver.send({ kind: "alarm" })).toEqual([]);
    expect(driver.ack()).toEqual(["deliver 0 0 +50"]);
    expect(driver.at(60).blocked(50, 0)).toEqual(["commit #1 +60 timer"]);
  });

  test("lets a call that is being looked at go first", () => {
    const driver = live();
    driver.call(0);
    expect(driver.at(60).blocked(50, 1)).toEqual([]);
    driver.is(0, kv);
    expect(driver.ack()).toEqual(['deliver 0 "local" +60']);
  });

  test("is not fired for a script that has not taken yet what was sent", () => {
    const driver = live();
    driver.made(0, read);
    driver.outcome(0);
    driver.settle();
    expect(driver.at(60).blocked(50, 1)).toEqual([]);
  });
});

describe("virtual time", () => {
  const virtual = { virtualTime: true };

  test("jumps to the earliest timer or wait when nothing else can happen", () => {
    const driver = live(virtual);
    driver.made(0, sleepFor(5_000));
    driver.made(1, sleepFor(90_000));
    expect(driver.blocked(7_000, 2)).toEqual(["commit #0 +5000 0=-1"]);
    expect(driver.ack()).toEqual(["deliver 0 -1 +5000"]);
    expect(driver.blocked(7_000, 1)).toEqual(["commit #1 +7000 timer"]);
    expect(driver.ack()).toEqual(["fireTimer +7000"]);
    expect(driver.blocked(null, 1)).toEqual(["commit #2 +90000 1=-1"]);
  });

  test("stands still while a call is carried out, whatever the wall says", () => {
    const driver = live(virtual);
    driver.made(0, read);
    expect(driver.at(10_000).blocked(50, 1)).toEqual([]);
    expect(driver.outcome(0)).toEqual(["commit call 0 read x1; #0 +0 0=0"]);
  });

  test("counts a wait from the guest's clock", () => {
    const driver = live(virtual);
    driver.blocked(7_000, 0);
    driver.settle();
    driver.made(0, sleepFor(1_000));
    expect(driver.blocked(null, 1)).toEqual(["commit #1 +8000 0=-1"]);
  });

  test("has no time for what nothing but the outside ends", () => {
    const driver = live(virtual);
    driver.made(0, approval);
    expect(driver.blocked(null, 1)).toEqual(["endWorker suspended/waiting"]);
  });
});

describe("a script that waits is suspended", () => {
  test("at once when every open call is a wait and none is due soon", () => {
    const driver = live();
    driver.made(0, approval);
    driver.made(1, sleepFor(5_000));
    expect(driver.blocked(null, 2)).toEqual(["endWorker suspended/waiting"]);
    expect(driver.ended("suspended")).toEqual(["commit run suspended suspended/waiting due +5000"]);
    expect(driver.ack()).toEqual(["rest suspended"]);
    expect(driver.alarm).toBe(5_000);
  });

  test.each([
    ["a wait", 900, null],
    ["a timer", 5_000, 900],
  ])("not when %s is due soon", (_what, waitMs, timer) => {
    const driver = live();
    driver.made(0, sleepFor(waitMs));
    expect(driver.blocked(timer, 1)).toEqual([]);
    expect(driver.alarm).toBe(900);
  });

  test("when there is nothing but a timer that is far off, which wakes it", () => {
    const driver = live();
    expect(driver.blocked(5_000, 0)).toEqual(["endWorker suspended/waiting"]);
    driver.ended("suspended");
    expect(driver.settle()).toEqual(["rest suspended"]);
    expect(driver.at(5_000).send({ kind: "alarm" })).toEqual(["commit run pending"]);
    expect(driver.ack()).toEqual(["wake"]);
    driver.send({ kind: "go" });
    driver.settle();
    expect(driver.blocked(5_000, 0)).toEqual(["commit #0 +5000 timer"]);
  });

  test("not while a call is carried out, unless others wait for long enough", () => {
    const driver = live();
    driver.made(0, read);
    expect(driver.at(100).blocked(null, 1)).toEqual([]);
    expect(driver.at(5_000).send({ kind: "contended", others: true })).toEqual([]);
    expect(driver.alarm).toBe(10_100);
    expect(driver.at(10_100).send({ kind: "alarm" })).toEqual(["endWorker suspended/calls"]);
    driver.ended("suspended");
    expect(driver.settle()).toEqual([]);
  });

  test("not when the others are gone by then", () => {
    const driver = live();
    driver.made(0, read);
    driver.blocked(null, 1);
    driver.send({ kind: "contended", others: true });
    driver.send({ kind: "contended", others: false });
    expect(driver.at(20_000).send({ kind: "alarm" })).toEqual([]);
  });

  test("when three quarters of the activation's time are used, whoever waits", () => {
    const driver = live();
    driver.made(0, read);
    driver.blocked(null, 1);
    expect(driver.alarm).toBe(45_000);
    expect(driver.at(45_000).send({ kind: "alarm" })).toEqual(["endWorker suspended/calls"]);
  });

  test("not before the units that are on their way have arrived", () => {
    const driver = live();
    driver.call(0);
    driver.is(0, approval);
    expect(driver.blocked(null, 1)).toEqual([]);
    expect(driver.ack()).toEqual(["endWorker suspended/waiting"]);
  });

  test("not during a replay", () => {
    const wait = { kind: "approval", title: "?", detail: null, timeoutMs: null } as const;
    const driver = new Driver(history({ state: "running" }, [callRow(0, "wait", { wait })]));
    driver.start();
    driver.send({ kind: "go" });
    driver.settle();
    driver.send({ kind: "contended", others: true });
    expect(driver.call(0, "wait")).toEqual(["frontier"]);
    expect(driver.blocked(null, 1)).toEqual(["endWorker suspended/waiting"]);
  });

  test("as a violation when it waits for nothing: no correct worker says so", () => {
    expect(live().blocked(null, 0)).toEqual([
      "endWorker violation/unexpected_message",
      "commit run running ends violation/unexpected_message at 0",
    ]);
  });
});

describe("an outcome that comes when the run is suspended", () => {
  function suspended(): Driver {
    const driver = live();
    driver.made(0, keyed);
    driver.blocked(null, 1);
    driver.send({ kind: "drain" });
    driver.ended("suspended");
    driver.settle();
    return driver;
  }

  test("makes it pending by its own unit, and then it wants a worker", () => {
    const driver = live();
    driver.made(0, keyed);
    driver.blocked(null, 1);
    driver.at(45_000).send({ kind: "alarm" });
    driver.ended("suspended");
    driver.settle();
    expect(driver.outcome(0)).toEqual(["commit #0 +45000 0=0; run pending"]);
    expect(driver.ack()).toEqual(["wake"]);
  });

  test("while it is being suspended leaves it pending", () => {
    const driver = live();
    driver.made(0, keyed);
    driver.blocked(null, 1);
    driver.at(45_000).send({ kind: "alarm" });
    expect(driver.outcome(0)).toEqual(["commit #0 +45000 0=0"]);
    expect(driver.ended("suspended")).toEqual([]);
    expect(driver.ack()).toEqual(["commit run pending"]);
    expect(driver.ack()).toEqual(["wake"]);
  });

  test("while that is on its way to the store makes it pending again", () => {
    const driver = live();
    driver.made(0, keyed);
    driver.blocked(null, 1);
    driver.at(45_000).send({ kind: "alarm" });
    driver.ended("suspended");
    driver.outcome(0);
    expect(driver.ack()).toEqual(["commit #0 +45000 0=0; run pending"]);
    expect(driver.ack()).toEqual(["wake"]);
  });

  test("after a drain is stored, and begins nothing", () => {
    const driver = suspended();
    expect(driver.outcome(0)).toEqual(["commit #0 +0 0=0; run pending"]);
    expect(driver.ack()).toEqual([]);
  });
});

describe("a drain", () => {
  test("suspends a script that waits, whatever it waits for", () => {
    const driver = live();
    driver.made(0, read);
    driver.made(1, sleepFor(10));
    driver.blocked(20, 2);
    expect(driver.send({ kind: "drain" })).toEqual(["endWorker suspended/calls"]);
  });

  test("lets a script run that does not wait, and suspends it when it does", () => {
    const driver = live();
    driver.made(0, sleepFor(10));
    expect(driver.send({ kind: "drain" })).toEqual([]);
    expect(driver.blocked(null, 1)).toEqual(["endWorker suspended/waiting"]);
  });

  test("begins no activation", () => {
    const driver = new Driver();
    driver.start();
    driver.send({ kind: "drain" });
    expect(driver.send({ kind: "go" })).toEqual([]);
  });
});

describe("the deadline", () => {
  const soon = { deadlineMs: 100 };

  test("ends the run, and what may have happened is unknown at once", () => {
    const driver = new Driver(history(soon));
    driver.begin();
    driver.made(0, keyed);
    driver.made(1, read);
    driver.made(2, approval);
    driver.blocked(null, 3);
    expect(driver.alarm).toBe(100);
    expect(driver.at(100).send({ kind: "alarm" })).toEqual([
      "endWorker timed_out/deadline",
      "abort 1",
      "abort 0",
      "commit run running ends timed_out/deadline at 0; #0 +100 0=outcome_unknown",
    ]);
    driver.ended("timed_out");
    expect(driver.settle()).toEqual(["commit run finished timed_out/deadline", "rest finished"]);
  });

  test("passes while the run waits for a worker", () => {
    const driver = new Driver(history(soon));
    driver.start();
    expect(driver.at(100).send({ kind: "alarm" })).toEqual(["commit run finished timed_out/deadline"]);
    expect(driver.send({ kind: "go" })).toEqual([]);
  });

  test("does not pass while the run is suspended", () => {
    const driver = new Driver(history(soon));
    driver.begin();
    driver.made(0, approval);
    driver.at(60).blocked(null, 1);
    driver.ended("suspended");
    driver.settle();
    expect(driver.alarm).toBeNull();
    driver.at(10_000).send({
      kind: "waitDone",
      position: 0,
      outcome: { ok: true, value: { text: "1", devalue: false, attachments: [] } },
    });
    driver.settle();
    expect(driver.alarm).toBe(10_040);
  });

  test("counts what an earlier process used, up to the last thing it did, and not the time between", () => {
    const madeAt = startMs + 50;
    const driver = new Driver(
      history({ ...soon, state: "running", activeMs: 10, changedAt: startMs + 20 }, [
        callRow(0, "keyed", { madeAt }),
      ]),
    );
    driver.at(5_000).start();
    expect(driver.alarm).toBe(5_060);
  });

  test("does not begin before the run may", () => {
    const driver = new Driver(history({ ...soon, notBefore: startMs + 500 }));
    expect(driver.start()).toEqual(["wake +500"]);
    expect(driver.alarm).toBe(600);
  });

  test("ends the waiting for what a script that is over had begun", () => {
    const driver = new Driver(history(soon));
    driver.begin();
    driver.made(0, keyed);
    driver.ended("completed");
    driver.settle();
    expect(driver.at(100).send({ kind: "alarm" })).toEqual(["abort 0", "commit #0 +100 0=outcome_unknown"]);
    expect(driver.settle()).toEqual(["commit run finished completed/-", "rest finished"]);
    expect(driver.outcome(0)).toEqual(["quarantine 0 late"]);
  });
});

describe("a clock that is set back", () => {
  test("does not delay a timer that is set afterwards: it goes by the guest's clock", () => {
    const driver = live();
    driver.at(30_000).made(0, read);
    driver.outcome(0);
    driver.settle();
    driver.at(100).blocked(30_500, 0);
    expect(driver.alarm).toBe(600);
    expect(driver.at(599).send({ kind: "alarm" })).toEqual([]);
    expect(driver.at(600).send({ kind: "alarm" })).toEqual(["commit #1 +30500 timer"]);
  });

  test("delays one that is waited for by no more than its own time", () => {
    const driver = live();
    driver.blocked(500, 0);
    driver.at(-3_600_000).send({ kind: "alarm" });
    expect(driver.alarm).toBe(-3_600_000 + 500);
    expect(driver.at(-3_600_000 + 500).send({ kind: "alarm" })).toEqual(["commit #0 +500 timer"]);
    driver.ack();
    driver.blocked(1_200, 0);
    expect(driver.alarm).toBe(-3_600_000 + 1_200);
  });

  test("nor the deadline, and what has passed of it stays", () => {
    const driver = new Driver(history({ deadlineMs: 1_000 }));
    driver.begin();
    driver.made(0, read);
    driver.blocked(null, 1);
    driver.at(400).send({ kind: "alarm" });
    driver.at(-10_000).send({ kind: "alarm" });
    expect(driver.alarm).toBe(-10_000 + 600);
  });

  const asleep = { state: "suspended", status: "suspended", reason: "waiting", activations: 1 } as const;
  const back = -3_600_000;

  test("delays a suspended run no longer than it was to wait, whoever has it: a timer", () => {
    const first = new Driver(history({ ...asleep, dueAt: startMs + 5_000 }));
    expect(first.at(back).start()).toEqual([`commit run suspended suspended/waiting due +${back + 5_000}`]);
    expect(first.settle()).toEqual(["rest suspended"]);
    const stored = { changedAt: startMs + back, dueAt: startMs + back + 5_000 };
    const next = new Driver(history({ ...asleep, ...stored }, [], [{ timer: startMs }]));
    next.at(back + 5_000).start();
    next.settle();
    next.send({ kind: "go" });
    next.settle();
    expect(next.blocked(0, 0)).toEqual(["fireTimer +0", "frontier"]);
    expect(next.blocked(5_000, 0)).toEqual(["commit #1 +5000 timer"]);
  });

  test("delays a suspended run no longer than it was to wait, whoever has it: a sleep", () => {
    const wait = { kind: "time", waitMs: 5_000 } as const;
    const calls = [callRow(0, "wait", { wait, dueAt: startMs + 5_000 })];
    const first = new Driver(history({ ...asleep, dueAt: startMs + 5_000 }, calls));
    expect(first.at(back).start()).toEqual([`commit run suspended suspended/waiting due +${back + 5_000}`]);
    const stored = { changedAt: startMs + back, dueAt: startMs + back + 5_000 };
    const next = new Driver(history({ ...asleep, ...stored }, calls));
    expect(next.at(back + 5_000).start()).toEqual(["commit #0 +5000 0=-1; run pending"]);
  });

  test("while the machine is there moves what the run is due at in the store as well", () => {
    const driver = live();
    driver.blocked(5_000, 0);
    driver.ended("suspended");
    driver.settle();
    expect(driver.at(back).send({ kind: "alarm" })).toEqual([
      `commit run suspended suspended/waiting due +${back + 5_000}`,
    ]);
    expect(driver.alarm).toBe(back + 5_000);
  });

  test("moves nothing in virtual time", () => {
    const driver = live({ virtualTime: true });
    driver.at(back).made(0, sleepFor(5_000));
    expect(driver.blocked(7_000, 1)).toEqual(["commit #0 +5000 0=-1"]);
  });
});
