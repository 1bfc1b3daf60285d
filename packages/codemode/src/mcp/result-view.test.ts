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

test("a script that returns nothing has no value, and says so", () => {
  const result = resultView(completed(undefined), none);
  expect(result.isError).toBeUndefined();
  expect(JSON.parse(textOf(result))).toEqual({
    ok: true,
    status: "completed",
    note: "The script returned nothing. Return what you want to see.",
  });
});

/** Nothing that a model reads is longer, wrappings included. */
const most = 25_000;

test.each<[what: string, value: unknown]>([
  ["a text", "x".repeat(100_000)],
  ["a text that is all escapes", "\u0000".repeat(100_000)],
  ["a text of quotes in an object", { text: '"'.repeat(100_000) }],
  ["a text of pairs", "x😀".repeat(50_000)],
  ["a list", { list: Array.from({ length: 20_000 }, (_, n) => n) }],
])("%s of any size is JSON that is cut, and says so", (_, value) => {
  const text = textOf(resultView(completed(value), none));
  expect(text.length).toBeLessThan(most);
  expect(text.length).toBeGreaterThan(20_000);
  expect(String(JSON.parse(text).value)).toMatch(/cut here, \d+ more characters/);
  expect(String(JSON.parse(text).value)).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])/);
});

test("errors, lines, calls, warnings and attachments together stay JSON and bounded", () => {
  const bad = '\u0001"'.repeat(30_000);
  const error = { code: "uncaught", name: "Error", message: bad, stack: bad, frame: bad };
  const line = { level: "log" as const, time: "2026-01-01T00:00:00.000Z", text: '"'.repeat(3_500) };
  const result: ExecuteResult = {
    ok: false,
    status: "script_error",
    ...base,
    error,
    logs: [line, line, line],
    warnings: Array.from({ length: 200 }, () => ({ code: "w", message: bad })),
  };
  const link = { type: "resource_link", uri: bad, name: bad } as const;
  const text = textOf(resultView(result, { kept: Array.from({ length: 16 }, () => link), dropped: 0 }));
  expect(text.length).toBeLessThan(most);
  const { error: shown, logs } = JSON.parse(text);
  expect(shown).toMatchObject({ name: "Error", message: expect.stringMatching(/cut here/) });
  expect(logs).toEqual([expect.stringMatching(/more lines; log less/)]);
});

test("hundreds of pending calls are shown as far as there is room, each with its arguments", () => {
  const pending = Array.from({ length: 500 }, (_, n) => ({
    callId: `call_${n}`,
    name: "mail.send",
    args: [{ text: "\n".repeat(5_000) }],
  }));
  const error = { code: "suspended", name: "Suspended", message: "it waits" };
  const view = resultView({ ok: false, status: "suspended", ...base, error, pending }, none);
  const text = textOf(view);
  expect(text.length).toBeLessThan(most);
  const { pending: shown, morePending } = JSON.parse(text);
  expect(shown.length).toBeGreaterThan(10);
  expect(morePending).toBe(`${500 - shown.length} more, shown when these are answered`);
  expect(shown[0]).toEqual({ callId: "call_0", name: "mail.send", args: expect.stringMatching(/cut here/) });
  expect(view.structuredContent?.["pending"]).toHaveLength(500);
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
