/**
 * A manifest as the rest of flowcell reads it: every default filled in, nothing optional that has one, frozen to the
 * bottom. parse.ts makes it and nobody else.
 */

import type { LimitName } from "@flowcell/protocol";
import type { Grants } from "./grant-types.js";
import type { JsonSchemaObject } from "./schema-check.js";

export type Trigger =
  /** Started by somebody. */
  | { readonly kind: "manual" }
  | {
      readonly kind: "cron";
      readonly expression: string;
      /** An IANA name such as "Europe/Berlin". */
      readonly timeZone: string;
      /** What becomes of the times that passed while nothing ran: one run, none, or one each. */
      readonly missed: "once" | "skip" | "each";
    }
  | { readonly kind: "event"; readonly name: string };

export interface Retry {
  /** Runs of the flow before it is given up, the first included. */
  readonly attempts: number;
  /** Before the second attempt; doubled for each further one. */
  readonly backoffMs: number;
}

export interface Concurrency {
  /** JSON pointer into the input: runs with different values there do not wait for each other. */
  readonly key?: string;
  readonly limit: number;
  readonly onLimit: "queue" | "skip" | "cancelOldest";
}

export interface Manifest {
  readonly format: 1;
  readonly id: string;
  readonly version?: string;
  readonly description?: string;
  readonly input?: JsonSchemaObject;
  readonly output?: JsonSchemaObject;
  readonly trigger: Trigger;
  readonly retry: Retry;
  readonly grants: Grants;
  /** What the flow asks for; the operator's ceilings are applied where it runs. */
  readonly budgets: { readonly [name in LimitName]?: number };
  readonly concurrency: Concurrency;
  /** Of a run as a whole; counts the time that it is not suspended. */
  readonly deadlineMs: number;
  readonly retention?: { readonly days: number };
}
