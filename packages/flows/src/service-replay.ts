/**
 * Replays a run's journal in a real worker: the stored script with the stored input, given what was delivered then, compared
 * call by call. Nothing is carried out and nothing is recorded.
 *
 * TRUST: the worker runs a script; what it says is compared, never believed. Whether the version is still approved does not
 * matter: without host functions behind it a script can do nothing.
 */

import type { RunHistory } from "@flowcell/journal";
import type { EncodedValue } from "@flowcell/protocol";
import { callDigest } from "./engine/index.js";
import type { ActivationEnd } from "./machine/types.js";
import { HistoryVerifier, type VerifyCommand, type VerifyEvent } from "./machine/verify.js";
import {
  type CellActivation,
  type CellDriver,
  type CellResult,
  OperationError,
  type ReplayReport,
  type Runnable,
} from "./ports.js";
import type { ServiceCore } from "./service-core.js";

/** A replay may take as long as all activations of the run together. */
const wallMs = 600_000;
const replayCpuMsMost = 3_600_000;
const queueDeadlineMs = 60_000;

export async function replayRun(core: ServiceCore, history: RunHistory): Promise<ReplayReport> {
  const { run } = history;
  const runnable = await runnableOf(core, history);
  const driver = new ReplayDriver(history);
  const result = await core.pool.activate({
    flow: `${runnable.flow}@${runnable.hash}`,
    script: runnable.script,
    input: run.input,
    names: runnable.names,
    limits: { ...runnable.limits, wallMs: Math.max(runnable.limits.wallMs, wallMs) },
    clock: { epochMs: run.guestStartMs, mode: "driven" },
    seed: Buffer.from(run.seed, "hex"),
    driver,
    replayCpuMs: Math.min(replayCpuMsMost, 1_000 + Math.ceil((2 * run.cpuUs) / 1_000)),
    queueDeadlineMs,
    // The lines are in the journal already.
    onConsole: () => undefined,
  });
  driver.ended(result);
  const { finding } = driver;
  if (finding === null) {
    const why = result.error?.message ?? result.status;
    throw new OperationError("unavailable", `run ${run.runId} could not be replayed now: ${why}`);
  }
  const { matched, deliveries, calls, divergence } = finding;
  return {
    runId: run.runId,
    matched,
    deliveries,
    calls,
    divergence:
      divergence === null
        ? null
        : { where: whereText(divergence), expected: divergence.expected, actual: divergence.actual },
  };
}

async function runnableOf(core: ServiceCore, { run }: RunHistory): Promise<Runnable> {
  if (core.catalog.find(run.flow)?.versions.has(run.versionHash) !== true) {
    throw new OperationError(
      "not_found",
      `run ${run.runId}: its version of flow ${run.flow} is not there any more`,
    );
  }
  try {
    return (await core.catalog.runnable(run.flow, run.versionHash)).runnable;
  } catch (error) {
    if (error instanceof OperationError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new OperationError("unavailable", `run ${run.runId} cannot be replayed here: ${why}`);
  }
}

function whereText({
  position,
  order,
}: {
  readonly position: number | null;
  readonly order: number | null;
}): string {
  if (position !== null) return `call ${position}`;
  return order === null ? "the end of the script" : `delivery ${order}`;
}

class ReplayDriver implements CellDriver {
  readonly #verifier: HistoryVerifier;
  #cell: CellActivation | null = null;

  constructor(history: RunHistory) {
    this.#verifier = new HistoryVerifier(history);
  }

  get finding(): HistoryVerifier["finding"] {
    return this.#verifier.finding;
  }

  begun(activation: CellActivation): void {
    this.#cell = activation;
    this.#carryOut(this.#verifier.start());
  }

  called({ position, name, args }: { position: number; name: string; args: EncodedValue }): void {
    this.#handle({ kind: "called", position, name, digest: callDigest(name, args), args });
  }

  /** What was delivered then is delivered again. */
  callCancelled(): void {}

  blocked(state: { readonly nextTimerAt: number | null; readonly openCalls: number }): void {
    this.#handle({ kind: "blocked", ...state });
  }

  ended(result: CellResult): void {
    this.#handle({ kind: "ended", end: endOf(result) });
  }

  #handle(event: VerifyEvent): void {
    this.#carryOut(this.#verifier.handle(event));
  }

  #carryOut(commands: readonly VerifyCommand[]): void {
    for (const command of commands) this.#one(command);
  }

  #one(command: VerifyCommand): void {
    const cell = this.#cell;
    switch (command.kind) {
      case "frontier":
        cell?.frontier();
        break;
      case "deliver":
        cell?.deliver(command.position, command.outcome, command.guestClockMs);
        break;
      case "fireTimer":
        cell?.fireTimer(command.guestClockMs);
        break;
      case "endWorker":
        cell?.end({ status: command.status, reason: command.reason, message: command.message });
    }
  }
}

/** What of a result the verifier compares. */
function endOf(result: CellResult): ActivationEnd {
  const { status } = result;
  return {
    status,
    reason: status === "completed" ? null : (result.reason ?? null),
    value: status === "completed" ? (result.value ?? null) : null,
    errorJson: null,
    warnings: [],
    liveCpuUs: 0,
    heapPeakBytes: result.usage.heapPeakBytes,
    confinementJson: null,
    started: result.started,
  };
}
