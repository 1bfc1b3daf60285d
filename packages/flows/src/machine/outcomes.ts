/** Outcomes that the machine itself gives to calls, and the comparison of two. Texts here are seen by scripts. */

import type { CallOutcome, EncodedValue, HostErrorCode, WaitCondition } from "@flowcell/protocol";

/** `undefined`, encoded. */
const nothing: EncodedValue = Object.freeze({ text: "-1", devalue: true, attachments: [] });

export const succeeded: CallOutcome = Object.freeze({ ok: true, value: nothing });

export function failed(code: HostErrorCode, message: string, retryable = false): CallOutcome {
  return { ok: false, error: { code, message, retryable } };
}

/** A wait whose time has come. */
export function waitedOut(name: string, wait: WaitCondition): CallOutcome {
  switch (wait.kind) {
    case "time":
      return succeeded;
    case "signal":
      return failed("timeout", `${name}: no signal "${wait.name}" came within ${wait.timeoutMs} ms`, true);
    case "approval":
      return failed("timeout", `${name}: nobody answered within ${wait.timeoutMs} ms`, true);
    case "run":
      return failed("timeout", `${name}: the run did not end within ${wait.timeoutMs} ms`, true);
  }
}

/** How long the wait takes at most; null: for as long as the run may last. */
export function waitMostMs(wait: WaitCondition): number | null {
  return wait.kind === "time" ? wait.waitMs : wait.timeoutMs;
}

export function sameOutcome(one: CallOutcome, other: CallOutcome): boolean {
  if (one.ok) return other.ok && sameValue(one.value, other.value);
  if (other.ok) return false;
  return (
    one.error.code === other.error.code &&
    one.error.message === other.error.message &&
    one.error.retryable === other.error.retryable &&
    one.error.name === other.error.name &&
    JSON.stringify(one.error.detail) === JSON.stringify(other.error.detail)
  );
}

export function sameValue(one: EncodedValue, other: EncodedValue): boolean {
  if (one.text !== other.text || one.devalue !== other.devalue) return false;
  if (one.attachments.length !== other.attachments.length) return false;
  return one.attachments.every((bytes, at) => {
    const second = other.attachments[at];
    return second !== undefined && Buffer.compare(bytes, second) === 0;
  });
}
