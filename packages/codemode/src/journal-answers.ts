/**
 * Answers to what executions ask, as programs pass them: checked before anything is done, and compared with what was answered
 * before. journal-runs.ts calls it.
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
