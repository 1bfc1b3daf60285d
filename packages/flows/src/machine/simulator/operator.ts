/** The operator of a simulated run: looks in now and then, and does what somebody has to do for the run to go on. */

import type { RunEvent } from "../types.js";
import { Broken } from "./record.js";
import { runId, type Stage } from "./stage.js";
import { text } from "./world.js";

type Give = (event: () => RunEvent | null) => void;

export class Operator {
  readonly #stage: Stage;
  /** To the process that holds the run; the event is made when there is one. */
  readonly #give: Give;
  #signals = 0;

  constructor(stage: Stage, give: Give) {
    this.#stage = stage;
    this.#give = give;
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
    if (lying < record.waitingForSignals || random.percent(3)) this.#signal();
    for (const [position, { open, wait }] of record.calls) {
      if (!open || wait?.kind !== "approval") continue;
      this.#give(() => ({ kind: "waitDone", position, outcome: text(`approved ${position}`) }));
    }
  }

  #signal(): void {
    const { random, store } = this.#stage;
    const signalId = `${this.#signals++}`;
    const value = { text: `"signal ${signalId}"`, devalue: false, attachments: [] };
    this.#stage.later(random.below(20), async () => {
      const at = this.#stage.now;
      const operation = { kind: "sendSignal", runId, name: "s", value, signalId, at } as const;
      const sent = await store.commit({ operations: [operation] });
      if (!sent.ok) throw new Broken(`a signal was refused: ${sent.message}`);
      this.#give(() => ({ kind: "signalled", name: "s" }));
    });
  }

  /** Says of each call that nobody knows of what became of it, or gives up. */
  #reconcile(): void {
    const { record, world, random } = this.#stage;
    for (const [position, { unknown, open }] of record.calls) {
      if (!unknown || !open) continue;
      this.#give(() => {
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
