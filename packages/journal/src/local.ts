/**
 * Carries out a local operation over a store's primitives. Called by every store inside the unit that records the call.
 *
 * TRUST: keys are a script's. One that is not well-formed Unicode has no UTF-8 of its own, so that two of them could name
 * one row: the script gets an error.
 */

import { applyLocal, type CallOutcome, type LocalOperation, type LocalTx } from "@flowcell/protocol";
import { isWellFormed } from "./take.js";

export function carryOut(tx: LocalTx, operation: LocalOperation, bytesMax: number): CallOutcome {
  const keys = operation.kind === "kv.list" ? [operation.prefix, operation.after ?? ""] : [operation.key];
  if (!keys.every(isWellFormed)) {
    const message = `${operation.kind}: the key is not well-formed Unicode`;
    return { ok: false, error: { code: "invalid_arguments", message, retryable: false } };
  }
  return applyLocal(tx, operation, bytesMax);
}
