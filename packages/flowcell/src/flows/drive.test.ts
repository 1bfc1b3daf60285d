// When a command that waits for a run goes on waiting.
import { expect, test } from "vitest";
import { comesByItself } from "./drive.js";

const now = 1_000_000;
const pending = (
  name: string,
  dueAt: number | null,
): Parameters<typeof comesByItself>[0]["pending"][number] => ({
  callId: null,
  position: 0,
  name,
  waitsFor: "",
  dueAt,
});

test.each([
  ["a timer of the script that is near", "suspended", [], now + 60_000, true],
  ["a timer of the script that is far", "suspended", [], now + 60_001, false],
  ["what has come meanwhile", "suspended", [], null, true],
  ["a sleep that is near", "suspended", [pending("sleep", now + 60_000)], now + 60_000, true],
  ["a child", "suspended", [pending("flow.wait", null)], null, true],
  [
    "a child, for at most a day",
    "suspended",
    [pending("flow.wait", now + 86_400_000)],
    now + 86_400_000,
    true,
  ],
  ["a sleep that is far", "suspended", [pending("sleep", now + 60_001)], now + 60_001, false],
  ["a timer beside a sleep that is far", "suspended", [pending("sleep", now + 90_000)], now + 5, true],
  [
    "a child beside a sleep that is far",
    "suspended",
    [pending("flow.wait", null), pending("sleep", now + 90_000)],
    now + 90_000,
    false,
  ],
  ["an approval", "suspended", [pending("approval.request", now + 5)], now + 5, false],
  [
    "a signal beside a sleep",
    "suspended",
    [pending("sleep", now + 5), pending("signal.wait", null)],
    now + 5,
    false,
  ],
  ["an operator", "needs_reconcile", [], null, false],
  ["nothing, it is finished", "completed", [], null, false],
] as const)("a run that waits for %s", (_what, status, waits, dueAt, goesOn) => {
  expect(comesByItself({ status, pending: waits, dueAt }, now)).toBe(goesOn);
});
