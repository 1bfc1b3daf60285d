/**
 * The library: a runtime holds the confinement plan and the pool of workers, and runs scripts in them.
 *
 * From `run` to result: options checked, script bundled (in the fence), input encoded, a worker leased, the script run, its
 * host calls dispatched, the result assembled. Nothing here trusts a script; what a script can cause is a result, and only
 * mistakes in `createRuntime`'s own options throw.
 */

import { createHash, randomBytes } from "node:crypto";
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
import { type ActivationRequest, type ActivationResult, createPool, type PoolHealth } from "@flowcell/pool";
import {
  type EncodedValue,
  encodeValue,
  type Limits,
  type LimitsResult,
  limitCeilings,
  parseLimits,
  profileLimits,
  ValueError,
  valueBounds,
} from "@flowcell/protocol";
import {
  type Blocker,
  defaultPolicy,
  formatProblem,
  type PreparedPlan,
  parsePolicy,
  preparePlan,
  type SandboxPlan,
  type SandboxPolicy,
  type WorkerConfinement,
} from "@flowcell/sandbox";
import {
  defaultCeilings,
  type RunOptions,
  type RuntimeOptions,
  runProblem,
  runtimeProblem,
} from "./options.js";
import {
  assembleResult,
  bundleFailed,
  logLine,
  notStarted,
  type RunFailed,
  type RunResult,
} from "./result.js";

/** What a runtime needs of a pool; `@flowcell/pool` has it. */
export interface RuntimePool {
  activate(request: ActivationRequest): Promise<ActivationResult<WorkerConfinement>>;
  health(): PoolHealth;
  close(): Promise<void>;
}

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

type Opened =
  | { readonly ok: true; readonly pool: RuntimePool }
  | { readonly ok: false; readonly failure: PreparedFailure };
type PreparedFailure = Pick<RunFailed["error"], "code" | "message" | "fact" | "remedy">;

export class PooledRuntime implements Runtime {
  readonly #options: RuntimeOptions;
  readonly #parts: RuntimeParts;
  readonly #limits: Limits;
  readonly #ceilings: Limits;
  readonly #policy: SandboxPolicy;
  readonly #registry: Registry;
  #opened: Opened | undefined;
  #closed = false;

  constructor(options: RuntimeOptions, parts: RuntimeParts) {
    const problem = runtimeProblem(options);
    if (problem !== undefined) throw new RuntimeOptionsError(problem);
    this.#options = options;
    this.#parts = parts;
    const { limits, ceilings, policy } = resolve(options);
    // A ceiling below a default lowers the default.
    this.#limits = limitsOrThrow("limits", {}, limits, ceilings);
    this.#ceilings = ceilings;
    this.#policy = policy;
    this.#registry = createRegistry([...builtIns, ...(options.hostFunctions ?? [])]);
  }

  async run<Value = unknown>(options: RunOptions): Promise<RunResult<Value>> {
    const result = await this.#run(options);
    // The caller says what the script returns; nothing checks it, as with JSON.parse.
    return result as RunResult<Value>;
  }

  prepare(): RunFailed | null {
    const opened = this.#open();
    return opened.ok ? null : notStarted(newRunId(), "sandbox_unavailable", opened.failure);
  }

  health(): PoolHealth | null {
    return this.#opened?.ok === true ? this.#opened.pool.health() : null;
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#opened?.ok === true) await this.#opened.pool.close();
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
    const opened = this.#open();
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
      seed: options.seed ?? randomBytes(32),
      callKeyPrefix: runId,
      onHostCall: (call) => dispatch(registry, call, { limits, clock }),
      ...(onLog === undefined ? {} : { onConsole: (line) => onLog(logLine(line)) }),
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

  /** Asks the host once; a host that cannot confine is asked again by the next run, it may have been repaired. */
  #open(): Opened {
    if (this.#closed) {
      return {
        ok: false,
        failure: { code: "blocked", message: "the runtime is closed", remedy: "create another one" },
      };
    }
    if (this.#opened?.ok === true) return this.#opened;
    const { result } = (this.#parts.prepare ?? preparePlan)(this.#policy);
    this.#opened = result.ok
      ? { ok: true, pool: (this.#parts.createPool ?? openPool)(result.plan, this.#options) }
      : { ok: false, failure: blocked(result.failure.blockers) };
    return this.#opened;
  }
}

/** Every blocker in one text, with each remedy once. */
function blocked(blockers: readonly Blocker[]): PreparedFailure {
  const message = blockers.map((blocker) => blocker.message).join(" ");
  const remedy = [...new Set(blockers.map((blocker) => blocker.remedy))].join("; ");
  return { code: "blocked", message, fact: blockers.map(({ code }) => code).join(", "), remedy };
}

export function openPool(plan: SandboxPlan, options: RuntimeOptions): RuntimePool {
  const { spares, workersMax, queueMax, queueDeadlineMs, activationsMax, idleMs, onEvent } = options;
  return createPool({
    plan,
    ...(spares === undefined ? {} : { spares }),
    ...(workersMax === undefined ? {} : { workersMax }),
    ...(queueMax === undefined ? {} : { queueMax }),
    ...(queueDeadlineMs === undefined ? {} : { queueDeadlineMs }),
    ...(activationsMax === undefined ? {} : { activationsMax }),
    ...(idleMs === undefined ? {} : { idleMs }),
    ...(onEvent === undefined ? {} : { onEvent }),
  });
}

interface Resolved {
  readonly limits: Limits;
  readonly ceilings: Limits;
  readonly policy: SandboxPolicy;
}

function resolve(options: RuntimeOptions): Resolved {
  const profile = options.profile ?? "flow";
  const limits = limitsOrThrow("limits", options.limits, profileLimits(profile), limitCeilings);
  const raised: Limits = {
    ...limitCeilings,
    heapBytes: Math.max(limits.heapBytes, defaultCeilings.heapBytes),
    cpuMs: Math.max(limits.cpuMs, defaultCeilings.cpuMs),
  };
  const ceilings = limitsOrThrow("ceilings", options.ceilings, raised, limitCeilings);
  if (options.policy === undefined) {
    const { heapBytes, cpuMs } = ceilings;
    return { limits, ceilings, policy: defaultPolicy(profile, { limits: { heapBytes, cpuMs } }) };
  }
  const parsed = parsePolicy(options.policy);
  if (!parsed.ok) throw new RuntimeOptionsError(`policy: ${parsed.problems.map(formatProblem).join("; ")}`);
  const { policy } = parsed;
  // Workers are confined for the policy's figures; no run may be promised more.
  const held = {
    ...ceilings,
    heapBytes: Math.min(ceilings.heapBytes, policy.limits.heapBytes),
    cpuMs: Math.min(ceilings.cpuMs, policy.limits.cpuMs),
  };
  return { limits, ceilings: held, policy };
}

function limitsOrThrow(what: string, asked: unknown, defaults: Limits, ceilings: Limits): Limits {
  const parsed = parseLimits(asked, defaults, ceilings);
  if (!parsed.ok) throw new RuntimeOptionsError(`${what}: ${parsed.message}`);
  return parsed.limits;
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
  return `run_${randomBytes(16).toString("base64url")}`;
}
