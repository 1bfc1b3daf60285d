// Executions that wait for a person: suspended durably, resumed once, also by another process; and executions with a store.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MemoryStore, type Store } from "@flowcell/journal";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  type Codemode,
  type CodemodeOptions,
  createCodemode,
  type ExecuteResult,
} from "../../packages/codemode/src/index.js";
import { buildProgram, Program } from "./program.js";

const open: Codemode[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((codemode) => codemode.close()));
});

/** Deliveries that were made, by what they were told. */
async function shop(
  store?: Store,
  more: CodemodeOptions = {},
): Promise<{ readonly codemode: Codemode; readonly paid: number[] }> {
  const paid: number[] = [];
  const pay = {
    description: "Pays.",
    inputSchema: { type: "object", properties: { cents: { type: "integer" } }, required: ["cents"] },
    execute: ({ cents }: { cents: number }) => {
      paid.push(cents);
      return `paid ${cents}`;
    },
  };
  const codemode = await createCodemode({
    tools: {
      echo: (value: unknown) => value,
      boom: () => {
        throw Object.assign(new TypeError("boom"), { code: "E_BOOM" });
      },
      pay: { ...pay, needsApproval: true },
      payMuch: { ...pay, needsApproval: ({ cents }: { cents: number }) => cents > 1000 },
    },
    ...(store === undefined ? {} : { store }),
    ...more,
  });
  open.push(codemode);
  return { codemode, paid };
}

function asked(result: ExecuteResult): string {
  if (result.status !== "suspended")
    throw new Error(`${result.status}: ${JSON.stringify(result.ok ? result.value : result.error)}`);
  const [first] = result.pending;
  if (first === undefined) throw new Error("nothing is asked");
  return first.callId;
}

describe("approvals", () => {
  test("a call that needs one suspends the execution, which shows what is asked", async () => {
    const { codemode, paid } = await shop();
    const result = await codemode.execute("console.log('before'); return await tools.pay({ cents: 5 })");
    expect(result).toMatchObject({
      ok: false,
      status: "suspended",
      pending: [
        { callId: expect.stringMatching(/^call_[\w-]{22}$/), name: "tools.pay", args: [{ cents: 5 }] },
      ],
      calls: [{ name: "tools.pay", state: "not_started" }],
      logs: [{ text: "before" }],
    });
    expect(paid).toEqual([]);
    expect(codemode.health()?.workers.running).toBe(0);
  });

  test("approved, it is carried out once and the script goes on", async () => {
    const { codemode, paid } = await shop();
    const waiting = await codemode.execute(
      "const r = await tools.pay({ cents: 5 }); console.log(r); return [r, await tools.echo(1)]",
    );
    const done = await codemode.resume(waiting.runId, [{ callId: asked(waiting), approve: true }]);
    expect(done).toMatchObject({
      ok: true,
      value: ["paid 5", 1],
      runId: waiting.runId,
      pending: [],
      calls: [
        { name: "tools.pay", state: "done" },
        { name: "tools.echo", state: "done" },
      ],
      logs: [{ text: "paid 5" }],
    });
    expect(done.confinement?.layers.length).toBeGreaterThan(2);
    expect(paid).toEqual([5]);
  });

  test("refused, the script catches it with the reason, and nothing happened", async () => {
    const { codemode, paid } = await shop();
    const code =
      "try { await tools.pay({ cents: 5 }) } catch (e) { return [e instanceof HostError, e.code, e.message] }";
    const waiting = await codemode.execute(code);
    const done = await codemode.resume(waiting.runId, [
      { callId: asked(waiting), approve: false, value: "too much" },
    ]);
    expect(done).toMatchObject({
      ok: true,
      value: [true, "denied", "tools.pay: the approval was refused: too much"],
    });
    expect(paid).toEqual([]);
  });

  test("a refusal that nobody catches ends the execution at the line of the call", async () => {
    const { codemode } = await shop();
    const waiting = await codemode.execute("const a = 1;\n\nawait tools.pay({ cents: 5 });");
    const done = await codemode.resume(waiting.runId, [{ callId: asked(waiting), approve: false }]);
    expect(done).toMatchObject({
      ok: false,
      error: { code: "denied", place: { file: "script.js", line: 3 } },
    });
  });

  test("the same answer again gives the same result, another one is refused", async () => {
    const { codemode, paid } = await shop();
    const waiting = await codemode.execute("return await tools.pay({ cents: 5 })");
    const callId = asked(waiting);
    const answers = [{ callId, approve: true }];
    const [one, two] = await Promise.all([
      codemode.resume(waiting.runId, answers),
      codemode.resume(waiting.runId, answers),
    ]);
    const three = await codemode.resume(waiting.runId, answers);
    expect([one, two, three].map((result) => result.ok && result.value)).toEqual([
      "paid 5",
      "paid 5",
      "paid 5",
    ]);
    const other = await codemode.resume(waiting.runId, [{ callId, approve: false }]);
    expect(other).toMatchObject({ ok: false, status: "invalid_input", error: { name: "conflict" } });
    expect(paid).toEqual([5]);
  });

  test("answers to nothing are refused", async () => {
    const { codemode } = await shop();
    const waiting = await codemode.execute("return await tools.pay({ cents: 5 })");
    const callId = asked(waiting);
    expect(await codemode.resume("run_nothing", [{ callId, approve: true }])).toMatchObject({
      error: { name: "not_found" },
    });
    expect(await codemode.resume(waiting.runId, [{ callId: "call_nothing", approve: true }])).toMatchObject({
      error: { name: "not_found" },
    });
    expect(await codemode.resume(waiting.runId, [])).toMatchObject({ status: "invalid_input" });
    const mistyped = [{ callId, approved: true }] as unknown as [{ callId: string; approve: boolean }]; // what a program may pass
    expect(await codemode.resume(waiting.runId, mistyped)).toMatchObject({ status: "invalid_input" });
  });

  test("several at once are asked together and may be answered one by one", async () => {
    const { codemode, paid } = await shop();
    const code = "return await Promise.all([1, 2, 3].map((cents) => tools.pay({ cents })))";
    let result = await codemode.execute(code);
    expect(result.pending.map(({ args }) => args)).toEqual([[{ cents: 1 }], [{ cents: 2 }], [{ cents: 3 }]]);
    for (const { callId } of result.pending)
      result = await codemode.resume(result.runId, [{ callId, approve: true }]);
    expect(result).toMatchObject({ ok: true, value: ["paid 1", "paid 2", "paid 3"] });
    expect([...paid].sort()).toEqual([1, 2, 3]);
  });

  test("a function decides by the checked input", async () => {
    const { codemode, paid } = await shop();
    expect(await codemode.execute("return await tools.payMuch({ cents: 5 })")).toMatchObject({
      ok: true,
      value: "paid 5",
    });
    const waiting = await codemode.execute("return await tools.payMuch({ cents: 5000 })");
    expect(waiting).toMatchObject({ status: "suspended", pending: [{ args: [{ cents: 5000 }] }] });
    expect(paid).toEqual([5]);
  });

  test("inputs are checked before anybody is asked", async () => {
    const { codemode } = await shop();
    const result = await codemode.execute(
      "try { await tools.pay({ cents: 'x' }) } catch (e) { return e.code }",
    );
    expect(result).toMatchObject({ ok: true, value: "invalid_arguments" });
  });

  test("a stack that is passed on does not make the replay differ", async () => {
    const { codemode } = await shop();
    const code =
      "try { await tools.boom() } catch (e) { await tools.echo(e.stack) } await tools.pay({ cents: 1 }); return 'end'";
    const waiting = await codemode.execute(code);
    expect(await codemode.resume(waiting.runId, [{ callId: asked(waiting), approve: true }])).toMatchObject({
      ok: true,
      value: "end",
    });
  });

  test("calls that overtake each other keep their order when the script is replayed", async () => {
    const { codemode } = await shop();
    const code =
      "const order = []; const p = tools.echo(1).then((v) => order.push(v)); const q = tools.echo(2).then((v) => order.push(v)); await q; await p; await tools.pay({ cents: 1 }); return order.length";
    const waiting = await codemode.execute(code);
    expect(await codemode.resume(waiting.runId, [{ callId: asked(waiting), approve: true }])).toMatchObject({
      ok: true,
      value: 2,
    });
  });

  test("an execution that waits can be resumed after a TypeScript script too", async () => {
    const { codemode } = await shop();
    const waiting = await codemode.execute(
      "```ts\nconst cents: number = 7;\nreturn await tools.pay({ cents })\n```",
    );
    expect(await codemode.resume(waiting.runId, [{ callId: asked(waiting), approve: true }])).toMatchObject({
      value: "paid 7",
    });
  });
});

test("without a store, what finished and nobody can ask for again is not kept", async () => {
  const forgotten: string[] = [];
  const { forget } = MemoryStore.prototype;
  const spy = vi.spyOn(MemoryStore.prototype, "forget").mockImplementation(function (this: MemoryStore, id) {
    forgotten.push(id);
    forget.call(this, id);
  });
  try {
    const { codemode } = await shop();
    const ids: string[] = [];
    const onRun = (id: string): void => void ids.push(id);
    const results = await Promise.all(
      [1, 2, 3].map((n) => codemode.execute(`return await tools.echo(${n})`, { onRun })),
    );
    expect(results.map((result) => result.ok && result.value)).toEqual([1, 2, 3]);
    await until("all are forgotten", () => ids.every((id) => forgotten.includes(id)));
    const keyed = await codemode.execute("return await tools.echo(4)", { idempotencyKey: "k" });
    const again = await codemode.execute("return await tools.echo(4)", { idempotencyKey: "k" });
    expect(again).toMatchObject({ value: 4, runId: keyed.runId });
    expect(forgotten).not.toContain(keyed.runId);
  } finally {
    spy.mockRestore();
  }
});

describe("a script cannot approve for itself", () => {
  test("by calling what stands behind the tool", async () => {
    const { codemode, paid } = await shop();
    const code = `
      const names = Object.keys(globalThis).concat(Reflect.ownKeys(tools));
      return [typeof host, names.filter((name) => String(name).startsWith('zz'))];`;
    expect(await codemode.execute(code)).toMatchObject({ ok: true, value: ["undefined", []] });
    expect(paid).toEqual([]);
  });
});

describe("a store", () => {
  test("keeps executions, under their keys", async () => {
    const store = new MemoryStore();
    const first = await shop(store);
    const done = await first.codemode.execute("return await tools.echo(3)", { idempotencyKey: "k" });
    expect(done).toMatchObject({ ok: true, value: 3, calls: [{ name: "tools.echo", state: "done" }] });
    await first.codemode.close();
    const second = await shop(store);
    expect(
      await second.codemode.execute("return await tools.echo(3)", { idempotencyKey: "k" }),
    ).toMatchObject({
      ok: true,
      value: 3,
      runId: done.runId,
    });
    expect(await second.codemode.execute("return 4", { idempotencyKey: "k" })).toMatchObject({
      status: "invalid_input",
    });
  });

  test("answers as without one: values, errors with lines, logs, limits, cancellation", async () => {
    const { codemode } = await shop(new MemoryStore());
    expect(await codemode.execute("console.log('a'); return new Map([[1, [undefined]]])")).toMatchObject({
      ok: true,
      value: new Map([[1, [undefined]]]),
      logs: [{ level: "log", text: "a" }],
    });
    expect(await codemode.execute("\n\nnull.foo")).toMatchObject({
      status: "script_error",
      error: {
        code: "uncaught",
        name: "TypeError",
        place: { line: 3 },
        frame: expect.stringMatching(/null\.foo/),
      },
    });
    expect(await codemode.execute("for (;;);", { limits: { cpuMs: 100 } })).toMatchObject({
      status: "budget_exceeded",
      error: { code: "cpu", limit: 100 },
    });
    expect(await codemode.execute("await tools.echo(", {})).toMatchObject({
      error: { code: "syntax" },
      started: false,
    });
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 100);
    expect(
      await codemode.execute("await new Promise((r) => setTimeout(r, 60000))", { signal: stop.signal }),
    ).toMatchObject({
      status: "cancelled",
    });
  });

  test("console lines come once, also when the script is replayed", async () => {
    const { codemode } = await shop();
    const lines: string[] = [];
    const waiting = await codemode.execute(
      "console.log('one'); await tools.pay({ cents: 1 }); console.log('two')",
      {
        onLog: ({ text }) => lines.push(text),
      },
    );
    await codemode.resume(waiting.runId, [{ callId: asked(waiting), approve: true }]);
    expect(lines).toEqual(["one", "two"]);
  });
});

describe("a call that a crash interrupted", () => {
  /** An execution that was let go of in the middle of a call; a second codemode has taken it up. */
  async function interrupted(): Promise<{
    readonly codemode: Codemode;
    readonly left: ExecuteResult;
    readonly made: string[];
  }> {
    const store = new MemoryStore();
    const made: string[] = [];
    let reached = (): void => undefined;
    const begun = new Promise<void>((resolve) => (reached = resolve));
    const tools = (order: (item: string) => unknown) => ({ shop: { order, look: () => "seen" } });
    const first = await createCodemode({
      store,
      tools: tools(() => {
        reached();
        return new Promise(() => undefined);
      }),
    });
    open.push(first);
    const code = "const a = await shop.look(); return [a, await shop.order('book')]";
    void first.execute(code, { idempotencyKey: "k" });
    await begun;
    await first.close();
    const codemode = await createCodemode({ store, tools: tools((item) => `order ${made.push(item)}`) });
    open.push(codemode);
    return { codemode, left: await codemode.execute(code, { idempotencyKey: "k" }), made };
  }

  test("is told with its name, its key and what to do, and is listed", async () => {
    const { codemode, left, made } = await interrupted();
    const key = left.calls[1]?.idempotencyKey ?? "none";
    expect(left).toMatchObject({
      status: "needs_reconcile",
      error: { code: "outcome_unknown", name: "needs_reconcile" },
      calls: [{ state: "done" }, { name: "shop.order", state: "unknown" }],
    });
    expect(left.ok ? "" : left.error.message).toBe(
      `it stopped in the middle of shop.order (position 1, idempotency key ${key}), and nothing tells whether the call took effect: find out, then say so with codemode.reconcile(runId, [{ position: 1, happened: true, value }]), or happened: false to make the call again`,
    );
    expect(await codemode.pending()).toEqual([
      {
        runId: left.runId,
        status: "needs_reconcile",
        createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
        pending: [],
        unknown: [{ position: 1, name: "shop.order", idempotencyKey: key }],
      },
    ]);
    expect(made).toEqual([]);
  });

  test("goes on with what somebody saw that it did, and the same again changes nothing", async () => {
    const { codemode, left, made } = await interrupted();
    const finding = [{ position: 1, happened: true, value: "order 7" }] as const;
    const done = { ok: true, value: ["seen", "order 7"], runId: left.runId };
    expect(await codemode.reconcile(left.runId, finding)).toMatchObject(done);
    expect(await codemode.reconcile(left.runId, finding)).toMatchObject(done);
    expect(await codemode.reconcile(left.runId, [{ position: 1, happened: false }])).toMatchObject({
      status: "invalid_input",
      error: { name: "conflict", message: expect.stringContaining("call 1 is not in question") },
    });
    expect([made, await codemode.pending()]).toEqual([[], []]);
  });

  test("is made again when it did not happen", async () => {
    const { codemode, left, made } = await interrupted();
    const result = await codemode.reconcile(left.runId, [{ position: 1, happened: false }]);
    expect(result).toMatchObject({ ok: true, value: ["seen", "order 1"] });
    expect(made).toEqual(["book"]);
  });

  test("can be cancelled with its execution", async () => {
    const { codemode, left, made } = await interrupted();
    expect(await codemode.cancel(left.runId)).toMatchObject({ status: "cancelled", runId: left.runId });
    expect([made, await codemode.pending()]).toEqual([[], []]);
  });

  test("findings about other calls, and what is no finding, change nothing", async () => {
    const { codemode, left } = await interrupted();
    const tell = (...findings: unknown[]) =>
      codemode
        .reconcile(left.runId, findings as never)
        .then((result) => (result.ok ? "" : result.error.message));
    expect(await tell({ position: 0, happened: false })).toBe(
      "what became of call 0 is not in question, or was told differently before; unknown are 1 (shop.order)",
    );
    expect(await tell()).toMatch(/^reconcile needs a list of \{ position/);
    expect(await tell({ position: 1 })).toMatch(/^a finding needs position/);
    expect(await tell({ position: 1, happend: true })).toMatch(/unknown key "happend"/);
    expect(await tell({ position: 1, happened: false, value: 1 })).toMatch(/has no value/);
    expect(await codemode.reconcile("run_nothing", [{ position: 1, happened: false }])).toMatchObject({
      error: { name: "not_found" },
    });
    expect((await codemode.pending()).length).toBe(1);
  });
});

describe("executions that wait", () => {
  test("are listed, the oldest first, and can be cancelled", async () => {
    const { codemode, paid } = await shop();
    const results = [
      await codemode.execute("return await tools.pay({ cents: 1 })"),
      await codemode.execute("return await tools.pay({ cents: 2 })"),
    ];
    const listed = await codemode.pending();
    expect(listed.map(({ runId, pending }) => [runId, pending])).toEqual(
      results.map(({ runId, pending }) => [runId, pending]),
    );
    const [first, second] = results;
    if (first === undefined || second === undefined) throw new Error("two were begun");
    expect(await codemode.cancel(first.runId)).toMatchObject({
      status: "cancelled",
      error: { code: "caller" },
    });
    expect(await codemode.cancel(first.runId)).toMatchObject({ status: "cancelled" });
    expect((await codemode.pending()).map(({ runId }) => runId)).toEqual([second.runId]);
    expect(await codemode.resume(first.runId, [{ callId: asked(first), approve: true }])).toMatchObject({
      error: { name: "conflict" },
    });
    expect(await codemode.cancel("run_nothing")).toMatchObject({ error: { name: "not_found" } });
    expect(paid).toEqual([]);
  });

  test("are listed and cancelled after a restart too, and only those of the same name", async () => {
    const store = new MemoryStore();
    const first = await shop(store);
    const waiting = await first.codemode.execute("return await tools.pay({ cents: 1 })");
    await first.codemode.close();
    const other = await createCodemode({ store, name: "other", tools: {} });
    open.push(other);
    expect(await other.pending()).toEqual([]);
    expect(await other.cancel(waiting.runId)).toMatchObject({ error: { name: "not_found" } });
    const second = await shop(store);
    expect(await second.codemode.pending()).toMatchObject([
      { runId: waiting.runId, pending: waiting.pending },
    ]);
    expect(await second.codemode.cancel(waiting.runId)).toMatchObject({ status: "cancelled" });
  });

  test("are told that nobody answered in time, and go on", async () => {
    const store = new MemoryStore();
    const { codemode, paid } = await shop(store, { approvalMs: 50 });
    const code =
      "try { await tools.pay({ cents: 1 }) } catch (e) { console.log(e.code + ': ' + e.message) }; await tools.echo(1)";
    const waiting = await codemode.execute(code);
    expect(waiting.status).toBe("suspended");
    await eventually("it ends", async () => (await store.run(waiting.runId))?.state === "finished");
    const text = "timeout: tools.pay: nobody approved the call within 50 ms (approvalMs)";
    expect(await store.logs(waiting.runId)).toMatchObject([{ text }]);
    expect(await codemode.cancel(waiting.runId)).toMatchObject({ ok: true, pending: [] });
    expect(paid).toEqual([]);
  });

  test("where nothing is journaled, none are, and it says how to cancel", async () => {
    const codemode = await createCodemode({ tools: {} });
    open.push(codemode);
    expect(await codemode.pending()).toEqual([]);
    expect(await codemode.cancel("run_1")).toMatchObject({
      error: { message: expect.stringContaining("signal") },
    });
  });
});

test("a small limit on inputs is none on scripts", async () => {
  const { codemode } = await shop();
  const result = await codemode.execute(`return "${"x".repeat(5000)}".length`, {
    limits: { inputBytes: 1024 },
  });
  expect(result).toMatchObject({ ok: true, value: 5000 });
});

describe("what is kept in a program's own store", () => {
  async function finished(store: Store, flow = "codemode"): Promise<number> {
    return (await store.runs({ flow, states: ["finished"], limit: 1000 })).length;
  }

  test("is bounded in number when the program says so, for its own name only", async () => {
    const store = new MemoryStore();
    const other = await shop(store, { name: "other" });
    await other.codemode.execute("return 1");
    const { codemode } = await shop(store, { keepRuns: 3 });
    const waiting = await codemode.execute("return await tools.pay({ cents: 5 })");
    let last = waiting;
    for (let n = 0; n < 6; n++) {
      last = await codemode.execute(`return await tools.echo(${n})`);
      // What ended in the same millisecond is kept together.
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    await eventually("the oldest are removed", async () => (await finished(store)) === 3);
    expect(await store.run(last.runId)).not.toBeNull();
    expect(await finished(store, "other")).toBe(1);
    expect((await codemode.pending()).map(({ runId }) => runId)).toEqual([waiting.runId]);
  });

  test("is removed by age, also what an earlier process left; its key says so", async () => {
    const store = new MemoryStore();
    const first = await shop(store);
    const old = await first.codemode.execute("return 1", { idempotencyKey: "k" });
    await first.codemode.close();
    expect(await finished(store)).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const second = await shop(store, { keepMs: 5 });
    expect(await store.run(old.runId)).toBeNull();
    expect(await second.codemode.execute("return 1", { idempotencyKey: "k" })).toMatchObject({
      status: "invalid_input",
      error: { message: expect.stringContaining("was removed from the store") },
    });
  });

  test("stays unless the program says otherwise, and the options need a store", async () => {
    await expect(createCodemode({ keepMs: 5 })).rejects.toThrow("are for a store");
    await expect(createCodemode({ keepRuns: 0 })).rejects.toThrow("keepRuns must be a whole number");
  });
});

describe("a key of a journaled execution", () => {
  test("can be used again when nothing of the execution ran, also for another script", async () => {
    for (const store of [undefined, new MemoryStore()]) {
      const { codemode } = await shop(store, { maxWorkers: 1, queueMax: 4 });
      let reached = (): void => undefined;
      const begun = new Promise<void>((resolve) => (reached = resolve));
      const stop = new AbortController();
      const busy = codemode.execute("console.log(1); await new Promise((r) => setTimeout(r, 60000))", {
        onLog: reached,
        signal: stop.signal,
      });
      await begun;
      const late = await codemode.execute("return 1", { idempotencyKey: "k", queueDeadlineMs: 20 });
      expect(late).toMatchObject({ started: false, status: "overloaded" });
      const cancelled = new AbortController();
      const second = codemode.execute("return 1", { idempotencyKey: "k", signal: cancelled.signal });
      setTimeout(() => cancelled.abort(), 20);
      expect(await second).toMatchObject({ started: false, status: "cancelled" });
      stop.abort();
      await busy;
      const done = await codemode.execute("return 2", { idempotencyKey: "k" });
      expect(done).toMatchObject({ ok: true, value: 2 });
      expect(await codemode.execute("return 2", { idempotencyKey: "k" })).toMatchObject({
        runId: done.runId,
      });
      expect(await codemode.execute("return 1", { idempotencyKey: "k" })).toMatchObject({
        status: "invalid_input",
      });
    }
  });

  test("lets a second caller give up without ending the first one's execution", async () => {
    const { codemode } = await shop();
    let reached = (): void => undefined;
    const begun = new Promise<void>((resolve) => (reached = resolve));
    const code = "console.log(1); await new Promise((r) => setTimeout(r, 300)); return 1";
    const first = codemode.execute(code, { idempotencyKey: "k", onLog: reached });
    await begun;
    const stop = new AbortController();
    const second = codemode.execute(code, { idempotencyKey: "k", signal: stop.signal });
    stop.abort();
    expect(await second).toMatchObject({ status: "cancelled", error: { code: "caller" } });
    expect(await first).toMatchObject({ ok: true, value: 1 });
  });
});

describe("another process", () => {
  test("goes on with what a killed one has left, and carries out nothing twice", async () => {
    const folder = mkdtempSync(join(tmpdir(), "flowcell-approvals-"));
    try {
      const program = buildProgram("approvals", folder);
      const first = new Program(program, folder, "execute");
      await until("the execution is suspended", () => first.lines.length > 0);
      const { runId, callId } = JSON.parse(first.lines[0] ?? "") as { runId: string; callId: string };
      first.kill();
      await first.ended;
      for (const _ of ["once", "again"]) {
        const second = new Program(program, folder, "resume", runId, callId);
        expect(await second.ended).toBe(0);
        expect(JSON.parse(second.lines[0] ?? "")).toEqual({
          status: "completed",
          value: ["before 1", "paid 5"],
        });
      }
      const other = new Program(program, folder, "refuse", runId, callId);
      expect(await other.ended).toBe(0);
      expect(JSON.parse(other.lines[0] ?? "")).toMatchObject({ status: "invalid_input" });
      const log = new Program(program, folder, "log");
      await log.ended;
      expect(log.lines).toEqual(["before 1", "paid 5"]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

async function until(what: string, condition: () => boolean): Promise<void> {
  const end = Date.now() + 40_000;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`not within 40 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function eventually(what: string, condition: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 40_000;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`not within 40 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
