// Rows that wait for somebody, and rows that start something: what they ask of the run and of the service.
import { decodeValue, encodeValue, HostError, type WaitCondition } from "@flowcell/protocol";
import { describe, expect, test } from "vitest";
import {
  createRegistry,
  dispatch,
  type EmitEvent,
  eventFunctions,
  flowFunctions,
  type HostFunction,
  readCall,
  runFunctions,
  type StartRun,
} from "./index.js";

const limits = { valueBytes: 1024 * 1024, bodyBytes: 1024 * 1024 };

function incoming(name: string, args: readonly unknown[], runId: string | undefined = "run_1") {
  return {
    position: 3,
    name,
    args: encodeValue(args),
    signal: new AbortController().signal,
    idempotencyKey: "key-3",
    ...(runId === undefined ? {} : { runId }),
  };
}

async function waitOf(
  rows: readonly HostFunction[],
  name: string,
  ...args: unknown[]
): Promise<WaitCondition> {
  const read = await readCall(createRegistry(rows), incoming(name, args), { limits, clock: "real" });
  if (!read.ok) throw new Error(read.outcome.ok ? "answered" : read.outcome.error.message);
  if (read.call.wait === undefined || read.call.effect !== "wait") throw new Error("no wait");
  return read.call.wait;
}

async function call(rows: readonly HostFunction[], name: string, args: unknown[], runId?: string | null) {
  const made = incoming(name, args);
  const { runId: _, ...alone } = made;
  const outcome = await dispatch(createRegistry(rows), runId === null ? alone : made, {
    limits,
    clock: "real",
  });
  return outcome.ok ? decodeValue(outcome.value) : { code: outcome.error.code, text: outcome.error.message };
}

describe("waits", () => {
  const flows = flowFunctions({ grants: [], startRun: () => Promise.reject(new Error("not asked")) });

  test("say what ends them", async () => {
    expect(await waitOf(runFunctions, "signal.wait", "go", { timeoutMs: 5 })).toEqual({
      kind: "signal",
      name: "go",
      timeoutMs: 5,
    });
    expect(await waitOf(runFunctions, "signal.wait", "go")).toEqual({
      kind: "signal",
      name: "go",
      timeoutMs: null,
    });
    expect(await waitOf(flows, "flow.wait", "run_2")).toEqual({
      kind: "run",
      runId: "run_2",
      timeoutMs: null,
    });
    const asked = await waitOf(runFunctions, "approval.request", "Deploy?", {
      detail: { to: "prod" },
      timeoutMs: 9,
    });
    expect(asked).toEqual({
      kind: "approval",
      title: "Deploy?",
      detail: encodeValue({ to: "prod" }),
      timeoutMs: 9,
    });
    expect(await waitOf(runFunctions, "approval.request", "Deploy?")).toMatchObject({ detail: null });
  });

  test.each([
    ["signal.wait", [""], "1 to 128 bytes"],
    ["signal.wait", ["go", { timeout: 5 }], "did you mean timeoutMs"],
    ["signal.wait", ["go", { timeoutMs: -1 }], "milliseconds from 0"],
    ["signal.wait", ["go", { timeoutMs: Number.NaN }], "milliseconds from 0"],
    ["approval.request", ["x".repeat(513)], "1 to 512 bytes"],
    ["approval.request", ["a", { detail: "x".repeat(65_536) }], "more than 65536 bytes"],
  ])("%s refuses %j", async (name, args, text) => {
    await expect(waitOf(runFunctions, name, ...args)).rejects.toThrow(text);
  });

  test("cannot be carried out by a script that is no flow's run", async () => {
    expect(await call(runFunctions, "signal.wait", ["go"])).toMatchObject({ code: "unavailable" });
  });
});

describe("flow.start", () => {
  function starting(answer: (start: StartRun) => Promise<{ runId: string }>) {
    const seen: StartRun[] = [];
    const rows = flowFunctions({
      grants: ["child"],
      startRun: (start) => {
        seen.push(start);
        return answer(start);
      },
    });
    return { rows, seen };
  }

  test("hands over flow, input, key and the call it comes from", async () => {
    const { rows, seen } = starting(async () => ({ runId: "run_9" }));
    expect(await call(rows, "flow.start", ["child", { n: 1n }])).toEqual({ runId: "run_9" });
    expect(seen).toEqual([
      {
        flow: "child",
        input: encodeValue({ n: 1n }),
        runId: "run_1",
        position: 3,
        idempotencyKey: "key-3",
        signal: expect.any(AbortSignal),
      },
    ]);
  });

  test("names the grant that a denied flow needs, and starts nothing", async () => {
    const { rows, seen } = starting(async () => ({ runId: "run_9" }));
    const answer = await call(rows, "flow.start", ["other"]);
    expect(answer).toEqual({ code: "denied", text: expect.stringContaining('add "other" to grants.flows') });
    expect(seen).toEqual([]);
  });

  test("passes on what the service refuses", async () => {
    const { rows } = starting(() => Promise.reject(new HostError("not_found", "no version is approved")));
    expect(await call(rows, "flow.start", ["child"])).toMatchObject({ code: "not_found" });
  });

  test("needs the run of a flow", async () => {
    const { rows, seen } = starting(async () => ({ runId: "run_9" }));
    expect(await call(rows, "flow.start", ["child"], null)).toMatchObject({ code: "unavailable" });
    expect(seen).toEqual([]);
  });
});

describe("event.emit", () => {
  const seen: EmitEvent[] = [];
  const rows = eventFunctions({
    grants: ["price.changed"],
    emitEvent: async (event) => {
      seen.push(event);
      return { eventId: "event_1" };
    },
  });

  test("hands over name, payload and key", async () => {
    expect(await call(rows, "event.emit", ["price.changed", 7])).toEqual({ eventId: "event_1" });
    expect(seen).toMatchObject([{ name: "price.changed", payload: encodeValue(7), idempotencyKey: "key-3" }]);
  });

  test("names the grant that a denied event needs", async () => {
    const answer = await call(rows, "event.emit", ["other"]);
    expect(answer).toEqual({ code: "denied", text: expect.stringContaining("grants.events") });
  });
});

test("every row says how it is typed", () => {
  const rows = [...runFunctions, ...eventFunctions({ grants: [], emitEvent: () => Promise.reject() })];
  for (const row of rows) expect(row.signature).toMatch(/^\(.*\): Promise<.*>$/);
});
