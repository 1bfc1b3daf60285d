/** Writes the operations that need no fence. Called by `units.ts` inside the unit's savepoint; throws Refused. */

import { conflict, fencedOff } from "../rules.js";
import type { FlowRow, FreeOperation, NewRun, NewVersion, OperationResult } from "../store.js";
import type { Database, Statement } from "./driver.js";
import type { Values } from "./values.js";

type Of<Kind extends FreeOperation["kind"]> = Extract<FreeOperation, { readonly kind: Kind }>;
type FlowPatch = Of<"flow">["patch"];

const done: OperationResult = Object.freeze({ kind: "done" });

const flowColumns: { readonly [field in keyof FlowPatch & keyof FlowRow]-?: string } = {
  enabled: "enabled",
  disabledBy: "disabled_by",
  disabledReason: "disabled_reason",
  violationsInARow: "violations_in_a_row",
  nextFireAt: "next_fire_at",
  changedAt: "changed_at",
};

export class FreeWriter {
  readonly #values: Values;
  readonly #keyOwner: Statement<{ readonly run_id: string }>;
  readonly #addKey: Statement;
  readonly #runState: Statement<{
    readonly seq: number;
    readonly state: string;
    readonly generation: number;
  }>;
  readonly #addRun: Statement;
  readonly #addStart: Statement;
  readonly #claim: Statement;
  readonly #signalSent: Statement;
  readonly #addSignal: Statement;
  readonly #quarantine: Statement;
  readonly #audit: Statement;
  readonly #addEvent: Statement;
  readonly #addFlow: Statement;
  readonly #version: Statement<{ readonly number: number }>;
  readonly #addVersion: Statement<{ readonly number: number }>;
  readonly #supersede: Statement;
  readonly #decide: Statement;
  readonly #touchFlow: Statement;
  readonly #flow: Statement;
  readonly #patchFlow: { readonly [field: string]: Statement };

  constructor(db: Database, values: Values) {
    this.#values = values;
    this.#keyOwner = db.prepare("SELECT run_id FROM run_keys WHERE flow = ? AND key = ?");
    this.#addKey = db.prepare("INSERT INTO run_keys (flow, key, run_id) VALUES (?, ?, ?)");
    this.#runState = db.prepare("SELECT seq, state, generation FROM runs WHERE id = ?");
    this.#addRun = db.prepare("INSERT INTO runs (id, flow, changed_at) VALUES (?, ?, ?)");
    this.#addStart = db.prepare(
      `INSERT INTO run_starts (run, flow, version_hash, guest_start_ms, trigger_json, deduplication_key,
         concurrency_key, seed, created_at, not_before, deadline_ms, attempt, input_text, input_devalue, input_parts)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#claim = db.prepare(
      "UPDATE runs SET owner = ?, generation = generation + 1 WHERE id = ? AND state <> 'finished'",
    );
    this.#signalSent = db.prepare("SELECT 1 FROM signals WHERE run = ? AND signal_id = ?");
    this.#addSignal = db.prepare(
      `INSERT INTO signals (run, name, signal_id, at, value_text, value_devalue, value_parts)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#quarantine = db.prepare(
      `INSERT INTO quarantine (run_id, position, at, reason, error_json, value_text, value_devalue, value_parts)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#audit = db.prepare(
      "INSERT INTO audit (at, actor, action, flow, run_id, detail) VALUES (?, ?, ?, ?, ?, ?)",
    );
    this.#addEvent = db.prepare(
      `INSERT INTO events (id, name, at, value_text, value_devalue, value_parts)
       SELECT ?, ?, ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM events WHERE id = ?)`,
    );
    this.#addFlow = db.prepare("INSERT INTO flows (flow, changed_at) VALUES (?, ?) ON CONFLICT DO NOTHING");
    this.#version = db.prepare("SELECT number FROM versions WHERE flow = ? AND hash = ?");
    this.#addVersion = db.prepare(
      `INSERT INTO versions (flow, number, hash, installed_at, installed_by, dry_run_json, manifest_text, bundle,
         bundle_map, sources_json)
       VALUES (?, (SELECT coalesce(max(number), 0) + 1 FROM versions WHERE flow = ?), ?, ?, ?, ?, ?, ?, ?, ?)
       RETURNING number`,
    );
    this.#supersede = db.prepare(
      "UPDATE versions SET state = 'superseded' WHERE flow = ? AND state = 'approved' AND hash <> ?",
    );
    this.#decide = db.prepare(
      `UPDATE versions SET state = ?, decided_at = ?, decided_by = ?, decision_reason = ?
       WHERE flow = ? AND hash = ?`,
    );
    this.#touchFlow = db.prepare("UPDATE flows SET changed_at = ? WHERE flow = ?");
    this.#flow = db.prepare("SELECT 1 FROM flows WHERE flow = ?");
    this.#patchFlow = Object.fromEntries(
      Object.entries(flowColumns).map(([field, column]) => [
        field,
        db.prepare(`UPDATE flows SET ${column} = ? WHERE flow = ?`),
      ]),
    );
  }

  apply(operation: FreeOperation): OperationResult {
    switch (operation.kind) {
      case "createRun":
        return this.#createRun(operation.run);
      case "claim": {
        const { changes } = this.#claim.run(operation.owner, operation.runId);
        const row = this.#runState.get(operation.runId);
        if (changes !== 1 || row === undefined) throw fencedOff(operation.runId);
        return { kind: "claim", generation: row.generation };
      }
      case "sendSignal":
        return { kind: "sent", sent: this.#sendSignal(operation) };
      case "quarantine": {
        const { runId, position, at, reason, outcome } = operation.row;
        this.#quarantine.run(runId, position, at, reason, ...this.#values.packOutcome(outcome, null));
        return done;
      }
      case "audit": {
        const { at, actor, action, flow, runId, detail } = operation.row;
        this.#audit.run(at, actor, action, flow, runId, detail);
        return done;
      }
      case "event": {
        const { eventId, name, value, at } = operation;
        const { changes } = this.#addEvent.run(eventId, name, at, ...this.#values.pack(value, null), eventId);
        return { kind: "event", added: changes === 1 };
      }
      case "addVersion":
        return this.#install(operation.version);
      case "decideVersion":
        return this.#decideVersion(operation);
      case "flow":
        return this.#patch(operation);
    }
  }

  #createRun(run: NewRun): OperationResult {
    const { runId, flow, deduplicationKey } = run;
    if (deduplicationKey !== null) {
      const before = this.#keyOwner.get(flow, deduplicationKey);
      if (before !== undefined) return { kind: "run", created: false, runId: before.run_id };
    }
    if (this.#runState.get(runId) !== undefined) throw conflict(`run ${runId} is there already`);
    if (deduplicationKey !== null) this.#addKey.run(flow, deduplicationKey, runId);
    const seq = Number(this.#addRun.run(runId, flow, run.createdAt).lastInsertRowid);
    this.#addStart.run(
      seq,
      flow,
      run.versionHash,
      run.guestStartMs,
      JSON.stringify(run.trigger),
      deduplicationKey,
      run.concurrencyKey,
      run.seed,
      run.createdAt,
      run.notBefore,
      run.deadlineMs,
      run.attempt,
      ...this.#values.pack(run.input, { run: seq }),
    );
    return { kind: "run", created: true, runId };
  }

  #sendSignal({ runId, name, value, signalId, at }: Of<"sendSignal">): boolean {
    const run = this.#runState.get(runId);
    if (run === undefined || run.state === "finished") return false;
    if (this.#signalSent.get(run.seq, signalId) !== undefined) return false;
    this.#addSignal.run(run.seq, name, signalId, at, ...this.#values.pack(value, { run: run.seq }));
    return true;
  }

  #install(version: NewVersion): OperationResult {
    const { flow, hash } = version;
    this.#addFlow.run(flow, version.installedAt);
    const before = this.#version.get(flow, hash);
    if (before !== undefined) return { kind: "version", number: before.number, added: false };
    const added = this.#addVersion.get(
      flow,
      flow,
      hash,
      version.installedAt,
      version.installedBy,
      version.dryRunJson,
      version.manifestText,
      version.bundle,
      version.bundleMap,
      JSON.stringify(version.sources),
    );
    if (added === undefined) throw new Error("INSERT … RETURNING gave no row");
    return { kind: "version", number: added.number, added: true };
  }

  #decideVersion({ flow, hash, state, by, reason, at }: Of<"decideVersion">): OperationResult {
    if (this.#version.get(flow, hash) === undefined)
      throw conflict(`flow ${flow}: version ${hash} is not installed`);
    if (state === "approved") this.#supersede.run(flow, hash);
    this.#decide.run(state, at, by, reason, flow, hash);
    this.#touchFlow.run(at, flow);
    return done;
  }

  #patch({ flow, patch }: Of<"flow">): OperationResult {
    if (this.#flow.get(flow) === undefined) throw conflict(`flow ${flow} is not installed`);
    for (const [field, value] of Object.entries(patch)) {
      this.#patchFlow[field]?.run(typeof value === "boolean" ? Number(value) : value, flow);
    }
    return done;
  }
}
