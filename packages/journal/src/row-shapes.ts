/**
 * The shapes of what a journal holds, declared once: `units.ts` puts operations together from them, `recording.ts` the rows
 * of a recording. The two differ in how bytes are written, so that shapes are made for a reader of bytes.
 */

import {
  type CallNote,
  type CallOutcome,
  type EncodedValue,
  effects,
  isHostErrorCode,
  isStatus,
  type Status,
  type WaitCondition,
} from "@flowcell/protocol";
import { Refused } from "./rules.js";
import type { Trigger } from "./store.js";
import {
  boolean,
  count,
  fail,
  free,
  id,
  isObject,
  list,
  long,
  name,
  nullable,
  object,
  oneOf,
  positive,
  type Shape,
  type Take,
  time,
  variants,
} from "./take.js";

const noteBytes = 4096;

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

const trigger = variants<Trigger>({
  manual: { by: free },
  cron: { scheduledAt: time },
  event: { eventId: id, name },
  flow: { runId: id, position: count },
  retry: { of: id },
});

export interface RowShapes {
  readonly encoded: Take<EncodedValue>;
  readonly outcome: Take<CallOutcome>;
  /** Fields of NewRun, RunProgress and NewCall. */
  readonly newRun: Shape;
  readonly progress: Shape;
  readonly newCall: Shape;
}

export function rowShapes(bytes: Take<Uint8Array>): RowShapes {
  const encoded = object<EncodedValue>({ text: long, devalue: boolean, attachments: list(bytes) });

  const succeeded = object<CallOutcome>({ ok: boolean, value: encoded });
  const failed = object<CallOutcome>({ ok: boolean, error: hostError });
  const outcome: Take<CallOutcome> = (value, where) =>
    isObject(value) && value["ok"] === true ? succeeded(value, where) : failed(value, where);

  const waitCondition = variants<WaitCondition>({
    time: { waitMs: time },
    signal: { name, timeoutMs: nullable(time) },
    approval: { title: free, detail: nullable(encoded), timeoutMs: nullable(time) },
    run: { runId: id, timeoutMs: nullable(time) },
  });

  const newRun: Shape = {
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
  };

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

  const newCall: Shape = {
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
  };

  return { encoded, outcome, newRun, progress, newCall };
}
