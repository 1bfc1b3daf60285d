/**
 * What comes from outside for executions that are journaled: answers, what became of a call, cancellation, and the question what
 * waits. journal-runs.ts passes it on.
 *
 * Kept true: what is asked for is checked before anything is done; requests for one execution follow each other, so that each
 * sees what the one before it did; the same request again changes nothing, another one is refused.
 */

import type { Runner } from "@flowcell/flows";
import type { CallRow, RunHistory, RunRow, Store } from "@flowcell/journal";
import { type CallOutcome, encodeValue, type PendingCall } from "@flowcell/protocol";
import { answerOutcome, outcomeOf } from "./approval-calls.js";
import { refuse } from "./execute.js";
import {
  type ApprovalAnswer,
  type CallFinding,
  checkedAnswers,
  checkedFindings,
  findingBounds,
  isSameAnswer,
  misuse,
} from "./journal-answers.js";
import { pendingCall, type UnknownCall, unknownCalls } from "./journal-result.js";
import { ended, isOver, type JournalWaits } from "./journal-waits.js";
import { type ResumeOptions, resumeProblem } from "./options.js";
import type { ExecuteResult } from "./result.js";

/** An execution that does not go on by itself. */
export interface PendingExecution {
  readonly runId: string;
  readonly status: "suspended" | "needs_reconcile";
  /** ISO 8601. */
  readonly createdAt: string;
  /** What `resume` answers. */
  readonly pending: readonly PendingCall[];
  /** Calls of which nobody knows whether they took effect: `reconcile` says so. */
  readonly unknown: readonly UnknownCall[];
}

export interface RequestsParts {
  readonly store: Store;
  /** Whose executions these are in the store. */
  readonly name: string;
  readonly waits: JournalWaits;
  runner(): Runner;
}

export class JournalRequests {
  readonly #parts: RequestsParts;
  /** The last request for each execution that has one. */
  readonly #last = new Map<string, Promise<unknown>>();

  constructor(parts: RequestsParts) {
    this.#parts = parts;
  }

  async resume(runId: unknown, answers: unknown, options: unknown): Promise<ExecuteResult> {
    const signal = signalOf(options);
    if (typeof signal === "string") return refuse("request", signal);
    const checked = checkedAnswers(runId, answers);
    if (typeof checked === "string") return refuse("request", checked);
    return await this.#inTurn(checked.id, () => this.#resume(checked.id, checked.list, signal.signal));
  }

  async reconcile(runId: unknown, findings: unknown, options: unknown): Promise<ExecuteResult> {
    const signal = signalOf(options);
    if (typeof signal === "string") return refuse("request", signal);
    const checked = checkedFindings(runId, findings);
    if (typeof checked === "string") return refuse("request", checked);
    return await this.#inTurn(checked.id, () => this.#reconcile(checked.id, checked.list, signal.signal));
  }

  async cancel(runId: unknown): Promise<ExecuteResult> {
    if (typeof runId !== "string") return refuse("request", "cancel needs the runId of an execution");
    return await this.#inTurn(runId, async () => {
      const { store, waits, runner } = this.#parts;
      const run = await store.run(runId);
      if (!this.#isOurs(run)) return unknownExecution(runId);
      if (run.state !== "finished") runner().cancel(runId, "caller", "caller");
      return await waits.result(runId, ({ state }) => state === "finished");
    });
  }

  /** The oldest first. */
  async pending(): Promise<readonly PendingExecution[]> {
    const { store } = this.#parts;
    const [unfinished, waiting] = await Promise.all([store.unfinished(), store.waits()]);
    const byRun = new Map<string, PendingCall[]>();
    for (const { runId, wait, callId } of waiting) {
      if (wait.kind !== "approval" || callId === null) continue;
      const others = byRun.get(runId) ?? [];
      others.push(pendingCall(callId, wait.title, wait.detail));
      byRun.set(runId, others);
    }
    const listed: PendingExecution[] = [];
    for (const run of unfinished) {
      if (!this.#isOurs(run) || run.state !== "suspended") continue;
      const { runId } = run;
      const pending = byRun.get(runId) ?? [];
      const history = run.status === "needs_reconcile" ? await store.history(runId) : null;
      const unknown = history === null ? [] : unknownCalls(history);
      if (pending.length + unknown.length === 0) continue;
      const status = run.status === "needs_reconcile" ? "needs_reconcile" : "suspended";
      listed.push({ runId, status, createdAt: new Date(run.createdAt).toISOString(), pending, unknown });
    }
    return listed;
  }

  /** One after the other for each execution; whatever happens is a result. */
  async #inTurn(runId: string, step: () => Promise<ExecuteResult>): Promise<ExecuteResult> {
    const before = this.#last.get(runId) ?? Promise.resolve();
    const done = before.then(async () => {
      const { waits } = this.#parts;
      if (waits.over !== undefined) return ended("cancelled", "closing", waits.over);
      return await waits.guarded(step);
    });
    this.#last.set(runId, done);
    try {
      return await done;
    } finally {
      if (this.#last.get(runId) === done) this.#last.delete(runId);
    }
  }

  async #resume(
    runId: string,
    answers: readonly ApprovalAnswer[],
    signal: AbortSignal | undefined,
  ): Promise<ExecuteResult> {
    // Nothing is answered for a caller who is gone.
    if (signal?.aborted === true) return ended("cancelled", "caller", "the caller cancelled", runId);
    const history = await this.#parts.store.history(runId);
    if (history === null || !this.#isOurs(history.run)) return unknownExecution(runId);
    const open: { readonly position: number; readonly answer: ApprovalAnswer }[] = [];
    for (const answer of answers) {
      const call = history.calls.find(({ callId }) => callId !== null && callId === answer.callId);
      if (call === undefined) {
        const shown = JSON.stringify(answer.callId.slice(0, 80));
        return misuse(runId, "not_found", `the execution asks nothing under ${shown}`);
      }
      const { position } = call;
      const recorded = outcomeOf(history, position);
      if (recorded === undefined && history.run.state !== "finished" && !call.cancelled)
        open.push({ position, answer });
      else if (recorded === undefined || !isSameAnswer(answer, recorded))
        return misuse(
          runId,
          "conflict",
          `${answer.callId} was answered differently before, or nobody waits for it any more`,
        );
    }
    for (const { position, answer } of open) {
      const outcome = answerOutcome(answer.callId, answer.approve, answer.value);
      this.#parts.runner().waitDone(runId, position, outcome);
    }
    const goesOn = open.length > 0 && history.calls.every(isKnown);
    return await this.#goneOn(history.run, goesOn, signal);
  }

  async #reconcile(
    runId: string,
    findings: readonly CallFinding[],
    signal: AbortSignal | undefined,
  ): Promise<ExecuteResult> {
    if (signal?.aborted === true) return ended("cancelled", "caller", "the caller cancelled", runId);
    const history = await this.#parts.store.history(runId);
    if (history === null || !this.#isOurs(history.run)) return unknownExecution(runId);
    const open = findings.filter(({ position }) =>
      history.calls.some((call) => call.position === position && !isKnown(call)),
    );
    const wrong = findings.find((one) => !open.includes(one) && !isRecorded(history, one));
    if (wrong !== undefined) return misuse(runId, "conflict", notUnknown(wrong.position, history));
    for (const finding of open) {
      const decision = finding.happened
        ? ({ kind: "observed", outcome: observed(finding.value) } as const)
        : ({ kind: "not_applied" } as const);
      if (!this.#parts.runner().reconcile(runId, finding.position, decision))
        return misuse(runId, "conflict", "the execution is not driven here; try again");
    }
    const decided = new Set(open.map(({ position }) => position));
    const goesOn =
      open.length > 0 && history.calls.every((call) => isKnown(call) || decided.has(call.position));
    if (!goesOn) await this.#recorded(runId, decided);
    return await this.#goneOn(history.run, goesOn, signal);
  }

  /** Taken means that it went on from where it stood: the suspension before is not its end. */
  async #goneOn(before: RunRow, goesOn: boolean, signal: AbortSignal | undefined): Promise<ExecuteResult> {
    const { waits, runner } = this.#parts;
    const { runId, activations, state } = before;
    const moves = goesOn && state === "suspended";
    const cancel = (): void => void runner().cancel(runId, "caller", "caller");
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      return await waits.result(
        runId,
        (run) => isOver(run) && (!moves || run.state === "finished" || run.activations > activations),
      );
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  /** Until the journal has what was said, of an execution that does not go on with it. */
  async #recorded(runId: string, positions: ReadonlySet<number>): Promise<void> {
    const { store, waits } = this.#parts;
    for (;;) {
      const changed = waits.changed(runId);
      const history = await store.history(runId);
      const open = history?.calls.some((call) => positions.has(call.position) && !isKnown(call)) ?? false;
      if (!open || waits.over !== undefined) return;
      await changed;
    }
  }

  #isOurs(run: RunRow | null): run is RunRow {
    return run !== null && run.flow === this.#parts.name;
  }
}

function signalOf(options: unknown): ResumeOptions | string {
  return resumeProblem(options) ?? (options as ResumeOptions); // as its table says
}

function unknownExecution(runId: string): ExecuteResult {
  return misuse(runId, "not_found", `there is no execution ${JSON.stringify(runId.slice(0, 80))}`);
}

function isKnown({ unknownReason }: CallRow): boolean {
  return unknownReason === null;
}

/** Whether a finding says what the journal has already. */
function isRecorded(history: RunHistory, { position, ...finding }: CallFinding): boolean {
  const outcome = outcomeOf(history, position);
  if (!finding.happened || outcome === undefined || !outcome.ok) return false;
  return outcome.value.text === encodeValue(finding.value, findingBounds).text;
}

function observed(value: unknown): CallOutcome {
  return { ok: true, value: encodeValue(value, findingBounds) };
}

function notUnknown(position: number, history: RunHistory): string {
  const unknown = unknownCalls(history).map((call) => `${call.position} (${call.name})`);
  const rest = unknown.length === 0 ? "no call of it is" : `unknown are ${unknown.join(", ")}`;
  return `what became of call ${position} is not in question, or was told differently before; ${rest}`;
}
