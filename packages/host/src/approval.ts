/**
 * `host.approval.request(title)`: asks the operator, and waits for the answer without a worker. The result is
 * `{approved, value, by}`; a refusal is an answer, not an error. Title and detail are shown, never interpreted.
 */

import * as z from "zod/mini";
import { defineHostFunction, type HostFunction } from "./registry.js";
import { encodedArgument, optionsArgument, textArgument, timeoutArgument } from "./row-arguments.js";

export const approvalTitleBytes = 512;
export const approvalDetailBytes = 64 * 1024;

export const approvalRequest: HostFunction = defineHostFunction({
  name: "approval.request",
  doc: "Asks the operator and waits for the answer; fails with timeout after timeoutMs.",
  effect: "wait",
  grant: null,
  signature:
    "(title: string, options?: { detail?: unknown; timeoutMs?: number }): Promise<{ approved: boolean; value: unknown; by: string }>",
  input: z.tuple([
    textArgument(1, approvalTitleBytes),
    optionsArgument({ detail: z.optional(z.unknown()), timeoutMs: timeoutArgument }),
  ]),
  acceptsRegExps: true,
  wait: ([title, { detail, timeoutMs } = {}]) => ({
    kind: "approval",
    title,
    detail:
      detail === undefined
        ? null
        : encodedArgument("approval.request: the detail", detail, approvalDetailBytes),
    timeoutMs: timeoutMs ?? null,
  }),
});
