/**
 * The store as the runner has it: every unit that was committed is told to an observer, so that the service knows which runs
 * hold places and what they wait for without asking. Reads and failures pass through.
 */

import type { Store, Unit, UnitResult } from "@flowcell/journal";

/** After the commit; must not throw. */
export type CommitObserver = (unit: Unit) => void;

export function observedStore(store: Store, observe: CommitObserver): Store {
  const commit = async (unit: Unit): Promise<UnitResult> => {
    const result = await store.commit(unit);
    if (result.ok) observe(unit);
    return result;
  };
  return {
    commit,
    run: (runId) => store.run(runId),
    history: (runId) => store.history(runId),
    heads: (runId) => store.heads(runId),
    outcome: (runId, position) => store.outcome(runId, position),
    logs: (runId) => store.logs(runId),
    runs: (query) => store.runs(query),
    unfinished: () => store.unfinished(),
    waits: () => store.waits(),
    callById: (callId) => store.callById(callId),
    flow: (flow) => store.flow(flow),
    flows: () => store.flows(),
    version: (flow, hash) => store.version(flow, hash),
    versions: (flow) => store.versions(flow),
    quarantined: (runId) => store.quarantined(runId),
    audit: (limit) => store.audit(limit),
    retain: (retention) => store.retain(retention),
    stats: () => store.stats(),
    close: () => store.close(),
  };
}
