/** A runner over a store and a scripted pool, with the hooks recorded. Used by the engine's unit tests. */

import { randomBytes } from "node:crypto";
import { builtIns, defineHostFunction, type HostFunction, kvFunctions, runFunctions } from "@flowcell/host";
import { MemoryStore, type NewRun, type RunHistory, type RunRow, type Store } from "@flowcell/journal";
import { parseManifest } from "@flowcell/manifest";
import { decodeValue, encodeValue, type Limits, profileLimits } from "@flowcell/protocol";
import { createRunner, type RunnerOptions } from "../engine/runner.js";
import type { CellPool, Gate, Runnable, Runner, RunnerHooks } from "../ports.js";
import { type Script, ScriptedPool } from "./scripted-pool.js";

export function makeRunnable(script: string, functions: readonly HostFunction[], limits?: Limits): Runnable {
  const parsed = parseManifest('{"format":1,"id":"watcher","grants":{"flows":["watcher"]}}');
  if (!parsed.ok) throw new Error("the manifest of the tests is wrong");
  return {
    flow: "watcher",
    hash: "a".repeat(64),
    manifest: parsed.manifest,
    script,
    limits: limits ?? profileLimits("flow"),
    functions,
    names: functions.map(({ name }) => name).sort(),
    kvMaxBytes: 1024 * 1024,
    mapError: ({ code, name = "Error", message }) => ({ code, name, message: `mapped: ${message}` }),
  };
}

/** Any list of arguments. */
const anything: HostFunction["input"] = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) => (Array.isArray(value) ? { value } : { issues: [{ message: "no list" }] }),
  },
};

type Definition = Parameters<typeof defineHostFunction>[0];

/** A host function that the test answers. */
export function row(
  name: string,
  effect: Definition["effect"],
  handler: NonNullable<Definition["handler"]>,
  more: Partial<Definition> = {},
): HostFunction {
  return defineHostFunction({ name, doc: "test", effect, grant: null, input: anything, handler, ...more });
}

export const freeFunctions: readonly HostFunction[] = [...builtIns, ...runFunctions, ...kvFunctions()];

export interface HarnessOptions extends Partial<Omit<RunnerOptions, "pool" | "hooks" | "store">> {
  readonly scripts: Readonly<Record<string, Script>>;
  readonly functions?: readonly HostFunction[];
  readonly store?: Store;
  readonly pool?: CellPool;
  readonly gate?: (run: RunRow) => Promise<Gate>;
  readonly hooks?: Partial<RunnerHooks>;
}

let owners = 0;

export class Harness {
  readonly store: Store;
  readonly scripted: ScriptedPool;
  readonly runner: Runner;
  readonly finished: RunRow[] = [];
  readonly suspended: RunRow[] = [];
  readonly failures: unknown[] = [];
  readonly storeFailures: unknown[] = [];
  #changes: (() => void)[] = [];

  constructor(options: HarnessOptions) {
    const { scripts, functions = [], store, pool, gate, hooks, ...rest } = options;
    this.store = store ?? new MemoryStore();
    this.scripted = new ScriptedPool(scripts);
    const rows = [...freeFunctions, ...functions];
    const runnables = new Map(Object.keys(scripts).map((name) => [name, makeRunnable(name, rows)] as const));
    this.runner = createRunner({
      store: this.store,
      pool: pool ?? this.scripted,
      fingerprint: "engine-1",
      owner: `owner-${owners++}`,
      hooks: {
        gate:
          gate ??
          (async (run) => {
            // Test runs name their script by their concurrency key.
            const runnable = runnables.get(run.concurrencyKey);
            if (runnable === undefined) throw new Error(`no script ${run.concurrencyKey}`);
            return { ok: true, runnable };
          }),
        finished: (run) => this.#changed(() => this.finished.push(run)),
        suspended: (run) => this.#changed(() => this.suspended.push(run)),
        storeFailed: (error) => this.#changed(() => this.storeFailures.push(error)),
        failed: (_runId, error) => this.#changed(() => this.failures.push(error)),
        ...hooks,
      },
      ...rest,
    });
  }

  /** Makes a run and has it driven. */
  async start(script: string, input?: unknown, more: Partial<NewRun> = {}): Promise<string> {
    const run = newRun(script, { input: encodeValue(input), ...more });
    await this.store.commit({ operations: [{ kind: "createRun", run }] });
    this.runner.adopt(run.runId);
    return run.runId;
  }

  signal(runId: string, name: string, value?: unknown): Promise<void> {
    return sendSignal(this.store, this.runner, runId, name, value);
  }

  /** Resolves when the condition holds; asked after every hook, and now and then. */
  async until<Value>(
    condition: () => Value | undefined | false | Promise<Value | undefined | false>,
  ): Promise<Value> {
    const deadline = Date.now() + 30_000;
    for (;;) {
      const value = await condition();
      if (value !== undefined && value !== false) return value;
      if (this.failures.length > 0) throw this.failures[0];
      if (Date.now() > deadline) throw new Error(`gave up waiting for ${condition.toString()}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 5);
        this.#changes.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** The run as it was told when it finished. */
  end(runId: string): Promise<RunRow> {
    return this.until(() => this.finished.find((run) => run.runId === runId));
  }

  /** The run as it was told when it was suspended, for the given time. */
  rest(runId: string, times = 1): Promise<RunRow> {
    return this.until(() => this.suspended.filter((run) => run.runId === runId)[times - 1]);
  }

  async history(runId: string): Promise<RunHistory> {
    const history = await this.store.history(runId);
    if (history === null) throw new Error("the run is gone");
    return history;
  }

  #changed(change: () => void): void {
    change();
    for (const tell of this.#changes.splice(0)) tell();
  }
}

export function newRun(script: string, more: Partial<NewRun> = {}): NewRun {
  return {
    runId: `run_${randomBytes(16).toString("base64url")}`,
    flow: "watcher",
    versionHash: "a".repeat(64),
    trigger: { kind: "manual", by: "test" },
    deduplicationKey: null,
    concurrencyKey: script,
    input: encodeValue(undefined),
    seed: "5".repeat(64),
    guestStartMs: Date.now(),
    createdAt: Date.now(),
    notBefore: 0,
    deadlineMs: 600_000,
    attempt: 1,
    ...more,
  };
}

export async function sendSignal(
  store: Store,
  runner: Runner,
  runId: string,
  name: string,
  value?: unknown,
): Promise<void> {
  const signalId = randomBytes(8).toString("hex");
  const at = Date.now();
  await store.commit({
    operations: [{ kind: "sendSignal", runId, name, value: encodeValue(value), signalId, at }],
  });
  runner.signalled(runId, name);
}

/** What the run returned. */
export function resultOf(run: RunRow): unknown {
  return run.result === null ? undefined : decodeValue(run.result);
}
