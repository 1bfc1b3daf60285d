/**
 * Removes runs that nobody has to keep any more, once an hour and a little at a time: by the age that each flow's manifest
 * says, then the oldest of all while the store is larger than it may be. Runs that are not finished stay, and deduplication
 * keys stay for ever.
 */

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
  }

  async #retain(): Promise<void> {
    const { catalog } = this.#core;
    const known = [...catalog.entries()].map(({ row }) => row.flow);
    for (const flow of known) await this.#byAge(await this.#days(flow), flow);
    // What belongs to no flow that is known.
    await this.#byAge(Math.max(usualDays, await this.#longest(known)));
    await this.#bySize();
  }

  async #byAge(days: number, flow?: string): Promise<void> {
    const { catalog, store } = this.#core;
    const retention = {
      finishedBefore: catalog.now() - days * dayMs,
      runsMax: batch,
      ...(flow === undefined ? {} : { flow }),
    };
    while (!this.#stopped && (await store.retain(retention)) === batch) {
      // The next batch.
    }
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
