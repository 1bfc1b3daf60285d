/**
 * `host.sleep(ms)`: answers after a while on the parent's clock; a cancelled call stops waiting at once. setTimeout in the
 * script does the same within one activation; a run that only sleeps can give its worker back. In virtual time it answers
 * at once, as timers do.
 */

import { HostError } from "@flowcell/protocol";
import * as z from "zod/mini";
import { type CallContext, defineHostFunction, type HostFunction } from "./registry.js";

/** A day: no run's deadline is longer, and Node's timers hold 24.8 days. */
export const sleepMsMax = 86_400_000;

const problem = `must be a number of milliseconds from 0 to ${sleepMsMax}`;
const milliseconds = z
  .number({ error: problem })
  .check(z.minimum(0, problem), z.maximum(sleepMsMax, problem));

export const sleep: HostFunction = defineHostFunction({
  name: "sleep",
  doc: "Waits the given number of milliseconds (0 to a day). No result.",
  effect: "wait",
  grant: null,
  signature: "(ms: number): Promise<void>",
  input: z.tuple([milliseconds]),
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
