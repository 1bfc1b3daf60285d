/**
 * Applies one operation of a unit to the tables of the memory store. Called by `store.ts` with an operation that `takeUnit`
 * has copied; throws Refused, and the caller takes everything back.
 */

import type { CallOutcome } from "@flowcell/protocol";
import { carryOut } from "../local.js";
import {
  type CallHead,
  conflict,
  fencedOff,
  mayBeBegun,
  mayBeLocal,
  mayBeRecorded,
  mayBeUnknown,
  mayDeliver,
  mayProgress,
  mayTakeSignal,
  mustBeOpen,
  newLines,
  recorded,
} from "../rules.js";
import type {
  CallRow,
  Delivery,
  Fence,
  FreeOperation,
  Operation,
  OperationResult,
  RunOperation,
  VersionRow,
} from "../store.js";
import { localTx, newRunEntry, type RunEntry, type Tables } from "./tables.js";
import type { Undo } from "./undo.js";

const done: OperationResult = Object.freeze({ kind: "done" });

/** The run of a fence, if it is unfinished and held by it. */
export function fencedRun(tables: Tables, fence: Fence): RunEntry {
  const run = tables.runs.get(fence.runId);
  if (
    run === undefined ||
    run.row.state === "finished" ||
    run.row.owner !== fence.owner ||
    run.row.generation !== fence.generation
  )
    throw fencedOff(fence.runId);
  return run;
}

export function apply(
  tables: Tables,
  fence: Fence | undefined,
  operation: Operation,
  undo: Undo,
): OperationResult {
  switch (operation.kind) {
    case "call":
    case "attempt":
    case "cancelCall":
    case "unknown":
    case "deliver":
    case "timer":
    case "local":
    case "takeSignal":
    case "logs":
    case "run":
      if (fence === undefined) throw conflict(`operation ${operation.kind} needs a fence`);
      return applyToRun(tables, fencedRun(tables, fence), operation, undo);
    default:
      return applyFree(tables, operation, undo);
  }
}

function headOf(run: RunEntry, call: CallRow): CallHead {
  return { effect: call.effect, wait: call.wait, settled: run.settled.has(call.position) };
}

function applyToRun(tables: Tables, run: RunEntry, operation: RunOperation, undo: Undo): OperationResult {
  const { runId } = run.row;
  const callAt = (position: number): CallRow => recorded(run.calls.get(position), runId, position);
  switch (operation.kind) {
    case "call": {
      const { call, attempts } = operation;
      if (run.calls.has(call.position))
        throw conflict(`run ${runId}: call ${call.position} is recorded already`);
      if (call.callId !== null && tables.callIds.has(call.callId))
        throw conflict(`run ${runId}: the id ${call.callId} is another call's`);
      mayBeRecorded(call, attempts, runId);
      undo.set(run.calls, call.position, { ...call, attempts, cancelled: false, unknownReason: null });
      if (call.callId !== null) undo.set(tables.callIds, call.callId, { runId, position: call.position });
      return done;
    }
    case "attempt": {
      const call = callAt(operation.position);
      mayBeBegun(headOf(run, call), runId, call.position);
      undo.set(run.calls, call.position, { ...call, attempts: call.attempts + 1 });
      return done;
    }
    case "cancelCall": {
      const call = callAt(operation.position);
      undo.set(run.calls, call.position, { ...call, cancelled: true });
      return done;
    }
    case "unknown": {
      const call = callAt(operation.position);
      mayBeUnknown(headOf(run, call), operation.reason, runId, call.position);
      undo.set(run.calls, call.position, { ...call, unknownReason: operation.reason });
      return done;
    }
    case "deliver":
      mayDeliver(run.row, operation);
      mustBeOpen(headOf(run, callAt(operation.position)), runId, operation.position);
      deliver(run, operation, operation.outcome, undo);
      return done;
    case "timer": {
      mayDeliver(run.row, operation);
      const { order, guestClockMs, at } = operation;
      append(run, { order, kind: "timer", guestClockMs, at }, undo);
      return done;
    }
    case "local": {
      mayDeliver(run.row, operation);
      const head = headOf(run, callAt(operation.position));
      mustBeOpen(head, runId, operation.position);
      mayBeLocal(head, runId, operation.position);
      const tx = localTx(tables, run.row.flow, undo);
      const outcome = carryOut(tx, operation.operation, operation.bytesMax);
      deliver(run, operation, outcome, undo);
      return { kind: "outcome", outcome };
    }
    case "takeSignal": {
      mayDeliver(run.row, operation);
      const head = headOf(run, callAt(operation.position));
      mustBeOpen(head, runId, operation.position);
      mayTakeSignal(head, operation.name, runId, operation.position);
      for (const signal of run.signals.values()) {
        if (signal.taken || signal.name !== operation.name) continue;
        undo.assign(signal, "taken", true);
        deliver(run, operation, { ok: true, value: signal.value }, undo);
        return { kind: "signal", value: signal.value };
      }
      return { kind: "signal", value: null };
    }
    case "logs": {
      const fresh = newLines(runId, operation.lines, run.row.nextLog);
      for (const line of fresh) undo.push(run.logs, line);
      undo.assign(run, "row", { ...run.row, nextLog: run.row.nextLog + fresh.length });
      return done;
    }
    case "run": {
      const row = { ...run.row, ...operation.patch };
      mayProgress(runId, row, row.nextOrder);
      undo.assign(run, "row", row);
      return done;
    }
  }
}

function deliver(
  run: RunEntry,
  to: {
    readonly order: number;
    readonly guestClockMs: number;
    readonly position: number;
    readonly at: number;
  },
  outcome: CallOutcome,
  undo: Undo,
): void {
  const { order, guestClockMs, position, at } = to;
  undo.set(run.settled, position, true);
  append(run, { order, kind: "call", guestClockMs, position, outcome, at }, undo);
}

function append(run: RunEntry, delivery: Delivery, undo: Undo): void {
  undo.push(run.deliveries, delivery);
  const { order, guestClockMs } = delivery;
  undo.assign(run, "row", { ...run.row, nextOrder: order + 1, guestClockMs });
}

function applyFree(tables: Tables, operation: FreeOperation, undo: Undo): OperationResult {
  switch (operation.kind) {
    case "createRun": {
      const { run } = operation;
      const { runId, flow, deduplicationKey } = run;
      const before = deduplicationKey === null ? undefined : tables.keys.get(flow)?.get(deduplicationKey);
      if (before !== undefined) return { kind: "run", created: false, runId: before };
      if (tables.runs.has(runId)) throw conflict(`run ${runId} is there already`);
      undo.set(tables.runs, runId, newRunEntry(run));
      if (deduplicationKey !== null) {
        let keys = tables.keys.get(flow);
        if (keys === undefined) {
          keys = new Map();
          undo.set(tables.keys, flow, keys);
        }
        undo.set(keys, deduplicationKey, runId);
      }
      return { kind: "run", created: true, runId };
    }
    case "claim": {
      const run = tables.runs.get(operation.runId);
      if (run === undefined || run.row.state === "finished") throw fencedOff(operation.runId);
      const generation = run.row.generation + 1;
      undo.assign(run, "row", { ...run.row, owner: operation.owner, generation });
      return { kind: "claim", generation };
    }
    case "sendSignal": {
      const { name, value, signalId } = operation;
      const run = tables.runs.get(operation.runId);
      if (run === undefined || run.row.state === "finished" || run.signals.has(signalId))
        return { kind: "sent", sent: false };
      undo.set(run.signals, signalId, { name, value, taken: false });
      return { kind: "sent", sent: true };
    }
    case "quarantine":
      undo.push(tables.quarantine, operation.row);
      return done;
    case "audit":
      undo.push(tables.audit, operation.row);
      return done;
    case "addVersion":
    case "decideVersion":
    case "flow":
      return applyToFlow(tables, operation, undo);
    case "event": {
      if (tables.events.has(operation.eventId)) return { kind: "event", added: false };
      undo.set(tables.events, operation.eventId, true);
      return { kind: "event", added: true };
    }
  }
}

function applyToFlow(
  tables: Tables,
  operation: Extract<FreeOperation, { readonly kind: "addVersion" | "decideVersion" | "flow" }>,
  undo: Undo,
): OperationResult {
  switch (operation.kind) {
    case "addVersion": {
      const { version } = operation;
      let flow = tables.flows.get(version.flow);
      if (flow === undefined) {
        const row = {
          flow: version.flow,
          enabled: true,
          disabledBy: null,
          disabledReason: null,
          violationsInARow: 0,
          changedAt: version.installedAt,
          nextFireAt: null,
        };
        flow = { row, versions: new Map() };
        undo.set(tables.flows, version.flow, flow);
      }
      const before = flow.versions.get(version.hash);
      if (before !== undefined) return { kind: "version", number: before.number, added: false };
      const number = flow.versions.size + 1;
      const row: VersionRow = {
        ...version,
        number,
        state: "installed",
        decidedAt: null,
        decidedBy: null,
        decisionReason: null,
      };
      undo.set(flow.versions, version.hash, row);
      return { kind: "version", number, added: true };
    }
    case "decideVersion": {
      const { hash, state, by, reason, at } = operation;
      const flow = tables.flows.get(operation.flow);
      const version = flow?.versions.get(hash);
      if (flow === undefined || version === undefined)
        throw conflict(`flow ${operation.flow}: version ${hash} is not installed`);
      if (state === "approved") {
        for (const other of flow.versions.values()) {
          if (other.state === "approved" && other.hash !== hash)
            undo.set(flow.versions, other.hash, { ...other, state: "superseded" });
        }
      }
      undo.set(flow.versions, hash, {
        ...version,
        state,
        decidedAt: at,
        decidedBy: by,
        decisionReason: reason,
      });
      undo.assign(flow, "row", { ...flow.row, changedAt: at });
      return done;
    }
    case "flow": {
      const flow = tables.flows.get(operation.flow);
      if (flow === undefined) throw conflict(`flow ${operation.flow} is not installed`);
      undo.assign(flow, "row", { ...flow.row, ...operation.patch });
      return done;
    }
  }
}
