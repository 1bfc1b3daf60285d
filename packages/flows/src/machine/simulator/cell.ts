/** A worker as a simulated engine sees it: a guest behind two pipes that keep their order and take their time. */

import type { CallOutcome } from "@flowcell/protocol";
import type { ActivationEnd, RunEvent } from "../types.js";
import { Guest, type GuestMessage } from "./guest.js";
import type { Node } from "./program.js";
import type { Queue } from "./queue.js";
import type { Random } from "./random.js";

export type Refusal = RunEvent & { readonly kind: "ended" | "refused" };

export interface CellOptions {
  readonly program: Node;
  readonly seed: number;
  readonly inFlight: number;
  readonly clock: number;
  readonly random: Random;
  readonly queue: Queue;
  readonly now: () => number;
  /** There is no worker: it ends with this, and nothing of the script runs. */
  readonly refusal: Refusal | null;
  readonly hear: (event: RunEvent) => void | Promise<void>;
}

export function activationEnd(
  status: ActivationEnd["status"],
  reason: string | null,
  value: ActivationEnd["value"] = null,
): ActivationEnd {
  return {
    status,
    reason,
    value,
    errorJson: null,
    warnings: [],
    liveCpuUs: 10,
    heapPeakBytes: 1,
    confinementJson: null,
    started: true,
  };
}

export class Cell {
  readonly #options: CellOptions;
  readonly #guest: Guest;
  /** It runs no more. */
  #condemned = false;
  #killed = false;
  #toParentAt = 0;
  #toWorkerAt = 0;
  /** Things that were sent to it. */
  sent = 0;
  /** Calls that it made. */
  readonly made = new Set<number>();
  frontier = false;
  /** The activation is over. */
  ended = false;

  constructor(options: CellOptions) {
    this.#options = options;
    const { program, seed, inFlight, clock } = options;
    this.#guest = new Guest(program, seed, inFlight, clock, (message) => this.#receive(message));
    if (options.refusal !== null) {
      this.#condemned = true;
      this.#send(options.refusal);
    } else this.#toWorker(() => this.#guest.start());
  }

  deliver(position: number, outcome: CallOutcome, clock: number): void {
    this.sent += 1;
    this.#toWorker(() => this.#guest.deliver(position, outcome, clock));
  }

  fireTimer(clock: number): void {
    this.sent += 1;
    this.#toWorker(() => this.#guest.fireTimer(clock));
  }

  /** Kills it, unless it has ended: what is still in its pipe is not heard, and the verdict comes when the process is gone. */
  kill(end: ActivationEnd): void {
    if (this.#condemned) return;
    this.#killed = true;
    this.end(end);
  }

  /** It ends by itself, well or not. */
  end(end: ActivationEnd): void {
    if (this.#condemned) return;
    this.#condemned = true;
    this.#send({ kind: "ended", end });
  }

  /** With its parent; nothing is heard of it any more. */
  vanish(): void {
    this.#condemned = true;
    this.ended = true;
  }

  #toWorker(act: () => void): void {
    const { queue, random, now } = this.#options;
    this.#toWorkerAt = Math.max(this.#toWorkerAt, now() + random.below(3));
    queue.put(this.#toWorkerAt, () => {
      if (!this.#condemned) act();
    });
  }

  #receive(message: GuestMessage): void {
    if (this.#condemned) return;
    switch (message.kind) {
      case "returned":
        this.end(activationEnd("completed", null, message.value));
        return;
      case "threw":
        this.end(activationEnd("script_error", message.reason));
        return;
      case "logged": {
        const { seq, text, guestTimeMs } = message;
        this.#send({ kind: "logged", line: { seq, level: "log", guestTimeMs, text } });
        return;
      }
      default:
        this.#send(message);
    }
  }

  #send(event: RunEvent): void {
    const { queue, random, now, hear } = this.#options;
    this.#toParentAt = Math.max(this.#toParentAt, now() + random.below(3));
    queue.put(this.#toParentAt, () => {
      if (this.ended) return;
      if (event.kind === "ended" || event.kind === "refused") this.ended = true;
      else if (this.#killed) return;
      return hear(event);
    });
  }
}
