// Options, cancellation, back-pressure, keys and closing of a codemode.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { type Codemode, type CodemodeOptions, createCodemode } from "../../packages/codemode/src/index.js";
import { buildProgram, Program } from "./program.js";
import { openBench } from "./tools.js";

const open: Codemode[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((codemode) => codemode.close()));
});

async function bench(options: CodemodeOptions = {}) {
  const made = await openBench(options);
  open.push(made.codemode);
  return made;
}

async function refusal(options: object): Promise<string> {
  try {
    open.push(await createCodemode(options));
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  }
  return "";
}

async function until(what: string, condition: () => boolean): Promise<void> {
  const end = Date.now() + 20_000;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`not within 20 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe("options", () => {
  test("that are unknown are refused with the likely one", async () => {
    expect(await refusal({ tool: {} })).toBe(
      'CodemodeOptionsError: unknown option "tool": did you mean tools?',
    );
    expect(await refusal({ timeout: 5 })).toMatch(/did you mean limits\.wallMs\?/);
    expect(await refusal({ memoryLimit: 5 })).toMatch(/did you mean limits\.heapBytes\?/);
    expect(await refusal({ limits: { timeoutMs: 5 } })).toMatch(/did you mean wallMs/);
    expect(await refusal({ limits: { maxBridgeRequests: 5 } })).toMatch(/did you mean hostCalls/);
    expect(await refusal({ isolation: "thread" })).toMatch(/isolation must be "process" or "reset"/);
    expect(await refusal({ queue: true })).toMatch(/unknown option "queue"/);
    expect(await refusal({ tools: { f: { parameters: {}, execute: () => 1 } } })).toMatch(
      /did you mean inputSchema/,
    );
  });

  test("of an execution are checked too, and a mistake is a result", async () => {
    const { codemode } = await bench();
    const wrong = async (code: unknown, options: object): Promise<unknown> => {
      // What a program in JavaScript may pass.
      const result = await codemode.execute(code as string, options);
      return result.ok ? result.value : [result.status, result.error.code, result.error.message];
    };
    expect(await wrong("1", { timeout: 5 })).toEqual([
      "invalid_input",
      "request",
      'unknown option "timeout": did you mean limits.wallMs?',
    ]);
    expect(await wrong("1", { limits: { heapBytes: 1e12 } })).toEqual([
      "invalid_input",
      "limits",
      expect.stringMatching(/heapBytes/),
    ]);
    expect(await wrong(1, {})).toEqual(["invalid_input", "request", "the code must be a text"]);
  });

  test("ceilings bound what an execution may ask for", async () => {
    const { codemode } = await bench({ ceilings: { cpuMs: 500 } });
    const result = await codemode.execute("1", { limits: { cpuMs: 501 } });
    expect(result).toMatchObject({ ok: false, error: { code: "limits" } });
  });
});

describe("cancellation", () => {
  test("stops the script and aborts its calls", async () => {
    const { codemode, witness } = await bench();
    const stop = new AbortController();
    const running = codemode.execute("await tools.never({})", {
      signal: stop.signal,
    });
    await until("the call has begun", () => witness.calls.includes("never"));
    stop.abort();
    const result = await running;
    expect(result).toMatchObject({ ok: false, status: "cancelled", error: { code: "caller" } });
    await until("the call was aborted", () => witness.aborted.includes("never"));
  });

  test("before the beginning starts nothing", async () => {
    const { codemode, witness } = await bench();
    const result = await codemode.execute("await tools.note('ran')", { signal: AbortSignal.abort() });
    expect(result).toMatchObject({ status: "cancelled", started: false });
    expect(witness.calls).toEqual([]);
  });

  test("one signal may stop many", async () => {
    const { codemode } = await bench();
    const stop = new AbortController();
    const all = Array.from({ length: 20 }, () =>
      codemode.execute("await tools.never({})", { signal: stop.signal }),
    );
    setTimeout(() => stop.abort(), 50);
    for (const result of await Promise.all(all)) expect(result.status).toBe("cancelled");
  });

  test("of a wall limit aborts the calls and says what may have happened", async () => {
    const { codemode } = await bench();
    const result = await codemode.execute("await tools.never({}); return 1", { limits: { wallMs: 2000 } });
    expect(result).toMatchObject({ status: "budget_exceeded", error: { code: "wall" } });
    expect(result.calls).toMatchObject([
      { name: "tools.never", state: "unknown", idempotencyKey: expect.stringMatching(/^run_.*\.0$/) },
    ]);
  });
});

describe("back-pressure", () => {
  test("a full pool makes executions wait, and all succeed", async () => {
    const { codemode } = await bench({ maxWorkers: 2 });
    const results = await Promise.all(
      Array.from({ length: 60 }, (_, i) => codemode.execute(`return await tools.echo(${i})`)),
    );
    expect(results.map((result) => result.ok && result.value)).toEqual(
      Array.from({ length: 60 }, (_, i) => i),
    );
    expect(Math.max(...results.map(({ usage }) => usage.queuedMs))).toBeGreaterThan(0);
  });

  test("a waiter whose time is up, and one that is cancelled, never start", async () => {
    const { codemode, witness } = await bench({ maxWorkers: 1 });
    const first = codemode.execute(
      "await tools.note('first'); await tools.slow(); await tools.slow(); return 1",
    );
    await until("the first runs", () => witness.calls.includes("first"));
    const stop = new AbortController();
    const late = codemode.execute("await tools.note('late')", { queueDeadlineMs: 50 });
    const dropped = codemode.execute("await tools.note('dropped')", { signal: stop.signal });
    stop.abort();
    expect(await late).toMatchObject({
      status: "overloaded",
      started: false,
      error: { code: "queue_timeout" },
    });
    expect(await dropped).toMatchObject({ status: "cancelled", started: false });
    expect(await first).toMatchObject({ ok: true, value: 1 });
    expect(await codemode.execute("2")).toMatchObject({ ok: true, value: 2 });
    expect(witness.calls).toEqual(["first"]);
  });

  test("a full queue refuses with a code of its own", async () => {
    const { codemode, witness } = await bench({ maxWorkers: 1, queueMax: 1 });
    const first = codemode.execute("await tools.note('first'); await tools.slow(); return 1");
    await until("the first runs", () => witness.calls.includes("first"));
    const [second, third] = [codemode.execute("2"), codemode.execute("3")];
    expect(await third).toMatchObject({ status: "overloaded", error: { code: "queue_full" } });
    expect(await first).toMatchObject({ ok: true });
    expect(await second).toMatchObject({ ok: true, value: 2 });
  });
});

describe("idempotency keys", () => {
  test("a second execution under a key is the first one", async () => {
    const { codemode, witness } = await bench();
    const run = () =>
      codemode.execute("await tools.note('once'); return Math.random()", { idempotencyKey: "k1" });
    const [one, two] = await Promise.all([run(), run()]);
    const three = await run();
    expect(new Set([one.runId, two.runId, three.runId]).size).toBe(1);
    expect(witness.calls).toEqual(["once"]);
  });

  test("another script under it is refused", async () => {
    const { codemode } = await bench();
    await codemode.execute("1", { idempotencyKey: "k" });
    const other = await codemode.execute("2", { idempotencyKey: "k" });
    expect(other).toMatchObject({
      ok: false,
      status: "invalid_input",
      error: { message: expect.stringMatching(/another script/) },
    });
  });

  test("calls have the same keys in another process, and cannot be guessed without it", async () => {
    const keys = await Promise.all(
      ["k", "k", "other"].map(async (idempotencyKey) => {
        const { codemode } = await bench();
        const result = await codemode.execute("await tools.echo(1)", { idempotencyKey });
        return result.calls[0]?.idempotencyKey;
      }),
    );
    expect(keys[0]).toBe(keys[1]);
    expect(keys[0]).not.toBe(keys[2]);
  });
});

describe("closing", () => {
  test("twice is fine, and ends what runs; afterwards executions say so", async () => {
    const { codemode, witness } = await bench();
    const running = codemode.execute("await tools.note('begun'); await tools.never({})");
    await until("it runs", () => witness.calls.length > 0);
    await Promise.all([codemode.close(), codemode.close()]);
    await codemode.close();
    expect(await running).toMatchObject({ status: "cancelled", error: { code: "closing" } });
    expect(await codemode.execute("1")).toMatchObject({
      ok: false,
      started: false,
      error: { message: expect.stringMatching(/closed/) },
    });
  });

  test("`await using` closes", async () => {
    let kept: Codemode;
    {
      await using codemode = await createCodemode();
      kept = codemode;
      expect(await codemode.execute("1 + 1")).toMatchObject({ value: 2 });
    }
    expect(kept.health()?.closed).toBe(true);
  });

  test("health tells workers and outcomes", async () => {
    const { codemode } = await bench();
    await codemode.execute("while (true) {}", { limits: { cpuMs: 50 } });
    expect(codemode.health()).toMatchObject({ activations: 1, outcomes: { "budget_exceeded/cpu": 1 } });
  });

  test("an idle codemode does not keep its process alive", async () => {
    const folder = mkdtempSync(join(tmpdir(), "flowcell-codemode-"));
    try {
      const program = new Program(buildProgram("idle", folder));
      expect(await program.ended).toBe(0);
      expect(program.lines).toEqual(["3"]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
