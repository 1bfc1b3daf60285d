/** A unit that breaks no rule unless flowcell has a bug: what the store refuses is thrown. */

import type { Operation, OperationResult, Store } from "@flowcell/journal";

export async function commit(
  store: Store,
  operations: readonly Operation[],
): Promise<readonly OperationResult[]> {
  const result = await store.commit({ operations });
  if (result.ok) return result.results;
  throw new Error(`the store refused operation ${result.at} (${result.reason}): ${result.message}`);
}
