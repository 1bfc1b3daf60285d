/** Reads runs with their calls, deliveries and log lines. Called by the store's thread between or inside transactions. */

import type { CallOutcome, Effect, HostErrorData } from "@flowcell/protocol";
import type {
  CallHead,
  CallRow,
  Delivery,
  DeliveryHead,
  LogRow,
  OpenWait,
  QuarantineRow,
  RunHeads,
  RunHistory,
  RunQuery,
  RunRow,
  Trigger,
} from "../store.js";
import type { Database, Statement } from "./driver.js";
import { parseWait } from "./run-writer.js";
import { type Bodies, partsBytes, type Values } from "./values.js";

type Bytes = Uint8Array | null;

interface RawRun extends Omit<RunRow, "trigger" | "input" | "result"> {
  readonly seq: number;
  readonly trigger_json: string;
  readonly input_text: string;
  readonly input_devalue: number;
  readonly input_parts: Bytes;
  readonly result_text: string | null;
  readonly result_devalue: number | null;
  readonly result_parts: Bytes;
}

interface RawCallHead {
  readonly position: number;
  readonly name: string;
  readonly effect: Effect;
  readonly attempts: number;
  readonly cancelled: number;
  readonly unknown_reason: string | null;
  readonly digest: string;
  readonly idempotency_key: string;
  readonly made_at: number;
  readonly note_json: string | null;
  readonly wait_json: string | null;
  readonly due_at: number | null;
  readonly call_id: string | null;
  readonly args_parts: Bytes;
  readonly detail_text: string | null;
  readonly detail_devalue: number | null;
  readonly detail_parts: Bytes;
}

interface RawCall extends RawCallHead {
  readonly args_text: string;
  readonly args_devalue: number;
}

interface RawOutcome {
  readonly position: number | null;
  readonly at: number;
  readonly error_json: string | null;
  readonly value_text: string | null;
  readonly value_devalue: number | null;
  readonly value_parts: Bytes;
}

interface RawDelivery extends RawOutcome {
  readonly ord: number;
  readonly guest_clock_ms: number;
}

interface RawDeliveryHead extends Omit<RawDelivery, "value_text" | "value_devalue"> {
  readonly value_text_bytes: number | null;
}

/** What text takes as it is stored. */
const bytesOf = (column: string): string => `length(CAST(${column} AS BLOB)) AS ${column}_bytes`;

const selectRun = `SELECT r.seq, r.id AS runId, r.flow, r.owner, r.generation, r.state, r.status, r.reason,
  r.started_at AS startedAt, r.finished_at AS finishedAt, r.changed_at AS changedAt, r.active_ms AS activeMs,
  r.due_at AS dueAt, r.activations, r.failures, r.cpu_us AS cpuUs, r.heap_peak_bytes AS heapPeakBytes, r.fingerprint,
  r.end_order AS endOrder, r.end_status AS endStatus, r.error_json AS errorJson, r.warnings_json AS warningsJson,
  r.confinement_json AS confinementJson, r.cancel_requested_by AS cancelRequestedBy,
  r.result_text, r.result_devalue, r.result_parts,
  s.version_hash AS versionHash, s.guest_start_ms AS guestStartMs, s.trigger_json,
  s.deduplication_key AS deduplicationKey, s.concurrency_key AS concurrencyKey, s.seed, s.created_at AS createdAt,
  s.not_before AS notBefore, s.deadline_ms AS deadlineMs, s.attempt, s.input_text, s.input_devalue, s.input_parts,
  coalesce((SELECT max(ord) + 1 FROM deliveries WHERE run = r.seq), 0) AS nextOrder,
  coalesce((SELECT guest_clock_ms FROM deliveries WHERE run = r.seq ORDER BY ord DESC LIMIT 1), s.guest_start_ms)
    AS guestClockMs,
  coalesce((SELECT max(seq) + 1 FROM log_lines WHERE run = r.seq), 0) AS nextLog
  FROM runs r JOIN run_starts s ON s.run = r.seq`;

export class RunReader {
  readonly #db: Database;
  readonly #values: Values;
  readonly #run: Statement<RawRun>;
  readonly #seq: Statement<{ readonly seq: number }>;
  readonly #unfinished: Statement<RawRun>;
  readonly #calls: Statement<RawCall>;
  readonly #callById: Statement<RawCall & { readonly runId: string }>;
  readonly #deliveries: Statement<RawDelivery>;
  readonly #callHeads: Statement<RawCallHead & { readonly args_text_bytes: number }>;
  readonly #deliveryHeads: Statement<RawDeliveryHead>;
  readonly #callOutcome: Statement<RawOutcome>;
  readonly #lines: Statement<LogRow>;
  readonly #waits: Statement<RawCall & { readonly runId: string; readonly flow: string }>;
  readonly #quarantine: Statement<RawOutcome & { readonly runId: string; readonly reason: string }>;

  constructor(db: Database, values: Values) {
    this.#db = db;
    this.#values = values;
    this.#run = db.prepare(`${selectRun} WHERE r.id = ?`);
    this.#seq = db.prepare("SELECT seq FROM runs WHERE id = ?");
    this.#unfinished = db.prepare(`${selectRun} WHERE r.state <> 'finished' ORDER BY r.seq`);
    this.#calls = db.prepare("SELECT * FROM calls WHERE run = ? ORDER BY position");
    this.#callById = db.prepare(
      "SELECT c.*, r.id AS runId FROM calls c JOIN runs r ON r.seq = c.run WHERE c.call_id = ?",
    );
    this.#deliveries = db.prepare("SELECT * FROM deliveries WHERE run = ? ORDER BY ord");
    this.#callHeads = db.prepare(
      `SELECT position, name, effect, attempts, cancelled, unknown_reason, digest, idempotency_key, made_at, note_json,
         wait_json, due_at, call_id, args_parts, detail_text, detail_devalue, detail_parts, ${bytesOf("args_text")}
       FROM calls WHERE run = ? ORDER BY position`,
    );
    this.#deliveryHeads = db.prepare(
      `SELECT ord, guest_clock_ms, at, position, error_json, value_parts, ${bytesOf("value_text")}
       FROM deliveries WHERE run = ? ORDER BY ord`,
    );
    this.#callOutcome = db.prepare("SELECT * FROM deliveries WHERE run = ? AND position = ?");
    this.#lines = db.prepare(
      `SELECT seq, level, guest_time_ms AS guestTimeMs, text FROM log_lines WHERE run = ? ORDER BY seq`,
    );
    this.#waits = db.prepare(
      `SELECT c.*, r.id AS runId, r.flow FROM runs r JOIN calls c ON c.run = r.seq
       WHERE r.state <> 'finished' AND c.wait_json IS NOT NULL AND c.cancelled = 0
         AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.run = c.run AND d.position = c.position)
       ORDER BY c.run, c.position`,
    );
    this.#quarantine = db.prepare(
      `SELECT run_id AS runId, position, at, reason, error_json, value_text, value_devalue, value_parts
       FROM quarantine WHERE run_id = coalesce(?, run_id) ORDER BY seq`,
    );
  }

  run(runId: string): RunRow | null {
    const row = this.#run.get(runId);
    return row === undefined ? null : this.#runRow(row);
  }

  history(runId: string): RunHistory | null {
    const row = this.#run.get(runId);
    if (row === undefined) return null;
    const bodies: Bodies = new Map();
    return {
      run: this.#runRow(row),
      calls: this.#calls.all(row.seq).map((call) => this.#callRow(call, bodies)),
      deliveries: this.#deliveries.all(row.seq).map((one) => this.#delivery(one, bodies)),
    };
  }

  heads(runId: string): RunHeads | null {
    const row = this.#run.get(runId);
    if (row === undefined) return null;
    return {
      run: this.#runRow(row),
      calls: this.#callHeads.all(row.seq).map((call): CallHead => {
        const argsBytes = call.args_text_bytes + partsBytes(call.args_parts);
        return { ...this.#callRest(call), argsBytes };
      }),
      deliveries: this.#deliveryHeads.all(row.seq).map(deliveryHead),
    };
  }

  outcome(runId: string, position: number): CallOutcome | null {
    const run = this.#seq.get(runId);
    const row = run === undefined ? undefined : this.#callOutcome.get(run.seq, position);
    return row === undefined ? null : this.#outcome(row);
  }

  logs(runId: string): LogRow[] {
    const run = this.#seq.get(runId);
    return run === undefined ? [] : this.#lines.all(run.seq);
  }

  /** Newest first. */
  runs({ flow, states, statuses, before, limit }: RunQuery): RunRow[] {
    const conditions: string[] = [];
    const values: unknown[] = [];
    const where = (condition: string, value: unknown): void => {
      conditions.push(condition);
      values.push(value);
    };
    if (before !== undefined) where("r.seq < coalesce((SELECT seq FROM runs WHERE id = ?), 0)", before);
    if (flow !== undefined) where("r.flow = ?", flow);
    if (states !== undefined) where("r.state IN (SELECT value FROM json_each(?))", JSON.stringify(states));
    if (statuses !== undefined)
      where("r.status IN (SELECT value FROM json_each(?))", JSON.stringify(statuses));
    const filter = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
    const statement = this.#db.prepare<unknown[], RawRun>(
      `${selectRun} ${filter} ORDER BY r.seq DESC LIMIT ?`,
    );
    return statement.all(...values, limit).map((row) => this.#runRow(row));
  }

  /** Oldest first. */
  unfinished(): RunRow[] {
    return this.#unfinished.all().map((row) => this.#runRow(row));
  }

  waits(): OpenWait[] {
    return this.#waits.all().flatMap((row) => {
      const { position, wait, dueAt, callId, madeAt } = this.#callRow(row);
      if (wait === null) return [];
      return [{ runId: row.runId, flow: row.flow, position, wait, dueAt, callId, madeAt }];
    });
  }

  callById(callId: string): { readonly runId: string; readonly call: CallRow } | null {
    const row = this.#callById.get(callId);
    return row === undefined ? null : { runId: row.runId, call: this.#callRow(row) };
  }

  quarantined(runId: string | null): QuarantineRow[] {
    return this.#quarantine.all(runId).map((row) => ({
      runId: row.runId,
      position: row.position ?? 0,
      at: row.at,
      reason: row.reason,
      outcome: this.#outcome(row),
    }));
  }

  #runRow(raw: RawRun): RunRow {
    const {
      seq: _seq,
      trigger_json,
      input_text,
      input_devalue,
      input_parts,
      result_text,
      result_devalue,
      result_parts,
      ...rest
    } = raw;
    return {
      ...rest,
      trigger: JSON.parse(trigger_json) as Trigger, // stored by FreeWriter
      input: this.#values.unpack(input_text, input_devalue, input_parts),
      result: this.#values.unpackOptional(result_text, result_devalue, result_parts),
    };
  }

  #callRow(raw: RawCall, bodies?: Bodies): CallRow {
    const args = this.#values.unpack(raw.args_text, raw.args_devalue, raw.args_parts, bodies);
    return { ...this.#callRest(raw), args };
  }

  #callRest(raw: RawCallHead): Omit<CallRow, "args"> {
    const wait = parseWait(raw.wait_json);
    return {
      position: raw.position,
      name: raw.name,
      effect: raw.effect,
      digest: raw.digest,
      idempotencyKey: raw.idempotency_key,
      madeAt: raw.made_at,
      note: raw.note_json === null ? null : (JSON.parse(raw.note_json) as CallRow["note"]), // stored by RunWriter
      wait:
        wait?.kind === "approval"
          ? {
              ...wait,
              detail: this.#values.unpackOptional(raw.detail_text, raw.detail_devalue, raw.detail_parts),
            }
          : wait,
      dueAt: raw.due_at,
      callId: raw.call_id,
      attempts: raw.attempts,
      cancelled: raw.cancelled === 1,
      unknownReason: raw.unknown_reason,
    };
  }

  #delivery(raw: RawDelivery, bodies: Bodies): Delivery {
    const { ord: order, guest_clock_ms: guestClockMs, at, position } = raw;
    const outcome = this.#outcome(raw, bodies);
    if (position === null || outcome === null) return { order, kind: "timer", guestClockMs, at };
    return { order, kind: "call", guestClockMs, position, outcome, at };
  }

  #outcome(raw: RawOutcome, bodies?: Bodies): CallOutcome | null {
    const { error_json, value_text, value_devalue, value_parts } = raw;
    return this.#values.unpackOutcome(error_json, value_text, value_devalue, value_parts, bodies);
  }
}

function deliveryHead(raw: RawDeliveryHead): DeliveryHead {
  const { ord: order, guest_clock_ms: guestClockMs, at, position, error_json, value_text_bytes } = raw;
  if (position === null) return { order, kind: "timer", guestClockMs, at };
  const call = { order, kind: "call", guestClockMs, position, at } as const;
  // What is in the column was stored by packOutcome.
  if (error_json !== null)
    return { ...call, outcome: { ok: false, error: JSON.parse(error_json) as HostErrorData } };
  return { ...call, outcome: { ok: true, bytes: (value_text_bytes ?? 0) + partsBytes(raw.value_parts) } };
}
