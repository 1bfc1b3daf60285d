/** Replays: what is delivered when, what is held, and how a divergence is found and told. */

import { describe, expect, test } from "vitest";
import type { Divergence } from "./divergence.js";
import { Driver, keyed, read } from "./testing/driver.js";
import { callRow, history, ok, value } from "./testing/histories.js";

const calls = [callRow(0, "read"), callRow(1, "read"), callRow(2, "read")];

/** Recorded: call 1, then call 0, then a timer, then call 2 that was made after it. */
const recorded = history({ state: "running", cpuUs: 2_500 }, calls, [
  { call: 1, outcome: ok("one"), clock: 1_000_010 },
  { call: 0, outcome: ok("zero"), clock: 1_000_020 },
  { timer: 1_000_100 },
  { call: 2, outcome: ok("two"), clock: 1_000_110 },
]);

function replaying(of = recorded, fingerprint = "engine-1"): Driver {
  const driver = new Driver(of, { fingerprint });
  driver.at(5_000).start();
  driver.settle();
  driver.send({ kind: "go" });
  driver.settle();
  return driver;
}

describe("a replay", () => {
  test("begins the script anew on its own clock, with twice the recorded CPU time and a second more", () => {
    const driver = new Driver(recorded);
    driver.at(5_000).start();
    expect(driver.send({ kind: "go" })).toEqual(["activate +0, replay 1005 ms", "commit run running"]);
  });

  test("delivers in the recorded order, each call's outcome when that call was made", () => {
    const driver = replaying();
    expect(driver.call(0, "read")).toEqual([]);
    expect(driver.call(1, "read")).toEqual(['deliver 1 "one" +10', 'deliver 0 "zero" +20']);
    expect(driver.blocked(90, 0)).toEqual(["fireTimer +100"]);
    expect(driver.call(2, "read")).toEqual(['deliver 2 "two" +110', "frontier"]);
  });

  test("fires a timer only when the script has taken everything before it", () => {
    const driver = replaying();
    driver.call(0, "read");
    driver.call(1, "read");
    // Said before it saw the outcomes.
    expect(driver.blocked(90, 2)).toEqual([]);
    expect(driver.blocked(90, 1)).toEqual([]);
    expect(driver.blocked(90, 0)).toEqual(["fireTimer +100"]);
  });

  test("holds calls without a record until it is over, then begins them in their order", () => {
    const driver = replaying();
    driver.call(0, "read");
    driver.call(1, "read");
    driver.blocked(90, 0);
    driver.call(3, "new");
    driver.call(4, "new");
    expect(driver.call(2, "read")).toEqual(['deliver 2 "two" +110', "frontier", "classify 3", "classify 4"]);
  });

  test("goes on with calls that another activation of this process has begun, and begins them once", () => {
    const driver = new Driver();
    driver.begin();
    driver.made(0, keyed);
    driver.made(1, read);
    driver.ended("worker_lost");
    driver.settle();
    expect(driver.at(2_000).outcome(0)).toEqual(["commit #0 +2000 0=0"]);
    driver.ack();
    expect(driver.send({ kind: "go" })).toEqual(["activate +0, replay 1001 ms", "commit run running"]);
    driver.settle();
    expect(driver.call(0)).toEqual(["deliver 0 0 +2000"]);
    expect(driver.call(1)).toEqual(["frontier"]);
    expect(driver.outcome(1)).toEqual(["commit call 1 read x1; #1 +2000 1=1"]);
  });

  test("takes an outcome that comes meanwhile as one more that is recorded", () => {
    const driver = new Driver();
    driver.begin();
    driver.made(0, read);
    driver.ended("worker_lost");
    driver.settle();
    driver.send({ kind: "go" });
    driver.outcome(0);
    driver.settle();
    expect(driver.call(0)).toEqual(["deliver 0 0 +0", "frontier"]);
  });
});

describe("a replay diverges", () => {
  function finding(driver: Driver): Divergence & { readonly name: string; readonly code: string } {
    driver.ended("replay_diverged");
    for (let last = driver.pending; last !== null; last = driver.pending) {
      const run = last.operations.find((one) => one.kind === "run" && one.patch.state === "finished");
      if (run?.kind === "run")
        return JSON.parse(run.patch.errorJson ?? "") as Divergence & { name: string; code: string }; // written by the machine
      driver.ack();
    }
    throw new Error("the run is not finished");
  }

  test.each([
    ["another name", "write", "digest 0"],
    ["other arguments", "read", "digest 9"],
  ])("when a recorded call has %s", (_what, name, digest) => {
    const driver = replaying();
    expect(driver.call(0, name, digest)).toEqual([
      "endWorker replay_diverged/call",
      "commit run running ends replay_diverged/call at 4",
    ]);
    expect(finding(driver)).toMatchObject({
      code: "call",
      name: "ReplayDiverged",
      position: 0,
      order: null,
      expected: { kind: "call", name: "read", digest: "digest 0" },
      actual: { kind: "call", name, digest },
    });
  });

  test("when the script waits and has not made a call that is next", () => {
    const driver = replaying();
    driver.call(0, "read");
    driver.blocked(null, 1);
    expect(finding(driver)).toMatchObject({
      position: 1,
      order: 0,
      expected: { kind: "call", position: 1 },
      actual: { kind: "blocked", nextTimerAt: null, openCalls: 1 },
    });
  });

  test.each([
    ["no timer", null],
    ["a later one", 101],
  ])("when a timer is next and the script has %s", (_what, nextTimerAt) => {
    const driver = replaying();
    driver.call(0, "read");
    driver.call(1, "read");
    driver.call(3, "new");
    driver.blocked(nextTimerAt, 1);
    expect(finding(driver)).toMatchObject({
      position: null,
      order: 2,
      expected: { kind: "timer", guestClockMs: 1_000_100 },
      actual: { kind: "blocked", openCalls: 1 },
    });
  });

  test("when a recorded call that has no outcome is not made", () => {
    const driver = replaying(history({ state: "running" }, [callRow(0, "keyed")]));
    driver.call(1, "new");
    driver.blocked(null, 1);
    expect(finding(driver)).toMatchObject({
      position: 0,
      order: null,
      expected: { kind: "call", position: 0 },
    });
  });

  test.each(["completed", "script_error", "denied"] as const)(
    "when the script ends before, as %s",
    (status) => {
      const driver = replaying();
      driver.call(0, "read");
      expect(driver.ended(status)).toEqual(["commit run finished replay_diverged/call"]);
      expect(JSON.stringify(driver.pending)).toContain(
        `\\"actual\\":{\\"kind\\":\\"end\\",\\"status\\":\\"${status}\\"`,
      );
    },
  );

  test.each(["memory", "stack", "host_calls", "result_size"])(
    "when the script exhausts its %s before: those do not depend on the machine",
    (reason) => {
      const driver = replaying();
      expect(driver.ended("budget_exceeded", { reason })).toEqual([
        "commit run finished replay_diverged/call",
      ]);
    },
  );

  test("and no effect that another process began is begun again", () => {
    const driver = replaying(history({ state: "running" }, [callRow(0, "keyed"), callRow(1, "once")]));
    expect(driver.call(0, "other")).toEqual([
      "endWorker replay_diverged/call",
      "commit run running ends replay_diverged/call at 0; #0 +5000 0=outcome_unknown; #1 +5000 1=outcome_unknown",
    ]);
  });

  test("not when the time that a replay may take is used up: it is tried again", () => {
    for (const reason of ["cpu", "wall"]) {
      const driver = replaying();
      expect(driver.ended("budget_exceeded", { reason })).toEqual([
        "commit run pending due +6000 failures 1",
      ]);
    }
  });

  test("not when the script ended by the deliveries that it has taken", () => {
    // The last delivery may have crossed the script's end: every recorded call was made.
    const driver = replaying(
      history({ state: "running" }, [callRow(0, "read")], [{ call: 0, outcome: ok(0) }]),
    );
    driver.call(0, "read");
    expect(driver.ended("completed", { value: value(1) })).toEqual(["commit run finished completed/-"]);
  });
});

describe("another engine than the one that recorded the run", () => {
  const old = history(
    { state: "running", fingerprint: "engine-0" },
    [callRow(0, "read")],
    [{ call: 0, outcome: ok(0) }],
  );

  test("takes it over when the whole replay matched, by the next unit", () => {
    const driver = replaying(old);
    expect(driver.call(0, "read")).toEqual(["deliver 0 0 +0", "frontier", "commit run by engine-1"]);
  });

  test("is a mismatch when it does not, and the run keeps the old one", () => {
    const driver = replaying(old);
    expect(driver.call(0, "write")).toEqual([
      "endWorker engine_mismatch/fingerprint",
      "commit run running ends engine_mismatch/fingerprint at 1",
    ]);
    driver.ended("engine_mismatch");
    driver.settle();
    expect(JSON.stringify(driver.said)).not.toContain('"fingerprint":"engine-1"');
  });

  test("is recorded by the first activation when there was none", () => {
    const driver = new Driver();
    driver.start();
    driver.send({ kind: "go" });
    expect(driver.pending?.operations[0]).toMatchObject({
      patch: { fingerprint: "engine-1", activations: 1 },
    });
  });
});
