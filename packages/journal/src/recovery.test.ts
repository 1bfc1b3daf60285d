// The recovery table over every call that can be: what it must never do, and what each row is for.
import { effects } from "@flowcell/protocol";
import { describe, expect, test } from "vitest";
import { recoveryOf, recoveryTable } from "./recovery.js";

const booleans = [false, true];
const every = effects.flatMap((effect) =>
  [0, 1, 3].flatMap((attempts) =>
    booleans.flatMap((cancelled) =>
      [null, "reply_timeout"].map((unknownReason) => ({ effect, attempts, cancelled, unknownReason })),
    ),
  ),
);

describe("the recovery table", () => {
  test("has an action with a reason for every call", () => {
    for (const call of every) expect(recoveryOf(call).reason).not.toBe("");
  });

  test("every row decides some call", () => {
    const used = new Set(every.map((call) => JSON.stringify(recoveryOf(call))));
    for (const { action, reason } of recoveryTable) {
      expect(used).toContain(JSON.stringify({ action, reason }));
    }
  });

  test("never begins a call of effect once that was begun", () => {
    for (const call of every.filter(({ effect, attempts }) => effect === "once" && attempts > 0)) {
      expect(["prove", "reconcile"]).toContain(recoveryOf(call).action);
    }
  });

  test("begins a keyed call only with its key", () => {
    for (const call of every.filter(({ effect }) => effect === "keyed")) {
      expect(["again_same_key", "reconcile", "cancelled"]).toContain(recoveryOf(call).action);
    }
  });

  test("leaves what is marked unknown to an operator", () => {
    for (const call of every.filter(({ unknownReason }) => unknownReason !== null)) {
      expect(recoveryOf(call).action).toBe("reconcile");
    }
  });

  test("gives up a cancelled call only if nothing outside can have happened", () => {
    for (const call of every.filter((one) => recoveryOf(one).action === "cancelled")) {
      expect(call.cancelled).toBe(true);
      expect(call.attempts === 0 || ["wait", "read", "local"].includes(call.effect)).toBe(true);
    }
  });

  test("keeps a wait waiting and repeats a read", () => {
    const call = { attempts: 0, cancelled: false, unknownReason: null } as const;
    expect(recoveryOf({ ...call, effect: "wait" }).action).toBe("wait");
    expect(recoveryOf({ ...call, effect: "read", attempts: 1 }).action).toBe("again");
    expect(recoveryOf({ ...call, effect: "local" }).action).toBe("again");
    expect(recoveryOf({ ...call, effect: "once" }).action).toBe("again");
    expect(recoveryOf({ ...call, effect: "once", attempts: 1 }).action).toBe("prove");
  });
});
