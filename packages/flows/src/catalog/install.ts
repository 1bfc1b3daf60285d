/**
 * Installing a folder as a version of a flow, and showing versions. Installing stores what would run and runs it once with
 * nothing behind it; it gives the flow no right: only an approval does.
 *
 * Kept true: the same content is the same version, however often and from wherever it is installed; a dry run that fails, or
 * that no worker could be had for, does not keep a version from being installed.
 */

import type { Operation, VersionRow } from "@flowcell/journal";
import { encodeValue, ValueError } from "@flowcell/protocol";
import { commit } from "../commit.js";
import { type DryRun, OperationError, type ReachDifference, type VersionReport } from "../ports.js";
import type { Catalog } from "./catalog.js";
import { dryRun } from "./dry-run.js";
import { exampleInput } from "./example-input.js";
import { exactText, type FlowFolder, flowLimits, readFlowFolder } from "./flow-folder.js";
import { grantedNames } from "./functions.js";
import { reachDifference, reachOf } from "./reach.js";
import { planOf, type VersionPlan } from "./version-plan.js";

export interface InstallOptions {
  readonly folder: string;
  readonly by: string;
  /** For the dry run; an example made of the manifest's input schema unless given. */
  readonly input?: unknown;
}

export async function install(
  catalog: Catalog,
  options: InstallOptions,
): Promise<VersionReport & { readonly added: boolean }> {
  const folder = await readFlowFolder(options.folder, catalog.ceilings);
  const { manifest, hash, bundle, manifestText } = folder;
  const flow = manifest.id;
  const plan = planFolder(folder, catalog);
  const known = catalog.find(flow)?.versions.has(hash) ?? false;
  if (known) return { ...(await show(catalog, flow, hash)), added: false };
  const dry = await tryRun(catalog, plan, bundle.text, options);
  const installedAt = catalog.now();
  const operations: readonly Operation[] = [
    {
      kind: "addVersion",
      version: {
        flow,
        hash,
        manifestText,
        bundle: bundle.text,
        bundleMap: bundle.mapText,
        sources: bundle.inputs.map(({ path, bytes }) => ({ path, text: exactText(bytes) })),
        installedAt,
        installedBy: options.by,
        dryRunJson: JSON.stringify(dry),
      },
    },
    {
      kind: "audit",
      row: { at: installedAt, actor: options.by, action: "flow.install", flow, runId: null, detail: hash },
    },
  ];
  // Not the dry run: a decision does not wait for that.
  const [added] = await catalog.alone(flow, async () => {
    const results = await commit(catalog.store, operations);
    await catalog.refresh(flow);
    return results;
  });
  return { ...(await show(catalog, flow, hash)), added: added?.kind === "version" && added.added };
}

function planFolder({ manifest, hash }: FlowFolder, catalog: Catalog): VersionPlan {
  const plan = planOf(manifest.id, hash, manifest, flowLimits(manifest, catalog.ceilings));
  if (manifest.trigger.kind === "cron") {
    const problem = plan.inputProblem(cronInput(0));
    if (problem !== null) {
      throw new OperationError(
        "invalid",
        `flow.json: input: runs of a cron trigger get {"scheduledAt": "<ISO time>"} as input, and ${problem}; let the schema accept it`,
        [`flow.json: input: ${problem}`],
      );
    }
  }
  return plan;
}

/** What a run gets that a cron trigger started. */
export function cronInput(scheduledAt: number): { readonly scheduledAt: string } {
  return { scheduledAt: new Date(scheduledAt).toISOString() };
}

async function tryRun(
  catalog: Catalog,
  plan: VersionPlan,
  script: string,
  options: InstallOptions,
): Promise<DryRun> {
  const { manifest, limits } = plan;
  const now = catalog.now();
  try {
    return await dryRun(catalog.options.pool, {
      flow: plan.flow,
      script,
      input: encodeValue(dryInput(plan, options, now), {
        textBytes: limits.inputBytes,
        attachmentBytes: limits.bodyBytes,
      }),
      names: grantedNames(manifest, catalog.options.functions),
      limits,
      now,
    });
  } catch (error) {
    if (error instanceof ValueError)
      throw new OperationError("invalid", `input of the dry run: ${error.message}`);
    throw error;
  }
}

function dryInput({ manifest }: VersionPlan, options: InstallOptions, now: number): unknown {
  if (options.input !== undefined) return options.input;
  return manifest.trigger.kind === "cron" ? cronInput(now) : exampleInput(manifest.input);
}

/** `hash` may be a prefix; the newest version without it. */
export async function show(catalog: Catalog, flow: string, hash?: string): Promise<VersionReport> {
  const head = catalog.head(flow, hash);
  const version = await catalog.version(flow, head.hash);
  const plan = await catalog.plan(flow, head.hash);
  const reach = reachOf(plan.manifest, plan.limits);
  return {
    flow,
    hash: version.hash,
    number: version.number,
    state: version.state,
    installedAt: version.installedAt,
    installedBy: version.installedBy,
    decidedAt: version.decidedAt,
    decidedBy: version.decidedBy,
    decisionReason: version.decisionReason,
    reach,
    difference: await differenceTo(catalog, version, reach),
    manifestText: version.manifestText,
    sources: version.sources,
    bundle: version.bundle,
    dryRun: storedDryRun(version.dryRunJson),
  };
}

async function differenceTo(
  catalog: Catalog,
  { flow, hash }: VersionRow,
  reach: VersionReport["reach"],
): Promise<ReachDifference | null> {
  const { approvedHash } = catalog.entry(flow).row;
  if (approvedHash === null || approvedHash === hash) return null;
  const approved = await catalog.plan(flow, approvedHash);
  return reachDifference(reachOf(approved.manifest, approved.limits), reach, approvedHash);
}

function storedDryRun(json: string | null): DryRun | null {
  if (json === null) return null;
  return JSON.parse(json) as DryRun; // the text that `install` made of one
}
