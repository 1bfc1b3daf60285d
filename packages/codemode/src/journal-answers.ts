/**
 * Answers to what executions ask, and what became of calls, as programs pass them: checked before anything is done, and compared with what was answered
 * before. journal-requests.ts calls it.
 */

import { notStarted } from "@flowcell/bundle";
import { type CallOutcome, encodeValue, ValueError } from "@flowcell/protocol";
import { answerOf } from "./approval-calls.js";
import type { ExecuteResult } from "./result.js";

export interface ApprovalAnswer {
  readonly callId: string;
  readonly approve: boolean;
  /** With a refusal: the reason, which the script is told. */
  readonly value?: unknown;
}

export interface CheckedAnswers {
  readonly id: string;
  readonly list: readonly ApprovalAnswer[];
}

const answersMost = 1000;

/** The answers, or what is wrong with them. */
export function checkedAnswers(runId: unknown, answers: unknown): CheckedAnswers | string {
  if (typeof runId !== "string") return "resume needs the runId of a suspended execution";
  if (!Array.isArray(answers) || answers.length === 0 || answers.length > answersMost)
    return "resume needs answers: [{ callId, approve, value? }]";
  const list: ApprovalAnswer[] = [];
  for (const one of answers) {
    if (typeof one !== "object" || one === null) return "an answer is { callId, approve, value? }";
    const { callId, approve, value, ...more } = one as Record<string, unknown>; // an object, just checked
    const [unknown] = Object.keys(more);
    if (unknown !== undefined)
      return `an answer has an unknown key ${JSON.stringify(unknown.slice(0, 40))}: its keys are callId, approve, value`;
    if (typeof callId !== "string" || typeof approve !== "boolean")
      return "an answer needs callId, a text, and approve, true or false";
    try {
      encodeValue(value, { textBytes: 64 * 1024, attachmentBytes: 64 * 1024 });
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      return `the value of an answer: ${error.message}`;
    }
    list.push({ callId, approve, ...(value === undefined ? {} : { value }) });
  }
  return { id: runId, list };
}

/** What somebody found out about a call whose outcome is unknown, by its position. */
export type CallFinding =
  /** It took effect: the script is told `value`. */
  | { readonly position: number; readonly happened: true; readonly value?: unknown }
  /** It did not: it is made now. */
  | { readonly position: number; readonly happened: false };

export interface CheckedFindings {
  readonly id: string;
  readonly list: readonly CallFinding[];
}

export const findingBounds = { textBytes: 16 * 1024 * 1024, attachmentBytes: 64 * 1024 * 1024 };
const findingShape = "{ position, happened: true, value? } or { position, happened: false }";

/** The findings, or what is wrong with them. */
export function checkedFindings(runId: unknown, findings: unknown): CheckedFindings | string {
  if (typeof runId !== "string")
    return "reconcile needs the runId of an execution whose status is needs_reconcile";
  if (!Array.isArray(findings) || findings.length === 0 || findings.length > answersMost)
    return `reconcile needs a list of ${findingShape}`;
  const list: CallFinding[] = [];
  for (const one of findings) {
    if (typeof one !== "object" || one === null) return `a finding is ${findingShape}`;
    const { position, happened, value, ...more } = one as Record<string, unknown>; // an object, just checked
    const [unknown] = Object.keys(more);
    if (unknown !== undefined)
      return `a finding has an unknown key ${JSON.stringify(unknown.slice(0, 40))}: it is ${findingShape}`;
    if (typeof position !== "number" || !Number.isSafeInteger(position) || typeof happened !== "boolean")
      return `a finding needs position, a whole number, and happened, true or false: ${findingShape}`;
    if (!happened && value !== undefined)
      return "a finding that a call did not happen has no value: the call is made now, and answers by itself";
    if (list.some((other) => other.position === position)) return `two findings are about call ${position}`;
    try {
      encodeValue(value, findingBounds);
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      return `the value of a finding: ${error.message}`;
    }
    list.push(happened ? { position, happened, value } : { position, happened });
  }
  return { id: runId, list };
}

/** A mistake of whoever answers: nothing was changed. */
export function misuse(runId: string, name: "conflict" | "not_found", message: string): ExecuteResult {
  return notStarted(runId, "invalid_input", { code: "request", name, message });
}

/** Whether somebody asked for what is on record. */
export function isSameAnswer({ approve, value }: ApprovalAnswer, recorded: CallOutcome): boolean {
  const answer = answerOf(recorded);
  if (answer === undefined || answer.approved !== approve) return false;
  const text = (one: unknown): string =>
    encodeValue(one, { textBytes: 1024 * 1024, attachmentBytes: 1024 * 1024 }).text;
  return text(answer.value) === text(value);
}
