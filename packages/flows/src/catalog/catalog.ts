/**
 * What is installed and what of it may run. The service owns one; the store is behind it.
 *
 * The states of all versions are kept in memory and written through: the store is held by this process alone, so that what
 * is here is what is there. A decision counts from its commit on.
 *
 * Kept true: `gate`, which is asked before every activation, lets a version through only while it is approved, or
 * superseded (its runs finish on it); anything unknown or unreadable does not run.
 */

import { type FlowRow, type RunRow, type Store, StoreFailure, type VersionRow } from "@flowcell/journal";
import type { Limits } from "@flowcell/protocol";
import { commit } from "../commit.js";
import { type FlowServiceOptions, type Gate, OperationError } from "../ports.js";
import type { FlowPorts } from "./functions.js";
import { type OpenRunnable, openRunnable } from "./runnable.js";
import { nearestHash, unknownFlow } from "./texts.js";
import { planVersion, type VersionPlan } from "./version-plan.js";

export type VersionHead = Omit<
  VersionRow,
  "bundle" | "bundleMap" | "sources" | "manifestText" | "dryRunJson"
>;

export interface FlowEntry {
  row: FlowRow;
  readonly versions: Map<string, VersionHead>;
}

/** How long a run waits until a version that cannot be had now is asked for again. */
const retryMs = 30_000;

export class Catalog {
  readonly store: Store;
  readonly options: FlowServiceOptions;
  readonly now: () => number;
  readonly #ports: FlowPorts;
  readonly #flows = new Map<string, FlowEntry>();
  /** Versions whose runs wait for a repair, and it was told. */
  readonly #told = new Set<string>();
  readonly #turns = new Map<string, Promise<void>>();
  readonly #plans = new Map<string, VersionPlan>();
  readonly #runnables = new Map<string, Promise<OpenRunnable>>();
  /** Opened before a mount was replaced: closed when no run has the version. */
  readonly #replaced = new Map<string, readonly OpenRunnable[]>();
  /** Every runnable has a list of names of its own. */
  readonly #byNames = new WeakMap<readonly string[], VersionPlan>();

  constructor(options: FlowServiceOptions, ports: FlowPorts, entries: readonly FlowEntry[]) {
    this.store = options.store;
    this.options = options;
    this.now = options.now ?? Date.now;
    this.#ports = ports;
    for (const entry of entries) this.#flows.set(entry.row.flow, entry);
  }

  /** What the store has, for a new catalog. */
  static async load(store: Store): Promise<readonly FlowEntry[]> {
    const rows = await store.flows();
    return await Promise.all(rows.map(async (row) => ({ row, versions: await loadHeads(store, row.flow) })));
  }

  get ceilings(): Limits {
    return this.options.ceilings;
  }

  /** Every flow, sorted by id. */
  entries(): readonly FlowEntry[] {
    return [...this.#flows.values()].sort((one, other) => (one.row.flow < other.row.flow ? -1 : 1));
  }

  find(flow: string): FlowEntry | undefined {
    return this.#flows.get(flow);
  }

  /** Throws OperationError with the nearest id. */
  entry(flow: string): FlowEntry {
    const entry = this.#flows.get(flow);
    if (entry === undefined) throw unknownFlow(flow, [...this.#flows.keys()]);
    return entry;
  }

  /** `hash` whole, or a prefix that names one version; the newest version without it. */
  head(flow: string, hash: string | undefined): VersionHead {
    const { versions } = this.entry(flow);
    const all = [...versions.values()];
    const found = hash === undefined ? all.slice(-1) : all.filter((head) => head.hash.startsWith(hash));
    const [first, second] = found;
    if (first !== undefined && second === undefined) return first;
    if (second !== undefined && hash !== undefined) {
      throw new OperationError(
        "invalid",
        `flow ${flow}: ${hash} begins ${found.length} hashes; write more of it`,
      );
    }
    throw nearestHash(flow, hash ?? "", all);
  }

  /** The whole row, with sources and bundle. */
  async version(flow: string, hash: string): Promise<VersionRow> {
    const version = await this.store.version(flow, hash);
    if (version === null) throw new Error(`flow ${flow}: version ${hash} is listed and not in the store`);
    return version;
  }

  /**
   * The row and its versions again as the store has them, after a commit that changed them. Asked for within `alone`: what
   * somebody else decided between the look and its end would be lost.
   */
  async refresh(flow: string): Promise<void> {
    const versions = await loadHeads(this.store, flow);
    const row = await this.store.flow(flow);
    if (row !== null) this.#flows.set(flow, { row, versions });
  }

  /** Only of the row. */
  patched(flow: string, patch: Partial<FlowRow>): void {
    const entry = this.#flows.get(flow);
    if (entry !== undefined) entry.row = { ...entry.row, ...patch };
  }

  /** One decision about a flow at a time: each rests on what the one before it left. */
  async alone<Answer>(flow: string, work: () => Promise<Answer>): Promise<Answer> {
    const before = this.#turns.get(flow) ?? Promise.resolve();
    const answer = before.then(work);
    const turn = answer.then(ignore, ignore);
    this.#turns.set(flow, turn);
    try {
      return await answer;
    } finally {
      if (this.#turns.get(flow) === turn) this.#turns.delete(flow);
    }
  }

  // ------------------------------------------------------------------------------------------------- plans and runnables

  async plan(flow: string, hash: string): Promise<VersionPlan> {
    const key = `${flow} ${hash}`;
    const known = this.#plans.get(key);
    if (known !== undefined) return known;
    const { manifestText } = await this.version(flow, hash);
    const plan = planVersion(flow, hash, manifestText, this.ceilings);
    this.#plans.set(key, plan);
    return plan;
  }

  /** Flows of which a version was wanted. */
  used(): ReadonlySet<string> {
    return new Set([...this.#plans.values()].map(({ flow }) => flow));
  }

  /** The reason instead of a plan when the version cannot be read: one such flow must not stop the others. */
  async readable(flow: string, hash: string): Promise<VersionPlan | string> {
    try {
      return await this.plan(flow, hash);
    } catch (error) {
      if (error instanceof OperationError) return error.message;
      throw error;
    }
  }

  /** Of the approved version; throws OperationError `denied` with the remedy when there is none. */
  async approvedPlan(flow: string): Promise<VersionPlan> {
    const { row } = this.entry(flow);
    if (row.approvedHash !== null) return await this.plan(flow, row.approvedHash);
    const newest = this.head(flow, undefined);
    throw new OperationError(
      "denied",
      `flow ${flow} has no approved version; review it with: flowcell show ${flow}, then: flowcell approve ${flow} --hash ${newest.hash}`,
    );
  }

  /**
   * Rejects when a mount cannot be opened or the manifest asks for more than there is now. Opened anew when a mount was
   * replaced: the next activation has the folder that is there now.
   */
  async runnable(flow: string, hash: string): Promise<OpenRunnable> {
    const key = `${flow} ${hash}`;
    for (;;) {
      const known = this.#runnables.get(key);
      if (known === undefined) break;
      const opened = await known;
      if (!opened.isReplaced()) return opened;
      if (this.#runnables.get(key) !== known) continue;
      this.#runnables.delete(key);
      // Calls may be under way on it.
      this.#replaced.set(key, [...(this.#replaced.get(key) ?? []), opened]);
    }
    const opening = this.#open(flow, hash);
    this.#runnables.set(key, opening);
    try {
      return await opening;
    } catch (error) {
      // The next run asks again: what failed may have been repaired.
      this.#runnables.delete(key);
      throw error;
    }
  }

  async #open(flow: string, hash: string): Promise<OpenRunnable> {
    const plan = await this.plan(flow, hash);
    if (plan.problem !== null) throw new OperationError("unavailable", plan.problem);
    const opened = openRunnable(plan, await this.version(flow, hash), this.options, this.#ports);
    this.#byNames.set(opened.runnable.names, plan);
    return opened;
  }

  planOfNames(names: readonly string[]): VersionPlan | undefined {
    return this.#byNames.get(names);
  }

  /** No unfinished run has the version any more: one that takes no new runs lets go of its mounts. */
  release(flow: string, hash: string): void {
    const key = `${flow} ${hash}`;
    for (const { close } of this.#replaced.get(key) ?? []) close();
    this.#replaced.delete(key);
    if (this.#flows.get(flow)?.versions.get(hash)?.state === "approved") return;
    this.#plans.delete(key);
    const opening = this.#runnables.get(key);
    this.#runnables.delete(key);
    opening?.then(({ close }) => close(), ignore);
  }

  async close(): Promise<void> {
    const open = [...this.#runnables.values()];
    this.#runnables.clear();
    for (const opening of open) await opening.then(({ close }) => close(), ignore);
    for (const replaced of this.#replaced.values()) for (const { close } of replaced) close();
    this.#replaced.clear();
  }

  // ------------------------------------------------------------------------------------------------------------- the gate

  async gate(run: Pick<RunRow, "flow" | "versionHash">): Promise<Gate> {
    const { flow, versionHash } = run;
    const head = this.#flows.get(flow)?.versions.get(versionHash);
    const refusal = gateRefusal(flow, head);
    if (refusal !== null) return { ok: false, end: refusal };
    const key = `${flow} ${versionHash}`;
    try {
      const { runnable } = await this.runnable(flow, versionHash);
      this.#told.delete(key);
      return { ok: true, runnable };
    } catch (error) {
      if (error instanceof StoreFailure) throw error;
      if (error instanceof OperationError && error.code !== "unavailable") {
        return { ok: false, end: { status: "denied", reason: "not_approved", message: error.message } };
      }
      await this.#tell(flow, key, error);
      return { ok: false, retryAt: this.now() + retryMs };
    }
  }

  /** Why runs wait, once until they go on: an operator can repair it, a mount for example. */
  async #tell(flow: string, key: string, error: unknown): Promise<void> {
    if (this.#told.has(key)) return;
    this.#told.add(key);
    const detail = error instanceof Error ? error.message : String(error);
    const row = { at: this.now(), actor: "flowcell", action: "flow.waits", flow, runId: null, detail };
    await commit(this.store, [{ kind: "audit", row }]);
  }
}

function gateRefusal(
  flow: string,
  head: VersionHead | undefined,
): Extract<Gate, { readonly end: unknown }>["end"] | null {
  switch (head?.state) {
    case "approved":
    case "superseded":
      return null;
    case "revoked":
      return {
        status: "cancelled",
        reason: "revoked",
        message: `the approval of this version of flow ${flow} was revoked by ${head.decidedBy ?? "somebody"}`,
      };
    case "installed":
    case "rejected":
      return {
        status: "denied",
        reason: "not_approved",
        message: `this version of flow ${flow} is not approved`,
      };
    case undefined:
      return { status: "denied", reason: "not_approved", message: `this version of flow ${flow} is unknown` };
  }
}

async function loadHeads(store: Store, flow: string): Promise<Map<string, VersionHead>> {
  const heads = (await store.versions(flow)).map(headOf);
  heads.sort((one, other) => one.number - other.number);
  return new Map(heads.map((head) => [head.hash, head]));
}

function headOf(version: Omit<VersionRow, "bundle" | "bundleMap" | "sources">): VersionHead {
  const { manifestText: _text, dryRunJson: _run, ...head } = version;
  return head;
}

/** Whoever asked for it was told. */
function ignore(): void {}
