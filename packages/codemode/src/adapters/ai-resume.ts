/**
 * The text by which a model goes on with a suspended script: which execution, and exactly which calls a person is asked about.
 * Both ids are unguessable and of the host's making; a call that came to wait later is not in the text and so not approved
 * by it. It needs nothing to be remembered, so that an answer may come after a restart.
 *
 * TRUST: the text comes back from a model. What it can do is ask a person to approve calls that it names.
 */

const id = /^[A-Za-z0-9_.:-]{1,200}$/;
const callsMost = 1000;

export interface ResumeRequest {
  readonly runId: string;
  readonly callIds: readonly string[];
}

export function resumeText(runId: string, pending: readonly { readonly callId: string }[]): string {
  return [runId, ...pending.map(({ callId }) => callId)].join(" ");
}

/** Undefined for a text that no result gave. */
export function parseResume(text: string): ResumeRequest | undefined {
  const [runId, ...callIds] = text.trim().split(/\s+/, callsMost + 2);
  if (runId === undefined || !id.test(runId) || callIds.length === 0 || callIds.length > callsMost)
    return undefined;
  return callIds.every((callId) => id.test(callId)) ? { runId, callIds } : undefined;
}
