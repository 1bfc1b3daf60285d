/** Calls from the script to their outcome, and what the store has at each moment. */

import { describe, expect, test } from "vitest";
import { failed } from "./outcomes.js";
import { approval, Driver, keyed, kv, once, read, signalOf, sleepFor } from "./testing/driver.js";
import { ok, value } from "./testing/histories.js";

/** A driver whose script runs, with nothing recorded. */
function live(): Driver {
  const driver = new Driver();
  driver.begin();
  return driver;
}

describe("a call that the script makes", () => {
  test("is answered by one unit when its arguments are wrong, and nothing is begun", () => {
    const driver = live();
    expect(driver.call(0)).toEqual(["classify 0"]);
    const outcome = failed("invalid_arguments", "no");
    expect(driver.at(5).is(0, { kind: "answered", effect: "keyed", outcome })).toEqual([
      "commit call 0 keyed x0; #0 +5 0=invalid_arguments",
    ]);
    expect(driver.ack()).toEqual(["deliver 0 invalid_arguments +5"]);
  });

  test("is one unit with its effect when that is local, and delivered with the outcome of the store", () => {
    const driver = live();
    driver.call(0);
    expect(driver.is(0, kv)).toEqual(["commit call 0 local x1; #0 0=kv.get"]);
    expect(driver.ack()).toEqual(['deliver 0 "local" +0']);
  });

  test("is carried out at once when it only reads, and recorded with its outcome", () => {
    const driver = live();
    driver.call(0);
    expect(driver.is(0, read)).toEqual(["dispatch 0 key.0"]);
    expect(driver.at(7).outcome(0)).toEqual(["commit call 0 read x1; #0 +7 0=0"]);
    expect(driver.ack()).toEqual(["deliver 0 0 +7"]);
  });

  test.each([
    ["keyed", keyed],
    ["once", once],
  ])("begins its effect only after its intent is stored when it is %s", (name, as) => {
    const driver = live();
    driver.call(0);
    expect(driver.is(0, as)).toEqual([`commit call 0 ${name} x1`]);
    expect(driver.ack()).toEqual(["dispatch 0 key.0"]);
    expect(driver.outcome(0)).toEqual(["commit #0 +0 0=0"]);
    expect(driver.ack()).toEqual(["deliver 0 0 +0"]);
  });

  test("keeps the note that classifying it took", () => {
    const driver = live();
    driver.call(0);
    driver.is(0, once);
    expect(driver.pending?.operations[0]).toMatchObject({ kind: "call", call: { note: { size: 1 } } });
  });

  test("waits when it is a wait, with its due time counted from the call", () => {
    const driver = live();
    driver.at(10).call(0);
    expect(driver.at(20).is(0, sleepFor(500))).toEqual(["commit call 0 wait x0"]);
    expect(driver.pending?.operations[0]).toMatchObject({ call: { dueAt: 1_000_510 } });
    expect(driver.ack()).toEqual([]);
  });

  test("asks for its signal in the very unit that records it", () => {
    const driver = live();
    driver.call(0);
    expect(driver.is(0, signalOf("s"))).toEqual(["commit call 0 wait x0; #0 0=signal s"]);
    driver.signal = value("there");
    expect(driver.ack()).toEqual(['deliver 0 "there" +0']);
  });
});

describe("units", () => {
  test("go one at a time, and what comes meanwhile is gathered into the next in its order", () => {
    const driver = live();
    for (const position of [0, 1, 2]) driver.call(position);
    driver.is(0, keyed);
    expect(driver.is(1, keyed)).toEqual([]);
    expect(driver.is(2, kv)).toEqual([]);
    expect(driver.ack()).toEqual([
      "dispatch 0 key.0",
      "commit call 1 keyed x1; call 2 local x1; #0 2=kv.get",
    ]);
    driver.outcome(0);
    expect(driver.ack()).toEqual(["dispatch 1 key.1", 'deliver 2 "local" +0', "commit #1 +0 0=0"]);
  });

  test("end with an operation of which only the store knows whether it delivers", () => {
    const driver = live();
    for (const position of [0, 1, 2, 3]) driver.call(position);
    driver.is(0, keyed);
    driver.is(1, signalOf("s"));
    driver.is(2, kv);
    driver.is(3, signalOf("t"));
    expect(driver.ack()).toEqual(["dispatch 0 key.0", "commit call 1 wait x0; #0 1=signal s"]);
    expect(driver.ack()).toEqual(["commit call 2 local x1; #0 2=kv.get; call 3 wait x0; #1 3=signal t"]);
  });

  test("move the guest's clock with the time, and never back", () => {
    const driver = live();
    driver.made(0, read);
    driver.made(1, read);
    expect(driver.at(100).outcome(0)).toEqual(["commit call 0 read x1; #0 +100 0=0"]);
    driver.ack();
    expect(driver.at(50).outcome(1)).toEqual(["commit call 1 read x1; #1 +100 1=1"]);
  });

  test("carry the log lines that came before, each once", () => {
    const driver = live();
    const line = (seq: number): readonly string[] =>
      driver.send({ kind: "logged", line: { seq, level: "log", guestTimeMs: 1, text: "" } });
    expect(line(0)).toEqual([]);
    expect(line(1)).toEqual([]);
    expect(line(0)).toEqual([]);
    driver.call(0);
    expect(driver.is(0, keyed)).toEqual(["commit logs 0,1; call 0 keyed x1"]);
    expect(() => line(3)).toThrow("line 3 of the log came after 2 others");
  });
});

describe("a call that the script cancels", () => {
  const cancel = (driver: Driver): readonly string[] => driver.send({ kind: "callCancelled", position: 0 });

  test("before it was classified is recorded as cancelled and never begun", () => {
    const driver = live();
    driver.call(0);
    expect(cancel(driver)).toEqual([]);
    expect(driver.is(0, keyed)).toEqual(["commit call 0 keyed x0; cancelCall 0; #0 +0 0=cancelled"]);
    expect(driver.ack()).toEqual(["deliver 0 cancelled +0"]);
  });

  test("while its intent is on the way is not begun", () => {
    const driver = live();
    driver.call(0);
    driver.is(0, once);
    expect(cancel(driver)).toEqual([]);
    expect(driver.ack()).toEqual(["commit cancelCall 0; #0 +0 0=cancelled"]);
    expect(driver.ack()).toEqual(["deliver 0 cancelled +0"]);
  });

  test("while it waits is answered at once", () => {
    const driver = live();
    driver.made(0, approval);
    expect(cancel(driver)).toEqual(["commit cancelCall 0; #0 +0 0=cancelled"]);
    expect(cancel(driver)).toEqual([]);
  });

  test("while it reads is aborted and answered at once, and what the read says is not heard", () => {
    const driver = live();
    driver.made(0, read);
    expect(cancel(driver)).toEqual(["abort 0", "commit call 0 read x1; cancelCall 0; #0 +0 0=cancelled"]);
    driver.ack();
    expect(driver.outcome(0)).toEqual([]);
  });

  test.each([keyed, once])("while its effect is under way is aborted, and the host's answer counts", (as) => {
    const driver = live();
    driver.made(0, as);
    expect(cancel(driver)).toEqual(["abort 0", "commit cancelCall 0"]);
    driver.ack();
    expect(driver.outcome(0, ok("done all the same"))).toEqual(['commit #0 +0 0="done all the same"']);
  });

  test("after its outcome is left alone", () => {
    const driver = live();
    driver.made(0, read);
    driver.outcome(0);
    expect(cancel(driver)).toEqual([]);
    driver.settle();
    expect(cancel(driver)).toEqual([]);
  });
});

describe("an outcome that nobody waits for", () => {
  test("is dropped when it equals the recorded one, and kept when it contradicts it", () => {
    const driver = live();
    driver.made(0, keyed);
    driver.outcome(0, ok("one"));
    expect(driver.outcome(0, ok("one"))).toEqual([]);
    expect(driver.outcome(0, ok("two"))).toEqual(["quarantine 0 contradictory"]);
    driver.settle();
    expect(driver.outcome(0, ok("one"))).toEqual([]);
    expect(driver.outcome(0, failed("upstream", "no"))).toEqual(["quarantine 0 contradictory"]);
  });

  test("is kept when it is for a call that was never made", () => {
    expect(live().outcome(9)).toEqual(["quarantine 9 unknown_call"]);
  });

  test("is kept as late when the run is over", () => {
    const driver = live();
    driver.made(0, keyed);
    driver.outcome(0, ok("one"));
    driver.settle();
    driver.ended("completed", { value: value(1) });
    expect(driver.settle()).toEqual(["rest finished"]);
    expect(driver.outcome(0, ok("two"))).toEqual(["quarantine 0 late"]);
  });
});
