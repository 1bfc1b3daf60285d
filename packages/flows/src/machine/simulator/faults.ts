/**
 * Ways to be wrong, for trying the simulator: each turns a correct machine into one with a known mistake, by what goes in or
 * comes out. The simulator must catch every one of them.
 */

import type { RunHistory, RunOperation } from "@flowcell/journal";
import type { RunCommand, RunEvent } from "../types.js";
import type { Record } from "./record.js";

/** What a fault may know: the machine it breaks would. */
export interface FaultContext {
  readonly record: Record;
}

/** The mistakes of one process of one run. Each may change what the machine hears and says. */
export interface Fault {
  history?(history: RunHistory): RunHistory;
  /** Null: the event is not heard. */
  event?(event: RunEvent, context: FaultContext): RunEvent | null;
  commands?(commands: readonly RunCommand[], context: FaultContext): readonly RunCommand[];
}

export type FaultName = keyof typeof faults;

export const faults = {
  "delivers before the commit": (): Fault => ({
    commands: (commands) =>
      commands.flatMap((command): readonly RunCommand[] =>
        command.kind === "commit" ? [...command.operations.flatMap(early), command] : [command],
      ),
  }),

  "dispatches before the intent is committed": (): Fault => {
    const early = new Set<number>();
    return {
      commands: (commands) =>
        commands.flatMap((command): readonly RunCommand[] => {
          if (command.kind === "dispatch" && early.delete(command.position)) return [];
          if (command.kind !== "commit") return [command];
          const begun = command.operations.flatMap(intent);
          for (const { position } of begun) early.add(position);
          return [...begun, command];
        }),
    };
  },

  "sends a second attempt with a new key": (): Fault => ({
    commands: (commands, { record }) =>
      commands.map((command) => {
        if (command.kind !== "dispatch") return command;
        const attempts = record.calls.get(command.position)?.attempts ?? 0;
        return attempts < 2
          ? command
          : { ...command, idempotencyKey: `${command.idempotencyKey}.${attempts}` };
      }),
  }),

  "begins a once call again after a crash": (): Fault => ({
    event: (event) =>
      event.kind === "recovered" && event.recovery.state !== "not_applied"
        ? { ...event, recovery: { state: "not_applied" } }
        : event,
  }),

  "replays by position instead of by order": (): Fault => ({
    history: (history) => {
      const deliveries = [...history.deliveries];
      const calls = deliveries.filter((delivery) => delivery.kind === "call");
      calls.sort((one, other) => one.position - other.position);
      const sorted = deliveries.map((delivery, order) => {
        const next = delivery.kind === "call" ? calls.shift() : delivery;
        return { ...(next ?? delivery), order };
      });
      return { ...history, deliveries: sorted };
    },
  }),

  "begins new calls during a replay": (): Fault => {
    let heard: (RunEvent & { readonly kind: "called" }) | null = null;
    return {
      event: (event) => {
        heard = event.kind === "called" ? event : null;
        return event;
      },
      commands: (commands, { record }) => {
        // Held by the machine: one that does not hold would ask at once what it is.
        if (heard === null || commands.length > 0 || record.calls.has(heard.position)) return commands;
        const { position, name, args } = heard;
        return [{ kind: "classify", position, name, args, withNote: true }];
      },
    };
  },

  "drops an outcome that comes while it is suspended": (): Fault => ({
    event: (event, { record }) => (event.kind === "outcome" && record.state === "suspended" ? null : event),
  }),

  "takes a signal twice": (): Fault => ({
    commands: (commands, { record }) =>
      commands.map((command) => {
        if (command.kind !== "commit") return command;
        return { ...command, operations: command.operations.map((one) => again(one, record)) };
      }),
  }),
} as const satisfies { readonly [name: string]: () => Fault };

/** The delivery that a unit is about to record. */
function early(operation: RunOperation): readonly RunCommand[] {
  if (operation.kind !== "deliver") return [];
  const { position, outcome, guestClockMs } = operation;
  return [{ kind: "deliver", position, outcome, guestClockMs }];
}

/** The effect whose intent a unit is about to record. */
function intent(operation: RunOperation): readonly (RunCommand & { readonly kind: "dispatch" })[] {
  if (operation.kind !== "call" || operation.attempts === 0) return [];
  const { position, effect, idempotencyKey } = operation.call;
  return effect === "keyed" || effect === "once" ? [{ kind: "dispatch", position, idempotencyKey }] : [];
}

/** A signal that was taken before is given to the next that asks, as if it were still there. */
function again(operation: RunOperation, { signals }: Record): RunOperation {
  if (operation.kind !== "takeSignal") return operation;
  const [value] = signals;
  if (value === undefined) return operation;
  const { order, guestClockMs, position, at } = operation;
  const outcome = { ok: true, value: { text: value, devalue: false, attachments: [] } } as const;
  return { kind: "deliver", order, guestClockMs, position, outcome, at };
}
