/**
 * One run and its store, for the actor: claim, units in order, what follows from a committed unit for others. It owns every
 * promise that the actor makes, so that a failure of the store is never missed and a stopped actor can be waited for.
 *
 * Kept true: a unit is handed to the store once; results come back in the order of the units, since the machine has at most
 * one on its way; a hook sees the run as the store has it.
 */

import { type RunHistory, type RunOperation, StoreFailure, type UnitResult } from "@flowcell/journal";
import type { CallOutcome } from "@flowcell/protocol";
import type { EngineContext } from "./context.js";
import { runErrorJson } from "./errors.js";
import { runOutcome, unknownRun } from "./run-outcome.js";

export interface JournalUser {
  committed(token: number, operations: readonly RunOperation[], result: UnitResult): void;
  /** Something threw that never should. */
  bug(error: unknown): void;
}

export class RunJournal {
  readonly #context: EngineContext;
  readonly #runId: string;
  readonly #user: JournalUser;
  /** Null until the run is claimed. */
  #generation: number | null;
  #flying = 0;
  /** Promises that are owned and not settled, and who waits for them. */
  #owned = 0;
  readonly #whenSettled: (() => void)[] = [];

  constructor(context: EngineContext, runId: string, generation: number | null, user: JournalUser) {
    this.#context = context;
    this.#runId = runId;
    this.#generation = generation;
    this.#user = user;
  }

  get generation(): number | null {
    return this.#generation;
  }

  /** Units on their way. */
  get flying(): number {
    return this.#flying;
  }

  /** The history of a run that is this runner's now; null when it cannot be, because it is finished, gone or taken again. */
  async take(): Promise<RunHistory | null> {
    const { store, owner } = this.#context;
    const runId = this.#runId;
    if (this.#generation === null) {
      const claimed = await store.commit({ operations: [{ kind: "claim", runId, owner }] });
      const claim = claimed.ok ? claimed.results[0] : undefined;
      if (claim?.kind !== "claim") return null;
      this.#generation = claim.generation;
    }
    const history = await store.history(runId);
    const run = history?.run;
    if (run === undefined || run.state === "finished") return null;
    return run.owner === owner && run.generation === this.#generation ? history : null;
  }

  commit(token: number, operations: readonly RunOperation[]): void {
    this.#flying += 1;
    this.own(
      this.#context.store.commit({ fence: this.#fence(), operations }).then((result) => {
        this.#flying -= 1;
        this.#user.committed(token, operations, result);
      }),
    );
  }

  quarantine(position: number, reason: string, outcome: CallOutcome | null): void {
    const row = { runId: this.#runId, position, at: this.#context.now(), reason, outcome };
    this.own(this.#context.store.commit({ operations: [{ kind: "quarantine", row }] }));
  }

  /** After the unit that finished or suspended the run. */
  tell(state: "finished" | "suspended"): void {
    const { store, hooks } = this.#context;
    this.own(
      store.run(this.#runId).then((run) => {
        if (run === null) return;
        try {
          if (state === "finished") hooks.finished(run);
          else hooks.suspended(run);
        } catch (error) {
          this.#context.failed(this.#runId, error);
        }
      }),
    );
  }

  /**
   * The run that a call waits for may have finished before anybody waited. Later, the service says so. By the time that the
   * store has answered, the run of this journal may have gone to sleep: it is told by whoever can wake it.
   */
  lookAt(position: number, awaited: string): void {
    const waitDone = (outcome: CallOutcome): void => this.#context.waitDone(this.#runId, position, outcome);
    this.own(
      this.#context.store.run(awaited).then((run) => {
        if (run === null) waitDone(unknownRun(awaited));
        else if (run.state === "finished") waitDone(runOutcome(run));
      }),
    );
  }

  /** Ends the run after a bug: what is recorded stays, and nothing more is begun for it. */
  finishInternal(then: () => void): void {
    const at = this.#context.now();
    const message = "flowcell failed while it drove the run; its log has the details";
    const errorJson = runErrorJson({ code: "bug", name: "internal", message });
    const end = { state: "finished", status: "internal", reason: "bug", errorJson } as const;
    const patch = { ...end, finishedAt: at, changedAt: at, dueAt: null };
    const unit = { fence: this.#fence(), operations: [{ kind: "run", patch }] } as const;
    const finished = this.#context.store.commit(unit).finally(then);
    this.own(
      finished.then((result) => {
        if (result.ok) this.tell("finished");
      }),
    );
  }

  #fence(): { runId: string; owner: string; generation: number } {
    const generation = this.#generation;
    if (generation === null) throw new Error("engine: a unit for a run that is not claimed");
    return { runId: this.#runId, owner: this.#context.owner, generation };
  }

  /** Owns a promise: what it rejects with is a failure of the store, or a bug. */
  own(promise: Promise<unknown>): void {
    this.#owned += 1;
    promise.then(
      () => this.#disown(),
      (error: unknown) => {
        if (error instanceof StoreFailure) this.#context.storeFailed(error);
        else this.#user.bug(error);
        this.#disown();
      },
    );
  }

  /** When nothing is owned. */
  settled(): Promise<void> {
    if (this.#owned === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenSettled.push(resolve));
  }

  #disown(): void {
    this.#owned -= 1;
    if (this.#owned > 0) return;
    for (const resolve of this.#whenSettled.splice(0)) resolve();
  }
}
