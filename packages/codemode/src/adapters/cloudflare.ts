/**
 * `FlowcellExecutor`: what users of @cloudflare/codemode pass as `executor` to run scripts in confined processes on Node. The
 * package calls `execute`; it need not be installed.
 *
 *     const executor = new FlowcellExecutor({ limits: { wallMs: 30_000 } });
 *     createCodeTool({ tools, executor });
 *
 * Kept true: `execute` never rejects and never throws; its results have the package's keys and no others, so that they compare
 * equal to what tests expect; what flowcell knows beyond them is `reportOf(result)`. A failure always has a text.
 */

import { createRegistry, defineHostFunction, type HostFunction, type Schema } from "@flowcell/host";
import { ConfinedPool, type PoolHealth, resolveConfinement } from "@flowcell/pool";
import type { Limits, LogLine, RunError } from "@flowcell/protocol";
import { DirectRuns, newFlow } from "../execute.js";
import { Normalizer } from "../normalize.js";
import { type CodemodeOptions, codemodeProblem } from "../options.js";
import { poolOptions } from "../pool-options.js";
import type { ExecuteResult as Report } from "../result.js";
import { CodemodeOptionsError } from "../tool-set.js";
import { Wording } from "../wording.js";
import { surroundOf } from "./cloudflare-guest.js";
import { type Bindings, bind, type HostCallee } from "./cloudflare-names.js";
import { pack, unpack } from "./cloudflare-transport.js";
import type {
  ExecuteResult,
  Executor,
  ExecutorCallOptions,
  ProviderFunctions,
  ResolvedProvider,
} from "./cloudflare-types.js";

export type {
  ConnectorBinding,
  ExecuteResult,
  Executor,
  ExecutorCallOptions,
  ProviderFunctions,
  ResolvedProvider,
} from "./cloudflare-types.js";

/** Everything of `createCodemode` but what the package brings with each call (tools) or does by itself (approvals). */
export interface FlowcellExecutorOptions extends Omit<CodemodeOptions, "tools" | "store" | "name"> {
  /** Told of every execution with flowcell's own result: usage, calls, confinement, an error with lines. Must not throw. */
  readonly onReport?: (report: Report) => void;
}

const reports = new WeakMap<ExecuteResult, Report>();

/** Flowcell's own result of the execution that ended with this one; undefined for one that never began. */
export function reportOf(result: ExecuteResult): Report | undefined {
  return reports.get(result);
}

export class FlowcellExecutor implements Executor {
  readonly #pool: ConfinedPool;
  readonly #limits: Limits;
  readonly #ceilings: Limits;
  readonly #isolation: "process" | "reset";
  readonly #onReport: ((report: Report) => void) | undefined;
  readonly #flow = newFlow();
  readonly #normalizers = new Map<string, Normalizer>();
  #warnedOfRecord = false;

  /** Throws CodemodeOptionsError for an option that is unknown or out of range. */
  constructor(options: FlowcellExecutorOptions = {}) {
    const { onReport, ...own } = options;
    const problem = optionsProblem(own, onReport);
    if (problem !== undefined) throw new CodemodeOptionsError(problem);
    const resolved = resolveConfinement({ ...own, profile: "codemode" });
    if (!resolved.ok) throw new CodemodeOptionsError(resolved.message);
    this.#limits = resolved.limits;
    this.#ceilings = resolved.ceilings;
    this.#isolation = own.isolation ?? "process";
    this.#onReport = onReport;
    this.#pool = new ConfinedPool(resolved.policy, poolOptions(own));
    // The first workers start while the program goes on; a host that cannot confine is told with the first execution.
    this.#pool.open();
  }

  /** A record of functions instead of a list of providers is the provider `codemode`, as in the package. */
  async execute(
    code: string,
    providersOrFns: ResolvedProvider[] | ProviderFunctions,
    options?: ExecutorCallOptions,
  ): Promise<ExecuteResult> {
    try {
      const providers = Array.isArray(providersOrFns) ? providersOrFns : [this.#recorded(providersOrFns)];
      const bound = bind(providers, options?.connectors ?? []);
      return bound.ok ? await this.#run(code, bound.bindings) : { result: undefined, error: bound.error };
    } catch (error) {
      // A provider that is no object, a getter that throws: the caller's mistake, and still no reason to throw.
      return { result: undefined, error: errorText(error) };
    }
  }

  /** Null before a pool could be opened. */
  health(): PoolHealth | null {
    return this.#pool.health();
  }

  /** Ends the workers. Closing twice is fine; an idle executor never keeps Node alive. */
  async close(): Promise<void> {
    await this.#pool.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #run(code: string, bindings: Bindings): Promise<ExecuteResult> {
    const runs = new DirectRuns({
      pool: this.#pool,
      registry: createRegistry([...bindings.callees].map(rowOf)),
      normalizer: this.#normalizerOf(bindings),
      wording: new Wording([...bindings.providers, ...bindings.connectors].map(({ name }) => name)),
      limits: this.#limits,
      ceilings: this.#ceilings,
      isolation: this.#isolation,
      flow: this.#flow,
    });
    // Nothing to do is no mistake here.
    const isEmpty = typeof code === "string" && code.trim() === "";
    const report = await runs.execute(isEmpty ? "return" : code, {});
    const result = resultOf(report);
    reports.set(result, report);
    this.#onReport?.(report);
    return result;
  }

  #recorded(fns: ProviderFunctions): ResolvedProvider {
    if (!this.#warnedOfRecord) {
      this.#warnedOfRecord = true;
      process.emitWarning(
        "a record of functions given to execute() is deprecated by @cloudflare/codemode; pass [{ name, fns }]",
        "DeprecationWarning",
      );
    }
    return { name: "codemode", fns };
  }

  /** One for each set of names: it remembers scripts by their text. */
  #normalizerOf(bindings: Bindings): Normalizer {
    const surround = surroundOf(bindings);
    const key = surround.before + surround.after;
    const known = this.#normalizers.get(key);
    this.#normalizers.delete(key);
    const normalizer = known ?? new Normalizer(surround);
    this.#normalizers.set(key, normalizer);
    for (const oldest of this.#normalizers.keys()) {
      if (this.#normalizers.size <= normalizersMost) break;
      this.#normalizers.delete(oldest);
    }
    return normalizer;
  }
}

const normalizersMost = 16;

function optionsProblem(own: object, onReport: unknown): string | undefined {
  if (onReport !== undefined && typeof onReport !== "function") return "option onReport must be a function";
  if ("tools" in own) return "option tools is not for an executor: the tools come with each execute()";
  const journal = ["store", "name", "approvalMs", "keepMs", "keepRuns"].find((key) => key in own);
  if (journal !== undefined)
    return `option ${journal} is not for an executor: the package keeps its own journal`;
  if ("globalOutbound" in own)
    return "option globalOutbound: scripts have no network; give them a tool that fetches";
  if ("loader" in own) return "option loader is the reference executor's; a FlowcellExecutor needs none";
  return codemodeProblem(own);
}

const anyArguments: Schema<readonly unknown[]> = {
  "~standard": {
    version: 1,
    vendor: "flowcell",
    validate: (value: unknown) => ({ value: Array.isArray(value) ? value : [] }),
  },
};

function rowOf([name, callee]: readonly [string, HostCallee]): HostFunction {
  return defineHostFunction({
    name,
    doc: name,
    effect: "once",
    grant: null,
    input: anyArguments,
    handler: async (args) => {
      if (callee.kind === "connector") {
        const [method, argument] = args;
        return callee.callTool(String(method), argument);
      }
      // TRUST: the text is a script's; `unpack` answers undefined for what the worker's half does not write.
      const unpacked = unpack(args);
      if (unpacked === undefined || !Array.isArray(unpacked.value))
        throw new TypeError("malformed arguments");
      const list: unknown[] = unpacked.value;
      return pack({ result: await callee.call(...list) });
    },
  });
}

function resultOf(report: Report): ExecuteResult {
  const logs = report.logs.map(logText);
  if (report.ok) return { result: report.value, logs };
  return { result: undefined, error: failureText(report.error), logs };
}

function logText({ level, text }: LogLine): string {
  return level === "log" ? text : `[${level}] ${text}`;
}

/** Time that ran out is told in the package's words, which its users compare with. */
function failureText({ code, message, name }: RunError): string {
  if (code === "wall") return "Execution timed out";
  return message === "" ? name : message;
}

function errorText(error: unknown): string {
  return error instanceof Error && error.message !== "" ? error.message : String(error);
}
