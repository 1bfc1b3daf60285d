/**
 * Begins runs for every trigger: manual, flow, cron, event and retry come together here. It holds the concurrency policies
 * and the bound of a flow's queue, and puts the run into the order of `Admission` before it is committed, so that two starts
 * at the same time see each other.
 *
 * Kept true: a run that was committed is in the order exactly once; one that was refused left nothing; a deduplication key of
 * a flow names one run, and asking again names it whatever the policy says now.
 */

import type { NewRun, Operation, OperationResult, Trigger } from "@flowcell/journal";
import type { Catalog } from "../catalog/catalog.js";
import type { VersionPlan } from "../catalog/version-plan.js";
import { commit } from "../commit.js";
import { OperationError } from "../ports.js";
import type { Admission } from "./admission.js";
import { newRun, type RunInput } from "./new-run.js";
import type { UndrivenEnd } from "./undriven.js";

/** Runs of one flow that may wait for their turn. */
export const waitingMost = 10_000;

export interface StartWish {
  readonly plan: VersionPlan;
  readonly input: RunInput;
  readonly trigger: Trigger;
  readonly deduplicationKey: string | null;
  readonly notBefore?: number;
  readonly attempt?: number;
}

export interface Started {
  readonly runId: string;
  readonly created: boolean;
}

/** A run that is about to be committed. */
export interface Reservation {
  readonly run: NewRun;
  /** Runs that have to go when it is there. */
  readonly replaced: readonly string[];
}

export interface StarterPorts {
  /** Ends a run that has not begun. */
  end(runId: string, end: UndrivenEnd): Promise<void>;
  /** Cancels a run that another one replaces, begun or not; whoever asked for the other does not wait for it. */
  supersede(runId: string): void;
  /** There may be something to begin. */
  pump(): void;
  counted(run: Pick<NewRun, "flow" | "versionHash">): void;
}

export class Starter {
  readonly #catalog: Catalog;
  readonly #admission: Admission;
  readonly #ports: StarterPorts;

  constructor(catalog: Catalog, admission: Admission, ports: StarterPorts) {
    this.#catalog = catalog;
    this.#admission = admission;
    this.#ports = ports;
  }

  /** Throws OperationError: disabled, wrong input, full queue, or a policy that lets it not begin. */
  async start(wish: StartWish): Promise<Started> {
    const { plan, deduplicationKey } = wish;
    this.#mustBeEnabled(plan.flow);
    const run = this.#newRun(wish);
    const skip = this.#skips(plan, run.concurrencyKey);
    if (skip) {
      const known =
        deduplicationKey === null ? undefined : this.#admission.withKey(plan.flow, deduplicationKey);
      if (known !== undefined) return { runId: known, created: false };
      if (deduplicationKey === null) throw new OperationError("conflict", skipText(plan.flow));
    }
    const reservation = this.reserve(wish, run);
    // Only the store knows whether the key had a run already. If not it has one now, by which its owner learns why.
    const [result] = await this.commit([reservation], [], () => (skip ? skipText(plan.flow) : null));
    if (result?.kind !== "run") throw new Error("a run was created without a result");
    return { runId: result.runId, created: result.created };
  }

  /** Whether the policy lets this run not begin; one that is there already is no further one. */
  wouldSkip(wish: StartWish): boolean {
    const { plan, deduplicationKey } = wish;
    if (deduplicationKey !== null && this.#admission.withKey(plan.flow, deduplicationKey) !== undefined)
      return false;
    return this.#skips(plan, this.#newRun(wish).concurrencyKey);
  }

  /** `commit` follows. Throws OperationError for a wrong input and a full queue. */
  reserve(wish: StartWish, made?: NewRun): Reservation {
    const { plan } = wish;
    const run = made ?? this.#newRun(wish);
    const { flow, concurrencyKey: key, notBefore, deduplicationKey, runId } = run;
    if (this.#admission.waiting(flow) >= waitingMost) {
      throw new OperationError(
        "unavailable",
        `flow ${flow}: ${waitingMost} runs wait already; try again later`,
      );
    }
    const { limit, onLimit } = plan.manifest.concurrency;
    const replaced = onLimit === "cancelOldest" ? this.#admission.oldest(flow, key, limit - 1) : [];
    this.#admission.reserve({ runId, flow, key, limit, notBefore, deduplicationKey });
    return { run, replaced };
  }

  /**
   * One unit with the runs first; `more` beside them. What the store refuses is a bug and is thrown. `veto` looks at the
   * results and may say why the runs that were made do not begin after all.
   */
  async commit(
    reservations: readonly Reservation[],
    more: readonly Operation[],
    veto: (results: readonly OperationResult[]) => string | null = () => null,
  ): Promise<readonly OperationResult[]> {
    const runs = reservations.map(({ run }): Operation => ({ kind: "createRun", run }));
    let results: readonly OperationResult[];
    try {
      results = await commit(this.#catalog.store, [...runs, ...more]);
    } catch (error) {
      for (const { run } of reservations) this.#admission.remove(run.runId);
      throw error;
    }
    const message = veto(results);
    const superseded: string[] = [];
    const vetoed: string[] = [];
    for (const [index, { run, replaced }] of reservations.entries()) {
      const result = results[index];
      if (result?.kind !== "run" || !result.created) {
        this.#admission.remove(run.runId);
        continue;
      }
      this.#ports.counted(run);
      if (message === null) {
        this.#admission.confirm(run.runId);
        superseded.push(...replaced);
      } else vetoed.push(run.runId);
    }
    for (const runId of vetoed) await this.#ports.end(runId, skipped(message ?? ""));
    for (const runId of superseded) this.#ports.supersede(runId);
    this.#ports.pump();
    return results;
  }

  #newRun({ plan, ...wish }: StartWish): NewRun {
    return newRun(plan, { ...wish, now: this.#catalog.now() });
  }

  #skips({ flow, manifest }: VersionPlan, key: string): boolean {
    const { limit, onLimit } = manifest.concurrency;
    return onLimit === "skip" && this.#admission.full(flow, key, limit);
  }

  #mustBeEnabled(flow: string): void {
    const { row } = this.#catalog.entry(flow);
    if (row.enabled) return;
    const why = `${row.disabledBy ?? "somebody"}${row.disabledReason ? `: ${row.disabledReason}` : ""}`;
    throw new OperationError(
      "denied",
      `flow ${flow} is disabled by ${why}; let it run with: flowcell enable ${flow}`,
    );
  }
}

function skipped(message: string): UndrivenEnd {
  return { status: "overloaded", reason: "skipped", message, by: null };
}

function skipText(flow: string): string {
  return `flow ${flow}: a run is going on and the manifest says skip (concurrency.onLimit)`;
}
