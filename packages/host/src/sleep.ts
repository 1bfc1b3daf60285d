/**
 * `host.sleep(ms)`: answers after a while on the parent's clock; a cancelled call stops waiting at once. setTimeout in the
 * script does the same within one activation; a run that only sleeps can give its worker back. In virtual time it answers
 * at once, as timers do.
 */

import { HostError } from "@flowcell/protocol";
import { type CallContext, defineHostFunction, type HostFunction } from "./registry.js";
import type { Schema } from "./schema.js";

/** A day: no run's deadline is longer, and Node's timers hold 24.8 days. */
export const sleepMsMax = 86_400_000;

const problem = `must be a number of milliseconds from 0 to ${sleepMsMax}`;

/** Written out: every program that runs a script has this row, and few have another that needs a library for schemas. */
const oneDuration: Schema<readonly [number]> = {
  "~standard": {
    version: 1,
    vendor: "flowcell",
    validate(value) {
      if (!Array.isArray(value) || value.length !== 1) return { issues: [{ message: "takes 1 argument" }] };
      const ms: unknown = value[0];
      const right = typeof ms === "number" && ms >= 0 && ms <= sleepMsMax;
      return right ? { value: [ms] } : { issues: [{ message: problem, path: [0] }] };
    },
  },
};

export const sleep: HostFunction = defineHostFunction({
  name: "sleep",
  doc: "Waits the given number of milliseconds (0 to a day). No result.",
  effect: "wait",
  grant: null,
  signature: "(ms: number): Promise<void>",
  input: oneDuration,
  wait: ([ms]) => ({ kind: "time", waitMs: ms }),
  handler: ([ms], context) => (context.clock === "virtual" ? undefined : wait(ms, context)),
});

function wait(ms: number, { signal }: CallContext): Promise<undefined> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(new HostError("cancelled", "sleep: the call was cancelled"));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve(undefined);
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
