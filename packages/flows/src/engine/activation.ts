/**
 * One activation of a run: what the pool's driver reports becomes events of the machine, the machine's commands go to the
 * worker. Made by the actor for each `activate`.
 *
 * Kept true: `ended` is posted once, and no event of the activation after it; commands after the end do nothing. Commands that
 * come before a worker has the script (`frontier`, an end) are carried out when it has, or instead.
 *
 * TRUST: everything that is reported was checked for form by the pool and is a script's own otherwise.
 */

import type { RunRow } from "@flowcell/journal";
import type { CallOutcome, EncodedValue, Status } from "@flowcell/protocol";
import type { ActivationEnd, RunEvent } from "../machine/types.js";
import type { CellActivation, CellDriver, CellPool, CellResult, Runnable } from "../ports.js";
import { callDigest } from "./digest.js";
import { boundedWarnings, errorJsonOf } from "./errors.js";

export interface Verdict {
  readonly status: Status;
  readonly reason: string;
  readonly message: string;
}

export interface ActivationOptions {
  readonly pool: CellPool;
  readonly runnable: Runnable;
  readonly run: RunRow;
  readonly guestClockMs: number;
  readonly replayCpuMs: number;
  readonly post: (event: RunEvent) => void;
  /** The pool failed in a way that it never should. */
  readonly onBug: (error: unknown) => void;
}

/** What a worker attested is the same object for each of its activations. */
const confinementTexts = new WeakMap<object, string>();

export class RunActivation implements CellDriver {
  readonly #options: ActivationOptions;
  readonly #queued = new AbortController();
  #cell: CellActivation | null = null;
  #frontier = false;
  #verdict: Verdict | null = null;
  #over = false;
  /** Resolves when the worker is let go. */
  readonly done: Promise<void>;

  constructor(options: ActivationOptions) {
    this.#options = options;
    this.done = this.#activate();
  }

  get begunYet(): boolean {
    return this.#cell !== null;
  }

  // ------------------------------------------------------------------------------------------------------ machine's commands

  frontier(): void {
    if (this.#frontier) return;
    this.#frontier = true;
    this.#cell?.frontier();
  }

  deliver(position: number, outcome: CallOutcome, guestClockMs: number): void {
    if (!this.#over) this.#cell?.deliver(position, outcome, guestClockMs);
  }

  fireTimer(guestClockMs: number): void {
    if (!this.#over) this.#cell?.fireTimer(guestClockMs);
  }

  /** `ended` follows. Only the first verdict counts. */
  end(verdict: Verdict): void {
    if (this.#over || this.#verdict !== null) return;
    this.#verdict = verdict;
    if (this.#cell === null) this.#queued.abort();
    else this.#cell.end(verdict);
  }

  /** No event comes after this; the worker is killed. */
  abandon(): void {
    this.#over = true;
    this.#queued.abort();
    this.#cell?.end({ status: "cancelled", reason: "closing", message: "the run is no longer driven here" });
  }

  // --------------------------------------------------------------------------------------------------------- pool's reports

  begun(activation: CellActivation): void {
    this.#cell = activation;
    if (this.#over) {
      activation.end({ status: "cancelled", reason: "closing", message: "the run is no longer driven here" });
    } else if (this.#verdict !== null) {
      activation.end(this.#verdict);
    } else if (this.#frontier) {
      activation.frontier();
    }
  }

  called({ position, name, args }: { position: number; name: string; args: EncodedValue }): void {
    if (this.#over) return;
    this.#options.post({ kind: "called", position, name, digest: callDigest(name, args), args });
  }

  callCancelled(position: number): void {
    if (!this.#over) this.#options.post({ kind: "callCancelled", position });
  }

  blocked({ nextTimerAt, openCalls }: { nextTimerAt: number | null; openCalls: number }): void {
    if (!this.#over) this.#options.post({ kind: "blocked", nextTimerAt, openCalls });
  }

  async #activate(): Promise<void> {
    const { pool, runnable, run, guestClockMs, replayCpuMs, post, onBug } = this.#options;
    let result: CellResult;
    try {
      result = await pool.activate({
        // Two versions of a flow are as strange to each other as two flows.
        flow: `${runnable.flow}@${runnable.hash}`,
        script: runnable.script,
        input: run.input,
        names: runnable.names,
        limits: runnable.limits,
        clock: { epochMs: guestClockMs, mode: "driven" },
        seed: Buffer.from(run.seed, "hex"),
        driver: this,
        replayCpuMs,
        signal: this.#queued.signal,
        onConsole: ({ seq, level, timeMs, text }) => {
          if (!this.#over) post({ kind: "logged", line: { seq, level, guestTimeMs: timeMs, text } });
        },
      });
    } catch (error) {
      this.#over = true;
      onBug(error);
      return;
    }
    if (this.#over) return;
    this.#over = true;
    post({ kind: "ended", end: this.#end(result) });
  }

  #end(result: CellResult): ActivationEnd {
    const { usage, replayCpuMs, started, warnings, confinement } = result;
    const measured = {
      warnings: boundedWarnings(warnings),
      liveCpuUs: this.#frontier ? Math.max(0, Math.round((usage.cpuMs - replayCpuMs) * 1000)) : 0,
      heapPeakBytes: usage.heapPeakBytes,
      confinementJson: confinementText(confinement),
      started,
    };
    // An activation that was ended while it waited for a worker ends as it was told to, not as cancelled.
    const told = this.#verdict !== null && !started && result.status === "cancelled" ? this.#verdict : null;
    const status = told?.status ?? result.status;
    if (status === "completed") {
      return { status, reason: null, value: result.value ?? null, errorJson: null, ...measured };
    }
    const reason = told?.reason ?? result.reason ?? null;
    const error = told === null ? result.error : { code: told.reason, message: told.message };
    const errorJson =
      status === "suspended" || error === undefined
        ? null
        : errorJsonOf(status, error, (given) => this.#options.runnable.mapError(given));
    return { status, reason, value: null, errorJson, ...measured };
  }
}

/** How an activation ends that never was. */
export function notBegun({ status, reason, message }: Verdict): ActivationEnd {
  return {
    status,
    reason,
    value: null,
    errorJson: status === "suspended" ? null : errorJsonOf(status, { code: reason, message }, undefined),
    warnings: [],
    liveCpuUs: 0,
    heapPeakBytes: 0,
    confinementJson: null,
    started: false,
  };
}

function confinementText(confinement: unknown): string | null {
  if (typeof confinement !== "object" || confinement === null) return null;
  let text = confinementTexts.get(confinement);
  if (text === undefined) {
    text = JSON.stringify(confinement);
    confinementTexts.set(confinement, text);
  }
  return text;
}
