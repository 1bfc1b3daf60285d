// Results as MCP has them, in the corners that no server of the other tests reaches.
import { expect, test } from "vitest";
import type { ExecuteResult } from "../result.js";
import { Attachments } from "./attachments.js";
import { resultView } from "./result-view.js";

const base = {
  runId: "run_1",
  started: true,
  logs: [],
  logsTruncated: false,
  usage: { cpuMs: 1, wallMs: 1, heapPeakBytes: 1, hostCalls: 0, bytesIn: 1, bytesOut: 1, queuedMs: 0 },
  calls: [],
  pending: [],
  warnings: [],
  confinement: null,
};
const none = { kept: [], dropped: 0 };

function completed(value: unknown): ExecuteResult {
  return { ok: true, status: "completed", value, ...base };
}

function textOf(result: ReturnType<typeof resultView>): string {
  const [first] = result.content;
  return first?.type === "text" ? first.text : "";
}

test("values that JSON has no word for are shown as what a reader would write", () => {
  const { structuredContent } = resultView(
    completed({ at: new Date(0), n: 5n, m: new Map([["a", 1]]) }),
    none,
  );
  expect(structuredContent?.["value"]).toEqual({ at: "1970-01-01T00:00:00.000Z", n: "5", m: { a: 1 } });
});

test("a script that returns nothing has no value, and says that it is fine", () => {
  const result = resultView(completed(undefined), none);
  expect(result.isError).toBeUndefined();
  expect(JSON.parse(textOf(result))).toEqual({ ok: true, status: "completed" });
});

test("the text is JSON whatever the value's size, and never long", () => {
  for (const value of ["x".repeat(100_000), { list: Array.from({ length: 20_000 }, (_, n) => n) }]) {
    const text = textOf(resultView(completed(value), none));
    expect(text.length).toBeLessThan(30_000);
    expect(String(JSON.parse(text).value)).toMatch(/cut here, \d+ more characters/);
  }
});

test("a long error stays JSON", () => {
  const message = '"'.repeat(60_000);
  const error = { code: "uncaught", name: "Error", message };
  const text = textOf(resultView({ ok: false, status: "script_error", error, ...base }, none));
  expect(text.length).toBeLessThan(60_000);
  expect(JSON.parse(text)).toMatchObject({ ok: false, error: { name: "Error" } });
});

test("attachments are bounded by size, and those of a result that was sent are not kept", () => {
  const box = new Attachments();
  const large = { type: "image", mimeType: "image/png", data: "A".repeat(5 * 1024 * 1024) } as const;
  box.add("run_1", [large]);
  box.open("run_1");
  box.add("run_1", [large, large, { ...large, data: "A" }]);
  const taken = box.take("run_1");
  expect([taken.kept.length, taken.dropped]).toEqual([2, 1]);
  expect(resultView(completed(1), taken).structuredContent?.["warnings"]).toMatchObject([
    { code: "attachments" },
  ]);
  expect(box.take("run_1").kept).toEqual([]);
});
