/**
 * Who waits for what in the commits of runs: an operation of the service hands something to the runner and answers its caller
 * when the unit is on disk that carries it. Filled by callers, emptied by every unit that is committed.
 *
 * Kept true: whoever registers before looking at the run misses nothing that is committed after the look; nobody waits on
 * for a run that is finished or that is not driven here any more.
 */

import type { Unit } from "@flowcell/journal";

/** `end`: the run's end, or that it is to end, is recorded; a number: the call of this position is delivered or decided. */
export type Landmark = "end" | number;

/** `gone`: the run finished without it, or is not driven here any more; `late`: it did not come in time. */
export type Arrival = "passed" | "gone" | "late";

type Settle = (arrival: Arrival) => void;

export class Landmarks {
  readonly #byRun = new Map<string, Map<Landmark, Set<Settle>>>();

  /** Whoever does not wait after all leaves. */
  expect(
    runId: string,
    landmark: Landmark,
    mostMs: number,
  ): { readonly arrival: Promise<Arrival>; leave(): void } {
    let settle: Settle = () => undefined;
    const arrival = new Promise<Arrival>((resolve) => {
      settle = (how) => {
        clearTimeout(timer);
        this.#remove(runId, landmark, settle);
        resolve(how);
      };
      const timer = setTimeout(() => settle("late"), mostMs);
    });
    const ofRun = this.#byRun.get(runId) ?? new Map<Landmark, Set<Settle>>();
    this.#byRun.set(runId, ofRun);
    const waiting = ofRun.get(landmark) ?? new Set<Settle>();
    ofRun.set(landmark, waiting);
    waiting.add(settle);
    return { arrival, leave: () => settle("late") };
  }

  observe({ fence, operations }: Unit): void {
    if (fence === undefined || this.#byRun.size === 0) return;
    const { runId } = fence;
    if (!this.#byRun.has(runId)) return;
    let isFinished = false;
    for (const operation of operations) {
      switch (operation.kind) {
        case "deliver":
        case "unknown":
        case "cancelCall":
          this.#settle(runId, operation.position, "passed");
          break;
        case "run":
          isFinished ||= operation.patch.state === "finished";
          if (operation.patch.endStatus !== undefined || isFinished) this.#settle(runId, "end", "passed");
          break;
        default:
      }
    }
    if (isFinished) this.gone(runId);
  }

  /** Nothing of this run will be committed here. */
  gone(runId: string): void {
    for (const landmark of [...(this.#byRun.get(runId)?.keys() ?? [])]) this.#settle(runId, landmark, "gone");
  }

  /** Nothing will be committed any more: everybody is let go. */
  release(): void {
    for (const [runId, ofRun] of [...this.#byRun])
      for (const landmark of [...ofRun.keys()]) this.#settle(runId, landmark, "late");
  }

  #settle(runId: string, landmark: Landmark, how: Arrival): void {
    for (const settle of [...(this.#byRun.get(runId)?.get(landmark) ?? [])]) settle(how);
  }

  #remove(runId: string, landmark: Landmark, settle: Settle): void {
    const ofRun = this.#byRun.get(runId);
    const waiting = ofRun?.get(landmark);
    waiting?.delete(settle);
    if (waiting?.size === 0) ofRun?.delete(landmark);
    if (ofRun?.size === 0) this.#byRun.delete(runId);
  }
}
