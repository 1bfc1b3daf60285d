/** The operator of a simulated run: looks in now and then, and does what somebody has to do for the run to go on. */

import type { RunEvent } from "../types.js";
import { Broken } from "./record.js";
import { runId, type Stage } from "./stage.js";
import { text } from "./world.js";

/** The process that holds the run. */
export interface Listener {
  /** Hears it for sure; the event is made when there is such a process. */
  give(event: () => RunEvent | null): void;
  /** Hears it if it is there. */
  tell(event: RunEvent): void;
}

export class Operator {
  readonly #stage: Stage;
  readonly #listener: Listener;
  #signals = 0;
  /** Whether one was sent that nobody waits for: more would bring to light what was overlooked. */
  #spare = false;
  /** Approvals that were answered, with how many processes had died by then: an answer may die with one. */
  readonly #answered = new Map<number, number>();

  constructor(stage: Stage, listener: Listener) {
    this.#stage = stage;
    this.#listener = listener;
  }

  begin(): void {
    this.#stage.later(this.#stage.random.between(5, 500), () => this.#look());
  }

  #look(): void {
    const { over, random, record } = this.#stage;
    if (over) return;
    this.#stage.later(random.between(20, 2_000), () => this.#look());
    if (record.status === "needs_reconcile") this.#reconcile();
    // Never more of them than are waited for, or one that is overlooked would not be missed.
    const lying = this.#signals - record.signals.size;
    const wanted = record.waitingForSignals - lying;
    for (let left = random.percent(50) ? wanted : Math.min(wanted, 1); left > 0; left--)
      this.#signal(left === 1);
    if (!this.#spare && random.percent(3)) {
      this.#spare = true;
      this.#signal(true);
    }
    for (const [position, { open, wait }] of record.calls) {
      const { crashes } = this.#stage.story;
      if (!open || wait?.kind !== "approval" || this.#answered.get(position) === crashes) continue;
      this.#answered.set(position, crashes);
      this.#listener.give(() => ({ kind: "waitDone", position, outcome: text(`approved ${position}`) }));
    }
  }

  /** Several that come at once may be told of once, after the last. */
  #signal(told: boolean): void {
    const { random, store } = this.#stage;
    const delay = told ? 20 : random.below(20);
    const signalId = `${this.#signals++}`;
    const value = { text: `"signal ${signalId}"`, devalue: false, attachments: [] };
    this.#stage.later(delay, async () => {
      const at = this.#stage.now;
      const operation = { kind: "sendSignal", runId, name: "s", value, signalId, at } as const;
      const sent = await store.commit({ operations: [operation] });
      if (!sent.ok) throw new Broken(`a signal was refused: ${sent.message}`);
      if (told) this.#listener.tell({ kind: "signalled", name: "s" });
    });
  }

  /** Says of each call that nobody knows of what became of it, or gives up. */
  #reconcile(): void {
    const { record, world, random } = this.#stage;
    for (const [position, { unknown, open }] of record.calls) {
      if (!unknown || !open) continue;
      this.#listener.give(() => {
        if (random.percent(8)) return { kind: "cancel", by: "operator", reason: "caller" };
        if (record.calls.get(position)?.unknown !== true) return null;
        const outcome = world.deeds.get(position)?.outcome ?? null;
        const decision =
          outcome === null ? ({ kind: "not_applied" } as const) : ({ kind: "observed", outcome } as const);
        return { kind: "reconcile", position, decision };
      });
    }
  }
}
