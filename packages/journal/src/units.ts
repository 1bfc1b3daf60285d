/**
 * Takes a unit from a caller: checks the shape of every operation and copies it, so that what a store keeps is neither
 * malformed nor shared with its caller. Called by every store before anything else looks at a unit.
 *
 * Callers are flowcell's own code; what they pass holds a script's text and bytes, already bounded by the run's limits.
 * The bounds here are far above those and only keep one mistake from filling a store. Kept true: unknown fields are
 * refused; numbers are finite; names are well-formed Unicode (a store that keeps UTF-8 would change them); free text is
 * made well-formed; each attachment has bytes of its own.
 */

import {
  type CallNote,
  type CallOutcome,
  type EncodedValue,
  effects,
  isHostErrorCode,
  isStatus,
  type LocalOperation,
  type Status,
  type WaitCondition,
} from "@flowcell/protocol";
import { Refused } from "./rules.js";
import type { Fence, Operation, RunPatch, Trigger, Unit } from "./store.js";

type Take<T = unknown> = (value: unknown, where: string) => T;
type Shape = { readonly [field: string]: Take };

const MiB = 1024 * 1024;
/** A bundle or a text of a value; a manifest's limits are a megabyte. */
const longChars = 64 * MiB;
const freeChars = MiB;
const nameChars = 1024;
const noteBytes = 4096;
const partsMax = 65_536;

const loneSurrogate = /\p{Cs}/u;

export function isWellFormed(text: string): boolean {
  return !loneSurrogate.test(text);
}

function fail(where: string, what: string): never {
  throw new Refused("conflict", `${where} must be ${what}`);
}

const boolean: Take<boolean> = (value, where) =>
  typeof value === "boolean" ? value : fail(where, "true or false");

const time: Take<number> = (value, where) =>
  // + 0: a store cannot be relied on to keep the sign of zero.
  typeof value === "number" && Number.isFinite(value) ? value + 0 : fail(where, "a finite number");

const count: Take<number> = (value, where) =>
  Number.isSafeInteger(value) && Number(value) >= 0
    ? Number(value) + 0
    : fail(where, "a whole number from 0");

const positive: Take<number> = (value, where) =>
  Number.isSafeInteger(value) && Number(value) >= 1 ? Number(value) : fail(where, "a whole number from 1");

function exact(charsMax: number): Take<string> {
  return (value, where) => {
    if (typeof value !== "string" || value.length > charsMax)
      fail(where, `text of at most ${charsMax} characters`);
    return isWellFormed(value) ? value : fail(where, "well-formed Unicode");
  };
}

const long = exact(longChars);
const name = exact(nameChars);

const id: Take<string> = (value, where) =>
  value === "" ? fail(where, "text that is not empty") : name(value, where);

/** Text that people read: a lone half of a character in it, for example from cutting, is replaced. */
const free: Take<string> = (value, where) => {
  if (typeof value !== "string" || value.length > freeChars)
    fail(where, `text of at most ${freeChars} characters`);
  return isWellFormed(value) ? value : value.replace(/\p{Cs}/gu, "\ufffd");
};

/** A key of a script: `carryOut` answers the script if it is not well-formed. */
const scriptKey: Take<string> = (value, where) =>
  typeof value === "string" && value.length <= longChars ? value : fail(where, "text");

function nullable<T>(take: Take<T>): Take<T | null> {
  return (value, where) => (value === null ? null : take(value, where));
}

function oneOf<T extends string>(...names: readonly T[]): Take<T> {
  return (value, where) => names.find((one) => one === value) ?? fail(where, names.join(", "));
}

function list<T>(take: Take<T>): Take<T[]> {
  return (value, where) => {
    if (!Array.isArray(value) || value.length > partsMax) fail(where, "a list");
    return value.map((one, at) => take(one, `${where}[${at}]`));
  };
}

function isObject(value: unknown): value is { readonly [field: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function fields(shape: Shape, value: unknown, where: string, partial: boolean): Record<string, unknown> {
  if (!isObject(value)) fail(where, "an object");
  const copy: Record<string, unknown> = {};
  for (const field of Object.keys(value)) {
    const take = Object.hasOwn(shape, field) ? shape[field] : undefined;
    if (take === undefined) throw new Refused("conflict", `${where} has an unknown field ${field}`);
    copy[field] = take(value[field], `${where}.${field}`);
  }
  if (!partial) {
    for (const field of Object.keys(shape)) {
      if (!Object.hasOwn(copy, field)) throw new Refused("conflict", `${where} lacks ${field}`);
    }
  }
  return copy;
}

function object<T>(shape: Shape): Take<T> {
  return (value, where) => fields(shape, value, where, false) as T; // each shape stands beside the type it is made for
}

function variants<T>(shapes: { readonly [kind: string]: Shape }): Take<T> {
  const kind = oneOf(...Object.keys(shapes));
  const takers = new Map(
    Object.entries(shapes).map(([key, shape]) => [key, object<T>({ kind: name, ...shape })] as const),
  );
  return (value, where) => {
    const take = takers.get(kind(isObject(value) ? value["kind"] : undefined, `${where}.kind`));
    return take === undefined ? fail(where, "of a known kind") : take(value, where);
  };
}

const bytes: Take<Uint8Array> = (value, where) =>
  value instanceof Uint8Array ? new Uint8Array(value) : fail(where, "bytes");

const encoded = object<EncodedValue>({ text: long, devalue: boolean, attachments: list(bytes) });

const status: Take<Status> = (value, where) =>
  typeof value === "string" && isStatus(value) ? value : fail(where, "a status");

/** A copy as it comes back from a store that keeps text. */
function throughJson(value: unknown, where: string): unknown {
  try {
    return JSON.parse(JSON.stringify(value)) as unknown; // any by the library
  } catch {
    return fail(where, "what JSON can carry");
  }
}

const errorFields = ["code", "message", "detail", "retryable", "name"];
const hostError: Take = (value, where) => {
  const copy = throughJson(value, where);
  if (!isObject(copy) || typeof copy["code"] !== "string" || !isHostErrorCode(copy["code"]))
    fail(where, "the data of a host error");
  boolean(copy["retryable"], `${where}.retryable`);
  if (typeof copy["message"] !== "string") fail(`${where}.message`, "text");
  if (copy["name"] !== undefined && typeof copy["name"] !== "string") fail(`${where}.name`, "text");
  for (const field of Object.keys(copy)) {
    if (!errorFields.includes(field)) throw new Refused("conflict", `${where} has an unknown field ${field}`);
  }
  return copy;
};

const succeeded = object<CallOutcome>({ ok: boolean, value: encoded });
const failed = object<CallOutcome>({ ok: boolean, error: hostError });
const outcome: Take<CallOutcome> = (value, where) =>
  isObject(value) && value["ok"] === true ? succeeded(value, where) : failed(value, where);

const note: Take<CallNote> = (value, where) => {
  const copy = throughJson(value, where);
  if (!isObject(copy)) fail(where, "an object");
  for (const [field, one] of Object.entries(copy)) {
    if (typeof one === "object" && one !== null)
      fail(`${where}.${field}`, "text, a number, true, false or null");
  }
  if (Buffer.byteLength(JSON.stringify(copy)) > noteBytes) fail(where, `at most ${noteBytes} bytes as JSON`);
  return copy as CallNote; // just checked
};

const waitCondition = variants<WaitCondition>({
  time: { waitMs: time },
  signal: { name, timeoutMs: nullable(time) },
  approval: { title: free, detail: nullable(encoded), timeoutMs: nullable(time) },
  run: { runId: id, timeoutMs: nullable(time) },
});

const trigger = variants<Trigger>({
  manual: { by: free },
  cron: { scheduledAt: time },
  event: { eventId: id, name },
  flow: { runId: id, position: count },
  retry: { of: id },
});

const newRun = object({
  runId: id,
  flow: id,
  versionHash: id,
  trigger,
  deduplicationKey: nullable(id),
  concurrencyKey: name,
  input: encoded,
  seed: id,
  guestStartMs: time,
  createdAt: time,
  notBefore: time,
  deadlineMs: time,
  attempt: positive,
});

const progress: Shape = {
  state: oneOf("pending", "running", "suspended", "finished"),
  status: nullable(status),
  reason: nullable(free),
  startedAt: nullable(time),
  finishedAt: nullable(time),
  changedAt: time,
  activeMs: time,
  dueAt: nullable(time),
  activations: count,
  failures: count,
  cpuUs: time,
  heapPeakBytes: count,
  fingerprint: nullable(free),
  endOrder: nullable(count),
  endStatus: nullable(status),
  result: nullable(encoded),
  errorJson: nullable(long),
  warningsJson: long,
  confinementJson: nullable(long),
  cancelRequestedBy: nullable(free),
};

const patch: Take<RunPatch> = (value, where) => fields(progress, value, where, true) as RunPatch; // its own shape

const newCall = object({
  position: count,
  name: id,
  effect: oneOf(...effects),
  digest: id,
  args: encoded,
  idempotencyKey: id,
  madeAt: time,
  note: nullable(note),
  wait: nullable(waitCondition),
  dueAt: nullable(time),
  callId: nullable(id),
});

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
  call: { call: newCall, attempts: count },
  attempt: { position: count },
  cancelCall: { position: count },
  unknown: { position: count, reason: nullable(free) },
  deliver: { ...delivered, outcome },
  timer: { order: count, guestClockMs: time, at: time },
  local: { ...delivered, operation: localOperation, bytesMax: count },
  takeSignal: { ...delivered, name },
  logs: { lines: list(logRow) },
  run: { patch },
  createRun: { run: newRun },
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
