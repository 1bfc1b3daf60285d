/**
 * A run's history as text, to be kept and replayed for ever: tests keep recordings of each journal format, `flowcell test`
 * and `flowcell replay` read them. Written by `exportRun`, read by `importRun`.
 *
 * ## The text
 * JSON with two spaces of indentation and a newline at the end. One object:
 *   {"flowcellJournal": 1, "calls": [CALL, …], "deliveries": [DELIVERY, …], "run": RUN}
 * flowcellJournal is the journal format. RUN, CALL and DELIVERY have exactly the fields of `RunRow`, `CallRow` and `Delivery`
 * in store.ts, sorted by name; a field that has nothing is null. Calls ascend by position, deliveries by order from 0
 * without gaps. A value is {"attachments": [base64, …], "devalue", "text"}, base64 as of RFC 4648 with padding. The error
 * of an outcome may lack `detail` and `name`.
 *
 * The same history always gives the same text. TRUST: the reader takes text that anybody may have written; it refuses what
 * `exportRun` cannot write: unknown and missing fields, wrong kinds, calls or deliveries out of order, outcomes of calls
 * that are not there, clocks that go back.
 */

import { rowShapes } from "./row-shapes.js";
import { mayDeliver, mayProgress, mustBeOpen, Refused, recorded } from "./rules.js";
import type { CallRow, Delivery, RunHistory, RunRow } from "./store.js";
import {
  boolean,
  count,
  fail,
  free,
  id,
  isObject,
  nullable,
  object,
  oneOf,
  type Take,
  time,
} from "./take.js";

/** Of the rows of a run; a recording of each format is kept and replayed for ever. */
export const journalFormat = 1;

/** Far more than the longest run that limits allow, and no more than this process can hold several times. */
const charsMax = 256 * 1024 * 1024;

/** The text is no recording, or one of another format. */
export class RecordingError extends Error {
  override readonly name = "RecordingError";
}

export function exportRun(history: RunHistory): string {
  const { run, calls, deliveries } = history;
  return `${JSON.stringify({ flowcellJournal: journalFormat, ...sorted({ run, calls, deliveries }) }, null, 2)}\n`;
}

/** Objects with their fields sorted, bytes as base64, and no field that is undefined. */
function sorted(value: object): object {
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, part]) => part !== undefined)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([field, part]) => [field, plain(part)]),
  );
}

function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (Array.isArray(value)) return value.map(plain);
  return typeof value === "object" && value !== null ? sorted(value) : value;
}

const base64: Take<Uint8Array> = (value, where) => {
  if (typeof value !== "string") fail(where, "bytes as base64");
  const bytes = Buffer.from(value, "base64");
  // The decoder skips what it does not know.
  return bytes.toString("base64") === value ? new Uint8Array(bytes) : fail(where, "bytes as base64");
};

const { outcome, newRun, progress, newCall } = rowShapes(base64);

const runRow = object<RunRow>({
  ...newRun,
  ...progress,
  owner: nullable(id),
  generation: count,
  nextOrder: count,
  guestClockMs: time,
  nextLog: count,
});

const callRow = object<CallRow>({
  ...newCall,
  attempts: count,
  cancelled: boolean,
  unknownReason: nullable(free),
});

const timerDelivery = object<Delivery>({
  order: count,
  kind: oneOf("timer"),
  guestClockMs: time,
  at: time,
});

const callDelivery = object<Delivery>({
  order: count,
  kind: oneOf("call"),
  guestClockMs: time,
  position: count,
  outcome,
  at: time,
});

const delivery: Take<Delivery> = (value, where) =>
  isObject(value) && value["kind"] === "timer" ? timerDelivery(value, where) : callDelivery(value, where);

function rows<T>(take: Take<T>): Take<T[]> {
  return (value, where) =>
    Array.isArray(value) ? value.map((one, at) => take(one, `${where}[${at}]`)) : fail(where, "a list");
}

const format: Take<number> = (value, where) => {
  if (value === journalFormat) return journalFormat;
  if (typeof value === "number" && value > journalFormat)
    throw new RecordingError(
      `the recording has journal format ${value}; this flowcell reads format ${journalFormat}: use the newer flowcell that wrote it`,
    );
  return fail(where, `${journalFormat}`);
};

const recording = object<RunHistory & { readonly flowcellJournal: number }>({
  flowcellJournal: format,
  run: runRow,
  calls: rows(callRow),
  deliveries: rows(delivery),
});

/** Throws RecordingError with the place and what must stand there. */
export function importRun(text: string): RunHistory {
  if (text.length > charsMax) throw new RecordingError(`the recording has more than ${charsMax} characters`);
  try {
    const { run, calls, deliveries } = recording(parse(text), "recording");
    check({ run, calls, deliveries });
    return { run, calls, deliveries };
  } catch (error) {
    throw error instanceof Refused ? new RecordingError(error.message) : error;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown; // any by the library
  } catch (error) {
    throw new RecordingError(`the recording is not JSON: ${error instanceof Error ? error.message : error}`);
  }
}

/** The rules of a store, over rows that no store has checked. */
function check({ run, calls, deliveries }: RunHistory): void {
  const byPosition = new Map<number, CallRow>();
  let last = -1;
  for (const call of calls) {
    if (call.position <= last) throw new Refused("conflict", "recording.calls must ascend by position");
    last = call.position;
    byPosition.set(call.position, call);
  }
  const settled = new Set<number>();
  let next = { runId: run.runId, nextOrder: 0, guestClockMs: run.guestStartMs };
  for (const one of deliveries) {
    mayDeliver(next, one);
    if (one.kind === "call") {
      const call = recorded(byPosition.get(one.position), run.runId, one.position);
      mustBeOpen({ ...call, settled: settled.has(one.position) }, run.runId, one.position);
      settled.add(one.position);
    }
    next = { ...next, nextOrder: one.order + 1, guestClockMs: one.guestClockMs };
  }
  if (run.nextOrder !== next.nextOrder)
    throw new Refused("conflict", `recording.run.nextOrder must be ${next.nextOrder}`);
  if (run.guestClockMs !== next.guestClockMs)
    throw new Refused("conflict", `recording.run.guestClockMs must be ${next.guestClockMs}`);
  mayProgress(run.runId, run, run.nextOrder);
}
