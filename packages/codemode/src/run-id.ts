/** Ids of executions. Everything that begins one, or answers in the place of one, asks here. */

import { randomBytes } from "node:crypto";

/** Unguessable: idempotency keys begin with it. */
export function newRunId(): string {
  return `run_${randomBytes(16).toString("base64url")}`;
}
