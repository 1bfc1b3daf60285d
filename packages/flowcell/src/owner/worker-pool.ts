/**
 * The workers of a service. Confinement is prepared and workers are started with the first activation: a command that only
 * lists or approves starts none, and works on a machine that cannot confine.
 */

import type { CellPool, CellRequest, CellResult } from "@flowcell/flows";
import { createPool, type Pool, type PoolEvent } from "@flowcell/pool";
import type { Limits } from "@flowcell/protocol";
import {
  type Blocker,
  defaultBuildFolder,
  defaultPolicy,
  preparePlan,
  readWorkerBuild,
  type WorkerConfinement,
} from "@flowcell/sandbox";
import { ConfigurationError } from "./failures.js";

export interface ServicePool extends CellPool {
  close(): Promise<void>;
}

export interface WorkerPoolOptions {
  /** What no flow may exceed; workers are confined to it. */
  readonly ceilings: Pick<Limits, "heapBytes" | "cpuMs">;
  readonly onEvent?: (event: PoolEvent) => void;
}

/** The replay fingerprint of the engine that is built here. */
export function engineFingerprint(): string {
  const built = readWorkerBuild(defaultBuildFolder());
  if (built.ok) return built.build.fingerprint;
  throw new ConfigurationError(`the worker is not built: ${built.message}; run npm run build in the clone`);
}

type Opened =
  | { readonly ok: true; readonly pool: Pool<WorkerConfinement> }
  | { readonly ok: false; readonly blockers: readonly Blocker[] };

export class LazyPool implements ServicePool {
  readonly #options: WorkerPoolOptions;
  #pool: Pool<WorkerConfinement> | undefined;
  #closed = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
  }

  async activate(request: CellRequest): Promise<CellResult> {
    const opened = this.#open();
    return opened.ok ? await opened.pool.activate(request) : blocked(opened.blockers);
  }

  health(): { readonly waiting: number } {
    return this.#pool?.health() ?? { waiting: 0 };
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#pool?.close();
  }

  /** A machine that cannot confine is asked again: it may have been repaired. */
  #open(): Opened {
    if (this.#closed) throw new Error("the pool is closed");
    if (this.#pool !== undefined) return { ok: true, pool: this.#pool };
    const { ceilings, onEvent } = this.#options;
    const { result } = preparePlan(defaultPolicy("flow", { limits: ceilings }));
    if (!result.ok) return { ok: false, blockers: result.failure.blockers };
    this.#pool = createPool({ plan: result.plan, ...(onEvent === undefined ? {} : { onEvent }) });
    return { ok: true, pool: this.#pool };
  }
}

function blocked(blockers: readonly Blocker[]): CellResult {
  const remedies = [...new Set(blockers.map(({ remedy }) => remedy))].join("; ");
  return {
    status: "sandbox_unavailable",
    reason: "blocked",
    error: {
      code: "blocked",
      message: `${blockers.map(({ message }) => message).join(" ")} What to do: ${remedies}`,
      fact: blockers.map(({ code }) => code).join(", "),
    },
    logsTruncated: false,
    warnings: [],
    usage: { cpuMs: 0, wallMs: 0, heapPeakBytes: 0 },
    replayCpuMs: 0,
    started: false,
    confinement: null,
  };
}
