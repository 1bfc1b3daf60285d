/** Answers that a test gives by hand, in the order that it likes: `answer(name)` of a script waits for `give(name)`. */

import type { HostFunction } from "@flowcell/host";
import { encodeValue } from "@flowcell/protocol";
import { type Harness, row } from "./engine-harness.js";

export class HandGiven {
  readonly #asked = new Map<string, (name: string) => void>();
  /** `answer("fails")` throws at once. */
  readonly functions: readonly HostFunction[] = [
    row("answer", "read", ([given]) => {
      const name = String(given);
      if (name === "fails") throw new Error("fails");
      return new Promise((resolve) => this.#asked.set(name, resolve));
    }),
  ];

  /** When it is asked for; resolves when it is on record. */
  async give(harness: Harness, runId: string, name: string): Promise<void> {
    const answer = await harness.until(() => this.#asked.get(name));
    answer(name);
    const { text } = encodeValue(name);
    await harness.until(async () =>
      (await harness.history(runId)).deliveries.some(
        (one) => one.kind === "call" && one.outcome.ok && one.outcome.value.text === text,
      ),
    );
  }
}

/** A clock that stands still until the test moves it. */
export class StoodClock {
  #now = Date.now();

  readonly now = (): number => this.#now;

  pass(ms: number): void {
    this.#now += ms;
  }
}
