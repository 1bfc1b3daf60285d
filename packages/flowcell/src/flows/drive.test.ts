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
  ["a timer of the script", "suspended", [], true],
  ["a sleep that is near", "suspended", [pending("sleep", now + 60_000)], true],
  ["a child", "suspended", [pending("flow.wait", null)], true],
  ["a sleep that is far", "suspended", [pending("sleep", now + 60_001)], false],
  ["an approval", "suspended", [pending("approval.request", now + 5)], false],
  ["a signal beside a sleep", "suspended", [pending("sleep", now + 5), pending("signal.wait", null)], false],
  ["an operator", "needs_reconcile", [], false],
  ["nothing, it is finished", "completed", [], false],
] as const)("a run that waits for %s", (_what, status, waits, goesOn) => {
  expect(comesByItself({ status, pending: waits }, now)).toBe(goesOn);
});
