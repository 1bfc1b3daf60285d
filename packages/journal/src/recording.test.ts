// Recordings: the same history is the same text, a text is the history it was made of, and what cannot be is refused.
import { describe, expect, test } from "vitest";
import { MemoryStore } from "./memory/store.js";
import { exportRun, importRun, RecordingError } from "./recording.js";
import type { RunHistory } from "./store.js";
import { call, deliver, finish, json, must, ok, startedRun, timer } from "./testing/samples.js";

async function history(): Promise<RunHistory> {
  const store = new MemoryStore();
  const fence = await startedRun(store, "run_a", {
    trigger: { kind: "event", eventId: "e", name: "price" },
    input: json({ n: 1 }, new Uint8Array([1, 2, 250])),
  });
  const error = { code: "upstream", message: "no", retryable: false, name: "E", detail: { a: [1] } } as const;
  const detail = json("look", new Uint8Array([9]));
  await must(store, {
    fence,
    operations: [
      call(0, { effect: "once", note: { size: 3 } }),
      call(1, {
        effect: "wait",
        wait: { kind: "approval", title: "ok?", detail, timeoutMs: 5 },
        dueAt: 6,
        callId: "call_1",
      }),
      call(2),
      deliver(0, 2, { ok: false, error }, 1_500),
      timer(1, 1_600.5),
      deliver(2, 0, ok("v", new Uint8Array(5_000).fill(7)), 1_600.5),
      finish(),
    ],
  });
  const found = await store.history("run_a");
  if (found === null) throw new Error("the run is gone");
  return found;
}

test("a history becomes text and the text that history, always the same", async () => {
  const before = await history();
  const text = exportRun(before);
  expect(importRun(text)).toEqual(before);
  expect(exportRun(importRun(text))).toBe(text);
  // Whatever order the fields of the rows have.
  const shuffled = Object.fromEntries(Object.entries(before.run).reverse()) as unknown as RunHistory["run"]; // the same row
  expect(exportRun({ ...before, run: shuffled })).toBe(text);
  expect(text.startsWith('{\n  "flowcellJournal": 1,\n')).toBe(true);
  expect(text.endsWith("}\n")).toBe(true);
});

describe("a text is refused", () => {
  const cases: readonly [string, (text: string) => string, RegExp][] = [
    ["that is not JSON", () => "{", /not JSON/],
    ["that is no object", () => "[]", /recording must be an object/],
    ["of a newer format", (text) => text.replace('Journal": 1', 'Journal": 2'), /newer flowcell/],
    ["of no format", (text) => text.replace('Journal": 1', 'Journal": "1"'), /flowcellJournal must be 1/],
    [
      "with an unknown field",
      (text) => text.replace('"flow": ', '"flows": '),
      /unknown field flows; did you mean flow/,
    ],
    [
      "with an unknown field of an outcome",
      (text) => text.replace('"ok": true', '"good": 1, "ok": true'),
      /good/,
    ],
    ["that lacks a field", (text) => text.replace(/ {4}"seed": .*\n/, ""), /run lacks seed/],
    ["with a wrong kind", (text) => text.replace('"attempt": 1', '"attempt": "1"'), /run\.attempt must be/],
    ["with bytes that are no base64", (text) => text.replace('"AQL6"', '"AQL6!"'), /bytes as base64/],
    [
      "with a gap in its deliveries",
      (text) => text.replace('"order": 2', '"order": 3'),
      /delivery 3 where 2/,
    ],
    [
      "with a clock that goes back",
      (text) => text.replace('"guestClockMs": 1500', '"guestClockMs": 1'),
      /clock/,
    ],
    [
      "with an outcome of no call",
      (text) => text.replace('"position": 2,\n      "unk', '"position": 7,\n      "unk'),
      /call 2/,
    ],
    [
      "with calls out of order",
      (text) => text.replace('"position": 0,\n      "unk', '"position": 5,\n      "unk'),
      /ascend/,
    ],
    [
      "with two outcomes of a call",
      (text) => text.replace(/"position": 0(?=\s+\})/, '"position": 2'),
      /has its outcome/,
    ],
    [
      "whose run says less than its deliveries",
      (text) => text.replace('"nextOrder": 3', '"nextOrder": 2'),
      /nextOrder/,
    ],
    [
      "whose run is in no state",
      (text) => text.replace('"finishedAt": 5000', '"finishedAt": null'),
      /finishedAt/,
    ],
  ];
  test.each(cases)("%s", async (_what, change, message) => {
    const text = exportRun(await history());
    const changed = change(text);
    expect(changed).not.toBe(text);
    expect(() => importRun(changed)).toThrow(RecordingError);
    expect(() => importRun(changed)).toThrow(message);
  });
});
