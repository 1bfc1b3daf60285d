/**
 * A divergence: the first thing that a script did in a replay and its journal does not have, or the other way round. Made by
 * pump.ts; the machine ends the run with it, `verify.ts` reports it. Names and digests in it were a script's; a digest says
 * nothing about the arguments.
 */

import type { EncodedValue } from "@flowcell/protocol";

/** One thing that can stand on either side. */
export type Happening =
  | { readonly kind: "call"; readonly position: number; readonly name: string; readonly digest: string }
  | { readonly kind: "timer"; readonly guestClockMs: number }
  /** The script waits, and nothing that is recorded can be given to it. */
  | { readonly kind: "blocked"; readonly nextTimerAt: number | null; readonly openCalls: number }
  | {
      readonly kind: "end";
      readonly status: string;
      readonly reason: string | null;
      /** The beginning of the result's text; null when there is none. */
      readonly value: string | null;
    };

export interface Divergence {
  /** Of the call, when it is about one. */
  readonly position: number | null;
  /** Of the delivery that could not be made, when it is about one. */
  readonly order: number | null;
  readonly expected: Happening;
  readonly actual: Happening;
}

const valueCharsMax = 200;

export function endOf(status: string, reason: string | null, value: EncodedValue | null): Happening {
  return { kind: "end", status, reason, value: value === null ? null : value.text.slice(0, valueCharsMax) };
}

/** Where it is, for people. */
export function whereOf({ position, order }: Divergence): string {
  if (order === null) return position === null ? "the end of the script" : `call ${position}`;
  return position === null ? `delivery ${order}` : `delivery ${order}, call ${position}`;
}

export function divergenceMessage(divergence: Divergence): string {
  const { expected, actual } = divergence;
  return `the script did something else than its journal says, at ${whereOf(divergence)}: recorded is ${textOf(expected)}, now came ${textOf(actual)}`;
}

function textOf(happening: Happening): string {
  switch (happening.kind) {
    case "call":
      return `call ${happening.position} of ${happening.name} (arguments ${happening.digest.slice(0, 12)})`;
    case "timer":
      return `a timer that is due by ${new Date(happening.guestClockMs).toISOString()}`;
    case "blocked":
      return happening.nextTimerAt === null
        ? `a script that waits for ${happening.openCalls} calls`
        : `a script that waits for ${happening.openCalls} calls and a timer at ${new Date(happening.nextTimerAt).toISOString()}`;
    case "end":
      return `the end of the script, ${happening.status}${happening.reason === null ? "" : `/${happening.reason}`}${happening.value === null ? "" : ` with ${happening.value}`}`;
  }
}
