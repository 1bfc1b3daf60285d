/**
 * A run's history without what its calls were given and what they returned: their sizes stand in place of both. Whoever
 * reports on a run or waits for it reads this, however much the run has on record.
 */

import type { CallOutcome, EncodedValue } from "@flowcell/protocol";
import type { CallHead, Delivery, DeliveryHead, OutcomeHead, RunHeads, RunHistory } from "./store.js";

/** What a store answers to `heads`, from all that it knows. Shares its parts. */
export function headsOf({ run, calls, deliveries }: RunHistory): RunHeads {
  return {
    run,
    calls: calls.map(({ args, ...call }): CallHead => ({ ...call, argsBytes: encodedBytes(args) })),
    deliveries: deliveries.map(deliveryHead),
  };
}

function deliveryHead(delivery: Delivery): DeliveryHead {
  return delivery.kind === "timer" ? delivery : { ...delivery, outcome: outcomeHead(delivery.outcome) };
}

function outcomeHead(outcome: CallOutcome): OutcomeHead {
  return outcome.ok ? { ok: true, bytes: encodedBytes(outcome.value) } : outcome;
}

/** Text and attachments, as they are stored. */
export function encodedBytes({ text, attachments }: EncodedValue): number {
  return attachments.reduce((sum, part) => sum + part.byteLength, Buffer.byteLength(text));
}
