/**
 * `host.flow`: a run starts runs of other flows and waits for them. Made for each version of a flow, since its manifest says
 * which flows it may start. What starting does is the caller's (`startRun`): it makes at most one run for one key.
 */

import { type EncodedValue, HostError } from "@flowcell/protocol";
import * as z from "zod/mini";
import { type CallContext, defineHostFunction, type HostFunction } from "./registry.js";
import { encodedArgument, optionsArgument, textArgument, timeoutArgument } from "./row-arguments.js";

/** What a call of `flow.start` or `event.emit` knows of itself. */
export interface CallOrigin {
  readonly runId: string;
  readonly position: number;
  /** The same when the call is made again after a crash. */
  readonly idempotencyKey: string;
  readonly signal: AbortSignal;
}

export interface StartRun extends CallOrigin {
  readonly flow: string;
  readonly input: EncodedValue;
}

export interface FlowFunctionOptions {
  /** Ids of the flows that may be started. */
  readonly grants: readonly string[];
  /** Starts a run, or finds the one that the key started. Throws HostError for what the script should know. */
  readonly startRun: (start: StartRun) => Promise<{ readonly runId: string }>;
}

const flowIdBytes = 63;
const runIdBytes = 64;
const inputBytes = 16 * 1024 * 1024;

/** The rows behind the grant `flows`. */
export function flowFunctions({ grants, startRun }: FlowFunctionOptions): readonly HostFunction[] {
  const granted: ReadonlySet<string> = new Set(grants);
  const start = defineHostFunction({
    name: "flow.start",
    doc: "Starts a run of another flow and returns its id.",
    effect: "keyed",
    grant: "flows",
    signature: "(flow: string, input?: unknown): Promise<{ runId: string }>",
    input: z.tuple([textArgument(1, flowIdBytes), z.optional(z.unknown())]),
    output: z.strictObject({ runId: z.string() }),
    acceptsRegExps: true,
    handler: async ([flow, input], context) => {
      if (!granted.has(flow)) throw notGranted("flow.start", "starting", "flows", flow);
      const encoded = encodedArgument("flow.start: the input", input, inputBytes);
      const { runId } = await startRun({ ...originOf(context), flow, input: encoded });
      return { runId };
    },
  });
  return Object.freeze([start, flowWait]);
}

const flowWait: HostFunction = defineHostFunction({
  name: "flow.wait",
  doc: "Waits until a run is finished and returns how it ended; fails with timeout after timeoutMs.",
  effect: "wait",
  grant: "flows",
  signature:
    "(runId: string, options?: { timeoutMs?: number }): Promise<{ status: string; ok: boolean; value: unknown; error: { code: string; name: string; message: string } | null }>",
  input: z.tuple([textArgument(1, runIdBytes), optionsArgument({ timeoutMs: timeoutArgument })]),
  wait: ([runId, options]) => ({ kind: "run", runId, timeoutMs: options?.timeoutMs ?? null }),
});

export function notGranted(row: string, doing: string, grant: string, name: string): HostError {
  const shown = JSON.stringify(name);
  const message = `${row}: ${doing} ${shown} is not granted; add ${shown} to grants.${grant} of the manifest`;
  return new HostError("denied", message, { detail: { grant, name } });
}

export function originOf({ name, runId, position, idempotencyKey, signal }: CallContext): CallOrigin {
  if (runId === undefined) throw new HostError("unavailable", `${name}: only the run of a flow can do this`);
  return { runId, position, idempotencyKey, signal };
}
