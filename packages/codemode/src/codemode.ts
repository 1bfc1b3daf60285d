/**
 * Codemode: a model's script calls tools as functions, in a confined worker. `createCodemode` is what embedding programs call;
 * the adapters, the MCP server and `flowcell exec` stand on it.
 *
 * From `execute` to a result: options checked, script normalised, a worker leased, calls checked and carried out, the result
 * put together. Nothing here trusts a script; whatever a script can cause is a result, and only mistakes in `createCodemode`'s
 * own options throw.
 */

import { createRegistry } from "@flowcell/host";
import { MemoryStore } from "@flowcell/journal";
import { ConfinedPool, type PoolHealth, resolveConfinement } from "@flowcell/pool";
import type { Limits } from "@flowcell/protocol";
import { approvalFunctions } from "./approval-calls.js";
import { DirectRuns, newFlow, refuse } from "./execute.js";
import { surroundOf } from "./guest-names.js";
import type { ApprovalAnswer, CallFinding } from "./journal-answers.js";
import type { PendingExecution } from "./journal-requests.js";
import { JournalRuns } from "./journal-runs.js";
import { lookupFunctions } from "./lookup-functions.js";
import { Normalizer } from "./normalize.js";
import { type CodemodeOptions, codemodeProblem, type ExecuteOptions, type ResumeOptions } from "./options.js";
import { poolOptions } from "./pool-options.js";
import { codemodePrompt } from "./prompt.js";
import type { ExecuteResult } from "./result.js";
import { toolSchema } from "./schema.js";
import { toolFunction } from "./tool-functions.js";
import { CodemodeOptionsError, makeToolSet, mayAsk } from "./tool-set.js";
import type { ToolSet } from "./tools.js";
import { toolDeclarations } from "./types/declarations.js";
import { Wording } from "./wording.js";

/** Closing it twice is fine; it never keeps Node alive while nothing runs. */
export interface Codemode {
  /** Runs a script. Never rejects: whatever happened is in the result, and `ok` says whether it completed. */
  execute<Value = unknown>(code: string, options?: ExecuteOptions): Promise<ExecuteResult<Value>>;
  /**
   * Answers what a suspended execution asks (`pending` of its result) and goes on with it. The same answer again gives the same
   * result; another answer is refused. With a store, also after a restart.
   */
  resume<Value = unknown>(
    runId: string,
    answers: readonly ApprovalAnswer[],
    options?: ResumeOptions,
  ): Promise<ExecuteResult<Value>>;
  /**
   * Says what became of calls that a crash interrupted (`needs_reconcile`; `pending()` names them) and goes on: with `value` as
   * the call's answer, or, when it did not happen, by making it again.
   */
  reconcile<Value = unknown>(
    runId: string,
    findings: readonly CallFinding[],
    options?: ResumeOptions,
  ): Promise<ExecuteResult<Value>>;
  /** Executions that wait for `resume` or `reconcile`, the oldest first; with a store, also those of earlier processes. */
  pending(): Promise<readonly PendingExecution[]>;
  /** Ends an execution, also one that waits. Its result is `cancelled`, or how it had ended before. */
  cancel<Value = unknown>(runId: string): Promise<ExecuteResult<Value>>;
  readonly tools: ToolSet;
  /** TypeScript declarations of the tools. */
  readonly types: string;
  /** What to tell a model: how to write a script, and the types within a budget of tokens. */
  readonly prompt: string;
  /** Null before the first execution. */
  health(): PoolHealth | null;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function createCodemode(options: CodemodeOptions = {}): Promise<Codemode> {
  const codemode = new PooledCodemode(options);
  await codemode.open();
  return codemode;
}

const approvalMsDefault = 24 * 3_600_000;

class PooledCodemode implements Codemode {
  readonly tools: ToolSet;
  readonly #limits: Limits;
  #types: string | undefined;
  #prompt: string | undefined;
  readonly #pool: ConfinedPool;
  readonly #runs: DirectRuns | JournalRuns;

  constructor(options: CodemodeOptions) {
    const problem = codemodeProblem(options);
    if (problem !== undefined) throw new CodemodeOptionsError(problem);
    const resolved = resolveConfinement({ ...options, profile: "codemode" });
    if (!resolved.ok) throw new CodemodeOptionsError(resolved.message);
    const { limits, ceilings, policy } = resolved;
    this.tools = makeToolSet(options.tools ?? {}, toolSchema);
    this.#limits = limits;
    const pool = poolOptions(options);
    this.#pool = new ConfinedPool(policy, pool);
    const { tools } = this.tools;
    const lookups = lookupFunctions(this.tools);
    const shared = {
      pool: this.#pool,
      normalizer: new Normalizer(surroundOf(this.tools)),
      wording: new Wording(tools.map(({ namespace }) => namespace)),
      limits,
      ceilings,
      isolation: options.isolation ?? "process",
      flow: newFlow(),
    };
    if (options.store === undefined && !tools.some(mayAsk)) {
      this.#runs = new DirectRuns({
        ...shared,
        registry: createRegistry([...tools.map(toolFunction), ...lookups]),
      });
    } else {
      const runs: JournalRuns = new JournalRuns({
        ...shared,
        store: options.store === undefined ? { own: new MemoryStore() } : { given: options.store },
        activeMost: (pool.workersMax ?? 1) + (pool.queueMax ?? 0),
        name: options.name ?? "codemode",
        keep: {
          ...(options.keepMs === undefined ? {} : { keepMs: options.keepMs }),
          ...(options.keepRuns === undefined ? {} : { keepRuns: options.keepRuns }),
        },
        approvalMs: options.approvalMs ?? approvalMsDefault,
        functions: [
          ...tools.flatMap((tool) =>
            mayAsk(tool) ? approvalFunctions(tool, (runId) => runs.historyOf(runId)) : [toolFunction(tool)],
          ),
          ...lookups,
        ],
      });
      this.#runs = runs;
    }
    // The first workers start while the program goes on; a host that cannot confine is told with the first execution.
    this.#pool.open();
  }

  /** Takes up what an earlier process left in the store. */
  async open(): Promise<void> {
    if (this.#runs instanceof JournalRuns) await this.#runs.open();
  }

  async execute<Value = unknown>(code: string, options: ExecuteOptions = {}): Promise<ExecuteResult<Value>> {
    const result = await this.#runs.execute(code, options);
    // The caller says what the script returns; nothing checks it, as with JSON.parse.
    return result as ExecuteResult<Value>;
  }

  async resume<Value = unknown>(
    runId: string,
    answers: readonly ApprovalAnswer[],
    options: ResumeOptions = {},
  ): Promise<ExecuteResult<Value>> {
    const result = await (this.#runs instanceof JournalRuns
      ? this.#runs.requests.resume(runId, answers, options)
      : refuse("request", "no tool needs approval, so no execution waits for an answer"));
    return result as ExecuteResult<Value>; // as with execute
  }

  async reconcile<Value = unknown>(
    runId: string,
    findings: readonly CallFinding[],
    options: ResumeOptions = {},
  ): Promise<ExecuteResult<Value>> {
    const result = await (this.#runs instanceof JournalRuns
      ? this.#runs.requests.reconcile(runId, findings, options)
      : refuse("request", "there is no store, so no execution was left behind by a crash"));
    return result as ExecuteResult<Value>; // as with execute
  }

  async cancel<Value = unknown>(runId: string): Promise<ExecuteResult<Value>> {
    const result = await (this.#runs instanceof JournalRuns
      ? this.#runs.requests.cancel(runId)
      : refuse(
          "request",
          "executions are known by their ids where a tool may ask or a store is given; else pass a signal",
        ));
    return result as ExecuteResult<Value>; // as with execute
  }

  async pending(): Promise<readonly PendingExecution[]> {
    return this.#runs instanceof JournalRuns ? await this.#runs.requests.pending() : [];
  }

  get types(): string {
    this.#types ??= toolDeclarations(this.tools);
    return this.#types;
  }

  get prompt(): string {
    this.#prompt ??= codemodePrompt(this.tools, { limits: this.#limits });
    return this.#prompt;
  }

  health(): PoolHealth | null {
    return this.#pool.health();
  }

  async close(): Promise<void> {
    if (this.#runs instanceof JournalRuns) await this.#runs.close();
    await this.#pool.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
