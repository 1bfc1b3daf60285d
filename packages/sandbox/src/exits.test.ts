// Tests of the explanation of a worker that never said Welcome.
import { describe, expect, test } from "vitest";
import { EXIT_CODES } from "./exit-codes.generated.js";
import { exitCodeRow, explainStart } from "./exits.js";

describe("an exit code is explained by its row", () => {
  test.each(EXIT_CODES.map((row) => [row.name, row] as const))("%s", (_name, row) => {
    const failure = explainStart({ code: row.code, signal: null, cpuUs: 1 });
    expect(failure).toMatchObject({ reason: "start_failed", step: row.name, remedy: row.remedy });
    expect(failure.message).toContain(row.when);
    expect(exitCodeRow(row.code)).toBe(row);
  });
});

test("every code stands once", () => {
  expect(new Set(EXIT_CODES.map((row) => row.code)).size).toBe(EXIT_CODES.length);
  expect(new Set(EXIT_CODES.map((row) => row.name)).size).toBe(EXIT_CODES.length);
});

test.each(["SIGSYS", "SIGKILL", "SIGSEGV", "SIGBUS", "SIGILL", "SIGTRAP", "SIGXCPU"])(
  "%s is explained",
  (signal) => {
    const failure = explainStart({ code: null, signal, cpuUs: 1 });
    expect(failure.step).toBe("signal");
    expect(failure.message).toContain(signal);
    expect(failure.remedy).not.toBe("");
  },
);

test.each([
  ["a code of nobody's", { code: 199, signal: null, cpuUs: 1 }, "199"],
  ["an orderly end", { code: 0, signal: null, cpuUs: 1 }, "in good order"],
  ["an end that others collected", { code: null, signal: null, cpuUs: null }, "collected"],
])("%s is not taken for a step", (_name, exit, text) => {
  const failure = explainStart(exit);
  expect(failure.step).toBe("unknown");
  expect(failure.message).toContain(text);
});
