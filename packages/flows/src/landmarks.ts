/**
 * Who waits for what in the commits of runs: an operation of the service hands something to the runner and answers its caller
 * when the unit is on disk that carries it. Filled by callers, emptied by every unit that is committed.
 */

import type { Unit } from "@flowcell/journal";

/** `end`: the run's end, or that it is to end, is recorded; a number: the call of this position is delivered or decided. */
export type Landmark = "end" | number;

type Passed = () => void;

export class Landmarks {
  readonly #waiting = new Map<string, Set<Passed>>();

  /** `passed` is true when it came in time. Whoever does not wait after all leaves. */
  expect(
    runId: string,
    landmark: Landmark,
    mostMs: number,
  ): { readonly passed: Promise<boolean>; leave(): void } {
    const key = `${runId} ${landmark}`;
    let leave = (_passed: boolean): void => undefined;
    const passed = new Promise<boolean>((resolve) => {
      const waiting = this.#waiting.get(key) ?? new Set<Passed>();
      this.#waiting.set(key, waiting);
      leave = (isPassed) => {
        clearTimeout(timer);
        waiting.delete(done);
        if (waiting.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key);
        resolve(isPassed);
      };
      const done = (): void => leave(true);
      const timer = setTimeout(() => leave(false), mostMs);
      waiting.add(done);
    });
    return { passed, leave: () => leave(false) };
  }

  observe({ fence, operations }: Unit): void {
    if (fence === undefined || this.#waiting.size === 0) return;
    for (const operation of operations) {
      switch (operation.kind) {
        case "deliver":
        case "unknown":
          this.#passed(`${fence.runId} ${operation.position}`);
          break;
        case "run":
          if (operation.patch.endStatus !== undefined || operation.patch.state === "finished") {
            this.#passed(`${fence.runId} end`);
          }
          break;
        default:
      }
    }
  }

  /** Nothing will be committed any more: everybody is let go. */
  release(): void {
    for (const key of [...this.#waiting.keys()]) this.#passed(key);
  }

  #passed(key: string): void {
    for (const done of [...(this.#waiting.get(key) ?? [])]) done();
  }
}
