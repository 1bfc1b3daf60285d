/**
 * What begins runs without being asked: cron times and events. A time and its runs, an event and its runs, are one unit
 * each, so that a crash leaves either both or neither, and a second try finds the first one's keys.
 *
 * Kept true: a cron time gets at most one run (deduplication key `cron:<ISO time>`), and a time that gets none is told in the
 * audit log; a disabled flow gets none, of which the first is told; the next time of a flow is the next one by the clock as it
 * is, whatever the clock was when it was planned; an event begins one run of each flow that is
 * enabled and has an approved version with that trigger when the event is first emitted.
 */

import type { FlowRow, Operation } from "@flowcell/journal";
import type { EncodedValue } from "@flowcell/protocol";
import type { Catalog, FlowEntry } from "../catalog/catalog.js";
import { audit } from "../catalog/decisions.js";
import { cronInput } from "../catalog/install.js";
import type { VersionPlan } from "../catalog/version-plan.js";
import { OperationError } from "../ports.js";
import { type CronTrigger, nextTime, planCron } from "./cron.js";
import type { Reservation, Starter, StartWish } from "./starter.js";

const actor = "flowcell";

export class Triggers {
  readonly #catalog: Catalog;
  readonly #starter: Starter;
  /** Flows whose times are being served. */
  readonly #firing = new Set<string>();
  /** Disabled flows of which a time was told to be skipped. */
  readonly #told = new Set<string>();
  /** Events that are being handed out: the same one is handed out after itself. */
  readonly #emitting = new Map<string, Promise<readonly string[]>>();

  constructor(catalog: Catalog, starter: Starter) {
    this.#catalog = catalog;
    this.#starter = starter;
  }

  /** The earliest time of any flow; null for none. */
  nextFireAt(): number | null {
    let next: number | null = null;
    for (const { row } of this.#catalog.entries()) {
      if (this.#firing.has(row.flow) || row.nextFireAt === null) continue;
      if (next === null || row.nextFireAt < next) next = row.nextFireAt;
    }
    return next;
  }

  /**
   * Plans every time that is to come anew: the clock may have been wrong when it was planned. A time that was served then gets
   * no second run, by its key.
   */
  async replan(): Promise<void> {
    for (const { row } of this.#catalog.entries()) {
      if (this.#firing.has(row.flow) || row.nextFireAt === null) continue;
      await this.#catalog.alone(row.flow, () => this.#replan(row.flow));
    }
  }

  async #replan(flow: string): Promise<void> {
    const row = this.#catalog.find(flow)?.row;
    const now = this.#catalog.now();
    if (row === undefined || row.nextFireAt === null || row.approvedHash === null || isDue(row, now)) return;
    const plan = await this.#catalog.readable(flow, row.approvedHash);
    if (typeof plan === "string" || plan.manifest.trigger.kind !== "cron") return;
    const next = nextTime(plan.manifest.trigger, now);
    if (next === row.nextFireAt) return;
    const detail = `${iso(row.nextFireAt)} was planned, ${next === null ? "no time" : iso(next)} is the next by the clock`;
    await this.#advance(flow, next, [], [audit(now, actor, "cron.replan", flow, detail)]);
  }

  /** Serves every flow whose time has come. */
  async fireDue(): Promise<void> {
    const now = this.#catalog.now();
    for (const { row } of this.#catalog.entries()) {
      const { flow } = row;
      if (!isDue(row, now) || this.#firing.has(flow)) continue;
      this.#firing.add(flow);
      try {
        await this.#catalog.alone(flow, async () => {
          // As it is now that it is this one's turn.
          const entry = this.#catalog.find(flow);
          if (entry !== undefined && isDue(entry.row, now)) await this.#fire(entry, now);
        });
      } finally {
        this.#firing.delete(flow);
      }
    }
  }

  async #fire({ row }: FlowEntry, now: number): Promise<void> {
    const { flow, approvedHash, nextFireAt } = row;
    const due = nextFireAt ?? now;
    const plan = approvedHash === null ? undefined : await this.#catalog.readable(flow, approvedHash);
    if (typeof plan === "string") {
      return await this.#advance(flow, null, [], [audit(now, actor, "cron.stop", flow, plan)]);
    }
    if (plan?.manifest.trigger.kind !== "cron") return await this.#advance(flow, null, [], []);
    const { trigger } = plan.manifest;
    if (!row.enabled) {
      const told = this.#told.has(flow);
      this.#told.add(flow);
      const detail = `${iso(due)}: the flow is disabled by ${row.disabledBy ?? "somebody"}; further times until it is enabled are not told`;
      const next = nextTime(trigger, now);
      return await this.#advance(flow, next, [], told ? [] : [audit(now, actor, "cron.skip", flow, detail)]);
    }
    this.#told.delete(flow);
    await this.#serve(plan, trigger, due, now);
  }

  async #serve(plan: VersionPlan, trigger: CronTrigger, due: number, now: number): Promise<void> {
    const { flow } = plan;
    const { fire, skipped, next } = planCron(trigger, due, now);
    const audits: Operation[] = [];
    if (skipped > 0) {
      const some = skipped > 1 ? `${skipped} or more times` : "a time";
      const detail = `${some} passed from ${iso(due)} on; missed: ${trigger.missed}`;
      audits.push(audit(now, actor, "cron.skip", flow, detail));
    }
    const reservations: Reservation[] = [];
    for (const scheduledAt of fire) {
      const reserved = this.#reserve({
        plan,
        input: { kind: "value", value: cronInput(scheduledAt) },
        trigger: { kind: "cron", scheduledAt },
        deduplicationKey: `cron:${iso(scheduledAt)}`,
      });
      if (typeof reserved === "string") {
        audits.push(audit(now, actor, "cron.skip", flow, `${iso(scheduledAt)}: ${reserved}`));
      } else reservations.push(reserved);
    }
    await this.#advance(flow, next, reservations, audits);
  }

  async #advance(
    flow: string,
    nextFireAt: number | null,
    reservations: readonly Reservation[],
    more: readonly Operation[],
  ): Promise<void> {
    const advance: Operation = { kind: "flow", flow, patch: { nextFireAt } };
    await this.#starter.commit(reservations, [advance, ...more]);
    this.#catalog.patched(flow, { nextFireAt });
  }

  /** Why it gets no run, or the place that was reserved for it. */
  #reserve(wish: StartWish): Reservation | string {
    try {
      if (this.#starter.wouldSkip(wish)) return "a run is going on and the manifest says skip";
      return this.#starter.reserve(wish);
    } catch (error) {
      if (error instanceof OperationError) return error.message;
      throw error;
    }
  }

  /** Runs that the event began, also when it was emitted before. */
  async emit(eventId: string, name: string, value: EncodedValue): Promise<readonly string[]> {
    const before = this.#emitting.get(eventId);
    const emitted = (before ?? Promise.resolve()).then(
      () => this.#emit(eventId, name, value),
      () => this.#emit(eventId, name, value),
    );
    this.#emitting.set(eventId, emitted);
    try {
      return await emitted;
    } finally {
      if (this.#emitting.get(eventId) === emitted) this.#emitting.delete(eventId);
    }
  }

  async #emit(eventId: string, name: string, value: EncodedValue): Promise<readonly string[]> {
    const plans = new Map<string, VersionPlan | string>();
    for (let unread = this.#enabled(); unread.length > 0; ) {
      for (const { flow, hash } of unread) plans.set(hash, await this.#catalog.readable(flow, hash));
      unread = this.#enabled().filter(({ hash }) => !plans.has(hash));
    }
    const at = this.#catalog.now();
    const reservations: Reservation[] = [];
    const audits: Operation[] = [];
    // Nothing waits from here to the commit: a decision is before all of it or after all of it.
    for (const { flow, hash } of this.#enabled()) {
      const plan = plans.get(hash);
      if (plan === undefined || typeof plan === "string") continue;
      const { trigger } = plan.manifest;
      if (trigger.kind !== "event" || trigger.name !== name) continue;
      const reserved = this.#reserve({
        plan,
        input: { kind: "encoded", encoded: value },
        trigger: { kind: "event", eventId, name },
        deduplicationKey: `event:${eventId}`,
      });
      if (typeof reserved === "string") {
        audits.push(audit(at, actor, "event.skip", flow, `${eventId} (${name}): ${reserved}`));
      } else reservations.push(reserved);
    }
    const event: Operation = { kind: "event", eventId, name, value, at };
    const results = await this.#starter.commit(reservations, [event, ...audits], (all) => {
      const isNew = all.some((result) => result.kind === "event" && result.added);
      // Those that it began then are there already; a flow that came later gets none.
      return isNew ? null : `event ${eventId} was handed out before this flow was triggered by it`;
    });
    return results.flatMap((result) => (result.kind === "run" ? [result.runId] : []));
  }

  /** The approved versions of the flows that are enabled now. A hash is over the flow's id too. */
  #enabled(): readonly { readonly flow: string; readonly hash: string }[] {
    return this.#catalog
      .entries()
      .flatMap(({ row: { flow, approvedHash, enabled } }) =>
        approvedHash === null || !enabled ? [] : [{ flow, hash: approvedHash }],
      );
  }
}

function isDue({ nextFireAt }: Pick<FlowRow, "nextFireAt">, now: number): boolean {
  return nextFireAt !== null && nextFireAt <= now;
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
