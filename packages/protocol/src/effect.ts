/**
 * What host calls do to the world and how they end. Declared here because the registry of host functions, the journal and
 * the engine of runs all decide by it.
 */

import type { HostErrorData } from "./host-error.js";
import type { EncodedValue } from "./value.js";

/**
 * What a call does to the world, hence what may happen after a crash: `local` changes only flowcell's own store, `wait`
 * waits, `read` may be repeated, `keyed` may be repeated with the same idempotency key, `once` may not be repeated.
 */
export const effects = ["local", "wait", "read", "keyed", "once"] as const;
export type Effect = (typeof effects)[number];

/** What a host call ended with. */
export type CallOutcome =
  | { readonly ok: true; readonly value: EncodedValue }
  | { readonly ok: false; readonly error: HostErrorData };

/** What a call of effect `wait` waits for. `timeoutMs` counts from the call; without it, only the run's deadline ends the wait. */
export type WaitCondition =
  | { readonly kind: "time"; readonly waitMs: number }
  | { readonly kind: "signal"; readonly name: string; readonly timeoutMs: number | null }
  | {
      readonly kind: "approval";
      /** What the operator is asked; shown, never interpreted. */
      readonly title: string;
      readonly detail: EncodedValue | null;
      readonly timeoutMs: number | null;
    }
  | { readonly kind: "run"; readonly runId: string; readonly timeoutMs: number | null };

/** What may be kept with the intent of a call: plain JSON, at most 4 KiB as text. */
export type CallNote = { readonly [key: string]: string | number | boolean | null };

/** What can be proven after a crash about a call whose outcome was not recorded. */
export type Recovery =
  | { readonly state: "applied"; readonly outcome: CallOutcome }
  | { readonly state: "not_applied" }
  | { readonly state: "unknown" };
