/**
 * Asking the person behind the client whether a call may happen, by the protocol's elicitation. server.ts asks for each call
 * that a script waits for.
 *
 * Kept true: only an accepted form that says `approve: true` approves; a refusal is told to the script, a question that was
 * closed or that nobody answered leaves the script waiting.
 * TRUST: names and arguments are a script's, and stand in the question as JSON whose every character can be seen.
 */

import { visibleJson } from "@flowcell/bundle";
import type { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { ElicitResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { jsonView } from "../adapters/json-view.js";
import type { Codemode } from "../codemode.js";
import type { ApprovalAnswer } from "../journal-answers.js";
import type { ExecuteResult } from "../result.js";

type Pending = ExecuteResult["pending"][number];

/** Of the arguments. What a person cannot read to its end is not approved. */
const argumentsCharsMost = 20_000;
/** From its beginning a request asks for so long; clients give up after a minute, and then nobody has the runId. */
const askUntilMs = 50_000;
const askLeastMs = 10_000;
const never = 0x7fffffff;
const cannotAsk = "a person must approve it, and the client cannot ask one";

export function canElicit(server: Server): boolean {
  return server.getClientCapabilities()?.elicitation?.form !== undefined;
}

export interface Asking {
  readonly codemode: Codemode;
  readonly runId: string;
  readonly pending: readonly Pending[];
  /** Of the request: aborting it ends the script. */
  readonly signal: AbortSignal;
  /** Ends one round of questions. */
  readonly until: () => AbortSignal;
}

/**
 * Asks for what a script waits for, and again for what it asks then. Undefined when nobody has answered anything. Where the
 * client cannot show a question nobody can approve, so calls are refused.
 */
export async function askPerson(server: Server, asking: Asking): Promise<ExecuteResult | undefined> {
  const { codemode, runId, signal, until } = asking;
  let result: ExecuteResult | undefined;
  let { pending } = asking;
  while (pending.length > 0) {
    const answers: ApprovalAnswer[] = [];
    const patience = until();
    for (const call of pending) {
      const answer = canElicit(server)
        ? await askFor(server, call, patience).catch(() => undefined)
        : { callId: call.callId, approve: false, value: cannotAsk };
      if (answer === undefined) break;
      answers.push(answer);
    }
    if (answers.length === 0) return result;
    result = await codemode.resume(runId, answers, { signal });
    pending = result.status === "suspended" ? result.pending : [];
  }
  return result;
}

/** Counts from now, the beginning of a request. */
export function patienceOf(signal: AbortSignal): () => AbortSignal {
  const end = performance.now() + askUntilMs;
  return () => {
    const leftMs = Math.ceil(Math.max(askLeastMs, end - performance.now()));
    return AbortSignal.any([signal, AbortSignal.timeout(leftMs)]);
  };
}

/** Undefined when nobody answered. Rejects when the client fails. */
async function askFor(
  server: Server,
  { callId, name, args }: Pending,
  signal: AbortSignal,
): Promise<ApprovalAnswer | undefined> {
  const shown = visibleJson(JSON.stringify(args.length === 1 ? jsonView(args[0]) : jsonView(args), null, 2));
  if (shown.length > argumentsCharsMost)
    return { callId, approve: false, value: "its arguments are too long to be shown to a person" };
  const { action, content } = await server.request(
    {
      method: "elicitation/create",
      params: {
        message: `A script wants to call ${name} with:\n${shown}`,
        requestedSchema: {
          type: "object",
          properties: { approve: { type: "boolean", title: `Approve this call of ${name}` } },
          required: ["approve"],
        },
      },
    },
    ElicitResultSchema,
    { signal, timeout: never },
  );
  switch (action) {
    case "accept":
      return { callId, approve: content?.["approve"] === true };
    case "decline":
      return { callId, approve: false };
    case "cancel":
      return undefined;
  }
}
