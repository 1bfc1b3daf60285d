/**
 * Opens a service on a store: what an earlier process left is put into the order of runs, what had begun is taken up, and
 * what a crash may have kept from following is made up for.
 */

import { type RunRow, StoreFailure } from "@flowcell/journal";
import { Catalog } from "./catalog/catalog.js";
import type { FlowServiceOptions } from "./ports.js";
import type { PlaceState } from "./schedule/admission.js";
import { retry } from "./schedule/after-run.js";
import { hasBegun, placeOfState, ServiceCore, type ServiceParts } from "./service-core.js";

/** Ends of runs that lie this far before the last thing that was recorded may not have been followed up. */
const catchUpMs = 60_000;
const catchUpRuns = 200;

export async function openCore(options: FlowServiceOptions, parts: ServiceParts): Promise<ServiceCore> {
  const core = new ServiceCore(options, parts, await Catalog.load(options.store));
  const { catalog, admission, store } = core;
  for (const { row } of catalog.entries()) if (!row.enabled) admission.hold(row.flow, true);
  const unfinished = await store.unfinished();
  for (const run of unfinished) await takeIn(core, run);
  const drives = core.drives !== "nothing";
  core.takeUp(unfinished, drives ? await store.waits() : []);
  if (!drives) return core;
  await cancelRevoked(core, unfinished);
  await catchUp(core, unfinished);
  if (core.drives === "all") await core.triggers.replan();
  core.pump();
  return core;
}

/** Into the order, with its place when it had begun. */
async function takeIn(core: ServiceCore, run: RunRow): Promise<void> {
  core.count(run, 1);
  const { runId, flow, concurrencyKey: key, notBefore, deduplicationKey } = run;
  const limit = await limitOf(core, run);
  core.admission.add({ runId, flow, key, limit, notBefore, deduplicationKey }, placeOf(run));
}

/** One at a time for a version that cannot be read: the gate ends the run when its turn comes. */
async function limitOf({ catalog }: ServiceCore, { flow, versionHash }: RunRow): Promise<number> {
  try {
    return (await catalog.plan(flow, versionHash)).manifest.concurrency.limit;
  } catch (error) {
    if (error instanceof StoreFailure) throw error;
    return 1;
  }
}

function placeOf(run: RunRow): PlaceState {
  if (run.state === "finished" || !hasBegun(run)) return "waiting";
  return placeOfState(run.state, run.status);
}

/** A crash between a revocation and what followed: its runs end now, those that sleep too. */
async function cancelRevoked(core: ServiceCore, unfinished: readonly RunRow[]): Promise<void> {
  for (const { runId, flow, versionHash } of unfinished) {
    const head = core.catalog.find(flow)?.versions.get(versionHash);
    if (head?.state === "revoked") core.own(core.cancel(runId, head.decidedBy ?? "flowcell", "revoked"));
  }
}

/** A crash between the end of a run and its next attempt. Asking for one twice makes one. */
async function catchUp(core: ServiceCore, unfinished: readonly RunRow[]): Promise<void> {
  const finished = await core.store.runs({ states: ["finished"], limit: catchUpRuns });
  const newest = Math.max(0, ...[...finished, ...unfinished].map(({ changedAt }) => changedAt));
  for (const run of finished) {
    if (newest - run.changedAt <= catchUpMs) await retry(core.catalog, core.starter, run, "perhaps");
  }
}
