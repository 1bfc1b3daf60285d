/**
 * The way of one run to a worker, for its actor: wake, place, gate, activation. The machine has at most one activation; here it
 * goes through `waiting for a place` → `gate` → `activation`, and can be ended in each.
 *
 * Kept true: every `activate` is answered by one `ended`; the version is looked at by the gate before each; the place is given
 * back when nothing runs.
 */

import type { RunRow } from "@flowcell/journal";
import type { RunCommand, RunEvent } from "../machine/types.js";
import type { Gate, Runnable } from "../ports.js";
import { notBegun, RunActivation, type Verdict } from "./activation.js";
import { Alarm } from "./alarms.js";
import type { EngineContext, Seat } from "./context.js";

type Activate = RunCommand & { readonly kind: "activate" };

export interface WorkplaceUser {
  post(event: RunEvent): void;
  /** The version as the gate let it in: calls of the activation are carried out by it. */
  aim(runnable: Runnable): void;
  own(promise: Promise<unknown>): void;
  bug(error: unknown): void;
}

/** Not now: as if no worker could be had. */
const later: Verdict = Object.freeze({
  status: "overloaded",
  reason: "queue_timeout",
  message: "the flow's version cannot be read now",
});

export class Workplace {
  readonly #context: EngineContext;
  readonly #user: WorkplaceUser;
  readonly #seat: Seat;
  readonly #wakeAlarm: Alarm;
  /** Told to begin, and the gate has not answered. */
  #gating: Activate | null = null;
  #activation: RunActivation | null = null;
  #hasPlace = false;
  #stopped = false;

  constructor(context: EngineContext, user: WorkplaceUser) {
    this.#context = context;
    this.#user = user;
    this.#seat = { go: () => this.#go() };
    this.#wakeAlarm = new Alarm(() => context.wantPlace(this.#seat));
  }

  get activation(): RunActivation | null {
    return this.#activation;
  }

  /** Nothing runs or is about to. */
  get idle(): boolean {
    return this.#activation === null && this.#gating === null;
  }

  wake(notBefore: number): void {
    if (notBefore > this.#context.now()) this.#context.alarms.set(this.#wakeAlarm, notBefore);
    else this.#context.wantPlace(this.#seat);
  }

  #go(): void {
    if (this.#stopped) return;
    this.#hasPlace = true;
    this.#user.post({ kind: "go" });
  }

  /** `known`: what the gate has just said. */
  activate(command: Activate, run: RunRow, known: Gate | null): void {
    this.#gating = command;
    if (known !== null) this.#gated(known, run);
    else this.#user.own(this.#context.hooks.gate(run).then((gate) => this.#gated(gate, run)));
  }

  #gated(gate: Gate, run: RunRow): void {
    const command = this.#gating;
    if (command === null || this.#stopped) return;
    this.#gating = null;
    if (!gate.ok) {
      if ("end" in gate) this.#user.post({ kind: "refused", end: notBegun(gate.end) });
      else this.#user.post({ kind: "ended", end: notBegun(later) });
      return;
    }
    const { runnable } = gate;
    this.#user.aim(runnable);
    const { guestClockMs, replayCpuMs } = command;
    this.#activation = new RunActivation({
      pool: this.#context.pool,
      runnable,
      run,
      guestClockMs,
      replayCpuMs,
      post: (event) => this.#user.post(event),
      onBug: (error) => this.#user.bug(error),
    });
    this.#user.own(this.#activation.done);
  }

  end(verdict: Verdict): void {
    if (this.#gating !== null) {
      this.#gating = null;
      this.#user.post({ kind: "ended", end: notBegun(verdict) });
    } else {
      this.#activation?.end(verdict);
    }
  }

  /** `ended` was handled. */
  ended(): void {
    this.#activation = null;
    this.tidy();
  }

  /** A place is only kept for an activation. */
  tidy(): void {
    if (!this.#hasPlace || !this.idle) return;
    this.#hasPlace = false;
    this.#context.leavePlace();
  }

  stop(): void {
    this.#stopped = true;
    this.#context.alarms.clear(this.#wakeAlarm);
    this.#context.forgetPlace(this.#seat);
    this.#gating = null;
    this.#activation?.abandon();
    this.#activation = null;
    this.tidy();
  }
}
