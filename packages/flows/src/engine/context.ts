/** What the actors of one runner share. Types only; runner.ts makes it. */

import type { Store } from "@flowcell/journal";
import type { CallOutcome } from "@flowcell/protocol";
import type { CellPool, RunnerHooks } from "../ports.js";
import type { Actor } from "./actor.js";
import type { Alarms } from "./alarms.js";

export interface RunnerSettings {
  /** Blocked for this long, an activation gives its worker to others that wait. */
  readonly blockedMostMs: number;
  /** A wait that is due sooner keeps its worker. */
  readonly suspendAfterMs: number;
  /** Activations in a row that may fail for no fault of the script. */
  readonly failuresMost: number;
  /** Bytes of arguments and outcomes that one run may have on record. */
  readonly recordedBytesMost: number;
  /** Timers that may fire in one run. */
  readonly timersMost: number;
  /** Nobody waits: timers and waits are due as soon as nothing else can happen. */
  readonly virtualTime: boolean;
}

/** Who waits for a place. */
export interface Seat {
  go(): void;
}

export interface EngineContext {
  readonly store: Store;
  readonly pool: CellPool;
  readonly hooks: RunnerHooks;
  readonly settings: RunnerSettings;
  readonly alarms: Alarms;
  readonly fingerprint: string;
  /** Under which runs are claimed: unlike any other runner's. */
  readonly owner: string;
  readonly draining: boolean;
  readonly contended: boolean;
  now(): number;

  /** `seat.go()` follows when there is a place for one more activation. */
  wantPlace(seat: Seat): void;
  /** A place is free again. */
  leavePlace(): void;
  /** None is wanted any more. */
  forgetPlace(seat: Seat): void;
  /** The actor has nothing left to do: its run is suspended until `dueAt`, or until something comes for it. */
  sleep(actor: Actor, generation: number, dueAt: number | null): void;
  /** Ends a wait of a run that is driven here, waking it if it sleeps. */
  waitDone(runId: string, position: number, outcome: CallOutcome): void;
  /** The actor is over: its run is finished, or somebody else's. */
  gone(actor: Actor): void;
  /** Something may have come to rest; asked for while draining. */
  changed(): void;
  storeFailed(error: unknown): void;
  /** A hook or the engine itself threw. */
  failed(runId: string, error: unknown): void;
}
