/**
 * How much a run has left in its journal: the bytes of arguments and outcomes, and the timers that fired. Calls have their own
 * bound (hostCalls); a loop of large reads or of timers has none. Kept by run.ts from what is recorded, the same after a
 * restart; bounds.ts holds the run to it.
 */

import { type CallRow, type Delivery, encodedBytes } from "@flowcell/journal";
import type { CallOutcome } from "@flowcell/protocol";

type RecordedCall = Pick<CallRow, "args" | "wait">;

export class Recorded {
  /** As they are stored, however many share an attachment. */
  bytes = 0;
  timers = 0;

  call({ args, wait }: RecordedCall): void {
    this.bytes += encodedBytes(args);
    if (wait?.kind === "approval" && wait.detail !== null) this.bytes += encodedBytes(wait.detail);
  }

  delivery(delivery: Delivery): void {
    if (delivery.kind === "timer") this.timers += 1;
    else this.bytes += outcomeBytes(delivery.outcome);
  }
}

function outcomeBytes(outcome: CallOutcome): number {
  return outcome.ok ? encodedBytes(outcome.value) : Buffer.byteLength(JSON.stringify(outcome.error));
}
