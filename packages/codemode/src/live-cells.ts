/**
 * The workers of journaled executions, as the engine of flows sees a pool, and what only the process that drives an execution
 * knows of it: figures, console lines as they come, whether it has begun. Made by journal-runs.ts.
 */

import { logLine, type ScriptMap } from "@flowcell/bundle";
import type { CellPool, CellRequest, CellResult } from "@flowcell/flows";
import type { ConfinedPool } from "@flowcell/pool";
import type { RunError } from "@flowcell/protocol";
import { nothingSeen, type SeenUsage } from "./journal-result.js";
import type { NormalScript } from "./normalize.js";
import type { ExecuteOptions } from "./options.js";

interface Live {
  readonly onLog: ExecuteOptions["onLog"];
  readonly map: ScriptMap;
  seen: SeenUsage;
  nextLog: number;
}

/** Runs whose figures are kept, the oldest go first. */
const liveMost = 1024;

export interface LiveCellsParts {
  readonly pool: ConfinedPool;
  readonly isolation: "process" | "reset";
  readonly flow: string;
}

/** The request of a run has the run's id for its flow: `gate` of journal-runs.ts says so. */
export class LiveCells implements CellPool {
  readonly #parts: LiveCellsParts;
  readonly #live = new Map<string, Live>();

  constructor(parts: LiveCellsParts) {
    this.#parts = parts;
  }

  keep(runId: string, onLog: ExecuteOptions["onLog"], { map, warnings }: NormalScript): void {
    this.#live.set(runId, { onLog, map, seen: { ...nothingSeen, begun: false, warnings }, nextLog: 0 });
    for (const oldest of this.#live.keys()) {
      if (this.#live.size <= liveMost) break;
      this.#live.delete(oldest);
    }
  }

  seen(runId: string): SeenUsage {
    return this.#live.get(runId)?.seen ?? nothingSeen;
  }

  /** Undefined for an execution of an earlier process. */
  mapOf(runId: string): ScriptMap | undefined {
    return this.#live.get(runId)?.map;
  }

  /** Whether a worker has had it; true for a run of which nothing is known. */
  begun(runId: string): boolean {
    return this.seen(runId).begun;
  }

  health(): { readonly waiting: number } {
    return { waiting: this.#parts.pool.health()?.waiting ?? 0 };
  }

  async activate(request: CellRequest): Promise<CellResult> {
    const opened = this.#parts.pool.open();
    if (!opened.ok) return unavailable(opened.failure);
    const runId = request.flow.slice(0, request.flow.indexOf("@"));
    const live = this.#live.get(runId);
    const { flow, isolation } = this.#parts;
    const result = await opened.pool.activate({
      ...request,
      flow,
      isolation,
      driver: {
        begun: (activation) => {
          if (live !== undefined) live.seen = { ...live.seen, begun: true };
          request.driver.begun(activation);
        },
        called: (call) => request.driver.called(call),
        callCancelled: (position) => request.driver.callCancelled(position),
        blocked: (state) => request.driver.blocked(state),
      },
      onConsole: (line) => {
        request.onConsole(line);
        if (live === undefined || line.seq < live.nextLog) return;
        live.nextLog = line.seq + 1;
        live.onLog?.(logLine(line, live.map));
      },
    });
    if (live !== undefined) {
      const { bytesIn, bytesOut, queuedMs } = result.usage;
      live.seen = {
        ...live.seen,
        bytesIn: live.seen.bytesIn + bytesIn,
        bytesOut: live.seen.bytesOut + bytesOut,
        queuedMs: live.seen.queuedMs + queuedMs,
        logsTruncated: result.logsTruncated,
      };
    }
    return result;
  }
}

function unavailable(failure: Pick<RunError, "code" | "message">): CellResult {
  return {
    status: "sandbox_unavailable",
    reason: "blocked",
    error: { code: "blocked", message: failure.message },
    logsTruncated: false,
    warnings: [],
    usage: { cpuMs: 0, wallMs: 0, heapPeakBytes: 0 },
    replayCpuMs: 0,
    started: false,
    confinement: null,
  };
}
