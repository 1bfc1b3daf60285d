/** Everything that a store says about some runs and flows, to compare stores, or one store before and after. */

import type { RunRow, Store } from "../src/store.js";

export interface Scope {
  readonly runs: readonly string[];
  readonly flows: readonly string[];
}

/** Without a scope: of all runs and flows. */
export async function dump(store: Store, scope?: Scope): Promise<unknown> {
  const inScope = (runId: string): boolean => scope === undefined || scope.runs.includes(runId);
  const rows: RunRow[] = [];
  for (let before: string | undefined; ; ) {
    const page = await store.runs(before === undefined ? { limit: 100 } : { limit: 100, before });
    rows.push(...page.filter(({ runId }) => inScope(runId)));
    before = page.at(-1)?.runId;
    if (before === undefined) break;
  }
  const flows = scope?.flows ?? (await store.flows()).map(({ flow }) => flow);
  return {
    rows,
    unfinished: (await store.unfinished()).filter(({ runId }) => inScope(runId)),
    histories: await Promise.all(rows.map(({ runId }) => store.history(runId))),
    heads: await Promise.all(rows.map(({ runId }) => store.heads(runId))),
    logs: await Promise.all(rows.map(({ runId }) => store.logs(runId))),
    waits: (await store.waits()).filter(({ runId }) => inScope(runId)),
    quarantined: (await store.quarantined(null)).filter(({ runId }) => inScope(runId)),
    audit: (await store.audit(10_000)).filter(({ runId }) => runId === null || inScope(runId)),
    flows: await Promise.all(flows.map((flow) => store.flow(flow))),
    versions: await Promise.all(flows.map((flow) => store.versions(flow))),
  };
}
