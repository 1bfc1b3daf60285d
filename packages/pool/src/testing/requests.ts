/** Requests for unit tests of the pool. */

import type { CallOutcome } from "@flowcell/protocol";
import { type EncodedValue, type Limits, profileLimits } from "@flowcell/protocol";
import type { ActivationRequest, ActivationResult } from "../types.js";

export const testLimits: Limits = {
  ...profileLimits("flow"),
  cpuMs: 1000,
  wallMs: 10_000,
  inFlight: 4,
  hostCalls: 8,
};

const names: readonly string[] = ["echo", "slow"];
const seed = new Uint8Array(32).fill(7);

export const epochMs = 1_700_000_000_000;

export function json(value: unknown): EncodedValue {
  return { text: JSON.stringify(value), devalue: false, attachments: [] };
}

export function ok(value: unknown): CallOutcome {
  return { ok: true, value: json(value) };
}

/** The script of a test request is only a name to find its worker by. */
export function testRequest(
  flow: string,
  script: string,
  more: Partial<ActivationRequest> = {},
): ActivationRequest {
  return {
    flow,
    script,
    input: json(null),
    names,
    limits: testLimits,
    clock: { epochMs, mode: "virtual" },
    seed,
    onHostCall: (call) => ({ ok: true, value: call.args }),
    ...more,
  };
}

/** Notes when each result came, so that a test can say that one has not. */
export function track<C>(promise: Promise<ActivationResult<C>>): { result: ActivationResult<C> | undefined } {
  const tracked: { result: ActivationResult<C> | undefined } = { result: undefined };
  void promise.then((result) => {
    tracked.result = result;
  });
  return tracked;
}

export function outcome(result: ActivationResult<unknown> | undefined): string {
  if (result === undefined) return "no result";
  return result.reason === undefined ? result.status : `${result.status}/${result.reason}`;
}
