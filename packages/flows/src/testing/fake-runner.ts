/**
 * A runner for tests of the service: it drives nothing by itself. A test says what becomes of a run, and the fake commits it
 * as the engine would and calls the hooks.
 */

import type { NewCall, RunOperation, RunRow } from "@flowcell/journal";
import type { CallOutcome, Status } from "@flowcell/protocol";
import { encodeValue } from "@flowcell/protocol";
import type { RunnerOptions } from "../engine/index.js";
import type { Runner } from "../ports.js";

export class FakeRunner implements Runner {
  readonly #options: RunnerOptions;
  readonly #generations = new Map<string, number>();
  /** In the order of adoption. */
  readonly adopted: string[] = [];
  readonly told: { readonly runId: string; readonly position: number; readonly outcome: CallOutcome }[] = [];
  active = 0;

  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  adopt(runId: string): void {
    this.adopted.push(runId);
  }

  /** As the engine: the end is recorded and told, some turns later. */
  cancel(runId: string, by: string, reason: "caller" | "revoked" | "superseded"): boolean {
    if (!this.adopted.includes(runId)) return false;
    void this.finish(runId, "cancelled", { reason, by });
    return true;
  }

  signalled(): void {}

  waitDone(runId: string, position: number, outcome: CallOutcome): boolean {
    this.told.push({ runId, position, outcome });
    return this.adopted.includes(runId);
  }

  reconcile(): boolean {
    return true;
  }

  async drain(): Promise<void> {}

  async close(): Promise<void> {}

  async claim(runId: string): Promise<void> {
    const { store, owner } = this.#options;
    const result = await store.commit({ operations: [{ kind: "claim", runId, owner }] });
    const claim = result.ok ? result.results[0] : undefined;
    if (claim?.kind !== "claim") throw new Error(`${runId} cannot be claimed`);
    this.#generations.set(runId, claim.generation);
  }

  async commit(runId: string, operations: readonly RunOperation[]): Promise<RunRow> {
    if (!this.#generations.has(runId)) await this.claim(runId);
    const { store, owner } = this.#options;
    const generation = this.#generations.get(runId) ?? 0;
    const result = await store.commit({ fence: { runId, owner, generation }, operations });
    if (!result.ok) throw new Error(result.message);
    const run = await store.run(runId);
    if (run === null) throw new Error(`${runId} is gone`);
    return run;
  }

  async begin(runId: string): Promise<void> {
    const now = this.#options.now?.() ?? 0;
    await this.commit(runId, [
      { kind: "run", patch: { state: "running", startedAt: now, changedAt: now, activations: 1 } },
    ]);
  }

  async suspend(runId: string, status: "suspended" | "needs_reconcile" = "suspended"): Promise<void> {
    const changedAt = this.#options.now?.() ?? 0;
    const patch = { state: "suspended", status, reason: "waiting", changedAt, activations: 1 } as const;
    this.#options.hooks.suspended(await this.commit(runId, [{ kind: "run", patch }]));
  }

  async finish(
    runId: string,
    status: Status = "completed",
    {
      reason = null,
      by = null,
      tell = true,
    }: { reason?: string | null; by?: string | null; tell?: boolean } = {},
  ): Promise<void> {
    const now = this.#options.now?.() ?? 0;
    const errorJson =
      status === "completed" ? null : JSON.stringify({ code: reason, name: "E", message: "m" });
    const result = status === "completed" ? encodeValue("done") : null;
    const row = await this.commit(runId, [
      {
        kind: "run",
        patch: {
          state: "finished",
          status,
          reason,
          finishedAt: now,
          changedAt: now,
          errorJson,
          result,
          cancelRequestedBy: by,
        },
      },
    ]);
    if (tell) this.#options.hooks.finished(row);
  }

  /** The run waits for another one. */
  async awaitRun(runId: string, position: number, target: string): Promise<void> {
    const call: NewCall = {
      position,
      name: "flow.wait",
      effect: "wait",
      digest: "d",
      args: encodeValue([target]),
      idempotencyKey: `${runId}:${position}`,
      madeAt: this.#options.now?.() ?? 0,
      note: null,
      wait: { kind: "run", runId: target, timeoutMs: null },
      dueAt: null,
      callId: null,
    };
    await this.commit(runId, [{ kind: "call", call, attempts: 0 }]);
  }

  bug(error: unknown): void {
    this.#options.hooks.failed("run_x", error);
  }

  failStore(error: unknown): void {
    this.#options.hooks.storeFailed(error);
  }
}
