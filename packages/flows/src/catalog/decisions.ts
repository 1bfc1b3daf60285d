/**
 * What an operator decides about flows: approve, reject, revoke a version; enable and disable a flow. Each decision is one
 * unit with its audit row. What follows for runs (cancelling those of a revoked version, arming a schedule) is the service's.
 *
 * Kept true: an approval names the whole hash; it is given only where everything that the grants name can be had: a mount
 * that is configured and there, a secret that has a value. The same decision again changes nothing.
 */

import { FsMountError, HostFunctionError } from "@flowcell/host";
import type { FlowRow, Operation } from "@flowcell/journal";
import { type Manifest, mountsOf } from "@flowcell/manifest";
import { commit } from "../commit.js";
import { OperationError } from "../ports.js";
import { nextTime } from "../schedule/cron.js";
import type { Catalog, VersionHead } from "./catalog.js";
import { type FlowPorts, grantedFunctions } from "./functions.js";
import { mustBeWhole } from "./texts.js";
import type { VersionPlan } from "./version-plan.js";

interface Decision {
  readonly flow: string;
  readonly hash: string;
  readonly by: string;
}

export async function approve(catalog: Catalog, { flow, hash, by }: Decision): Promise<void> {
  const { versions } = catalog.entry(flow);
  mustBeWhole(flow, hash, [...versions.values()]);
  const head = catalog.head(flow, hash);
  if (head.state === "approved") return;
  if (head.state === "revoked") {
    throw new OperationError(
      "conflict",
      `flow ${flow}: version ${head.number} was revoked by ${head.decidedBy ?? "somebody"} and stays so; install a changed version`,
    );
  }
  const plan = await catalog.plan(flow, hash);
  const problems = missingParts(catalog, plan);
  if (problems.length > 0) {
    throw new OperationError(
      "invalid",
      `flow ${flow} cannot be approved yet: ${problems.join("; ")}`,
      problems,
    );
  }
  const at = catalog.now();
  await commit(catalog.store, [
    { kind: "decideVersion", flow, hash, state: "approved", by, reason: null, at },
    {
      kind: "flow",
      flow,
      patch: { nextFireAt: firstFire(plan.manifest, at), violationsInARow: 0, changedAt: at },
    },
    audit(at, by, "flow.approve", flow, hash),
  ]);
  await catalog.refresh(flow);
}

/** What the grants name and this service cannot give, each with the remedy. */
function missingParts(catalog: Catalog, { manifest, limits, problem }: VersionPlan): readonly string[] {
  if (problem !== null) return [problem];
  const { mounts, secretValue } = catalog.options;
  const problems = mountsOf(manifest.grants.fs)
    .filter((mount) => !mounts.has(mount))
    .map((mount) => `the mount "${mount}" is not configured; give it a folder with: --mount ${mount}=DIR`);
  for (const { name } of manifest.grants.secrets) {
    if (secretValue(name) === undefined) {
      problems.push(`the secret "${name}" has no value; set it with: --secret ${name}=env:VARIABLE`);
    }
  }
  if (problems.length > 0) return problems;
  try {
    // Opening them is the proof; nothing is called.
    grantedFunctions(manifest, limits, catalog.options, noPorts).close();
    return [];
  } catch (error) {
    if (error instanceof FsMountError || error instanceof HostFunctionError) return [error.message];
    throw error;
  }
}

const never = (): never => {
  throw new Error("functions that were only opened were called");
};
const noPorts: FlowPorts = { startRun: never, emitEvent: never };

/** Rejecting takes no approval back: that is `revoke`. */
export async function reject(
  catalog: Catalog,
  { flow, hash, by, reason }: Decision & { readonly reason: string | null },
): Promise<void> {
  const head = catalog.head(flow, hash);
  if (head.state === "rejected") return;
  if (head.state !== "installed") {
    throw new OperationError(
      "conflict",
      `flow ${flow}: version ${head.number} is ${head.state}, only one that waits for approval can be rejected; take an approval back with: flowcell revoke ${flow} --hash ${head.hash}`,
    );
  }
  const at = catalog.now();
  await commit(catalog.store, [
    { kind: "decideVersion", flow, hash: head.hash, state: "rejected", by, reason, at },
    audit(at, by, "flow.reject", flow, detailOf(head, reason)),
  ]);
  await catalog.refresh(flow);
}

/** The version, whose unfinished runs the caller cancels; null when it was revoked before. */
export async function revoke(
  catalog: Catalog,
  { flow, hash, by, reason }: Decision & { readonly reason: string | null },
): Promise<VersionHead | null> {
  const head = catalog.head(flow, hash);
  if (head.state === "revoked") return null;
  if (head.state !== "approved" && head.state !== "superseded") {
    throw new OperationError(
      "conflict",
      `flow ${flow}: version ${head.number} is ${head.state}, it has no approval to take back; refuse it with: flowcell reject ${flow} --hash ${head.hash}`,
    );
  }
  const at = catalog.now();
  await commit(catalog.store, [
    { kind: "decideVersion", flow, hash: head.hash, state: "revoked", by, reason, at },
    ...(head.state === "approved"
      ? [{ kind: "flow", flow, patch: { nextFireAt: null, changedAt: at } } satisfies Operation]
      : []),
    audit(at, by, "flow.revoke", flow, detailOf(head, reason)),
  ]);
  await catalog.refresh(flow);
  return head;
}

export async function enable(catalog: Catalog, flow: string, by: string): Promise<void> {
  const { row } = catalog.entry(flow);
  if (row.enabled) return;
  const at = catalog.now();
  const next =
    row.approvedHash === null ? null : firstFire((await catalog.plan(flow, row.approvedHash)).manifest, at);
  await patch(catalog, flow, by, "flow.enable", "", {
    enabled: true,
    disabledBy: null,
    disabledReason: null,
    violationsInARow: 0,
    // Times that passed meanwhile were not missed: somebody wanted them not to be served.
    nextFireAt: next,
    changedAt: at,
  });
}

export async function disable(catalog: Catalog, flow: string, by: string, reason: string): Promise<void> {
  const { row } = catalog.entry(flow);
  if (!row.enabled) return;
  const at = catalog.now();
  await patch(catalog, flow, by, "flow.disable", reason, {
    enabled: false,
    disabledBy: by,
    disabledReason: reason,
    changedAt: at,
  });
}

async function patch(
  catalog: Catalog,
  flow: string,
  by: string,
  action: string,
  detail: string,
  change: Extract<Operation, { readonly kind: "flow" }>["patch"] & { readonly changedAt: number },
): Promise<void> {
  await commit(catalog.store, [
    { kind: "flow", flow, patch: change },
    audit(change.changedAt, by, action, flow, detail),
  ]);
  catalog.patched(flow, change satisfies Partial<FlowRow>);
}

function firstFire({ trigger }: Manifest, now: number): number | null {
  return trigger.kind === "cron" ? nextTime(trigger, now) : null;
}

function detailOf(head: VersionHead, reason: string | null): string {
  return reason === null ? head.hash : `${head.hash}: ${reason}`;
}

export function audit(
  at: number,
  actor: string,
  action: string,
  flow: string | null,
  detail: string,
  runId: string | null = null,
): Operation {
  return { kind: "audit", row: { at, actor, action, flow, runId, detail } };
}
