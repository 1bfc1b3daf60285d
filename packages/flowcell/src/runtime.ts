/**
 * The library: a runtime holds the confinement plan and the pool of workers, and runs scripts in them.
 *
 * From `run` to result: options checked, script bundled (in the fence), input encoded, a worker leased, the script run, its
 * host calls dispatched, the result assembled. Nothing here trusts a script; what a script can cause is a result, and only
 * mistakes in `createRuntime`'s own options throw.
 */

import { createHash } from "node:crypto";
import { bundleFile, bundleSource, type Script } from "@flowcell/bundle";
import {
  builtIns,
  createRegistry,
  dispatch,
  type Effect,
  type HostFunction,
  HostFunctionError,
  type Registry,
} from "@flowcell/host";
import {
  type ActivationPool,
  type ActivationRequest,
  ConfinedPool,
  type ConfinedPoolParts,
  createConfined,
  freshBytes,
  type PoolHealth,
  type PoolOptions,
  resolveConfinement,
} from "@flowcell/pool";
import {
  type EncodedValue,
  encodeValue,
  type Limits,
  type LimitsResult,
  parseLimits,
  ValueError,
  valueBounds,
} from "@flowcell/protocol";
import type { PreparedPlan, SandboxPlan, SandboxPolicy } from "@flowcell/sandbox";
import { type RunOptions, type RuntimeOptions, runProblem, runtimeProblem } from "./options.js";
import {
  assembleResult,
  bundleFailed,
  logLine,
  notStarted,
  type RunFailed,
  type RunResult,
} from "./result.js";

/** What a runtime needs of a pool; `@flowcell/pool` has it. */
export type RuntimePool = ActivationPool;

/** Places where the command line's `--trace` looks on, and where unit tests put something else. */
export interface RuntimeParts {
  readonly prepare?: (policy: SandboxPolicy) => PreparedPlan;
  readonly createPool?: (plan: SandboxPlan, options: RuntimeOptions) => RuntimePool;
  readonly onScript?: (script: Script) => void;
  readonly onRequest?: (request: ActivationRequest) => ActivationRequest;
}

/** Options of `createRuntime` that are wrong: a mistake of the embedding program. */
export class RuntimeOptionsError extends TypeError {
  override readonly name = "RuntimeOptionsError";
}

/** A pool of confined workers and what scripts in them may use. Closing it twice is fine; it never keeps Node alive. */
export interface Runtime {
  /** Runs a script. Never rejects: whatever happened is in the result. */
  run<Value = unknown>(options: RunOptions): Promise<RunResult<Value>>;
  /** Starts workers before they are needed. Null, or why there can be none. */
  prepare(): RunFailed | null;
  health(): PoolHealth | null;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export function createRuntime(options: RuntimeOptions = {}): Runtime {
  return new PooledRuntime(options, {});
}

export class PooledRuntime implements Runtime {
  readonly #options: RuntimeOptions;
  readonly #parts: RuntimeParts;
  readonly #limits: Limits;
  readonly #ceilings: Limits;
  readonly #pool: ConfinedPool;
  readonly #registry: Registry;

  constructor(options: RuntimeOptions, parts: RuntimeParts) {
    const problem = runtimeProblem(options);
    if (problem !== undefined) throw new RuntimeOptionsError(problem);
    this.#options = options;
    this.#parts = parts;
    const resolved = resolveConfinement({ ...confinementOf(options), profile: options.profile ?? "flow" });
    if (!resolved.ok) throw new RuntimeOptionsError(resolved.message);
    this.#limits = resolved.limits;
    this.#ceilings = resolved.ceilings;
    this.#pool = new ConfinedPool(resolved.policy, poolOptions(options), poolParts(options, parts));
    this.#registry = createRegistry([...builtIns, ...(options.hostFunctions ?? [])]);
  }

  async run<Value = unknown>(options: RunOptions): Promise<RunResult<Value>> {
    const result = await this.#run(options);
    // The caller says what the script returns; nothing checks it, as with JSON.parse.
    return result as RunResult<Value>;
  }

  prepare(): RunFailed | null {
    const opened = this.#pool.open();
    return opened.ok ? null : notStarted(newRunId(), "sandbox_unavailable", opened.failure);
  }

  health(): PoolHealth | null {
    return this.#pool.health();
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #run(options: RunOptions): Promise<RunResult> {
    const runId = newRunId();
    const refuse = (code: string, message: string): RunResult =>
      notStarted(runId, "invalid_input", { code, message });
    const problem = runProblem(options);
    if (problem !== undefined) return refuse("request", problem);
    const asked = this.#limitsOf(options.limits);
    if (!asked.ok) return refuse("limits", asked.message);
    const { limits } = asked;
    const registry = this.#registryOf(options.hostFunctions);
    if (registry instanceof HostFunctionError) return refuse("request", registry.message);
    const input = encodeInput(options.input, limits);
    if (!input.ok) return refuse(input.code, input.message);
    // Opening first lets the first worker start while the script is bundled.
    const opened = this.#pool.open();
    const bundled = await bundleOf(options, limits);
    if (!bundled.ok) return bundleFailed(runId, bundled.failure);
    if (!opened.ok) return notStarted(runId, "sandbox_unavailable", opened.failure);
    const { script } = bundled;
    this.#parts.onScript?.(script);
    const request = this.#request(runId, options, script, input.encoded, limits, registry);
    const activation = await opened.pool.activate(this.#parts.onRequest?.(request) ?? request);
    const effectOf = (name: string): Effect | undefined => registry.get(name)?.effect;
    return assembleResult(activation, {
      runId,
      map: script.map,
      warnings: script.warnings,
      limits,
      effectOf,
    });
  }

  #request(
    runId: string,
    options: RunOptions,
    script: Script,
    input: EncodedValue,
    limits: Limits,
    registry: Registry,
  ): ActivationRequest {
    const clock = options.clock ?? "real";
    const { onLog, signal, queueDeadlineMs, isolation, codeGeneration } = options;
    return {
      flow: flowKey(options.owner, script),
      script: script.text,
      input,
      names: registry.names,
      limits,
      clock: { epochMs: options.startMs ?? Date.now(), mode: clock },
      seed: options.seed ?? freshBytes(32),
      callKeyPrefix: runId,
      onHostCall: (call) => dispatch(registry, call, { limits, clock }),
      ...(onLog === undefined ? {} : { onConsole: (line) => onLog(logLine(line, script.map)) }),
      ...(signal === undefined ? {} : { signal }),
      ...(queueDeadlineMs === undefined ? {} : { queueDeadlineMs }),
      ...(isolation === undefined ? {} : { isolation }),
      ...(codeGeneration === undefined ? {} : { codeGeneration }),
    };
  }

  /** The same object for every run that asks for nothing: the pool keeps what it encoded of it. */
  #limitsOf(asked: unknown): LimitsResult {
    if (asked === undefined) return { ok: true, limits: this.#limits };
    return parseLimits(asked, this.#limits, this.#ceilings);
  }

  #registryOf(own: readonly HostFunction[] | undefined): Registry | HostFunctionError {
    if (own === undefined || own.length === 0) return this.#registry;
    try {
      return createRegistry([...builtIns, ...(this.#options.hostFunctions ?? []), ...own]);
    } catch (error) {
      if (error instanceof HostFunctionError) return error;
      throw error;
    }
  }
}

export function openPool(plan: SandboxPlan, options: RuntimeOptions): RuntimePool {
  return createConfined(plan, poolOptions(options));
}

function confinementOf({
  limits,
  ceilings,
  policy,
}: RuntimeOptions): Pick<RuntimeOptions, "limits" | "ceilings" | "policy"> {
  return {
    ...(limits === undefined ? {} : { limits }),
    ...(ceilings === undefined ? {} : { ceilings }),
    ...(policy === undefined ? {} : { policy }),
  };
}

function poolOptions(options: RuntimeOptions): PoolOptions {
  const { spares, workersMax, queueMax, queueDeadlineMs, activationsMax, idleMs, onEvent } = options;
  return {
    ...(spares === undefined ? {} : { spares }),
    ...(workersMax === undefined ? {} : { workersMax }),
    ...(queueMax === undefined ? {} : { queueMax }),
    ...(queueDeadlineMs === undefined ? {} : { queueDeadlineMs }),
    ...(activationsMax === undefined ? {} : { activationsMax }),
    ...(idleMs === undefined ? {} : { idleMs }),
    ...(onEvent === undefined ? {} : { onEvent }),
  };
}

function poolParts(options: RuntimeOptions, { prepare, createPool }: RuntimeParts): ConfinedPoolParts {
  return {
    ...(prepare === undefined ? {} : { prepare }),
    ...(createPool === undefined ? {} : { create: (plan) => createPool(plan, options) }),
  };
}

type Encoded =
  | { readonly ok: true; readonly encoded: EncodedValue }
  | { readonly ok: false; readonly code: "input" | "input_too_large"; readonly message: string };

function encodeInput(input: unknown, limits: Limits): Encoded {
  const textBytes = limits.inputBytes;
  try {
    const nodes = Math.max(valueBounds.nodes, textBytes);
    return { ok: true, encoded: encodeValue(input, { textBytes, attachmentBytes: limits.bodyBytes, nodes }) };
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    const tooLarge = error.code === "too_large";
    const limit = ` (limits: inputBytes ${textBytes}, bodyBytes ${limits.bodyBytes})`;
    return {
      ok: false,
      code: tooLarge ? "input_too_large" : "input",
      message: `input: ${error.message}${tooLarge ? limit : ""}`,
    };
  }
}

async function bundleOf(options: RunOptions, { sourceBytes }: Limits): ReturnType<typeof bundleFile> {
  const { path, source, label } = options;
  const bundleOptions = { sourceBytes, ...(label === undefined ? {} : { label }) };
  return path === undefined ? bundleSource(source ?? "", bundleOptions) : bundleFile(path, bundleOptions);
}

/** Same owner and same script: may share a process, one after the other. */
function flowKey(owner: string | undefined, script: Script): string {
  if (owner === undefined) return script.sha256;
  return createHash("sha256").update(`${owner.length}:${owner}${script.sha256}`).digest("hex");
}

/** Unguessable: idempotency keys begin with it. */
function newRunId(): string {
  return `run_${freshBytes(16).toString("base64url")}`;
}
