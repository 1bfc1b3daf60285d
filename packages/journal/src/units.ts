/**
 * Takes a unit from a caller: checks the shape of every operation and copies it, so that what a store keeps is neither
 * malformed nor shared with its caller. Called by every store before anything else looks at a unit.
 *
 * Callers are flowcell's own code; what they pass holds a script's text and bytes, already bounded by the run's limits. Kept
 * true beside what `take.ts` says: each attachment has bytes of its own.
 */

import type { CallOutcome, EncodedValue, LocalOperation } from "@flowcell/protocol";
import { rowShapes } from "./row-shapes.js";
import { Refused } from "./rules.js";
import type { Fence, Operation, RunPatch, Unit } from "./store.js";
import {
  boolean,
  count,
  fail,
  fields,
  free,
  id,
  list,
  long,
  name,
  nullable,
  object,
  oneOf,
  positive,
  type Shape,
  scriptKey,
  type Take,
  time,
  variants,
} from "./take.js";

const bytes: Take<Uint8Array> = (value, where) =>
  value instanceof Uint8Array ? new Uint8Array(value) : fail(where, "bytes");

const { encoded, outcome, newRun, progress, newCall } = rowShapes(bytes);

const patch: Take<RunPatch> = (value, where) => fields(progress, value, where, true) as RunPatch; // its own shape

const newVersion = object({
  flow: id,
  hash: id,
  manifestText: long,
  bundle: long,
  bundleMap: long,
  sources: list(object({ path: id, text: long })),
  installedAt: time,
  installedBy: free,
  dryRunJson: nullable(long),
});

const localOperation = variants<LocalOperation>({
  "kv.get": { key: scriptKey },
  "kv.set": { key: scriptKey, value: encoded },
  "kv.delete": { key: scriptKey },
  "kv.list": { prefix: scriptKey, after: nullable(scriptKey), limit: count },
  "kv.compareAndSet": { key: scriptKey, expected: nullable(encoded), value: nullable(encoded) },
});

const flowPatchShape: Shape = {
  enabled: boolean,
  disabledBy: nullable(free),
  disabledReason: nullable(free),
  violationsInARow: count,
  nextFireAt: nullable(time),
  changedAt: time,
};

const logRow = object({
  seq: count,
  level: oneOf("debug", "log", "info", "warn", "error"),
  guestTimeMs: time,
  text: free,
});

const delivered: Shape = { order: count, guestClockMs: time, position: count, at: time };

const shapes: { readonly [kind in Operation["kind"]]: Shape } = {
  call: { call: object(newCall), attempts: count },
  attempt: { position: count },
  cancelCall: { position: count },
  unknown: { position: count, reason: nullable(free) },
  deliver: { ...delivered, outcome },
  timer: { order: count, guestClockMs: time, at: time },
  local: { ...delivered, operation: localOperation, bytesMax: count },
  takeSignal: { ...delivered, name },
  logs: { lines: list(logRow) },
  run: { patch },
  createRun: { run: object(newRun) },
  claim: { runId: id, owner: id },
  sendSignal: { runId: id, name, value: encoded, signalId: id, at: time },
  quarantine: {
    row: object({ runId: id, position: count, at: time, reason: free, outcome: nullable(outcome) }),
  },
  audit: {
    row: object({
      at: time,
      actor: free,
      action: free,
      flow: nullable(id),
      runId: nullable(id),
      detail: free,
    }),
  },
  addVersion: { version: newVersion },
  decideVersion: {
    flow: id,
    hash: id,
    state: oneOf("approved", "rejected", "revoked"),
    by: free,
    reason: nullable(free),
    at: time,
  },
  flow: { flow: id, patch: (value, where) => fields(flowPatchShape, value, where, true) },
  event: { eventId: id, name, value: encoded, at: time },
};

const operation = variants<Operation>(shapes);
const fence = object<Fence>({ runId: id, owner: id, generation: positive });

/** A copy of the unit; throws Refused with the place of the operation that is malformed. */
export function takeUnit(unit: Unit): Unit {
  const operations = unit.operations.map((one, at) => {
    try {
      return operation(one, "operation");
    } catch (error) {
      throw error instanceof Refused ? error.at(at) : error;
    }
  });
  return unit.fence === undefined ? { operations } : { fence: fence(unit.fence, "fence"), operations };
}

export function copyValue(value: EncodedValue): EncodedValue {
  return {
    text: value.text,
    devalue: value.devalue,
    attachments: value.attachments.map((part) => new Uint8Array(part)),
  };
}

export function copyOutcome(one: CallOutcome): CallOutcome {
  return one.ok
    ? { ok: true, value: copyValue(one.value) }
    : { ok: false, error: structuredClone(one.error) };
}
