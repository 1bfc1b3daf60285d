/**
 * Removes runs that nobody has to keep any more, once an hour and a little at a time. Runs that are not finished stay, and
 * deduplication keys stay for ever.
 */

import { Alarm } from "../engine/alarms.js";
import type { ServiceCore } from "../service-core.js";

const dayMs = 86_400_000;
/** For a flow whose manifest says nothing. */
export const usualDays = 30;
const everyMs = 3_600_000;
const firstMs = 60_000;
const batch = 500;

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
    const { catalog, store } = this.#core;
    const days = await this.#days();
    const finishedBefore = catalog.now() - days * dayMs;
    while (!this.#stopped && (await store.retain({ finishedBefore, runsMax: batch })) === batch) {
      // The next batch.
    }
  }

  /** The store removes by age alone: the flow that keeps its runs longest decides. */
  async #days(): Promise<number> {
    let most = 0;
    const { catalog } = this.#core;
    for (const { row, versions } of catalog.entries()) {
      const hash = row.approvedHash ?? [...versions.keys()].at(-1);
      if (hash === undefined) continue;
      const plan = await catalog.readable(row.flow, hash);
      most = Math.max(
        most,
        typeof plan === "string" ? usualDays : (plan.manifest.retention?.days ?? usualDays),
      );
    }
    return Math.max(most, most === 0 ? usualDays : 1);
  }
}
