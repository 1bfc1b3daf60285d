// What one run may leave in its journal, and how it ends that goes beyond.
import { describe, expect, test } from "vitest";
import { approval, Driver, keyed, kv, read, signalOf } from "./testing/driver.js";
import { callRow, history, ok, startMs, value } from "./testing/histories.js";

const budget = "budget_exceeded/record_size";

function live(over = {}, of = history()): Driver {
  const driver = new Driver(of, over);
  driver.begin();
  return driver;
}

/** An outcome of so many bytes: the text of a string has two quotes. */
const large = (bytes: number) => ok("x".repeat(bytes - 2));

function errorOf(driver: Driver): unknown {
  for (const command of driver.said) {
    if (command.kind !== "commit") continue;
    for (const operation of command.operations)
      if (operation.kind === "run" && typeof operation.patch.errorJson === "string")
        return JSON.parse(operation.patch.errorJson);
  }
  return undefined;
}

describe("bytes of arguments and outcomes", () => {
  test("end the run when they are too many; the outcome that was too much is on record and is not given", () => {
    const driver = live({ recordedBytesMost: 100 });
    driver.made(0, read);
    driver.outcome(0, large(90));
    expect(driver.settle()).toEqual([expect.stringMatching(/^deliver 0 /)]);
    driver.made(1, read);
    driver.outcome(1, large(10));
    expect(driver.ack()).toEqual([`endWorker ${budget}`, `commit run running ends ${budget} at 2`]);
    expect(errorOf(driver)).toMatchObject({ code: "record_size", limit: 100, used: 106 });
    driver.ended("budget_exceeded");
    expect(driver.settle()).toEqual([`commit run finished ${budget}`, "rest finished"]);
  });

  test("count those of attachments, and arguments from the moment when they are recorded", () => {
    const driver = live({ recordedBytesMost: 100 });
    driver.made(0, read);
    const bytes = new Uint8Array(60);
    driver.outcome(0, { ok: true, value: { ...value(null), attachments: [bytes] } });
    driver.settle();
    const args = { ...value([1]), attachments: [bytes] };
    driver.send({ kind: "called", position: 1, name: "call", digest: "digest 1", args });
    driver.is(1, keyed);
    // The end is that of the script: what was begun is waited for.
    expect(driver.settle()).toEqual([
      "dispatch 1 key.1",
      `endWorker ${budget}`,
      `commit run running ends ${budget} at 1`,
    ]);
    driver.ended("budget_exceeded");
    driver.outcome(1);
    expect(driver.settle()).toEqual([`commit run finished ${budget}`, "rest finished"]);
  });

  test("count what the store answered: local operations and signals", () => {
    for (const [as, set] of [
      [kv, (driver: Driver) => (driver.local = large(200))],
      [signalOf("go"), (driver: Driver) => (driver.signal = value("x".repeat(200)))],
    ] as const) {
      const driver = live({ recordedBytesMost: 100 });
      driver.call(0);
      set(driver);
      driver.is(0, as);
      expect(driver.settle()).toContain(`endWorker ${budget}`);
    }
  });

  test("are those of all activations: a run that is taken up with too many ends before its script begins", () => {
    const detail = value("y".repeat(60));
    const wait = { kind: "approval", title: "?", detail, timeoutMs: null } as const;
    const calls = [callRow(0, "read", { args: value(["x".repeat(60)]) }), callRow(1, "wait", { wait })];
    const given = [{ call: 0, outcome: large(10) }];
    const driver = new Driver(history({ state: "running" }, calls, given), { recordedBytesMost: 100 });
    expect(driver.start()).toEqual(["wake", `commit run finished ${budget}`]);
  });

  test("that come while the run is suspended end it when it goes on", () => {
    const driver = live({ recordedBytesMost: 100 });
    driver.made(0, approval);
    driver.blocked(null, 1);
    driver.ended("suspended");
    driver.settle();
    driver.send({ kind: "waitDone", position: 0, outcome: large(200) });
    expect(driver.settle()).toEqual(["wake", `commit run finished ${budget}`, "rest finished"]);
  });
});

describe("timers", () => {
  test("end the run when too many fired, over all activations", () => {
    const fired = [{ timer: startMs + 1 }, { timer: startMs + 2 }];
    const driver = new Driver(history({ state: "running" }, [], fired), { timersMost: 2 });
    driver.begin();
    driver.at(1).blocked(1, 0);
    driver.blocked(2, 0);
    expect(driver.at(3).blocked(3, 0)).toEqual(["commit #2 +3 timer"]);
    expect(driver.ack()).toEqual([`endWorker ${budget}`, `commit run running ends ${budget} at 3`]);
    expect(errorOf(driver)).toMatchObject({ code: "record_size", limit: 2, used: 3 });
  });

  test("end it in virtual time as well", () => {
    const driver = live({ timersMost: 3, virtualTime: true });
    const said: string[] = [];
    for (let at = 1; at <= 4; at++) said.push(...driver.blocked(at, 0), ...driver.settle());
    expect(said).toContain(`endWorker ${budget}`);
  });
});
