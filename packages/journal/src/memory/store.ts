/**
 * A store in memory, for tests, simulations and runs that nobody will ask for again. It keeps every promise of `store.ts`
 * but survival: it ends with its process.
 */

import type { CallOutcome } from "@flowcell/protocol";
import { headsOf } from "../heads.js";
import { auditLimit, checkedRetention, pageLimit, type RunSize, runsToRemove } from "../paging.js";
import { Refused } from "../rules.js";
import {
  type AuditRow,
  type CallRow,
  type Delivery,
  type FlowRow,
  type LogRow,
  type OpenWait,
  type OperationResult,
  type QuarantineRow,
  type Retention,
  type RunHeads,
  type RunHistory,
  type RunQuery,
  type RunRow,
  type Store,
  StoreFailure,
  type StoreStats,
  type Unit,
  type UnitResult,
  type VersionRow,
} from "../store.js";
import { copyOutcome, copyValue, takeUnit } from "../units.js";
import { apply, fencedRun } from "./apply.js";
import { runBytes } from "./size.js";
import { approvedHash, emptyTables, type FlowEntry, type RunEntry } from "./tables.js";
import { Undo } from "./undo.js";

export class MemoryStore implements Store {
  readonly #tables = emptyTables();
  #units = 0;
  #closed = false;

  async commit(unit: Unit): Promise<UnitResult> {
    this.#mustBeOpen();
    this.#units += 1;
    const undo = new Undo();
    const results: OperationResult[] = [];
    try {
      const { fence, operations } = takeUnit(unit);
      if (fence !== undefined) fencedRun(this.#tables, fence);
      for (const [at, operation] of operations.entries()) {
        try {
          results.push(copyResult(apply(this.#tables, fence, operation, undo)));
        } catch (error) {
          throw error instanceof Refused ? error.at(at) : error;
        }
      }
      return { ok: true, results };
    } catch (error) {
      undo.rollback();
      if (error instanceof Refused) return error.result();
      throw error;
    }
  }

  async run(runId: string): Promise<RunRow | null> {
    const run = this.#run(runId);
    return run === undefined ? null : copyRun(run.row);
  }

  async history(runId: string): Promise<RunHistory | null> {
    const run = this.#run(runId);
    if (run === undefined) return null;
    const calls = [...run.calls.values()].sort((one, other) => one.position - other.position);
    return {
      run: copyRun(run.row),
      calls: calls.map(copyCall),
      deliveries: run.deliveries.map(copyDelivery),
    };
  }

  async heads(runId: string): Promise<RunHeads | null> {
    const run = this.#run(runId);
    if (run === undefined) return null;
    const calls = [...run.calls.values()].sort((one, other) => one.position - other.position);
    const heads = headsOf({ run: copyRun(run.row), calls, deliveries: run.deliveries });
    return {
      ...heads,
      calls: heads.calls.map((call) => ({ ...call, ...copyRest(call) })),
      deliveries: heads.deliveries.map((one) => structuredClone(one)),
    };
  }

  async outcome(runId: string, position: number): Promise<CallOutcome | null> {
    for (const one of this.#run(runId)?.deliveries ?? [])
      if (one.kind === "call" && one.position === position) return copyOutcome(one.outcome);
    return null;
  }

  async logs(runId: string): Promise<readonly LogRow[]> {
    return (this.#run(runId)?.logs ?? []).map((line) => ({ ...line }));
  }

  async runs(query: RunQuery): Promise<readonly RunRow[]> {
    this.#mustBeOpen();
    const { flow, states, statuses, before } = query;
    const limit = pageLimit(query.limit);
    const all = [...this.#tables.runs.values()];
    const end =
      before === undefined
        ? all.length
        : Math.max(
            0,
            all.findIndex(({ row }) => row.runId === before),
          );
    return all
      .slice(0, end)
      .reverse()
      .map(({ row }) => row)
      .filter((row) => flow === undefined || row.flow === flow)
      .filter((row) => states === undefined || states.includes(row.state))
      .filter((row) => statuses === undefined || (row.status !== null && statuses.includes(row.status)))
      .slice(0, limit)
      .map(copyRun);
  }

  async unfinished(): Promise<readonly RunRow[]> {
    this.#mustBeOpen();
    return this.#unfinished().map(({ row }) => copyRun(row));
  }

  async waits(): Promise<readonly OpenWait[]> {
    this.#mustBeOpen();
    const waits: OpenWait[] = [];
    for (const { row, calls, settled } of this.#unfinished()) {
      for (const call of [...calls.values()].sort((one, other) => one.position - other.position)) {
        const { position, wait, dueAt, callId, madeAt, cancelled } = call;
        if (wait === null || cancelled || settled.has(position)) continue;
        waits.push({
          runId: row.runId,
          flow: row.flow,
          position,
          wait: copyWait(wait),
          dueAt,
          callId,
          madeAt,
        });
      }
    }
    return waits;
  }

  async callById(callId: string): Promise<{ readonly runId: string; readonly call: CallRow } | null> {
    this.#mustBeOpen();
    const place = this.#tables.callIds.get(callId);
    const call = place && this.#tables.runs.get(place.runId)?.calls.get(place.position);
    return place === undefined || call === undefined ? null : { runId: place.runId, call: copyCall(call) };
  }

  async flow(flow: string): Promise<FlowRow | null> {
    this.#mustBeOpen();
    const entry = this.#tables.flows.get(flow);
    return entry === undefined ? null : flowRow(entry);
  }

  async flows(): Promise<readonly FlowRow[]> {
    this.#mustBeOpen();
    const rows = [...this.#tables.flows.values()].map(flowRow);
    return rows.sort((one, other) => Buffer.compare(Buffer.from(one.flow), Buffer.from(other.flow)));
  }

  async version(flow: string, hash: string): Promise<VersionRow | null> {
    this.#mustBeOpen();
    const row = this.#tables.flows.get(flow)?.versions.get(hash);
    return row === undefined ? null : structuredClone(row);
  }

  async versions(flow: string): Promise<readonly Omit<VersionRow, "bundle" | "bundleMap" | "sources">[]> {
    this.#mustBeOpen();
    const rows = [...(this.#tables.flows.get(flow)?.versions.values() ?? [])];
    return rows
      .sort((one, other) => other.number - one.number)
      .map(({ bundle: _bundle, bundleMap: _map, sources: _sources, ...rest }) => rest);
  }

  async quarantined(runId: string | null): Promise<readonly QuarantineRow[]> {
    this.#mustBeOpen();
    return this.#tables.quarantine
      .filter((row) => runId === null || row.runId === runId)
      .map((row) => ({ ...row, outcome: row.outcome && copyOutcome(row.outcome) }));
  }

  async audit(limit: number): Promise<readonly AuditRow[]> {
    this.#mustBeOpen();
    const most = auditLimit(limit);
    return this.#tables.audit
      .slice()
      .reverse()
      .slice(0, most)
      .map((row) => ({ ...row }));
  }

  async retain(retention: Retention): Promise<number> {
    this.#mustBeOpen();
    const { finishedBefore, runsMax, flow } = checkedRetention(retention);
    const finished: (RunSize & { readonly runId: string; readonly finishedAt: number })[] = [];
    for (const { row } of this.#tables.runs.values()) {
      const { runId, finishedAt, nextOrder: deliveries, nextLog: lines } = row;
      if (flow !== undefined && row.flow !== flow) continue;
      if (finishedAt !== null && finishedAt < finishedBefore)
        finished.push({ runId, finishedAt, deliveries, lines });
    }
    const oldest = finished.sort((one, other) => one.finishedAt - other.finishedAt).slice(0, runsMax);
    const removed = oldest.slice(0, runsToRemove(oldest));
    const quarantine = this.#tables.quarantine;
    for (const { runId } of removed) this.#remove(runId);
    const gone = new Set(removed.map(({ runId }) => runId));
    const kept = quarantine.filter(
      ({ runId, at }) =>
        !gone.has(runId) && (flow !== undefined || at >= finishedBefore || this.#tables.runs.has(runId)),
    );
    quarantine.splice(0, quarantine.length, ...kept);
    return removed.length;
  }

  /**
   * Removes a finished run at once, also its deduplication key and what came too late for it: for whoever has the store alone and
   * knows that nobody will ask again. Of a run that is gone, what came since.
   */
  forget(runId: string): void {
    this.#mustBeOpen();
    const { runs, keys, quarantine } = this.#tables;
    const row = runs.get(runId)?.row;
    if (row !== undefined && row.state !== "finished") return;
    if (row !== undefined) {
      const { flow, deduplicationKey } = row;
      const ofFlow = keys.get(flow);
      if (deduplicationKey !== null && ofFlow?.get(deduplicationKey) === runId)
        ofFlow.delete(deduplicationKey);
      this.#remove(runId);
    }
    if (quarantine.some((one) => one.runId === runId))
      quarantine.splice(0, quarantine.length, ...quarantine.filter((one) => one.runId !== runId));
  }

  /** What a run takes here, near enough to bound many by; 0 for one that is gone. */
  bytesOf(runId: string): number {
    const run = this.#run(runId);
    return run === undefined ? 0 : runBytes(run);
  }

  async stats(): Promise<StoreStats> {
    this.#mustBeOpen();
    return { bytes: 0, units: this.#units, flushes: 0, flushP50Ms: 0, flushP99Ms: 0, lastError: null };
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  #mustBeOpen(): void {
    if (this.#closed) throw new StoreFailure("the store is closed");
  }

  #run(runId: string): RunEntry | undefined {
    this.#mustBeOpen();
    return this.#tables.runs.get(runId);
  }

  #remove(runId: string): void {
    for (const { callId } of this.#tables.runs.get(runId)?.calls.values() ?? []) {
      if (callId !== null) this.#tables.callIds.delete(callId);
    }
    this.#tables.runs.delete(runId);
  }

  #unfinished(): RunEntry[] {
    return [...this.#tables.runs.values()].filter(({ row }) => row.state !== "finished");
  }
}

function copyRun(row: RunRow): RunRow {
  return {
    ...row,
    trigger: { ...row.trigger },
    input: copyValue(row.input),
    result: row.result && copyValue(row.result),
  };
}

function copyWait(wait: OpenWait["wait"]): OpenWait["wait"] {
  return wait.kind === "approval" ? { ...wait, detail: wait.detail && copyValue(wait.detail) } : { ...wait };
}

function copyCall(call: CallRow): CallRow {
  return { ...call, args: copyValue(call.args), ...copyRest(call) };
}

function copyRest({ note, wait }: Pick<CallRow, "note" | "wait">): Pick<CallRow, "note" | "wait"> {
  return { note: note && { ...note }, wait: wait && copyWait(wait) };
}

function copyDelivery(delivery: Delivery): Delivery {
  return delivery.kind === "timer"
    ? { ...delivery }
    : { ...delivery, outcome: copyOutcome(delivery.outcome) };
}

function copyResult(result: OperationResult): OperationResult {
  switch (result.kind) {
    case "outcome":
      return { kind: "outcome", outcome: copyOutcome(result.outcome) };
    case "signal":
      return { kind: "signal", value: result.value && copyValue(result.value) };
    default:
      return result;
  }
}

function flowRow(flow: FlowEntry): FlowRow {
  return { ...flow.row, approvedHash: approvedHash(flow) };
}
