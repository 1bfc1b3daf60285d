/**
 * Codemode: a model's script calls tools as functions, in a confined worker. `createCodemode` is what embedding programs call;
 * the adapters, the MCP server and `flowcell exec` stand on it.
 *
 * From `execute` to a result: options checked, script normalised, a worker leased, calls checked and carried out, the result
 * put together. Nothing here trusts a script; whatever a script can cause is a result, and only mistakes in `createCodemode`'s
 * own options throw.
 */

import { createRegistry } from "@flowcell/host";
import { ConfinedPool, type PoolHealth, resolveConfinement } from "@flowcell/pool";
import type { Limits } from "@flowcell/protocol";
import { DirectRuns, newFlow } from "./execute.js";
import { surroundOf } from "./guest-names.js";
import { Normalizer } from "./normalize.js";
import { type CodemodeOptions, codemodeProblem, type ExecuteOptions } from "./options.js";
import { poolOptions } from "./pool-options.js";
import { codemodePrompt } from "./prompt.js";
import type { ExecuteResult } from "./result.js";
import { toolSchema } from "./schema.js";
import { toolFunction } from "./tool-functions.js";
import { CodemodeOptionsError, makeToolSet } from "./tool-set.js";
import type { ToolSet } from "./tools.js";
import { toolDeclarations } from "./types/declarations.js";

/** Closing it twice is fine; it never keeps Node alive while nothing runs. */
export interface Codemode {
  /** Runs a script. Never rejects: whatever happened is in the result, and `ok` says whether it completed. */
  execute<Value = unknown>(code: string, options?: ExecuteOptions): Promise<ExecuteResult<Value>>;
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
  return new PooledCodemode(options);
}

class PooledCodemode implements Codemode {
  readonly tools: ToolSet;
  readonly #limits: Limits;
  #types: string | undefined;
  #prompt: string | undefined;
  readonly #pool: ConfinedPool;
  readonly #direct: DirectRuns;

  constructor(options: CodemodeOptions) {
    const problem = codemodeProblem(options);
    if (problem !== undefined) throw new CodemodeOptionsError(problem);
    const resolved = resolveConfinement({ ...options, profile: "codemode" });
    if (!resolved.ok) throw new CodemodeOptionsError(resolved.message);
    const { limits, ceilings, policy } = resolved;
    this.tools = makeToolSet(options.tools ?? {}, toolSchema);
    this.#limits = limits;
    this.#pool = new ConfinedPool(policy, poolOptions(options));
    this.#direct = new DirectRuns({
      pool: this.#pool,
      registry: createRegistry(this.tools.tools.map(toolFunction)),
      normalizer: new Normalizer(surroundOf(this.tools)),
      limits,
      ceilings,
      isolation: options.isolation ?? "process",
      flow: newFlow(),
    });
    // The first workers start while the program goes on; a host that cannot confine is told with the first execution.
    this.#pool.open();
  }

  async execute<Value = unknown>(code: string, options: ExecuteOptions = {}): Promise<ExecuteResult<Value>> {
    const result = await this.#direct.execute(code, options);
    // The caller says what the script returns; nothing checks it, as with JSON.parse.
    return result as ExecuteResult<Value>;
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
    await this.#pool.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
