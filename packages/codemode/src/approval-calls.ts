/**
 * Calls of tools that may need approval: two host functions for each. The question waits, without a worker, for somebody's
 * answer; the call itself carries out only what was approved. The lines around a script (guest-names.ts) make one after the
 * other; journal-runs.ts uses both.
 *
 * TRUST: a script, or a subverted engine, can make either call at any time and in any order. What counts is the journal alone:
 * a call is carried out if its own run holds an approval of this tool with this very input that no other call has used.
 * Kept true: an approval is good for one call; what a person saw is what the tool is given.
 */

import {
  type CallContext,
  defineHostFunction,
  HostError,
  type HostFunction,
  type Schema,
} from "@flowcell/host";
import type { CallRow, RunHistory } from "@flowcell/journal";
import {
  type CallOutcome,
  decodeValue,
  type EncodedValue,
  encodeValue,
  ValueError,
  valueBounds,
  type WaitCondition,
} from "@flowcell/protocol";
import { askNamespace } from "./guest-names.js";
import { argumentsOf, callTool, docLine } from "./tool-functions.js";
import { callName } from "./tool-set.js";
import type { Tool } from "./tools.js";

/** The journal of a run, as far as it is written. */
export type HistoryOf = (runId: string) => Promise<RunHistory | null>;

const namePrefix = `${askNamespace}.`;

/** The tool that a host function asks about; undefined for one that asks nothing. */
export function askedTool(name: string): string | undefined {
  return name.startsWith(namePrefix) ? name.slice(namePrefix.length) : undefined;
}

export function approvalFunctions(tool: Tool, historyOf: HistoryOf): readonly HostFunction[] {
  return [question(tool), approvedCall(tool, historyOf)];
}

/** Answers undefined at once when nobody need be asked, which only the parent can say. */
function question(tool: Tool): HostFunction {
  const name = callName(tool);
  const checked = argumentsOf(tool, name)["~standard"].validate;
  const input: Schema<readonly unknown[]> = {
    "~standard": {
      version: 1,
      vendor: "flowcell",
      validate: async (value) => {
        const result = await checked(value);
        if (result.issues !== undefined) return result;
        return { value: [result.value[0], await needed(tool, result.value[0], name)] };
      },
    },
  };
  return defineHostFunction({
    name: namePrefix + name,
    doc: `Asks whether ${name} may be called.`,
    effect: "wait",
    grant: null,
    input,
    wait: ([asked, needs]) => (needs === true ? approvalOf(name, asked) : { kind: "time", waitMs: 0 }),
  });
}

/** Without a time limit of its own, for which a worker would be kept: unanswered.ts ends it. */
function approvalOf(name: string, input: unknown): WaitCondition {
  return { kind: "approval", title: name, detail: encodedInput(name, input), timeoutMs: null };
}

const inputBounds = {
  textBytes: 16 * 1024 * 1024,
  attachmentBytes: 64 * 1024 * 1024,
  nodes: 16 * 1024 * 1024,
};

function encodedInput(name: string, input: unknown): EncodedValue {
  try {
    return encodeValue(input, inputBounds);
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    // A schema may turn an input into what only the host can hold.
    throw new HostError(
      "internal",
      `${name}: its checked input cannot be shown to anybody: ${error.message}`,
    );
  }
}

async function needed(tool: Tool, input: unknown, name: string): Promise<boolean> {
  const { needsApproval } = tool;
  if (typeof needsApproval === "boolean") return needsApproval;
  try {
    return await needsApproval(input);
  } catch {
    throw new HostError("internal", `${name}: whether it needs approval could not be decided`);
  }
}

function approvedCall(tool: Tool, historyOf: HistoryOf): HostFunction {
  const name = callName(tool);
  const checked = argumentsOf(tool, name)["~standard"].validate;
  const input: Schema<readonly unknown[]> = {
    "~standard": {
      version: 1,
      vendor: "flowcell",
      validate: async (value) => {
        const [own, ticket] = Array.isArray(value) ? value : [];
        const result = await checked([own]);
        return result.issues === undefined ? { value: [result.value[0], ticket] } : result;
      },
    },
  };
  return defineHostFunction({
    name,
    doc: docLine(tool),
    effect: tool.effect,
    grant: null,
    input,
    handler: async ([own, ticket], context) => {
      if (ticket !== undefined || (await needed(tool, own, name)))
        await mustBeApproved(name, own, ticket, context, historyOf);
      return await callTool(tool, name, [own], context);
    },
  });
}

/** Throws `denied` unless the run's journal says that this very call was approved. */
async function mustBeApproved(
  name: string,
  input: unknown,
  ticket: unknown,
  { runId, position }: CallContext,
  historyOf: HistoryOf,
): Promise<void> {
  const history = runId === undefined ? null : await historyOf(runId);
  const question = history?.calls.find((call) => call.callId !== null && call.callId === ticket);
  if (history === null || question === undefined || askedTool(question.name) !== name)
    throw new HostError("denied", `${name}: needs an approval`);
  const answer = answerOf(outcomeOf(history, question.position));
  if (answer === undefined) throw new HostError("denied", `${name}: is not approved yet`);
  if (!answer.approved)
    throw new HostError("denied", refusalText(name, answer.value), { detail: { by: answer.by } });
  if (!isSame(shownInput(question), encodedInput(name, input)))
    throw new HostError("denied", `${name}: another input was approved`);
  const before = history.calls.some(
    (call) => call.position < position && call.name === name && ticketOf(call) === ticket,
  );
  if (before) throw new HostError("denied", `${name}: the approval was used before`);
}

function refusalText(name: string, reason: unknown): string {
  const text = typeof reason === "string" && reason !== "" ? `: ${reason.slice(0, 2000)}` : "";
  return `${name}: the approval was refused${text}`;
}

export interface Answer {
  readonly approved: boolean;
  readonly value: unknown;
  readonly by: string;
}

/** What a question is answered with; `ticket` is what a script passes on with the call. */
export function answerOutcome(callId: string, approved: boolean, value: unknown): CallOutcome {
  const answer = { approved, value, by: "caller", ticket: callId };
  return { ok: true, value: encodeValue(answer, answerBounds) };
}

/** What a question ends with that nobody has answered. */
export function unansweredOutcome(name: string, approvalMs: number): CallOutcome {
  const message = `${name}: nobody approved the call within ${approvalMs} ms (approvalMs)`;
  return { ok: false, error: { code: "timeout", message, retryable: true } };
}

const answerBounds = { textBytes: 1024 * 1024, attachmentBytes: 1024 * 1024 };

export function answerOf(outcome: CallOutcome | undefined): Answer | undefined {
  if (outcome === undefined || !outcome.ok) return undefined;
  const value = decodeValue(outcome.value, { ...answerBounds, nodes: valueBounds.nodes });
  if (typeof value !== "object" || value === null || !("approved" in value)) return undefined;
  return {
    approved: value.approved === true,
    value: "value" in value ? value.value : undefined,
    by: "by" in value ? String(value.by) : "",
  };
}

export function outcomeOf({ deliveries }: RunHistory, position: number): CallOutcome | undefined {
  for (const one of deliveries) if (one.kind === "call" && one.position === position) return one.outcome;
  return undefined;
}

function shownInput({ wait }: CallRow): EncodedValue | null {
  return wait?.kind === "approval" ? wait.detail : null;
}

/** TRUST: a script's arguments, within the bounds that they were stored with. */
function ticketOf({ args }: CallRow): unknown {
  const value = decodeValue(args, inputBounds);
  return Array.isArray(value) ? value[1] : undefined;
}

function isSame(one: EncodedValue | null, other: EncodedValue): boolean {
  if (one === null || one.text !== other.text || one.devalue !== other.devalue) return false;
  if (one.attachments.length !== other.attachments.length) return false;
  return one.attachments.every((bytes, at) => {
    const second = other.attachments[at];
    return second !== undefined && Buffer.compare(bytes, second) === 0;
  });
}
