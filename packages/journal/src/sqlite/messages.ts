/**
 * What passes between a store and its thread. One message carries many requests, and one many answers; requests are carried
 * out in the order in which they were asked.
 */

import type { Retention, RunQuery, Unit } from "../store.js";

/** What the thread is started with. */
export interface ThreadData {
  readonly path: string;
  readonly durability: "full" | "normal";
  readonly heldMs: number;
}

export type Question =
  | { readonly kind: "commit"; readonly unit: Unit }
  | { readonly kind: "retain"; readonly retention: Retention }
  | {
      readonly kind: "run" | "history" | "heads" | "logs" | "callById" | "flow" | "versions";
      readonly key: string;
    }
  | { readonly kind: "outcome"; readonly runId: string; readonly position: number }
  | { readonly kind: "version"; readonly flow: string; readonly hash: string }
  | { readonly kind: "runs"; readonly query: RunQuery }
  | { readonly kind: "quarantined"; readonly runId: string | null }
  | { readonly kind: "audit"; readonly limit: number }
  | { readonly kind: "unfinished" | "waits" | "flows" | "stats" | "close" };

export interface Request {
  readonly id: number;
  readonly question: Question;
}

export interface Answer {
  readonly id: number;
  readonly value: unknown;
}

/** The thread's first message is `open` or `refused`; after `failed` it answers nothing more. */
export type Reply =
  | { readonly kind: "open" }
  | {
      readonly kind: "refused";
      readonly error: "StoreFailure" | "StoreHeld" | "StoreUnreadable";
      readonly message: string;
    }
  | { readonly kind: "answers"; readonly answers: readonly Answer[] }
  | { readonly kind: "failed"; readonly message: string };
