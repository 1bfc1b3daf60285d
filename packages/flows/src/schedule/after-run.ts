/**
 * What follows from the end of a run: another attempt, or the flow's being disabled. The service calls it after the commit
 * that finished the run, and again for the latest ones when it opens, since a crash may lie between that commit and what
 * follows.
 *
 * A run is tried again when its manifest says so, attempts are left, and it ended for a reason that may pass: a status that
 * the outcome table calls retryable, or an error of the script, which may be an upstream's. It is never tried again when a
 * call of effect `once` may have happened without anybody knowing: a second attempt could do it twice.
 */

import type { RunHeads, RunRow } from "@flowcell/journal";
import { statusRow } from "@flowcell/protocol";
import type { Catalog } from "../catalog/catalog.js";
import { audit } from "../catalog/decisions.js";
import { commit } from "../commit.js";
import { OperationError } from "../ports.js";
import type { Starter } from "./starter.js";

/** Violations in a row after which a flow is disabled. */
export const violationsMost = 3;
const backoffMostMs = 3_600_000;
const actor = "flowcell";
const noRetry = "run.no_retry";
/** It was told right after the end of the run, and only the latest runs are looked at again: few rows came since. */
const auditLook = 1000;

export function mayPass({ status, reason }: Pick<RunRow, "status" | "reason">): boolean {
  if (status === null || reason === "skipped") return false;
  return statusRow(status).retryable || status === "script_error";
}

/** Whether something happened once, or may have, and nobody knows. */
export function hasUnknownEffect({ calls, deliveries }: Pick<RunHeads, "calls" | "deliveries">): boolean {
  const outcomes = new Map(
    deliveries.flatMap((one) => (one.kind === "call" ? [[one.position, one.outcome] as const] : [])),
  );
  return calls.some(({ effect, attempts, position, unknownReason }) => {
    if (effect !== "once" || attempts === 0) return false;
    const outcome = outcomes.get(position);
    if (outcome === undefined || unknownReason !== null) return true;
    return !outcome.ok && outcome.error.code === "outcome_unknown";
  });
}

/** Before attempt 2, 3, … */
export function backoffMs(base: number, attempt: number): number {
  return Math.min(backoffMostMs, base * 2 ** (attempt - 2));
}

/**
 * The same run again gives the same next attempt. That there is none is told once: `told` says whether it may have been
 * before, which the audit log knows.
 */
export async function retry(
  catalog: Catalog,
  starter: Starter,
  run: RunRow,
  told: "not yet" | "perhaps" = "not yet",
): Promise<void> {
  if (!mayPass(run)) return;
  const entry = catalog.find(run.flow);
  if (entry === undefined || !entry.row.enabled) return;
  const state = entry.versions.get(run.versionHash)?.state;
  if (state !== "approved" && state !== "superseded") return;
  // The attempts belong together: they are made on one version.
  const plan = await catalog.plan(run.flow, run.versionHash);
  const { attempts, backoffMs: base } = plan.manifest.retry;
  if (run.attempt >= attempts) return;
  const heads = await catalog.store.heads(run.runId);
  if (heads === null) return;
  const now = catalog.now();
  if (hasUnknownEffect(heads)) {
    const detail = "not tried again: an effect may have happened that can happen only once";
    await tell(catalog, run, detail, told);
    return;
  }
  const attempt = run.attempt + 1;
  try {
    await starter.start({
      plan,
      input: { kind: "encoded", encoded: run.input },
      trigger: { kind: "retry", of: run.runId },
      deduplicationKey: `retry:${run.runId}`,
      notBefore: (run.finishedAt ?? now) + backoffMs(base, attempt),
      attempt,
    });
  } catch (error) {
    if (!(error instanceof OperationError)) throw error;
    await tell(catalog, run, error.message, told);
  }
}

async function tell(
  { store, now }: Catalog,
  { flow, runId }: RunRow,
  detail: string,
  told: "not yet" | "perhaps",
): Promise<void> {
  if (told === "perhaps") {
    const rows = await store.audit(auditLook);
    if (rows.some((row) => row.action === noRetry && row.runId === runId)) return;
  }
  await commit(store, [audit(now(), actor, noRetry, flow, detail, runId)]);
}

/** Counts violations in a row; a flow that goes on is disabled. Answers whether it was. */
export async function countViolation(catalog: Catalog, run: RunRow): Promise<boolean> {
  const entry = catalog.find(run.flow);
  if (entry === undefined || run.status === "cancelled") return false;
  const before = entry.row.violationsInARow;
  const violationsInARow = run.status === "violation" ? before + 1 : 0;
  if (violationsInARow === before) return false;
  const at = catalog.now();
  const disables = violationsInARow >= violationsMost && entry.row.enabled;
  const reason = `${violationsInARow} runs in a row ended by violation, the last one ${run.runId}`;
  const off = disables ? { enabled: false, disabledBy: actor, disabledReason: reason, changedAt: at } : {};
  const patch = { violationsInARow, ...off };
  // Seen by the next run's end, whatever comes first.
  catalog.patched(run.flow, patch);
  await commit(catalog.store, [
    { kind: "flow", flow: run.flow, patch },
    ...(disables ? [audit(at, actor, "flow.disable", run.flow, reason)] : []),
  ]);
  return disables;
}
