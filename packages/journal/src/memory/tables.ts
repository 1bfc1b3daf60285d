/** What the memory store keeps: one object for each run and each flow, whose rows are replaced, never changed in place. */

import { type EncodedValue, type LocalTx, localBytes } from "@flowcell/protocol";
import type {
  AuditRow,
  CallRow,
  Delivery,
  FlowRow,
  LogRow,
  NewRun,
  QuarantineRow,
  RunRow,
  VersionRow,
} from "../store.js";
import type { Undo } from "./undo.js";

export interface SignalEntry {
  readonly name: string;
  readonly value: EncodedValue;
  taken: boolean;
}

export interface RunEntry {
  row: RunRow;
  readonly calls: Map<number, CallRow>;
  readonly deliveries: Delivery[];
  /** Positions of the calls that have an outcome. */
  readonly settled: Map<number, true>;
  readonly logs: LogRow[];
  /** By signalId, in the order in which they came. */
  readonly signals: Map<string, SignalEntry>;
}

export interface FlowEntry {
  row: Omit<FlowRow, "approvedHash">;
  readonly versions: Map<string, VersionRow>;
}

export interface Tables {
  /** In the order in which they were made. */
  readonly runs: Map<string, RunEntry>;
  /** Flow → deduplication key → run, for ever. */
  readonly keys: Map<string, Map<string, string>>;
  readonly callIds: Map<string, { readonly runId: string; readonly position: number }>;
  readonly flows: Map<string, FlowEntry>;
  readonly values: Map<string, Map<string, EncodedValue>>;
  readonly events: Map<string, true>;
  readonly quarantine: QuarantineRow[];
  readonly audit: AuditRow[];
}

export function emptyTables(): Tables {
  return {
    runs: new Map(),
    keys: new Map(),
    callIds: new Map(),
    flows: new Map(),
    values: new Map(),
    events: new Map(),
    quarantine: [],
    audit: [],
  };
}

export function newRunEntry(run: NewRun): RunEntry {
  const row: RunRow = {
    ...run,
    state: "pending",
    status: null,
    reason: null,
    startedAt: null,
    finishedAt: null,
    changedAt: run.createdAt,
    activeMs: 0,
    dueAt: null,
    activations: 0,
    failures: 0,
    cpuUs: 0,
    heapPeakBytes: 0,
    fingerprint: null,
    endOrder: null,
    endStatus: null,
    result: null,
    errorJson: null,
    warningsJson: "[]",
    confinementJson: null,
    cancelRequestedBy: null,
    owner: null,
    generation: 0,
    nextOrder: 0,
    guestClockMs: run.guestStartMs,
    nextLog: 0,
  };
  return {
    row,
    calls: new Map(),
    deliveries: [],
    settled: new Map(),
    logs: [],
    signals: new Map(),
  };
}

export function approvedHash(flow: FlowEntry): string | null {
  for (const { hash, state } of flow.versions.values()) if (state === "approved") return hash;
  return null;
}

/** The keys and values of one flow, inside one unit. */
export function localTx(tables: Tables, flow: string, undo: Undo): LocalTx {
  const values = (): Map<string, EncodedValue> => {
    let map = tables.values.get(flow);
    if (map === undefined) {
      map = new Map();
      undo.set(tables.values, flow, map);
    }
    return map;
  };
  return {
    get: (key) => tables.values.get(flow)?.get(key),
    put: (key, value) => undo.set(values(), key, value),
    delete: (key) => undo.delete(values(), key),
    list: (prefix, after, limit) =>
      [...(tables.values.get(flow)?.keys() ?? [])]
        .filter((key) => key.startsWith(prefix) && (after === null || compareKeys(key, after) > 0))
        .sort(compareKeys)
        .slice(0, limit),
    bytes: () => {
      let bytes = 0;
      for (const [key, value] of tables.values.get(flow) ?? []) bytes += localBytes(key, value);
      return bytes;
    },
  };
}

function compareKeys(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
