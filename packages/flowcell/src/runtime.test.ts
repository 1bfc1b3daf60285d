// The library over a stand-in pool: what it asks of the pool and what it makes of the answers.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ActivationRequest, ActivationResult, PoolHealth } from "@flowcell/pool";
import { decodeValue, encodeValue } from "@flowcell/protocol";
import type { CompileResult, PreparedPlan, WorkerConfinement } from "@flowcell/sandbox";
import { afterAll, describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { createRuntime, defineHostFunction, type RunOptions, RuntimeOptionsError } from "./index.js";
import { PooledRuntime, type RuntimeParts } from "./runtime.js";

const folder = mkdtempSync(join(tmpdir(), "runtime-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Answer = Partial<ActivationResult<WorkerConfinement>>;

const usage = { cpuMs: 1, wallMs: 2, heapPeakBytes: 3, hostCalls: 0, bytesIn: 4, bytesOut: 5, queuedMs: 6 };

function activationResult(answer: Answer): ActivationResult<WorkerConfinement> {
  return {
    status: "completed",
    value: encodeValue("done"),
    logs: [],
    logsTruncated: false,
    warnings: [],
    usage,
    replayCpuMs: 0,
    calls: [],
    started: true,
    confinement: null,
    worker: { pid: 1, activations: 1 },
    evidence: [],
    ...answer,
  };
}

/** A runtime whose pool answers each request with `respond`. */
function runtimeWith(
  respond: (request: ActivationRequest) => Answer | Promise<Answer>,
  options: ConstructorParameters<typeof PooledRuntime>[0] = {},
): PooledRuntime {
  const parts: RuntimeParts = {
    prepare: () => ({ result: { ok: true } as CompileResult }) as PreparedPlan, // only `ok` is looked at before createPool
    createPool: () => ({
      activate: async (request) => activationResult(await respond(request)),
      health: () => ({ closed: false }) as PoolHealth, // not looked at
      close: async () => {},
    }),
  };
  return new PooledRuntime(options, parts);
}

const source = "export default (input) => input";

async function requestOf(options: Partial<RunOptions>): Promise<ActivationRequest> {
  let seen: ActivationRequest | undefined;
  const runtime = runtimeWith((request) => {
    seen = request;
    return {};
  });
  await runtime.run({ source, label: "a.js", ...options });
  if (seen === undefined) throw new Error("the pool was not asked");
  return seen;
}

describe("what a run asks of the pool", () => {
  test("the script, the encoded input and the names of the host functions", async () => {
    const request = await requestOf({ input: { n: 1n } });
    expect(request.script).toContain("(input) => input");
    expect(decodeValue(request.input)).toEqual({ n: 1n });
    expect(request.names).toEqual(["sleep"]);
    expect(request.seed).toHaveLength(32);
  });

  test("the limits of the profile unless others are asked for", async () => {
    expect((await requestOf({})).limits).toMatchObject({ cpuMs: 1000, heapBytes: 32 * 1024 * 1024 });
    expect((await requestOf({ limits: { cpuMs: 50 } })).limits).toMatchObject({ cpuMs: 50, wallMs: 60_000 });
  });

  test("another flow for another owner or another script, the same for the same", async () => {
    const flow = async (options: Partial<RunOptions>): Promise<string> => (await requestOf(options)).flow;
    const same = await flow({});
    expect(await flow({ input: 2 })).toBe(same);
    expect(await flow({ owner: "a" })).not.toBe(same);
    expect(await flow({ owner: "a" })).not.toBe(await flow({ owner: "b" }));
    expect(await flow({ source: `${source};` })).not.toBe(same);
  });

  test("a clock, a seed and an isolation that the caller chose", async () => {
    const seed = new Uint8Array(32).fill(7);
    const request = await requestOf({
      clock: "virtual",
      startMs: 5,
      seed,
      isolation: "process",
      codeGeneration: false,
    });
    expect(request).toMatchObject({ clock: { mode: "virtual", epochMs: 5 }, seed, isolation: "process" });
    expect(request.codeGeneration).toBe(false);
  });

  test("host functions of the runtime and of the run answer calls", async () => {
    const plus = (name: string, n: number) =>
      defineHostFunction({
        name,
        doc: "Adds.",
        effect: "read",
        grant: null,
        input: z.tuple([z.number()]),
        handler: ([a]) => a + n,
      });
    const answers: unknown[] = [];
    const runtime = runtimeWith(
      async (request) => {
        for (const name of request.names.filter((candidate) => candidate !== "sleep")) {
          const { onHostCall } = request;
          if (onHostCall === undefined) throw new Error("the runtime answers calls itself");
          const outcome = await onHostCall({
            position: 0,
            name,
            args: encodeValue([1]),
            signal: new AbortController().signal,
            aborted: false,
            whenAborted: () => {},
            idempotencyKey: "k",
          });
          answers.push(outcome.ok ? decodeValue(outcome.value) : outcome.error);
        }
        return {};
      },
      { hostFunctions: [plus("one", 1)] },
    );
    await runtime.run({ source, label: "a.js", hostFunctions: [plus("two", 2)] });
    expect(answers).toEqual([2, 3]);
  });

  test("console lines reach the caller with their time", async () => {
    const lines: unknown[] = [];
    const runtime = runtimeWith((request) => {
      request.onConsole?.({ seq: 0, level: "warn", timeMs: 0, text: "x" });
      return {};
    });
    await runtime.run({ source, label: "a.js", onLog: (line) => lines.push(line) });
    expect(lines).toEqual([{ level: "warn", time: "1970-01-01T00:00:00.000Z", text: "x" }]);
  });
});

describe("the result", () => {
  test("of a completed run holds the value and what it cost", async () => {
    const result = await runtimeWith(() => ({ value: encodeValue(new Map([[1, 2]])) })).run({
      source,
      label: "a.js",
    });
    expect(result).toMatchObject({
      ok: true,
      status: "completed",
      value: new Map([[1, 2]]),
      usage,
      started: true,
    });
    expect(result.runId).toMatch(/^run_[\w-]{22}$/);
  });

  test("names the author's lines in an error, its cause and its members", async () => {
    const text = "\n\nexport default () => { nope() }";
    const stack = "    at default (script.js:3:40)\n    at run (prelude.js:1:1)\n";
    const inner = { name: "TypeError", message: "inner", stack: "    at f (script.js:3:38)\n" };
    const runtime = runtimeWith(() => ({
      status: "script_error",
      error: {
        code: "uncaught",
        name: "ReferenceError",
        message: "'nope' is not defined",
        stack,
        cause: inner,
        errors: [inner],
      },
    }));
    const result = await runtime.run({ source: text, label: "flows/a.js" });
    if (result.ok) throw new Error("completed");
    const { error } = result;
    expect(error).toMatchObject({ code: "uncaught", name: "ReferenceError", message: "nope is not defined" });
    expect(error.stack).toMatch(
      /^ReferenceError: nope is not defined\n {4}at default \(flows\/a\.js:3:\d+\)$/,
    );
    expect(error.place).toMatchObject({ file: "flows/a.js", line: 3 });
    expect(error.frame).toContain("    3 | export default () => { nope() }");
    expect(error.cause?.stack).toMatch(/^TypeError: inner\n {4}at f \(flows\/a\.js:3:/);
    expect(error.errors?.[0]?.stack).toBe(error.cause?.stack);
  });

  test("says of a call that was overtaken whether its effect is unknown", async () => {
    const call = {
      position: 0,
      state: "unknown",
      durationMs: 1,
      inputBytes: 1,
      outputBytes: 0,
      idempotencyKey: "k",
    } as const;
    const pay = defineHostFunction({
      name: "pay",
      doc: "Pays.",
      effect: "once",
      grant: null,
      input: z.tuple([]),
      handler: () => null,
    });
    const runtime = runtimeWith(
      () => ({
        status: "budget_exceeded",
        error: { code: "wall", message: "" },
        calls: [
          { ...call, name: "sleep" },
          { ...call, position: 1, name: "pay" },
        ],
      }),
      { hostFunctions: [pay] },
    );
    const { calls } = await runtime.run({ source, label: "a.js" });
    expect(calls.map(({ name, state }) => [name, state])).toEqual([
      ["sleep", "cancelled"],
      ["pay", "unknown"],
    ]);
  });

  test("of an exhausted budget holds limit and use", async () => {
    const runtime = runtimeWith(() => ({
      status: "budget_exceeded",
      error: { code: "cpu", message: "1000 of 1000 ms", limit: 1000, used: 1000 },
    }));
    expect(await runtime.run({ source, label: "a.js" })).toMatchObject({
      ok: false,
      status: "budget_exceeded",
      error: { code: "cpu", name: "budget_exceeded", limit: 1000, used: 1000 },
    });
  });

  test("that the worker made up is a violation", async () => {
    const value = { text: '[["Nonsense",1]]', devalue: true, attachments: [] };
    expect(await runtimeWith(() => ({ value })).run({ source, label: "a.js" })).toMatchObject({
      ok: false,
      status: "violation",
      error: { code: "protocol" },
    });
  });

  test.each([
    ["a missing file", { path: join(folder, "nope.js") }, "invalid_input", "request"],
    ["a syntax error", { source: "export default (" }, "script_error", "syntax"],
    ["no default export", { source: "export const a = 1" }, "script_error", "no_entry"],
    [
      "a Node module",
      { source: 'import fs from "node:fs"; export default () => fs' },
      "script_error",
      "syntax",
    ],
    [
      "a source that is too large",
      { source: "x".repeat(2000), limits: { sourceBytes: 1000 } },
      "invalid_input",
      "source_too_large",
    ],
    [
      "an input that is too large",
      { source, input: "x".repeat(200), limits: { inputBytes: 100 } },
      "invalid_input",
      "input_too_large",
    ],
    ["an input that cannot be sent", { source, input: { f: () => 1 } }, "invalid_input", "input"],
    ["an unknown limit", { source, limits: { timeoutMs: 1 } }, "invalid_input", "limits"],
    ["a limit above the ceiling", { source, limits: { heapBytes: 2 ** 30 } }, "invalid_input", "limits"],
    ["no script", {}, "invalid_input", "request"],
    ["two scripts", { source, path: "a.js" }, "invalid_input", "request"],
    ["an unknown option", { source, inptu: 1 }, "invalid_input", "request"],
  ])("for %s says so and that nothing ran", async (_what, options, status, code) => {
    const runtime = runtimeWith(() => {
      throw new Error("the pool must not be asked");
    });
    const result = await runtime.run(options as RunOptions); // wrong on purpose
    expect(result).toMatchObject({ ok: false, status, started: false, error: { code }, calls: [], logs: [] });
  });

  test("suggests the option that was meant", async () => {
    const runtime = runtimeWith(() => ({}));
    const messageFor = async (options: object): Promise<string> => {
      const result = await runtime.run(options as RunOptions); // wrong on purpose
      return result.ok ? "" : result.error.message;
    };
    expect(await messageFor({ source, inptu: 1 })).toBe('unknown option "inptu": did you mean input?');
    expect(await messageFor({ code: source })).toBe('unknown option "code": did you mean source?');
    expect(await messageFor({ source, limits: { memory: 1 } })).toContain("did you mean heapBytes");
  });

  test("for a host that cannot confine says what is missing", async () => {
    const blocker = {
      control: "filesystem_deny",
      code: "landlock_missing",
      message: "No Landlock.",
      remedy: "use 5.13",
    };
    const blocked = { result: { ok: false, failure: { gate: "controls", blockers: [blocker, blocker] } } };
    const runtime = new PooledRuntime({}, { prepare: () => blocked as unknown as PreparedPlan }); // only `result` is looked at
    expect(await runtime.run({ source, label: "a.js" })).toMatchObject({
      ok: false,
      status: "sandbox_unavailable",
      error: { code: "blocked", message: "No Landlock. No Landlock.", remedy: "use 5.13" },
      started: false,
    });
  });

  test("after close is refused", async () => {
    const runtime = runtimeWith(() => ({}));
    await runtime.run({ source, label: "a.js" });
    await runtime.close();
    await runtime.close();
    expect(await runtime.run({ source, label: "a.js" })).toMatchObject({ ok: false, started: false });
  });
});

describe("createRuntime", () => {
  test.each([
    ["an unknown option", { worker: 1 }],
    ["a wrong type", { spares: -1 }],
    ["an unknown limit", { limits: { memory: 1 } }],
    ["a ceiling out of range", { ceilings: { cpuMs: 0 } }],
    ["a policy that is none", { policy: { version: 1, isolaton: "process" } }],
  ])("refuses %s", (_what, options) => {
    expect(() => createRuntime(options as never)).toThrow(RuntimeOptionsError);
  });

  test("a policy's figures bound what runs may ask for", async () => {
    const runtime = runtimeWith(() => ({}), { policy: { version: 1, limits: { cpuMs: 2000 } } });
    expect(await runtime.run({ source, label: "a.js", limits: { cpuMs: 3000 } })).toMatchObject({
      status: "invalid_input",
    });
    expect(await runtime.run({ source, label: "a.js", limits: { cpuMs: 2000 } })).toMatchObject({ ok: true });
  });

  test("a file is run by its path", async () => {
    const path = join(folder, "flow.js");
    writeFileSync(path, source);
    expect(await runtimeWith(() => ({})).run({ path })).toMatchObject({ ok: true, value: "done" });
  });
});
