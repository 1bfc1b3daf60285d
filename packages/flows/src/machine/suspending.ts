/**
 * The way out of an activation that is to go on later: the worker is ended, and what it leaves is stored. The script is
 * begun anew and replayed when there is something to give to it.
 */

import type { RunPatch } from "@flowcell/journal";
import type { Run } from "./run.js";
import type { RunCommand } from "./types.js";
import { earliestWait } from "./waits.js";

type Verdict = Omit<RunCommand & { readonly kind: "endWorker" }, "kind">;

/** Ends the worker of a script that waits; `park` follows when it is gone. */
export function suspend(run: Run, verdict: Verdict): void {
  run.restDueAt = run.timerDueAt;
  run.phase = "suspending";
  run.say({ kind: "endWorker", ...verdict });
}

/** What is known of all activations so far, for the run's row. */
export function accounts(run: Run): RunPatch {
  const { cpuUs, heapPeakBytes, confinementJson, failures } = run;
  return { cpuUs, heapPeakBytes, confinementJson, failures };
}

/**
 * Stores a run that has no worker: suspended, unless something has come meanwhile that the script has not taken. Decided when
 * the unit is built, when everything before it has arrived.
 */
export function park(run: Run): void {
  run.step({
    build: (unit) => {
      if (run.phase !== "suspending" && run.phase !== "suspended" && run.phase !== "pending") return;
      const nothing = { status: null, reason: null, dueAt: null, ...accounts(run) } as const;
      if (run.needsReconcile)
        run.changeState(unit, "suspended", {
          ...nothing,
          status: "needs_reconcile",
          reason: "outcome_unknown",
        });
      else if (somethingCame(run)) run.changeState(unit, "pending", nothing);
      else
        run.changeState(unit, "suspended", {
          ...nothing,
          status: "suspended",
          reason: callsGoOn(run) ? "calls" : "waiting",
          dueAt: dueAt(run),
        });
    },
    done: () => {
      if (run.phase === "closing" || run.phase === "finished") return;
      if (run.stored === "suspended") run.phase = "suspended";
      else becomePending(run, 0);
    },
  });
}

/** Whether an activation would find something to do. */
export function somethingCame(run: Run): boolean {
  if (run.nextOrder > run.consumed) return true;
  for (const { stage } of run.open.values()) if (stage === "open") return true;
  return false;
}

export function becomePending(run: Run, notBefore: number): void {
  run.phase = "pending";
  run.wake(notBefore);
}

/** When a suspended run is to be looked at by itself. */
export function dueAt(run: Run): number | null {
  const wait = earliestWait(run);
  if (wait === null || run.restDueAt === null) return wait ?? run.restDueAt;
  return Math.min(wait, run.restDueAt);
}

export function callsGoOn(run: Run): boolean {
  for (const { stage } of run.open.values()) if (stage === "dispatched") return true;
  return false;
}

/** A timer of the suspended script is due: only a worker can tell more. */
export function resumeForTimer(run: Run): void {
  run.restDueAt = null;
  run.step({
    build: (unit) => {
      if (run.phase === "suspended" && run.stored === "suspended")
        run.changeState(unit, "pending", { status: null, reason: null, dueAt: null });
    },
    done: () => {
      if (run.phase === "suspended") becomePending(run, 0);
    },
  });
}
