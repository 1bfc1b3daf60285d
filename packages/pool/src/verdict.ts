/**
 * Verdicts on an activation: what its worker reported and what the parent found, as rows of the outcome table.
 *
 * TRUST: a header of Finished has its form only. A reported limit is one that the parent set, so limits are taken from the
 * request; the figure of use is the worker's word and only shown.
 */
import type { BudgetReason, EncodedValue, FinishedHeader, Limits } from "@flowcell/protocol";
import type { Verdict } from "./types.js";
import { sumOfBytes } from "./values.js";
import { Violation } from "./violation.js";

export function exceeded(reason: BudgetReason, message: string, limit: number, used: number): Verdict {
  return { status: "budget_exceeded", reason, message, limit, used };
}

export function wallExceeded(limits: Limits, usedMs: number): Verdict {
  const message = `the activation took longer than wallMs (${limits.wallMs} ms)`;
  return exceeded("wall", message, limits.wallMs, Math.round(usedMs));
}

export function cpuExceeded(limits: Limits, usedMs: number): Verdict {
  const message = `the script used more CPU time than cpuMs (${limits.cpuMs} ms)`;
  return exceeded("cpu", message, limits.cpuMs, Math.round(usedMs));
}

/** The end of a script that did not complete, in the worker's words. */
export function finishedVerdict(
  header: Exclude<FinishedHeader, { status: "completed" }>,
  limits: Limits,
  heapPeakBytes: number,
): Verdict {
  if (header.status === "script_error") {
    const reason = header.code ?? "uncaught";
    return { status: reason === "denied" ? "denied" : "script_error", reason, message: header.error.message };
  }
  const { reason, limit, used } = header;
  switch (reason) {
    case "cpu":
      return cpuExceeded(limits, used);
    case "memory": {
      const message = `the script needed more memory than heapBytes (${limits.heapBytes} bytes)`;
      return exceeded(reason, message, limits.heapBytes, Math.max(used, heapPeakBytes));
    }
    case "stack": {
      const message = `the script recursed deeper than stackBytes (${limits.stackBytes} bytes) allows`;
      return exceeded(reason, message, limits.stackBytes, Math.max(used, limits.stackBytes));
    }
    case "host_calls": {
      const message = `the script made more host calls than hostCalls (${limits.hostCalls})`;
      return exceeded(reason, message, limits.hostCalls, used);
    }
    case "result_size":
      return exceeded(reason, `the result has ${used} bytes or more; its limit is ${limit}`, limit, used);
    case "wall":
    case "record_size":
      // The wall clock and the journal are the parent's alone.
      throw new Violation("unexpected_message", `a worker reported the limit ${reason}`);
  }
}

/** A correct worker bounds its own result; this is for one that does not. */
export function resultVerdict(value: EncodedValue, limits: Limits): Verdict | null {
  const { resultBytes, bodyBytes } = limits;
  const text = Buffer.byteLength(value.text);
  if (text > resultBytes) {
    return exceeded(
      "result_size",
      `the result has ${text} bytes; resultBytes is ${resultBytes}`,
      resultBytes,
      text,
    );
  }
  const bodies = sumOfBytes(value.attachments);
  if (bodies <= bodyBytes) return null;
  const message = `the result's binary parts have ${bodies} bytes; bodyBytes is ${bodyBytes}`;
  return exceeded("result_size", message, bodyBytes, bodies);
}
