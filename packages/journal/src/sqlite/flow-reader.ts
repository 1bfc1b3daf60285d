/** Reads flows, their versions and the audit trail. Called by the store's thread. */

import type { AuditRow, FlowRow, NewVersion, VersionRow } from "../store.js";
import type { Database, Statement } from "./driver.js";

type RawFlow = Omit<FlowRow, "enabled"> & { readonly enabled: number };
type ShortVersion = Omit<VersionRow, "bundle" | "bundleMap" | "sources">;
type RawVersion = ShortVersion & {
  readonly bundle: string;
  readonly bundleMap: string;
  readonly sources_json: string;
};

const selectFlow = `SELECT flow, enabled, disabled_by AS disabledBy, disabled_reason AS disabledReason,
  (SELECT hash FROM versions v WHERE v.flow = f.flow AND v.state = 'approved') AS approvedHash,
  violations_in_a_row AS violationsInARow, changed_at AS changedAt, next_fire_at AS nextFireAt FROM flows f`;

const shortVersion = `flow, hash, number, state, decided_at AS decidedAt, decided_by AS decidedBy,
  decision_reason AS decisionReason, installed_at AS installedAt, installed_by AS installedBy,
  dry_run_json AS dryRunJson, manifest_text AS manifestText`;

export class FlowReader {
  readonly #flow: Statement<RawFlow>;
  readonly #flows: Statement<RawFlow>;
  readonly #version: Statement<RawVersion>;
  readonly #versions: Statement<ShortVersion>;
  readonly #audit: Statement<AuditRow>;

  constructor(db: Database) {
    this.#flow = db.prepare(`${selectFlow} WHERE flow = ?`);
    this.#flows = db.prepare(`${selectFlow} ORDER BY flow`);
    this.#version = db.prepare(
      `SELECT ${shortVersion}, bundle, bundle_map AS bundleMap, sources_json FROM versions WHERE flow = ? AND hash = ?`,
    );
    this.#versions = db.prepare(`SELECT ${shortVersion} FROM versions WHERE flow = ? ORDER BY number DESC`);
    this.#audit = db.prepare(
      "SELECT at, actor, action, flow, run_id AS runId, detail FROM audit ORDER BY seq DESC LIMIT ?",
    );
  }

  flow(flow: string): FlowRow | null {
    const row = this.#flow.get(flow);
    return row === undefined ? null : { ...row, enabled: row.enabled === 1 };
  }

  flows(): FlowRow[] {
    return this.#flows.all().map((row) => ({ ...row, enabled: row.enabled === 1 }));
  }

  version(flow: string, hash: string): VersionRow | null {
    const row = this.#version.get(flow, hash);
    if (row === undefined) return null;
    const { sources_json, ...rest } = row;
    return { ...rest, sources: JSON.parse(sources_json) as NewVersion["sources"] }; // stored by FreeWriter
  }

  versions(flow: string): ShortVersion[] {
    return this.#versions.all(flow);
  }

  audit(limit: number): AuditRow[] {
    return this.#audit.all(limit);
  }
}
