/**
 * Removes runs that nobody has to keep any more, once an hour and a little at a time: by the age that each flow's manifest
 * says, then the oldest of all while the store is larger than it may be. Runs that are not finished stay, and deduplication
 * keys stay for ever. With the same alarm, cron times are planned anew: see `Triggers.replan`.
 *
 * A command that drives runs has no hour: it removes one batch when it ends, of the flows that it had to do with, so that a
 * store which only commands use does not grow without end.
 */

import type { Retention } from "@flowcell/journal";
import { Alarm } from "../engine/alarms.js";
import type { ServiceCore } from "../service-core.js";

const dayMs = 86_400_000;
/** For a flow whose manifest says nothing. */
export const usualDays = 30;
const everyMs = 3_600_000;
const firstMs = 60_000;
const batch = 500;
/** When size decides: the store is measured again after so many. */
const sizeBatch = 100;

export class RetentionJob {
  readonly #core: ServiceCore;
  readonly #alarm = new Alarm(() => this.#ring());
  #stopped = false;

  constructor(core: ServiceCore) {
    this.#core = core;
    if (core.drives === "all") this.#again(firstMs);
  }

  stop(): void {
    this.#stopped = true;
    this.#core.alarms.clear(this.#alarm);
  }

  #again(ms: number): void {
    if (!this.#stopped) this.#core.alarms.set(this.#alarm, this.#core.catalog.now() + ms);
  }

  #ring(): void {
    this.#core.own(this.#retain().finally(() => this.#again(everyMs)));
    this.#core.own(this.#core.triggers.replan().then(() => this.#core.pump()));
  }

  /** What a command removes when it ends. Never rejects: a store that fails now has failed for whoever uses it next. */
  async once(): Promise<void> {
    const { catalog, store, storeBytesMost, drives } = this.#core;
    if (drives !== "runs") return;
    try {
      for (const flow of catalog.used()) if ((await store.retain(await this.#age(flow))) > 0) return;
      if ((await store.stats()).bytes <= storeBytesMost) return;
      await store.retain({ finishedBefore: catalog.now(), runsMax: sizeBatch });
    } catch (error) {
      this.#core.bug(error, null);
    }
  }

  async #retain(): Promise<void> {
    const { catalog } = this.#core;
    const known = [...catalog.entries()].map(({ row }) => row.flow);
    for (const flow of known) await this.#byAge(await this.#age(flow));
    // What belongs to no flow that is known.
    const days = Math.max(usualDays, await this.#longest(known));
    await this.#byAge({ finishedBefore: this.#core.catalog.now() - days * dayMs, runsMax: batch });
    await this.#bySize();
  }

  async #byAge(retention: Retention): Promise<void> {
    while (!this.#stopped && (await this.#core.store.retain(retention)) > 0) {
      // The next batch.
    }
  }

  async #age(flow: string): Promise<Retention> {
    return {
      finishedBefore: this.#core.catalog.now() - (await this.#days(flow)) * dayMs,
      runsMax: batch,
      flow,
    };
  }

  async #bySize(): Promise<void> {
    const { catalog, store, storeBytesMost } = this.#core;
    while (!this.#stopped && (await store.stats()).bytes > storeBytesMost) {
      const removed = await store.retain({ finishedBefore: catalog.now(), runsMax: sizeBatch });
      if (removed === 0) return;
    }
  }

  async #longest(flows: readonly string[]): Promise<number> {
    const days = await Promise.all(flows.map((flow) => this.#days(flow)));
    return Math.max(0, ...days);
  }

  async #days(flow: string): Promise<number> {
    const { catalog } = this.#core;
    const entry = catalog.find(flow);
    const hash = entry?.row.approvedHash ?? [...(entry?.versions.keys() ?? [])].at(-1);
    if (hash === undefined) return usualDays;
    const plan = await catalog.readable(flow, hash);
    return typeof plan === "string" ? usualDays : (plan.manifest.retention?.days ?? usualDays);
  }
}
