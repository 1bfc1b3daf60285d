/** Names that nobody can guess: of runs, and of whatever else is asked for by name alone. */

import { createHash, randomBytes } from "node:crypto";

export function newRunId(): string {
  return `run_${randomBytes(16).toString("base64url")}`;
}

/** 32 bytes as hexadecimal. */
export function newSeed(): string {
  return randomBytes(32).toString("hex");
}

export function newSignalId(): string {
  return `sig_${randomBytes(16).toString("base64url")}`;
}

/** The event that a call with this key emits: the same for the same key. */
export function eventIdOf(idempotencyKey: string): string {
  const digest = createHash("sha256").update(`event:${idempotencyKey}`).digest();
  return `evt_${digest.subarray(0, 16).toString("base64url")}`;
}
