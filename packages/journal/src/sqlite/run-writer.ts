/**
 * Writes the operations of a fenced unit. Called by `units.ts` inside the unit's savepoint; throws Refused, and the caller
 * rolls back. Every statement that advances a run carries the fence itself, beside the check when the unit begins.
 */

import type { CallOutcome, Effect, WaitCondition } from "@flowcell/protocol";
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
  type RunHead,
  recorded,
} from "../rules.js";
import type { Fence, LogRow, OperationResult, RunOperation, RunPatch, RunProgress } from "../store.js";
import type { Database, Statement } from "./driver.js";
import { type KeyValues, localTx } from "./key-values.js";
import type { Values } from "./values.js";

/** The run of a unit, as far as its operations need it. */
export interface FencedRun extends RunHead {
  readonly fence: Fence;
  readonly seq: number;
  readonly flow: string;
  nextOrder: number;
  guestClockMs: number;
}

interface CallState {
  readonly effect: Effect;
  readonly wait_json: string | null;
  readonly settled: number;
}

interface ProgressState {
  readonly state: RunProgress["state"];
  readonly status: RunProgress["status"];
  readonly finishedAt: number | null;
  readonly endOrder: number | null;
  readonly endStatus: RunProgress["endStatus"];
}

const done: OperationResult = Object.freeze({ kind: "done" });

const held = "seq = ? AND owner = ? AND generation = ? AND state <> 'finished'";
const whileHeld = `EXISTS (SELECT 1 FROM runs WHERE ${held})`;

/** Column of each field of a patch but `result`, which has three. */
const patchColumns: { readonly [field in Exclude<keyof RunProgress, "result">]: string } = {
  state: "state",
  status: "status",
  reason: "reason",
  startedAt: "started_at",
  finishedAt: "finished_at",
  changedAt: "changed_at",
  activeMs: "active_ms",
  dueAt: "due_at",
  activations: "activations",
  failures: "failures",
  cpuUs: "cpu_us",
  heapPeakBytes: "heap_peak_bytes",
  fingerprint: "fingerprint",
  endOrder: "end_order",
  endStatus: "end_status",
  errorJson: "error_json",
  warningsJson: "warnings_json",
  confinementJson: "confinement_json",
  cancelRequestedBy: "cancel_requested_by",
};

/** Shapes of patches are few; a caller that makes up new ones for ever only loses the cache. */
const patchShapesMax = 64;

export class RunWriter {
  readonly #db: Database;
  readonly #values: Values;
  readonly #keyValues: KeyValues;
  readonly #head: Statement<{
    readonly seq: number;
    readonly flow: string;
    readonly next_order: number;
    readonly guest_clock_ms: number;
  }>;
  readonly #callState: Statement<CallState>;
  readonly #callId: Statement;
  readonly #addCall: Statement;
  readonly #attempt: Statement;
  readonly #cancel: Statement;
  readonly #unknown: Statement;
  readonly #deliver: Statement;
  readonly #signal: Statement<{
    readonly seq: number;
    readonly value_text: string;
    readonly value_devalue: number;
    readonly value_parts: Uint8Array | null;
  }>;
  readonly #takeSignal: Statement;
  readonly #nextLog: Statement<{ readonly next: number }>;
  readonly #addLine: Statement;
  readonly #progress: Statement<ProgressState>;
  readonly #patches = new Map<string, Statement>();

  constructor(db: Database, values: Values, keyValues: KeyValues) {
    this.#db = db;
    this.#values = values;
    this.#keyValues = keyValues;
    this.#head = db.prepare(
      `SELECT r.seq, r.flow,
         coalesce((SELECT max(ord) + 1 FROM deliveries WHERE run = r.seq), 0) AS next_order,
         coalesce((SELECT guest_clock_ms FROM deliveries WHERE run = r.seq ORDER BY ord DESC LIMIT 1),
           s.guest_start_ms) AS guest_clock_ms
       FROM runs r JOIN run_starts s ON s.run = r.seq
       WHERE r.id = ? AND r.owner = ? AND r.generation = ? AND r.state <> 'finished'`,
    );
    this.#callState = db.prepare(
      `SELECT effect, wait_json,
         EXISTS (SELECT 1 FROM deliveries d WHERE d.run = c.run AND d.position = c.position) AS settled
       FROM calls c WHERE run = ? AND position = ?`,
    );
    this.#callId = db.prepare("SELECT 1 FROM calls WHERE call_id = ?");
    this.#addCall = db.prepare(
      `INSERT INTO calls (run, position, name, effect, attempts, digest, idempotency_key, made_at, note_json, wait_json,
         due_at, call_id, args_text, args_devalue, args_parts, detail_text, detail_devalue, detail_parts)
       SELECT seq, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM runs WHERE ${held}`,
    );
    const update = (set: string): Statement =>
      db.prepare(`UPDATE calls SET ${set} WHERE run = ? AND position = ? AND ${whileHeld}`);
    this.#attempt = update("attempts = attempts + 1");
    this.#cancel = update("cancelled = 1");
    this.#unknown = update("unknown_reason = ?");
    this.#deliver = db.prepare(
      `INSERT INTO deliveries (run, ord, kind, guest_clock_ms, at, position,
         error_json, value_text, value_devalue, value_parts)
       SELECT seq, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM runs WHERE ${held}`,
    );
    this.#signal = db.prepare(
      `SELECT seq, value_text, value_devalue, value_parts FROM signals
       WHERE run = ? AND name = ? AND taken_ord IS NULL ORDER BY seq LIMIT 1`,
    );
    this.#takeSignal = db.prepare(`UPDATE signals SET taken_ord = ? WHERE seq = ? AND ${whileHeld}`);
    this.#nextLog = db.prepare("SELECT coalesce(max(seq) + 1, 0) AS next FROM log_lines WHERE run = ?");
    this.#addLine = db.prepare(
      `INSERT INTO log_lines (run, seq, level, guest_time_ms, text) SELECT seq, ?, ?, ?, ? FROM runs WHERE ${held}`,
    );
    this.#progress = db.prepare(
      `SELECT state, status, finished_at AS finishedAt, end_order AS endOrder, end_status AS endStatus
       FROM runs WHERE seq = ?`,
    );
  }

  /** The run of a fence, if it is unfinished and held by it. */
  open(fence: Fence): FencedRun {
    const row = this.#head.get(fence.runId, fence.owner, fence.generation);
    if (row === undefined) throw fencedOff(fence.runId);
    return {
      fence,
      runId: fence.runId,
      seq: row.seq,
      flow: row.flow,
      nextOrder: row.next_order,
      guestClockMs: row.guest_clock_ms,
    };
  }

  apply(run: FencedRun, operation: RunOperation): OperationResult {
    const { runId } = run;
    switch (operation.kind) {
      case "call":
        this.#record(run, operation);
        return done;
      case "attempt":
        mayBeBegun(this.#callAt(run, operation.position), runId, operation.position);
        this.#advance(run, this.#attempt, run.seq, operation.position);
        return done;
      case "cancelCall":
        this.#callAt(run, operation.position);
        this.#advance(run, this.#cancel, run.seq, operation.position);
        return done;
      case "unknown":
        mayBeUnknown(this.#callAt(run, operation.position), operation.reason, runId, operation.position);
        this.#advance(run, this.#unknown, operation.reason, run.seq, operation.position);
        return done;
      case "deliver":
        mayDeliver(run, operation);
        mustBeOpen(this.#callAt(run, operation.position), runId, operation.position);
        this.#append(run, operation, operation.position, operation.outcome);
        return done;
      case "timer":
        mayDeliver(run, operation);
        this.#append(run, operation, null, null);
        return done;
      case "local": {
        mayDeliver(run, operation);
        const call = this.#callAt(run, operation.position);
        mustBeOpen(call, runId, operation.position);
        mayBeLocal(call, runId, operation.position);
        const tx = localTx(this.#keyValues, run.flow);
        const outcome = carryOut(tx, operation.operation, operation.bytesMax);
        this.#append(run, operation, operation.position, outcome);
        return { kind: "outcome", outcome };
      }
      case "takeSignal":
        return this.#take(run, operation);
      case "logs":
        this.#log(run, operation.lines);
        return done;
      case "run":
        this.#patch(run, operation.patch);
        return done;
    }
  }

  #callAt(run: FencedRun, position: number): CallHead {
    const row = recorded(this.#callState.get(run.seq, position), run.runId, position);
    return { effect: row.effect, wait: parseWait(row.wait_json), settled: row.settled === 1 };
  }

  /** Runs a statement that carries the fence; it changes one row, or the run is no longer held. */
  #advance(run: FencedRun, statement: Statement, ...values: readonly unknown[]): void {
    const { owner, generation } = run.fence;
    const { changes } = statement.run(...values, run.seq, owner, generation);
    if (changes !== 1) throw fencedOff(run.runId);
  }

  #record(run: FencedRun, { call, attempts }: Extract<RunOperation, { readonly kind: "call" }>): void {
    const { position, wait } = call;
    if (this.#callState.get(run.seq, position) !== undefined)
      throw conflict(`run ${run.runId}: call ${position} is recorded already`);
    if (call.callId !== null && this.#callId.get(call.callId) !== undefined)
      throw conflict(`run ${run.runId}: the id ${call.callId} is another call's`);
    mayBeRecorded(call, attempts, run.runId);
    const detail = wait?.kind === "approval" ? wait.detail : null;
    this.#advance(
      run,
      this.#addCall,
      position,
      call.name,
      call.effect,
      attempts,
      call.digest,
      call.idempotencyKey,
      call.madeAt,
      call.note === null ? null : JSON.stringify(call.note),
      wait === null ? null : JSON.stringify(wait.kind === "approval" ? { ...wait, detail: null } : wait),
      call.dueAt,
      call.callId,
      ...this.#values.pack(call.args, { run: run.seq }),
      ...this.#values.packOptional(detail, { run: run.seq }),
    );
  }

  #append(
    run: FencedRun,
    to: { readonly order: number; readonly guestClockMs: number; readonly at: number },
    position: number | null,
    outcome: CallOutcome | null,
  ): void {
    this.#advance(
      run,
      this.#deliver,
      to.order,
      position === null ? "timer" : "call",
      to.guestClockMs,
      to.at,
      position,
      ...this.#values.packOutcome(outcome, { run: run.seq }),
    );
    run.nextOrder += 1;
    run.guestClockMs = to.guestClockMs;
  }

  #take(run: FencedRun, operation: Extract<RunOperation, { readonly kind: "takeSignal" }>): OperationResult {
    mayDeliver(run, operation);
    const call = this.#callAt(run, operation.position);
    mustBeOpen(call, run.runId, operation.position);
    mayTakeSignal(call, operation.name, run.runId, operation.position);
    const signal = this.#signal.get(run.seq, operation.name);
    if (signal === undefined) return { kind: "signal", value: null };
    const value = this.#values.unpack(signal.value_text, signal.value_devalue, signal.value_parts);
    this.#append(run, operation, operation.position, { ok: true, value });
    this.#advance(run, this.#takeSignal, operation.order, signal.seq);
    return { kind: "signal", value };
  }

  #log(run: FencedRun, lines: readonly LogRow[]): void {
    const next = this.#nextLog.get(run.seq)?.next ?? 0;
    for (const { seq, level, guestTimeMs, text } of newLines(run.runId, lines, next)) {
      this.#advance(run, this.#addLine, seq, level, guestTimeMs, text);
    }
  }

  #patch(run: FencedRun, patch: RunPatch): void {
    const before = this.#progress.get(run.seq);
    if (before === undefined) throw fencedOff(run.runId);
    mayProgress(run.runId, { ...before, ...patch }, run.nextOrder);
    const columns: string[] = [];
    const values: unknown[] = [];
    for (const [field, value] of Object.entries(patch)) {
      if (field === "result") continue;
      columns.push(patchColumns[field as keyof typeof patchColumns]); // takeUnit lets no other field through
      values.push(value);
    }
    if (patch.result !== undefined) {
      columns.push("result_text", "result_devalue", "result_parts");
      values.push(...this.#values.packOptional(patch.result, { run: run.seq }));
    }
    if (columns.length > 0) this.#advance(run, this.#patchStatement(columns), ...values);
  }

  #patchStatement(columns: readonly string[]): Statement {
    const key = columns.join();
    let statement = this.#patches.get(key);
    if (statement === undefined) {
      if (this.#patches.size >= patchShapesMax) this.#patches.clear();
      const set = columns.map((column) => `${column} = ?`).join(", ");
      statement = this.#db.prepare(`UPDATE runs SET ${set} WHERE ${held}`);
      this.#patches.set(key, statement);
    }
    return statement;
  }
}

/** A wait condition without an approval's detail, which has columns of its own. */
export function parseWait(text: string | null): WaitCondition | null {
  return text === null ? null : (JSON.parse(text) as WaitCondition); // stored by RunWriter
}
