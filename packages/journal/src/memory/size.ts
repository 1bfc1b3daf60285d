/**
 * What a run takes in the memory store, near enough to bound many of them by: its texts and bytes. store.ts asks for whoever
 * has a store alone and decides what to keep.
 */

import type { EncodedValue } from "@flowcell/protocol";
import type { Delivery } from "../store.js";
import type { RunEntry } from "./tables.js";

/** Rows without their texts. */
const rowBytes = 512;

export function runBytes({ row, calls, deliveries, logs }: RunEntry): number {
  let bytes = rowBytes + valueBytes(row.input) + valueBytes(row.result) + (row.errorJson?.length ?? 0);
  for (const { args, wait } of calls.values())
    bytes += rowBytes + valueBytes(args) + (wait?.kind === "approval" ? valueBytes(wait.detail) : 0);
  for (const delivery of deliveries) bytes += deliveryBytes(delivery);
  for (const { text } of logs) bytes += text.length;
  return bytes;
}

function deliveryBytes(delivery: Delivery): number {
  if (delivery.kind === "timer") return rowBytes;
  const { outcome } = delivery;
  return rowBytes + (outcome.ok ? valueBytes(outcome.value) : outcome.error.message.length);
}

function valueBytes(value: EncodedValue | null): number {
  if (value === null) return 0;
  return value.attachments.reduce((sum, part) => sum + part.byteLength, value.text.length);
}
