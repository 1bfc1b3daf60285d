// One activation against a fake worker: host calls, time, limits, misconduct, and what the result says.

import type { CallOutcome } from "@flowcell/protocol";
import { HostError, type HostErrorData, messageType } from "@flowcell/protocol";
import { afterEach, describe, expect, it } from "vitest";
import { Pool } from "./pool.js";
import type { PoolEvent } from "./pool-options.js";
import { FakeClock, ticks } from "./testing/fake-clock.js";
import {
  blocked,
  consoleLine,
  FakeBackend,
  type FakeConfinement,
  type FakeWorker,
  finished,
  hostCall,
  plain,
  refused,
} from "./testing/fake-worker.js";
import { epochMs, json, ok, outcome, testLimits, testRequest, track } from "./testing/requests.js";
import type { ActivationRequest, HostCall } from "./types.js";

const open: Pool<FakeConfinement>[] = [];
const flow = "a";

afterEach(async () => {
  for (const pool of open.splice(0)) await pool.close();
});

/** An activation that runs. */
async function begin(more: Partial<ActivationRequest> = {}) {
  const clock = new FakeClock();
  const backend = new FakeBackend();
  const events: PoolEvent[] = [];
  const pool = new Pool(backend, { spares: 0, onEvent: (event) => events.push(event) }, clock);
  open.push(pool);
  const run = track(pool.activate(testRequest("a", "script", more)));
  await ticks();
  const worker = backend.workers[0];
  if (worker === undefined) throw new Error("no worker was started");
  return { clock, backend, pool, events, run, worker };
}

const done = finished({ status: "completed", warnings: [], hostCalls: 0 }, "1");

/** Answers that the test gives when it wants to. */
function deferred() {
  const calls: { call: HostCall; answer(outcome: CallOutcome): void; fail(thrown: unknown): void }[] = [];
  const onHostCall = (call: HostCall): Promise<CallOutcome> =>
    new Promise((resolve, reject) => {
      calls.push({ call, answer: resolve, fail: reject });
    });
  const at = (index: number) => calls[index] ?? missing();
  const missing = (): never => {
    throw new Error("no such call");
  };
  return { onHostCall, calls, at };
}

function missingError(): never {
  throw new Error("no such error");
}

function delivered(worker: FakeWorker) {
  return worker.received.flatMap((message) => (message.kind === "deliver" ? [message] : []));
}

describe("the start", () => {
  it("sends script, input, limits, names, clock and seed in one write", async () => {
    const { worker } = await begin({ input: json({ a: [1] }), codeGeneration: false });
    expect(worker.writes).toEqual([1]);
    expect(worker.received[0]).toMatchObject({
      kind: "activate",
      script: "script",
      input: { text: '{"a":[1]}', devalue: false },
      header: {
        activation: 1,
        clock: epochMs,
        seed: "07".repeat(32),
        names: ["echo", "slow"],
        codeGeneration: false,
        limits: { hostCalls: 8, inFlight: 4 },
      },
    });
  });

  it("numbers activations of one worker, so that an outcome of an earlier one is never taken for another's", async () => {
    const { pool, worker } = await begin();
    worker.finish();
    await ticks();
    track(pool.activate(testRequest("a", "script")));
    expect(worker.last).toMatchObject({ kind: "activate", header: { activation: 2 } });
  });
});

describe("host calls", () => {
  it("hands position, name and arguments to the handler and delivers what it answers", async () => {
    const seen: unknown[] = [];
    const { worker, run } = await begin({
      onHostCall(call) {
        seen.push([call.position, call.name, call.args.text, [...call.args.attachments]]);
        return ok("answer");
      },
    });
    worker.send(hostCall(0, "echo", [1, "x"], [new Uint8Array([1, 2])]));
    expect(seen).toEqual([[0, "echo", '[1,"x"]', [new Uint8Array([1, 2])]]]);
    expect(delivered(worker)).toMatchObject([
      {
        header: { activation: 1, kind: "call", position: 0, ok: true, clock: epochMs },
        value: { text: '"answer"' },
      },
    ]);
    worker.finish();
    await ticks();
    expect(run.result?.calls).toMatchObject([
      { position: 0, name: "echo", state: "done", inputBytes: 9, outputBytes: 8 },
    ]);
  });

  it("keeps the arguments' bytes although the chunk they came in is overwritten", async () => {
    const { onHostCall, at } = deferred();
    const { worker } = await begin({ onHostCall });
    const chunk = hostCall(0, "echo", [], [new Uint8Array([9, 9, 9])]);
    worker.bytes(chunk);
    chunk.fill(0);
    expect([...(at(0).call.args.attachments[0] ?? [])]).toEqual([9, 9, 9]);
  });

  it("sends outcomes that settle in one turn in one write, in the order in which they settled", async () => {
    const { onHostCall, at } = deferred();
    const { worker } = await begin({ onHostCall });
    worker.send(hostCall(0, "slow"), hostCall(1, "slow"), hostCall(2, "slow"));
    for (const index of [2, 0, 1]) at(index).answer(ok(index));
    await ticks();
    expect(worker.writes).toEqual([1, 3]);
    expect(delivered(worker).map(({ header }) => (header.kind === "call" ? header.position : -1))).toEqual([
      2, 0, 1,
    ]);
  });

  it("sends answers that a handler gives at once in one write at the end of the chunk", async () => {
    const { worker } = await begin();
    worker.send(hostCall(0, "echo"), hostCall(1, "echo"));
    expect(worker.writes).toEqual([1, 2]);
  });

  it("tells the script nothing about an exception of the host, but a HostError as it is", async () => {
    const { worker, run } = await begin({
      onHostCall(call) {
        if (call.position === 0) throw new Error("secret /etc/path");
        if (call.position === 1) return Promise.reject(new TypeError("secret"));
        if (call.position === 2) throw new HostError("not_found", "no such key", { detail: { key: "k" } });
        return undefined as unknown as CallOutcome; // a handler that forgot to answer
      },
    });
    worker.send(hostCall(0, "echo"), hostCall(1, "echo"), hostCall(2, "echo"), hostCall(3, "echo"));
    await ticks();
    const errors = delivered(worker).map(({ header }) =>
      header.kind === "call" && !header.ok ? header.error : null,
    );
    const internal = { code: "internal", message: "the host function failed", retryable: false };
    expect(errors).toEqual([
      internal,
      { code: "not_found", message: "no such key", retryable: false, detail: { key: "k" } },
      internal,
      internal,
    ]);
    worker.finish();
    await ticks();
    expect(run.result?.calls.map(({ state, code }) => `${state} ${code}`)).toEqual([
      "failed internal",
      "failed internal",
      "failed not_found",
      "failed internal",
    ]);
  });

  it("answers result_too_large in place of a value beyond valueBytes or bodyBytes", async () => {
    const limits = { ...testLimits, valueBytes: 100, bodyBytes: 10 };
    const values = [json("x".repeat(98)), json("x".repeat(99)), json("é".repeat(50))];
    const { worker } = await begin({
      limits,
      onHostCall(call) {
        if (call.position < 3) return { ok: true, value: values[call.position] ?? json(null) };
        return {
          ok: true,
          value: { text: "1", devalue: false, attachments: [new Uint8Array(6), new Uint8Array(5)] },
        };
      },
    });
    worker.send(...[0, 1, 2, 3].map((position) => hostCall(position, "echo")));
    const answers = delivered(worker).map(({ header }) =>
      header.kind === "call" ? (header.ok ? "ok" : header.error.code) : "",
    );
    expect(answers).toEqual(["ok", "result_too_large", "result_too_large", "result_too_large"]);
  });

  it("cuts what is too large in an error, and calls an error that cannot travel internal", async () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    const errors = [
      { code: "upstream", message: "m".repeat(100_000), retryable: true, name: "n".repeat(1000) },
      { code: "conflict", message: "m", retryable: false, detail: "d".repeat(100_000) },
      { code: "conflict", message: "m", retryable: false, detail: cycle },
      { code: "no_such_code", message: "m", retryable: false },
    ] as HostErrorData[];
    const { worker } = await begin({
      onHostCall: (call) => ({ ok: false, error: errors[call.position] ?? missingError() }),
    });
    worker.send(...errors.map((_, position) => hostCall(position, "echo")));
    const sent = delivered(worker).map(({ header }) =>
      header.kind === "call" && !header.ok ? header.error : null,
    );
    expect(sent[0]).toMatchObject({
      code: "upstream",
      message: "m".repeat(8192),
      retryable: true,
      name: "n".repeat(256),
    });
    expect(sent[1]).toEqual({ code: "conflict", message: "m", retryable: false });
    expect(sent.slice(2).map((error) => error?.code)).toEqual(["internal", "internal"]);
  });

  it("aborts the call's signal on CancelCall and delivers its outcome all the same", async () => {
    const { onHostCall, at } = deferred();
    const { worker, run } = await begin({ onHostCall });
    worker.send(hostCall(0, "slow"), hostCall(1, "slow"));
    const [first, second] = [at(0).call.signal, at(1).call.signal];
    const told = [0, 0];
    for (const index of [0, 1])
      at(index).call.whenAborted(() => {
        told[index] = (told[index] ?? 0) + 1;
      });
    worker.send(plain(messageType.CancelCall, { position: 0 }));
    expect([first.aborted, second.aborted]).toEqual([true, false]);
    expect(told).toEqual([1, 0]);
    expect(first.reason).toMatchObject({ name: "HostError", code: "cancelled" });
    at(0).fail(first.reason);
    await ticks();
    expect(delivered(worker)).toMatchObject([
      { header: { position: 0, ok: false, error: { code: "cancelled" } } },
    ]);
    worker.finish();
    await ticks();
    expect(run.result?.calls.map(({ state }) => state)).toEqual(["cancelled", "unknown"]);
    expect(told).toEqual([1, 1]);
  });

  it("gives a signal that is aborted already to a handler that asks late", async () => {
    const { onHostCall, at } = deferred();
    const { worker } = await begin({ onHostCall });
    worker.send(hostCall(0, "slow"), plain(messageType.CancelCall, { position: 0 }));
    expect(at(0).call.aborted).toBe(true);
    expect(at(0).call.signal.aborted).toBe(true);
  });

  it("accepts positions with gaps, since a call cancelled in the worker's queue is never sent", async () => {
    const { worker } = await begin();
    worker.send(hostCall(0, "echo"), hostCall(3, "echo"), hostCall(5, "echo"));
    expect(delivered(worker).length).toBe(3);
  });

  it("makes idempotency keys that differ by position and by run, and repeats those of a given prefix", async () => {
    const keys: string[] = [];
    const note = (call: HostCall): CallOutcome => {
      keys.push(call.idempotencyKey);
      return ok(1);
    };
    for (const callKeyPrefix of [undefined, undefined, "run-7", "run-7"]) {
      const { worker } = await begin({
        onHostCall: note,
        ...(callKeyPrefix === undefined ? {} : { callKeyPrefix }),
      });
      worker.send(hostCall(0, "echo"), hostCall(1, "echo"));
    }
    expect(new Set(keys.slice(0, 4)).size).toBe(4);
    expect(keys.slice(4)).toEqual(["run-7.0", "run-7.1", "run-7.0", "run-7.1"]);
  });

  it("ignores an outcome that comes after the end, resolved or rejected, and lists the call as unknown with its key", async () => {
    const { onHostCall, at } = deferred();
    const { worker, run } = await begin({ onHostCall, callKeyPrefix: "k" });
    worker.send(hostCall(0, "slow"), hostCall(1, "slow"));
    const { signal } = at(0).call;
    worker.finish();
    await ticks();
    expect(outcome(run.result)).toBe("completed");
    expect(signal.aborted).toBe(true);
    expect(run.result?.calls).toMatchObject([
      { state: "unknown", idempotencyKey: "k.0" },
      { state: "unknown", idempotencyKey: "k.1" },
    ]);
    at(0).answer(ok(1));
    at(1).fail(new Error("late"));
    await ticks();
    expect(worker.writes).toEqual([1]);
    expect(run.result?.calls[0]?.state).toBe("unknown");
  });

  it("does not mind a handler that cancels its own activation", async () => {
    const cancel = new AbortController();
    const { worker, run } = await begin({
      signal: cancel.signal,
      onHostCall() {
        cancel.abort();
        return ok(1);
      },
    });
    worker.send(hostCall(0, "echo"), hostCall(1, "echo"), done);
    await ticks();
    expect(outcome(run.result)).toBe("cancelled/caller");
    expect(run.result?.calls.length).toBe(1);
    expect(worker.writes).toEqual([1]);
  });
});

describe("time", () => {
  it("fires timers at once in virtual time, moves the clock to them, and only when no call is open", async () => {
    const { onHostCall, at } = deferred();
    const { worker, clock } = await begin({ onHostCall });
    worker.send(blocked(epochMs + 5000, 0));
    expect(worker.last).toMatchObject({ kind: "deliver", header: { kind: "timer", clock: epochMs + 5000 } });
    worker.send(hostCall(0, "slow"), blocked(epochMs + 9000, 1, 1));
    clock.advance(100);
    expect(delivered(worker).length).toBe(1);
    at(0).answer(ok(1));
    await ticks();
    expect(worker.last).toMatchObject({ header: { kind: "call", clock: epochMs + 5000 } });
    worker.send(blocked(epochMs + 9000, 0, 2));
    expect(worker.last).toMatchObject({ header: { kind: "timer", clock: epochMs + 9000 } });
  });

  it("waits for timers in real time, and moves the guest's clock with it", async () => {
    const { onHostCall, at } = deferred();
    const { worker, clock } = await begin({ onHostCall, clock: { epochMs, mode: "real" } });
    worker.send(hostCall(0, "slow"), blocked(epochMs + 1000, 1));
    clock.advance(400);
    at(0).answer(ok(1));
    await ticks();
    expect(worker.last).toMatchObject({ header: { kind: "call", clock: epochMs + 400 } });
    worker.send(blocked(epochMs + 1000, 0, 1));
    clock.advance(599);
    expect(delivered(worker).length).toBe(1);
    clock.advance(1);
    await ticks();
    expect(worker.last).toMatchObject({ header: { kind: "timer", clock: epochMs + 1000 } });
    worker.send(blocked(epochMs + 1000, 0, 2));
    expect(delivered(worker).length).toBe(3);
  });

  it("answers a call that takes no time before a timer that is late, and then the timer, whatever is called next", async () => {
    const { onHostCall, at } = deferred();
    const { worker, clock } = await begin({ onHostCall, clock: { epochMs, mode: "real" } });
    clock.advance(100);
    worker.send(hostCall(0, "slow"), blocked(epochMs + 50, 1));
    at(0).answer(ok(1));
    await ticks();
    expect(delivered(worker).map(({ header }) => header.kind)).toEqual(["call"]);
    worker.send(hostCall(1, "slow"), blocked(epochMs + 50, 1, 1));
    at(1).answer(ok(2));
    await ticks();
    clock.advance(0);
    await ticks();
    expect(delivered(worker).map(({ header }) => header.kind)).toEqual(["call", "call", "timer"]);
  });

  it("fires a late timer although a call stays open", async () => {
    const { onHostCall } = deferred();
    const { worker, clock } = await begin({ onHostCall, clock: { epochMs, mode: "real" } });
    clock.advance(100);
    worker.send(hostCall(0, "slow"), blocked(epochMs + 50, 1));
    clock.advance(0);
    await ticks();
    expect(delivered(worker).map(({ header }) => header)).toMatchObject([
      { kind: "timer", clock: epochMs + 100 },
    ]);
  });

  it("does not take a Blocked for the present state that crossed an outcome on its way", async () => {
    const { worker } = await begin();
    // The handler answers at once; the worker had not read that when it said Blocked.
    worker.send(hostCall(0, "echo"), blocked(epochMs + 50, 1));
    expect(delivered(worker).map(({ header }) => header.kind)).toEqual(["call"]);
  });

  it("ends at the wall deadline, aborts the calls, and says how long it was", async () => {
    const { onHostCall, at } = deferred();
    const { worker, clock, run } = await begin({ onHostCall, callKeyPrefix: "k" });
    worker.send(hostCall(0, "slow"), blocked(null, 1));
    const { signal } = at(0).call;
    clock.advance(9999);
    await ticks();
    expect(outcome(run.result)).toBe("no result");
    clock.advance(1);
    await ticks();
    expect(outcome(run.result)).toBe("budget_exceeded/wall");
    expect(run.result?.error).toMatchObject({ code: "wall", limit: 10_000, used: 10_000 });
    expect(run.result?.calls).toMatchObject([
      { state: "unknown", idempotencyKey: "k.0", durationMs: 10_000 },
    ]);
    expect(signal.aborted).toBe(true);
    expect(worker.killed).toBe(true);
  });

  it("ends by the CPU clock at the budget and 50 ms, whatever the worker says", async () => {
    const { worker, clock, run } = await begin();
    for (let ms = 0; ms < 1049; ms++) {
      worker.cpu += 1000;
      clock.advance(1);
    }
    await ticks();
    expect(worker.killed).toBe(false);
    worker.cpu += 1000;
    clock.advance(2);
    await ticks();
    expect(outcome(run.result)).toBe("budget_exceeded/cpu");
    expect(run.result?.error).toMatchObject({ limit: 1000, used: 1050 });
    expect(run.result?.usage.cpuMs).toBe(1050);
  });

  it("does not count waiting as CPU time, and watches again as soon as it delivers", async () => {
    const { onHostCall, at } = deferred();
    const { worker, clock, run } = await begin({ onHostCall });
    worker.cpu += 900_000;
    worker.send(hostCall(0, "slow"), blocked(null, 1));
    clock.advance(8000);
    expect(worker.killed).toBe(false);
    at(0).answer(ok(1));
    await ticks();
    worker.cpu += 151_000;
    clock.advance(151);
    await ticks();
    expect(outcome(run.result)).toBe("budget_exceeded/cpu");
  });

  it("catches a worker that says it waits and computes", async () => {
    const { worker, clock, run } = await begin({ onHostCall: () => new Promise(() => {}) });
    worker.send(hostCall(0, "slow"), blocked(null, 1));
    worker.cpu += 3_000_000;
    clock.advance(3000);
    await ticks();
    expect(outcome(run.result)).toBe("budget_exceeded/cpu");
  });

  it("charges CPU from this activation's start only", async () => {
    const { worker, pool } = await begin();
    worker.cpu += 700_000;
    worker.finish();
    await ticks();
    const next = track(pool.activate(testRequest("a", "script")));
    worker.cpu += 5000;
    worker.finish();
    await ticks();
    expect(next.result?.usage.cpuMs).toBe(5);
  });
});

describe("console and results", () => {
  it("passes lines on as they come and returns them, each run its own", async () => {
    const streamed: string[] = [];
    const { worker, run, pool } = await begin({ onConsole: (line) => streamed.push(line.text) });
    worker.send(consoleLine(0, "a"), consoleLine(1, "b"));
    expect(streamed).toEqual(["a", "b"]);
    worker.finish();
    await ticks();
    expect(run.result?.logs.map(({ seq, text }) => `${seq} ${text}`)).toEqual(["0 a", "1 b"]);
    const next = track(pool.activate(testRequest("a", "script")));
    worker.finish();
    await ticks();
    expect(next.result?.logs).toEqual([]);
  });

  it("says that output was cut when the guest's mark came, also when the script did not end by itself", async () => {
    const mark = "part… output is cut here: it reached 65536 bytes (limits.outputBytes)";
    const { worker, run, clock } = await begin();
    worker.send(plain(messageType.Console, { seq: 0, level: "warn", timeMs: 0, text: mark }));
    clock.advance(10_000);
    await ticks();
    expect(run.result).toMatchObject({ logsTruncated: true, logs: [{ text: mark }] });
    const whole = await begin();
    whole.worker.send(consoleLine(0, "whole"), done);
    await ticks();
    expect(whole.run.result).toMatchObject({ logsTruncated: false, logs: [{ text: "whole" }] });
  });

  it("names the limit that a worker reports as reached, in the unit of the limit", async () => {
    const { heapBytes, stackBytes, hostCalls, cpuMs } = testLimits;
    const reports = [
      ["cpu", 1000, 1010, { limit: cpuMs, used: 1010 }],
      // The guest side cannot tell how much there was.
      ["memory", 0, 0, { limit: heapBytes, used: 6_000_000 }],
      ["stack", 0, 0, { limit: stackBytes, used: stackBytes }],
      ["host_calls", 8, 9, { limit: hostCalls, used: 9 }],
      ["result_size", 77, 78, { limit: 77, used: 78 }],
    ] as const;
    for (const [reason, limit, used, expected] of reports) {
      const { worker, run } = await begin();
      worker.end({ status: "budget_exceeded", reason, limit, used });
      await ticks();
      expect(run.result?.error).toMatchObject({ code: reason, ...expected });
      expect(worker.killed).toBe(true);
    }
    // What only the parent measures.
    for (const reason of ["wall", "record_size"] as const) {
      const { worker, run } = await begin();
      worker.end({ status: "budget_exceeded", reason, limit: 1, used: 2 });
      await ticks();
      expect(outcome(run.result)).toBe("violation/unexpected_message");
    }
  });

  it("returns the value, the warnings and the use of the activation", async () => {
    const { worker, run, clock } = await begin();
    worker.cpu += 2500;
    clock.advance(7);
    const warnings = [{ code: "w", message: "m" }];
    worker.send(finished({ status: "completed", warnings, hostCalls: 0 }, '{"n":1}'));
    await ticks();
    expect(run.result).toMatchObject({
      status: "completed",
      value: { text: '{"n":1}', devalue: false, attachments: [] },
      warnings,
      started: true,
      confinement: { pid: worker.pid },
      worker: { pid: worker.pid, activations: 1 },
      usage: { cpuMs: 2.5, wallMs: 7, heapPeakBytes: 6_000_000, hostCalls: 0 },
      evidence: [],
    });
    expect(run.result?.error).toBeUndefined();
    expect(run.result?.usage.bytesIn).toBeGreaterThan(100);
    expect(run.result?.usage.bytesOut).toBeGreaterThan(50);
  });

  it("returns a script's own error with its cause, and `denied` as a status", async () => {
    const error = { name: "E", message: "m", stack: "at x", cause: { name: "C", message: "c", stack: "" } };
    const { worker, run } = await begin();
    worker.end({ status: "script_error", error, warnings: [], hostCalls: 0 });
    await ticks();
    expect(outcome(run.result)).toBe("script_error/uncaught");
    expect(run.result?.error).toEqual({ code: "uncaught", ...error });
    expect(worker.killed).toBe(false);

    const denied = await begin();
    denied.worker.end({ status: "script_error", code: "denied", error, warnings: [], hostCalls: 0 });
    await ticks();
    expect(outcome(denied.run.result)).toBe("denied/denied");
  });

  it("says that a refused script did not start, and keeps the worker", async () => {
    const { worker, run } = await begin();
    worker.send(refused("unexpected token"));
    await ticks();
    expect(outcome(run.result)).toBe("script_error/syntax");
    expect(run.result).toMatchObject({
      started: false,
      error: { name: "SyntaxError", message: "unexpected token" },
    });
    expect(worker.killed).toBe(false);
  });

  it("does not hand on a result beyond resultBytes", async () => {
    const { worker, run } = await begin({ limits: { ...testLimits, resultBytes: 20 } });
    worker.send(
      finished({ status: "completed", warnings: [], hostCalls: 0 }, JSON.stringify("x".repeat(19))),
    );
    await ticks();
    expect(outcome(run.result)).toBe("budget_exceeded/result_size");
    expect(run.result?.error).toMatchObject({ limit: 20, used: 21 });
    expect(run.result?.value).toBeUndefined();
  });
});

describe("misconduct while running", () => {
  const cases: [string, string, (worker: FakeWorker) => void][] = [
    [
      "a position that repeats",
      "violation/bad_position",
      (w) => w.send(hostCall(1, "echo"), hostCall(1, "echo")),
    ],
    [
      "a position that goes back",
      "violation/bad_position",
      (w) => w.send(hostCall(2, "echo"), hostCall(0, "echo")),
    ],
    ["a name that was not granted", "violation/not_granted", (w) => w.send(hostCall(0, "fs.read"))],
    ["an inherited name", "violation/not_granted", (w) => w.send(hostCall(0, "constructor"))],
    ["a position beyond hostCalls", "violation/too_many_calls", (w) => w.send(hostCall(8, "echo"))],
    [
      "more calls in flight than inFlight",
      "violation/too_many_calls",
      (w) => w.send(...[0, 1, 2, 3, 4].map((position) => hostCall(position, "slow"))),
    ],
    [
      "a cancellation of a call that does not exist",
      "violation/bad_position",
      (w) => w.send(plain(messageType.CancelCall, { position: 0 })),
    ],
    [
      "a second cancellation",
      "violation/bad_position",
      (w) =>
        w.send(
          hostCall(0, "slow"),
          plain(messageType.CancelCall, { position: 0 }),
          plain(messageType.CancelCall, { position: 0 }),
        ),
    ],
    [
      "Blocked twice with nothing in between",
      "violation/unexpected_message",
      (w) => w.send(hostCall(0, "slow"), blocked(null, 1), blocked(null, 1)),
    ],
    [
      "Blocked after more deliveries than there were",
      "violation/unexpected_message",
      (w) => w.send(hostCall(0, "slow"), blocked(null, 1, 1)),
    ],
    [
      "Blocked with a call that nobody made",
      "violation/unexpected_message",
      (w) => w.send(hostCall(0, "slow"), blocked(null, 2)),
    ],
    ["a second Welcome", "violation/unexpected_message", (w) => w.welcome()],
    ["a message of the parent", "violation/protocol", (w) => w.send(plain(messageType.Deliver, {}))],
    [
      "an unknown type",
      "violation/protocol",
      (w) => w.bytes(Buffer.from([8, 0, 0, 0, 99, 0, 0, 0, 0, 0, 0, 0])),
    ],
    [
      "a length beyond every limit",
      "violation/protocol",
      (w) => w.bytes(Buffer.alloc(12, 0x7f).fill(2, 4, 5)),
    ],
    ["a header that is no JSON", "violation/protocol", (w) => w.send(plain(messageType.HostCall, 1), done)],
    [
      "Refused after a host call",
      "violation/unexpected_message",
      (w) => w.send(hostCall(0, "echo"), refused("x")),
    ],
    [
      "Finished without a value",
      "violation/protocol",
      (w) => w.send(finished({ status: "completed", warnings: [], hostCalls: 0 })),
    ],
    [
      "a script error with a value",
      "violation/protocol",
      (w) =>
        w.send(
          finished(
            {
              status: "script_error",
              error: { name: "", message: "", stack: "" },
              warnings: [],
              hostCalls: 0,
            },
            "1",
          ),
        ),
    ],
  ];

  for (const [what, expected, act] of cases) {
    it(`kills a worker that sends ${what}, counts it, and serves the flow from another`, async () => {
      const { worker, run, pool, backend, events } = await begin({
        onHostCall: (call) => (call.name === "slow" ? new Promise(() => {}) : ok(1)),
      });
      act(worker);
      await ticks();
      expect(outcome(run.result)).toBe(expected);
      expect(worker.killed).toBe(true);
      expect(worker.closed).toBe(true);
      const reason = expected.split("/")[1] ?? "";
      expect(pool.health().violations).toEqual({ [reason]: 1 });
      expect(pool.health().deathsByFlow[flow]).toMatchObject({ violations: 1 });
      expect(events.map(({ kind }) => kind)).toEqual(["violation"]);
      const next = track(pool.activate(testRequest("a", "script")));
      await ticks();
      backend.workers[1]?.finish(2);
      await ticks();
      expect(outcome(next.result)).toBe("completed");
    });
  }

  it("kills a worker that floods the console beyond outputBytes, also with empty lines, and keeps what was in it", async () => {
    const { worker, run } = await begin({ limits: { ...testLimits, outputBytes: 100 } });
    for (let i = 0; i < 5000 && !worker.killed; i++) worker.send(consoleLine(i, ""));
    await ticks();
    expect(outcome(run.result)).toBe("violation/unexpected_message");
    expect(run.result?.logs.length).toBe(1124);
  });

  it("lets a completed activation stand when bytes follow its end, and ends the worker", async () => {
    const { worker, run, pool } = await begin();
    worker.send(done, done);
    await ticks();
    expect(outcome(run.result)).toBe("completed");
    expect(run.result?.evidence).toHaveLength(1);
    expect(worker.killed).toBe(true);
    expect(pool.health().violations).toEqual({ unexpected_message: 1 });
  });

  it("never takes bytes behind a Finished for an answer to the activation that waits", async () => {
    const clock = new FakeClock();
    const backend = new FakeBackend();
    const pool = new Pool(backend, { spares: 0, workersMax: 1 }, clock);
    open.push(pool);
    const first = track(pool.activate(testRequest("a", "first")));
    const second = track(pool.activate(testRequest("a", "second")));
    await ticks();
    backend.workers[0]?.send(done, finished({ status: "completed", warnings: [], hostCalls: 0 }, '"forged"'));
    await ticks();
    expect(outcome(first.result)).toBe("completed");
    expect(outcome(second.result)).toBe("no result");
    backend.workers[1]?.finish("true");
    await ticks();
    expect(second.result?.value?.text).toBe('"true"');
  });

  it("ends as internal when a console callback throws, and reports the bug", async () => {
    const { worker, run, events } = await begin({
      onConsole() {
        throw new Error("callback");
      },
    });
    worker.send(consoleLine(0, "x"));
    await ticks();
    expect(outcome(run.result)).toBe("internal/bug");
    expect(run.result?.error?.message).not.toContain("callback");
    expect(events).toMatchObject([{ kind: "bug" }]);
  });
});

describe("death while running", () => {
  const cases: [string, { code?: number; signal?: string; cpuUs?: number }, string][] = [
    ["a refused system call", { signal: "SIGSYS" }, "violation/syscall"],
    ["an engine trap", { code: 81 }, "worker_lost/engine_trap"],
    ["the engine's own stack", { code: 82 }, "budget_exceeded/stack"],
    ["a memory fault", { code: 83 }, "worker_lost/signal"],
    ["a segmentation fault", { signal: "SIGSEGV" }, "worker_lost/signal"],
    ["the out-of-memory killer", { signal: "SIGKILL" }, "worker_lost/signal"],
    ["the CPU limit of the process", { signal: "SIGKILL", cpuUs: 3600e6 }, "budget_exceeded/cpu"],
    ["an exit in good order", { code: 0 }, "worker_lost/exit"],
    ["an exit code of the loop", { code: 99 }, "worker_lost/exit"],
    ["an exit code without meaning", { code: 7 }, "worker_lost/exit"],
  ];
  for (const [what, exit, expected] of cases) {
    it(`answers ${expected} after ${what}, with the calls that may have happened`, async () => {
      const { worker, run, pool } = await begin({
        onHostCall: () => new Promise(() => {}),
        callKeyPrefix: "k",
      });
      worker.send(hostCall(0, "slow"));
      worker.die(exit);
      await ticks();
      expect(outcome(run.result)).toBe(expected);
      expect(run.result?.calls).toMatchObject([{ state: "unknown", idempotencyKey: "k.0" }]);
      expect(pool.health().workers.total).toBe(0);
      const counted = pool.health().deathsByFlow[flow];
      expect(counted?.sigsysDeaths ?? 0).toBe(exit.signal === "SIGSYS" ? 1 : 0);
      const traps = [81, 82, 83].includes(exit.code ?? 0) || exit.signal === "SIGSEGV";
      expect(counted?.trapDeaths ?? 0).toBe(traps ? 1 : 0);
    });
  }

  it("calls a message that is cut by an exit in good order a violation", async () => {
    const { worker, run } = await begin();
    worker.bytes(done.subarray(0, 20));
    worker.die({ code: 0 });
    await ticks();
    expect(outcome(run.result)).toBe("violation/protocol");
    expect(run.result?.error?.message).toContain("truncated");
  });

  it("lets the first verdict stand and attaches how the process ended", async () => {
    const { worker, run, clock } = await begin();
    worker.diesAtOnce = false;
    clock.advance(10_000);
    worker.bytes(done);
    worker.die({ signal: "SIGSYS" });
    await ticks();
    expect(outcome(run.result)).toBe("budget_exceeded/wall");
    expect(run.result?.evidence).toEqual([
      `${done.byteLength} bytes came after the verdict`,
      "the process ended by SIGSYS",
    ]);
  });

  it("answers although the process does not die, and keeps its place taken until it does", async () => {
    const { worker, run, clock, pool } = await begin();
    worker.diesAtOnce = false;
    clock.advance(10_000);
    await ticks();
    expect(outcome(run.result)).toBe("no result");
    clock.advance(1000);
    await ticks();
    expect(outcome(run.result)).toBe("budget_exceeded/wall");
    expect(pool.health().workers).toMatchObject({ total: 1, dying: 1 });
    worker.die({ signal: "SIGKILL" });
    expect(pool.health().workers.total).toBe(0);
  });

  it("kills a worker that closes its output and lives on", async () => {
    const { worker, run, clock } = await begin();
    worker.closeOutput();
    for (let i = 0; i < 20; i++) {
      clock.advance(40);
      await ticks();
    }
    expect(outcome(run.result)).toBe("no result");
    expect(worker.killed).toBe(false);
    clock.advance(200);
    await ticks();
    clock.advance(200);
    await ticks();
    expect(worker.killed).toBe(true);
    await ticks();
    expect(outcome(run.result)).toBe("worker_lost/closed");
  });
});
