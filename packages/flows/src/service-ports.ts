/**
 * What host functions of flows ask of the service: to start runs, to emit events. Keys make both safe to ask again.
 *
 * TRUST: inputs and payloads are a script's, encoded; they are checked as everybody's are. Which flows and events a script
 * may name, its own functions have checked.
 */

import { HostError } from "@flowcell/host";
import type { FlowPorts } from "./catalog/functions.js";
import { eventIdOf } from "./ids.js";
import { OperationError } from "./ports.js";
import type { ServiceCore } from "./service-core.js";

/** `core` is asked for when a function is called: the functions are made before it is whole. */
export function hostPorts(core: () => ServiceCore): FlowPorts {
  return {
    startRun: ({ runId, position, flow, input, idempotencyKey }) =>
      asHostError(async () => {
        const { catalog, starter } = core();
        const plan = await catalog.approvedPlan(flow);
        const started = await starter.start({
          plan,
          input: { kind: "encoded", encoded: input },
          trigger: { kind: "flow", runId, position },
          deduplicationKey: `flow:${idempotencyKey}`,
        });
        return { runId: started.runId };
      }),
    emitEvent: ({ idempotencyKey, name, payload }) =>
      asHostError(async () => {
        const eventId = eventIdOf(idempotencyKey);
        await core().triggers.emit(eventId, name, payload);
        return { eventId };
      }),
  };
}

/** What a script may know of a refusal. A flow that cannot be started now is no missing grant of the one that starts it. */
async function asHostError<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof OperationError)) throw error;
    // Commands for operators are nothing that a script can do.
    const message = error.message.split("; ")[0] ?? error.message;
    switch (error.code) {
      case "not_found":
        throw new HostError("not_found", message);
      case "conflict":
        throw new HostError("conflict", message);
      case "invalid":
        throw new HostError("invalid_arguments", error.message);
      case "denied":
      case "unavailable":
        throw new HostError("unavailable", message);
    }
  }
}
