/**
 * The world outside a simulated run: what effects did, for good. It outlives crashes of the process. What was on its way when
 * a process died has happened or has not, and only the world knows; a key is counted once.
 */

import type { CallOutcome, Recovery } from "@flowcell/protocol";
import type { Classified } from "../types.js";
import type { CallName } from "./program.js";
import type { Random } from "./random.js";

export interface Deed {
  readonly position: number;
  readonly name: CallName;
  /** How often it took effect. */
  applied: number;
  /** What it ended with when it took effect. */
  outcome: CallOutcome | null;
}

/** An effect or a read that is carried out for a process. */
export interface Work {
  readonly position: number;
  readonly name: CallName;
  readonly key: string;
  /** It takes effect at the first time, and answers at the second. */
  readonly appliesAfter: number;
  readonly answersAfter: number;
  readonly fails: boolean;
  /** It never gets there. */
  readonly lost: boolean;
  /** Whether giving it up stops it, if it has not taken effect. */
  readonly stoppable: boolean;
  stopped: boolean;
  applied: boolean;
  answer: CallOutcome | null;
}

export function text(of: string): CallOutcome {
  return { ok: true, value: { text: JSON.stringify(of), devalue: false, attachments: [] } };
}

export function error(
  code: "upstream" | "unavailable" | "cancelled" | "outcome_unknown" | "denied",
): CallOutcome {
  return { ok: false, error: { code, message: code, retryable: false } };
}

export class World {
  readonly #random: Random;
  /** By position of the run's calls. */
  readonly deeds = new Map<number, Deed>();
  readonly #byKey = new Map<string, CallOutcome>();
  #reads = 0;
  #callIds = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  classify(name: CallName, seen: string, ms: number): Classified {
    switch (name) {
      case "kv.get":
        return { kind: "local", operation: { kind: "kv.get", key: "k" }, bytesMax: 1_000 };
      case "kv.set": {
        const value = { text: seen, devalue: false, attachments: [] };
        return { kind: "local", operation: { kind: "kv.set", key: "k", value }, bytesMax: 1_000 };
      }
      case "read":
        return { kind: "read" };
      case "keyed":
        return { kind: "effect", effect: "keyed", note: null };
      case "once":
        return { kind: "effect", effect: "once", note: null };
      case "proven":
        return { kind: "effect", effect: "once", note: { seen } };
      case "sleep":
        return { kind: "wait", condition: { kind: "time", waitMs: ms }, callId: null };
      case "signal":
        return { kind: "wait", condition: { kind: "signal", name: "s", timeoutMs: null }, callId: null };
      case "signal.timed":
        return { kind: "wait", condition: { kind: "signal", name: "s", timeoutMs: ms }, callId: null };
      case "approval": {
        const condition = { kind: "approval", title: "?", detail: null, timeoutMs: null } as const;
        return { kind: "wait", condition, callId: `call_${this.#callIds++}` };
      }
      case "denied":
        return { kind: "answered", effect: "read", outcome: error("denied") };
    }
  }

  begin(position: number, name: CallName, key: string): Work {
    const random = this.#random;
    const answersAfter = random.percent(85) ? random.between(0, 60) : random.between(100, 30_000);
    return {
      position,
      name,
      key,
      appliesAfter: random.below(answersAfter + 1),
      answersAfter,
      fails: random.percent(12),
      lost: random.percent(5),
      stoppable: random.percent(50),
      stopped: false,
      applied: false,
      answer: null,
    };
  }

  /** It takes effect, unless it was stopped before. */
  apply(work: Work): void {
    if (work.stopped || work.applied || work.lost) return;
    work.applied = true;
    const { name, position, key } = work;
    if (name === "read") {
      work.answer = text(`read ${this.#reads++}`);
      return;
    }
    const before = name === "keyed" ? this.#byKey.get(key) : undefined;
    if (before !== undefined) {
      work.answer = before;
      return;
    }
    const deed = this.deeds.get(position) ?? { position, name, applied: 0, outcome: null };
    this.deeds.set(position, deed);
    deed.applied += 1;
    deed.outcome = work.fails ? error("upstream") : text(`${name} ${position}.${deed.applied}`);
    if (name === "keyed") this.#byKey.set(key, deed.outcome);
    work.answer = deed.outcome;
  }

  /** What the process hears of it in the end. */
  answer(work: Work): CallOutcome {
    if (work.answer !== null) return work.answer;
    return error(work.lost ? "unavailable" : "cancelled");
  }

  /** The process that asked for it is gone. */
  orphan(work: Work): void {
    if (!work.applied && this.#random.percent(50)) this.apply(work);
    work.stopped = true;
  }

  abort(work: Work): void {
    if (work.stoppable && !work.applied) work.stopped = true;
  }

  prove(position: number, name: CallName): Recovery {
    if (name !== "proven" || this.#random.percent(10)) return { state: "unknown" };
    const deed = this.deeds.get(position);
    return deed?.outcome ? { state: "applied", outcome: deed.outcome } : { state: "not_applied" };
  }
}
