/** Ids of executions. Everything that begins one, or answers in the place of one, asks here. */

import { freshBytes } from "@flowcell/pool";

/** Unguessable: idempotency keys begin with it. */
export function newRunId(): string {
  return `run_${freshBytes(16).toString("base64url")}`;
}
