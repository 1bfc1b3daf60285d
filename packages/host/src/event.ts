/**
 * `host.event.emit(name)`: tells the service that something happened; flows with a trigger for it get a run each. Made for
 * each version of a flow, since its manifest says which events it may emit. What emitting does is the caller's (`emitEvent`):
 * one key is one event.
 */

import type { EncodedValue } from "@flowcell/protocol";
import * as z from "zod/mini";
import { type CallOrigin, notGranted, originOf } from "./flow.js";
import { defineHostFunction, type HostFunction } from "./registry.js";
import { encodedArgument, textArgument } from "./row-arguments.js";

export interface EmitEvent extends CallOrigin {
  readonly name: string;
  readonly payload: EncodedValue;
}

export interface EventFunctionOptions {
  /** Names of the events that may be emitted. */
  readonly grants: readonly string[];
  /** Keeps the event under an id that follows from the key. Throws HostError for what the script should know. */
  readonly emitEvent: (event: EmitEvent) => Promise<{ readonly eventId: string }>;
}

export const eventNameBytes = 128;
const payloadBytes = 1024 * 1024;

/** The row behind the grant `events`. */
export function eventFunctions({ grants, emitEvent }: EventFunctionOptions): readonly HostFunction[] {
  const granted: ReadonlySet<string> = new Set(grants);
  const emit = defineHostFunction({
    name: "event.emit",
    doc: "Emits an event: every flow with a trigger for it gets a run with the payload as its input.",
    effect: "keyed",
    grant: "events",
    signature: "(name: string, payload?: unknown): Promise<{ eventId: string }>",
    input: z.tuple([textArgument(1, eventNameBytes), z.optional(z.unknown())]),
    output: z.strictObject({ eventId: z.string() }),
    acceptsRegExps: true,
    handler: async ([name, payload], context) => {
      if (!granted.has(name)) throw notGranted("event.emit", "emitting", "events", name);
      const encoded = encodedArgument("event.emit: the payload", payload, payloadBytes);
      const { eventId } = await emitEvent({ ...originOf(context), name, payload: encoded });
      return { eventId };
    },
  });
  return Object.freeze([emit]);
}
