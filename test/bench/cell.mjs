// The benchmark's side of flowcell: a pool made as the library makes it, and requests as small as they get.
import { randomBytes } from "node:crypto";
import { createPool } from "@flowcell/pool";
import { encodeValue, profileLimits } from "@flowcell/protocol";
import { defaultPolicy, formatFailure, preparePlan } from "@flowcell/sandbox";

export const limits = { ...profileLimits("codemode"), hostCalls: 100_000 };
export const names = Object.freeze(["echo"]);
const input = encodeValue(null);
const seed = randomBytes(32);

/** A function expression as the worker wants it, around the body of an async function. */
export function scriptOf(body) {
  return `(function(){return {default: async (input, host) => {${body}}}})`;
}

export function plan() {
  const { result } = preparePlan(defaultPolicy("codemode"));
  if (!result.ok) throw new Error(formatFailure(result));
  return result.plan;
}

export function makePool(options = {}) {
  return createPool({ plan: plan(), ...options });
}

/** A request for `script` on behalf of `flow`; host calls are answered at once with their own arguments. */
export function request(flow, script, more = {}) {
  return {
    flow,
    script,
    input,
    names,
    limits,
    clock: { epochMs: 0, mode: "real" },
    seed,
    onHostCall: (call) => ({ ok: true, value: call.args }),
    ...more,
  };
}

/** Runs a request and insists that it completed. */
export async function run(pool, wanted) {
  const result = await pool.activate(wanted);
  if (result.status !== "completed") {
    throw new Error(`${result.status} ${result.reason ?? ""}: ${result.error?.message ?? ""}`);
  }
  return result;
}
