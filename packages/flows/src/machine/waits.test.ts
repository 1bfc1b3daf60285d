/** Waits for time, signals and approvals, live and suspended. */

import { describe, expect, test } from "vitest";
import { approval, Driver, keyed, signalOf, sleepFor } from "./testing/driver.js";
import { callRow, history, ok, startMs, value } from "./testing/histories.js";

/** A driver whose script has made these waits, in order. */
function waiting(...waits: readonly (typeof approval)[]): Driver {
  const driver = new Driver();
  driver.begin();
  for (const [position, as] of waits.entries()) driver.made(position, as);
  return driver;
}

describe("a wait", () => {
  test("for time ends with undefined when it is due, and not before", () => {
    const driver = waiting(sleepFor(300));
    expect(driver.alarm).toBe(300);
    expect(driver.at(299).send({ kind: "alarm" })).toEqual([]);
    expect(driver.at(301).send({ kind: "alarm" })).toEqual(["commit #0 +301 0=-1"]);
    expect(driver.ack()).toEqual(["deliver 0 -1 +301"]);
  });

  test("for something else ends as a timeout", () => {
    const driver = waiting(signalOf("s", 300));
    expect(driver.at(300).send({ kind: "alarm" })).toEqual(["commit #0 +300 0=timeout"]);
  });

  test("ends in the order in which waits are due, not in that of the calls", () => {
    const driver = waiting(sleepFor(300), sleepFor(200), sleepFor(300));
    expect(driver.at(400).send({ kind: "alarm" })).toEqual([
      "commit #0 +400 1=-1; #1 +400 0=-1; #2 +400 2=-1",
    ]);
  });

  test("without a timeout asks for no alarm of its own", () => {
    expect(waiting(approval).alarm).toBe(600_000);
  });

  test("for an approval ends with its answer", () => {
    const driver = waiting(approval);
    expect(driver.send({ kind: "waitDone", position: 0, outcome: ok("yes") })).toEqual([
      'commit #0 +0 0="yes"',
    ]);
    expect(driver.ack()).toEqual(['deliver 0 "yes" +0']);
  });

  test.each(["classified", "recorded"])("that comes true before it is %s ends as soon as it is", (before) => {
    const driver = new Driver();
    driver.begin();
    driver.call(0);
    if (before === "recorded") driver.is(0, approval);
    expect(driver.send({ kind: "waitDone", position: 0, outcome: ok("yes") })).toEqual([]);
    if (before === "classified") driver.is(0, approval);
    expect(driver.ack()).toEqual(['commit #0 +0 0="yes"']);
  });

  test("that ended hears a second answer only to keep it aside", () => {
    const driver = waiting(approval);
    driver.send({ kind: "waitDone", position: 0, outcome: ok("yes") });
    driver.settle();
    expect(driver.send({ kind: "waitDone", position: 0, outcome: ok("yes") })).toEqual([]);
    expect(driver.send({ kind: "waitDone", position: 0, outcome: ok("no") })).toEqual([
      "quarantine 0 contradictory",
    ]);
    expect(driver.send({ kind: "waitDone", position: 5, outcome: ok("no") })).toEqual([
      "quarantine 5 unknown_call",
    ]);
  });
});

describe("a signal", () => {
  test("is taken from the store by the first call that waits for its name", () => {
    const driver = waiting(signalOf("other"), signalOf("s"), signalOf("s"));
    expect(driver.send({ kind: "signalled", name: "s" })).toEqual(["commit #0 1=signal s"]);
    driver.signal = value("one");
    expect(driver.ack()).toEqual(['deliver 1 "one" +0', "commit #1 2=signal s"]);
    driver.signal = value("two");
    expect(driver.ack()).toEqual(['deliver 2 "two" +0']);
  });

  test("that is not there leaves the call waiting, and its number to the next delivery", () => {
    const driver = waiting(signalOf("s"), sleepFor(300));
    expect(driver.send({ kind: "signalled", name: "s" })).toEqual(["commit #0 0=signal s"]);
    expect(driver.ack()).toEqual([]);
    expect(driver.at(300).send({ kind: "alarm" })).toEqual(["commit #0 +300 1=-1"]);
  });

  test("that comes while the store is asked is asked for again", () => {
    const driver = waiting(signalOf("s"));
    driver.send({ kind: "signalled", name: "s" });
    expect(driver.send({ kind: "signalled", name: "s" })).toEqual([]);
    expect(driver.ack()).toEqual(["commit #0 0=signal s"]);
  });

  test("that nobody waits for is left in the store", () => {
    expect(waiting(signalOf("s")).send({ kind: "signalled", name: "t" })).toEqual([]);
  });

  test("is not taken for a wait that timed out meanwhile", () => {
    const driver = waiting(signalOf("s", 300));
    driver.at(300).send({ kind: "alarm" });
    expect(driver.send({ kind: "signalled", name: "s" })).toEqual([]);
    expect(driver.ack()).toEqual(["deliver 0 timeout +300"]);
  });

  test("wins over a timeout when the store was asked before", () => {
    const driver = waiting(signalOf("s", 300));
    driver.at(299).send({ kind: "signalled", name: "s" });
    driver.at(300).send({ kind: "alarm" });
    driver.signal = value(1);
    expect(driver.ack()).toEqual(["deliver 0 1 +299"]);
  });

  test("that came while no process had the run is looked for at the start", () => {
    const wait = { kind: "signal", name: "s", timeoutMs: null } as const;
    const driver = new Driver(history({ state: "running" }, [callRow(0, "wait", { wait })]));
    expect(driver.start()).toEqual(["wake", "commit #0 0=signal s"]);
  });
});

describe("a suspended run that waits for a signal", () => {
  const wait = { kind: "signal", name: "s", timeoutMs: null } as const;
  const suspended = { state: "suspended", status: "suspended", reason: "waiting" } as const;

  function rested(): Driver {
    const driver = new Driver(history(suspended, [callRow(0, "wait", { wait })]));
    driver.start();
    expect(driver.settle()).toEqual(["commit run suspended suspended/waiting", "rest suspended"]);
    return driver;
  }

  test("becomes pending by the unit that takes it, and wants a worker then", () => {
    const driver = rested();
    expect(driver.send({ kind: "signalled", name: "s" })).toEqual(["commit #0 0=signal s; run pending"]);
    driver.signal = value(1);
    expect(driver.ack()).toEqual(["wake"]);
  });

  test("is suspended again when there was none", () => {
    const driver = rested();
    driver.send({ kind: "signalled", name: "s" });
    expect(driver.ack()).toEqual(["commit run suspended suspended/waiting"]);
    expect(driver.ack()).toEqual(["rest suspended"]);
  });

  test("loses nothing when it was killed between taking it and beginning an activation", () => {
    const driver = new Driver(
      history({ state: "pending" }, [callRow(0, "wait", { wait })], [{ call: 0, outcome: ok(1) }]),
    );
    expect(driver.start()).toEqual(["wake"]);
    expect(driver.send({ kind: "go" })).toEqual(["activate +0, replay 1000 ms", "commit run running"]);
    expect(driver.call(0, "wait")).toEqual(["deliver 0 1 +0", "frontier"]);
  });
});

test("waits hold no order against effects: each is numbered when its unit is made", () => {
  const driver = waiting(approval);
  driver.made(1, keyed);
  driver.now = startMs + 9;
  driver.outcome(1);
  driver.send({ kind: "waitDone", position: 0, outcome: ok("yes") });
  expect(driver.settle()).toEqual(["deliver 1 1 +9", 'commit #1 +9 0="yes"', 'deliver 0 "yes" +9']);
});
