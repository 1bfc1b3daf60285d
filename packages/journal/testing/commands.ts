/**
 * Random units for stores, as fast-check makes them. A command says what to try in terms of what is next ("the next order,
 * or one off"), and becomes a unit by what the reference store says, so that most units are legal and the others just not.
 */

import type { LocalOperation } from "@flowcell/protocol";
import fc from "fast-check";
import type { Fence, Operation, RunRow, Store, Unit } from "../src/store.js";
import { call, finish, json, ok, sampleRun, sampleVersion } from "../src/testing/samples.js";

export interface Command {
  readonly run: number;
  /** Mostly the right ones. */
  readonly fenceOff: "none" | "owner" | "generation" | "missing";
  readonly steps: readonly Step[];
}

type Step =
  | { readonly kind: "create"; readonly key: number | null; readonly flow: number }
  | { readonly kind: "claim"; readonly owner: string }
  | { readonly kind: "call"; readonly position: number; readonly effect: number; readonly begun: boolean }
  | { readonly kind: "mark"; readonly position: number; readonly how: number }
  | {
      readonly kind: "deliver";
      readonly position: number | null;
      readonly orderOff: number;
      readonly clockOff: number;
      readonly bytes: number;
    }
  | { readonly kind: "local"; readonly position: number; readonly operation: LocalOperation }
  | { readonly kind: "send"; readonly name: string; readonly id: string }
  | { readonly kind: "take"; readonly position: number; readonly name: string }
  | { readonly kind: "logs"; readonly from: number; readonly count: number }
  | { readonly kind: "progress"; readonly state: number }
  | { readonly kind: "version"; readonly hash: string; readonly decide: number }
  | { readonly kind: "other"; readonly which: number };

const position = fc.nat({ max: 5 });
const signalName = fc.constantFrom("go", "stop");
const key = fc.constantFrom("", "a", "a/1", "a/2", "b", "\u{1f600}", "\uffee", "\ud800");
const value = fc
  .record({ text: fc.constantFrom("1", "2"), bytes: fc.constantFrom(0, 3, 5_000) })
  .map(({ text, bytes }) => ({
    text,
    devalue: false,
    attachments: bytes === 0 ? [] : [new Uint8Array(bytes).fill(bytes % 256)],
  }));
const localOperation: fc.Arbitrary<LocalOperation> = fc.oneof(
  fc.record({ kind: fc.constant("kv.get" as const), key }),
  fc.record({ kind: fc.constant("kv.set" as const), key, value }),
  fc.record({ kind: fc.constant("kv.delete" as const), key }),
  fc.record({
    kind: fc.constant("kv.list" as const),
    prefix: key,
    after: fc.option(key),
    limit: fc.nat({ max: 4 }),
  }),
  fc.record({
    kind: fc.constant("kv.compareAndSet" as const),
    key,
    expected: fc.option(value),
    value: fc.option(value),
  }),
);

const off = fc.constantFrom(0, 0, 0, 0, 0, 0, 1, -1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("create" as const),
      key: fc.option(fc.nat({ max: 2 })),
      flow: fc.nat({ max: 1 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("claim" as const), owner: fc.constantFrom("o1", "o2") }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("call" as const),
      position,
      effect: fc.nat({ max: 5 }),
      begun: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("mark" as const), position, how: fc.nat({ max: 3 }) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("deliver" as const),
      position: fc.option(position),
      orderOff: off,
      clockOff: fc.constantFrom(0, 0, 1.5, 10, -1),
      bytes: fc.constantFrom(0, 0, 10, 5_000),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("local" as const), position, operation: localOperation }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("send" as const),
      name: signalName,
      id: fc.constantFrom("1", "2", "3"),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("take" as const), position, name: signalName }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("logs" as const),
      from: fc.constantFrom(0, 0, -1, 1),
      count: fc.nat({ max: 3 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("progress" as const), state: fc.nat({ max: 6 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("version" as const),
      hash: fc.constantFrom("x", "y"),
      decide: fc.nat({ max: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("other" as const), which: fc.nat({ max: 3 }) }) },
);

export const commands: fc.Arbitrary<Command[]> = fc.array(
  fc.record({
    run: fc.nat({ max: 1 }),
    fenceOff: fc.constantFrom(
      "none",
      "none",
      "none",
      "none",
      "none",
      "none",
      "none",
      "owner",
      "generation",
      "missing",
    ),
    steps: fc.oneof(fc.tuple(step), fc.tuple(step), fc.array(step, { minLength: 2, maxLength: 4 })),
  }),
  { minLength: 20, maxLength: 60 },
);

const effects = ["local", "read", "keyed", "once", "wait", "wait"] as const;
const patches = [
  { state: "running" },
  { state: "running", status: null },
  { state: "suspended", status: "suspended", dueAt: 7 },
  { state: "suspended", status: "completed" },
  { endOrder: 1, endStatus: "completed" },
  { endOrder: null, endStatus: null, result: json(1, new Uint8Array(5_000)) },
] as const;

/** The unit that a command stands for. `tag` keeps the names of one sequence apart from those of another. */
export async function unitOf(command: Command, reference: Store, tag: string): Promise<Unit> {
  const runId = runName(command.run, tag);
  const row = await reference.run(runId);
  const operations: Operation[] = [];
  // Within a unit orders go on from one another.
  let order = row?.nextOrder ?? 0;
  let clock = row?.guestClockMs ?? 1_000;
  let log = row?.nextLog ?? 0;
  for (const one of command.steps) {
    const operation = operationOf(one, { runId, tag, order, clock, log });
    operations.push(operation);
    if (operation.kind === "deliver" || operation.kind === "timer" || operation.kind === "local") {
      order = operation.order + 1;
      clock = operation.guestClockMs;
    }
    if (operation.kind === "logs") log += operation.lines.length;
  }
  return command.fenceOff === "missing"
    ? { operations }
    : { fence: fenceOf(runId, row, command.fenceOff), operations };
}

export function runName(run: number, tag: string): string {
  return `run_${tag}_${run}`;
}

export function flowName(flow: number, tag: string): string {
  return `flow_${tag}_${flow}`;
}

function fenceOf(runId: string, row: RunRow | null, wrong: Command["fenceOff"]): Fence {
  return {
    runId,
    owner: wrong === "owner" ? "stranger" : (row?.owner ?? "o1"),
    generation: Math.max(1, row?.generation ?? 1) + (wrong === "generation" ? 1 : 0),
  };
}

function operationOf(
  one: Step,
  at: {
    readonly runId: string;
    readonly tag: string;
    readonly order: number;
    readonly clock: number;
    readonly log: number;
  },
): Operation {
  const { runId, tag } = at;
  switch (one.kind) {
    case "create": {
      const deduplicationKey = one.key === null ? null : `key ${one.key}`;
      return {
        kind: "createRun",
        run: sampleRun(runId, { flow: flowName(one.flow, tag), deduplicationKey }),
      };
    }
    case "claim":
      return { kind: "claim", runId, owner: one.owner };
    case "call": {
      const effect = effects[one.effect] ?? "read";
      const wait = effect === "wait" ? ({ kind: "signal", name: "go", timeoutMs: 5 } as const) : null;
      return call(
        one.position,
        { effect, wait, callId: one.position === 3 ? `call_${tag}` : null },
        one.begun ? 1 : 0,
      );
    }
    case "mark":
      if (one.how === 0) return { kind: "attempt", position: one.position };
      if (one.how === 1) return { kind: "cancelCall", position: one.position };
      return { kind: "unknown", position: one.position, reason: one.how === 2 ? "lost" : null };
    case "deliver": {
      const where = { order: at.order + one.orderOff, guestClockMs: at.clock + one.clockOff, at: 9 };
      if (one.position === null) return { kind: "timer", ...where, order: Math.max(0, where.order) };
      const outcome = one.bytes === 0 ? ok("plain") : ok("bytes", new Uint8Array(one.bytes).fill(1));
      return {
        kind: "deliver",
        ...where,
        order: Math.max(0, where.order),
        position: one.position,
        outcome:
          one.position === 2
            ? { ok: false, error: { code: "timeout", message: "late", retryable: true } }
            : outcome,
      };
    }
    case "local":
      return {
        kind: "local",
        order: at.order,
        guestClockMs: at.clock,
        position: one.position,
        operation: one.operation,
        bytesMax: 12_000,
        at: 9,
      };
    case "send":
      return { kind: "sendSignal", runId, name: one.name, value: json(one.id), signalId: one.id, at: 9 };
    case "take":
      return {
        kind: "takeSignal",
        order: at.order,
        guestClockMs: at.clock,
        position: one.position,
        name: one.name,
        at: 9,
      };
    case "logs":
      return {
        kind: "logs",
        lines: Array.from({ length: one.count }, (_, line) => ({
          seq: Math.max(0, at.log + one.from) + line,
          level: "log" as const,
          guestTimeMs: 1,
          text: `line ${line}`,
        })),
      };
    case "progress": {
      const patch = patches[one.state];
      return patch === undefined ? finish() : { kind: "run", patch };
    }
    case "version": {
      const flow = flowName(0, tag);
      if (one.decide === 0)
        return { kind: "addVersion", version: sampleVersion(one.hash.repeat(64), { flow }) };
      const state = (["approved", "rejected", "revoked"] as const)[one.decide - 1] ?? "approved";
      return { kind: "decideVersion", flow, hash: one.hash.repeat(64), state, by: "op", reason: null, at: 9 };
    }
    case "other":
      switch (one.which) {
        case 0:
          return { kind: "event", eventId: `event_${tag}`, name: "n", value: json(1), at: 1 };
        case 1:
          return { kind: "flow", flow: flowName(0, tag), patch: { enabled: false } };
        case 2:
          return { kind: "quarantine", row: { runId, position: 0, at: 1, reason: "late", outcome: ok(1) } };
        default:
          return { kind: "audit", row: { at: 1, actor: "a", action: "b", flow: null, runId, detail: "" } };
      }
  }
}
