/**
 * Ends a run that no runner drives and that has not begun: one that waits for its turn and is cancelled, or one that a
 * concurrency policy lets not begin. The run is claimed and finished; since it had no activation, no call of it can be
 * under way.
 */

import { randomBytes } from "node:crypto";
import type { RunRow, Store } from "@flowcell/journal";
import type { Status } from "@flowcell/protocol";
import { plainError } from "../catalog/run-error.js";

export interface UndrivenEnd {
  readonly status: Status;
  readonly reason: string;
  readonly message: string;
  readonly by: string | null;
}

/** The finished run; null when it is finished already, gone, or has begun. */
export async function endUndriven(
  store: Store,
  runId: string,
  end: UndrivenEnd,
  now: number,
): Promise<RunRow | null> {
  const owner = `end_${randomBytes(9).toString("base64url")}`;
  const before = await store.run(runId);
  if (before === null || before.state !== "pending" || before.activations > 0) return null;
  const claimed = await store.commit({ operations: [{ kind: "claim", runId, owner }] });
  const claim = claimed.ok ? claimed.results[0] : undefined;
  if (claim?.kind !== "claim") return null;
  const { status, reason, message, by } = end;
  const ended = await store.commit({
    fence: { runId, owner, generation: claim.generation },
    operations: [
      {
        kind: "run",
        patch: {
          state: "finished",
          status,
          reason,
          finishedAt: now,
          changedAt: now,
          errorJson: JSON.stringify(plainError(status, reason, message)),
          ...(by === null ? {} : { cancelRequestedBy: by }),
        },
      },
    ],
  });
  return ended.ok ? await store.run(runId) : null;
}
