// What the parent does with calls that a subverted worker could make: nothing is carried out that was not approved.
import { createRegistry, dispatch, type HostFunction } from "@flowcell/host";
import type { CallRow, RunHistory } from "@flowcell/journal";
import { type CallOutcome, decodeValue, encodeValue, valueBounds } from "@flowcell/protocol";
import { expect, test } from "vitest";
import { answerOutcome, approvalFunctions } from "./approval-calls.js";
import { toolSchema } from "./schema.js";
import { makeToolSet } from "./tool-set.js";

const bounds = { textBytes: 4096, attachmentBytes: 0, nodes: valueBounds.nodes };
const limits = { valueBytes: 4096, bodyBytes: 4096 };

interface Bench {
  readonly carriedOut: unknown[];
  call(args: readonly unknown[], position?: number): Promise<unknown>;
}

/** A run in which `history` has happened before. */
function bench(history: Partial<RunHistory>): Bench {
  const carriedOut: unknown[] = [];
  const set = makeToolSet(
    {
      pay: {
        description: "Pays.",
        inputSchema: { type: "object" },
        needsApproval: true,
        execute: (input: unknown) => carriedOut.push(input),
      },
    },
    toolSchema,
  );
  const whole = { calls: [], deliveries: [], ...history } as unknown as RunHistory; // the parts that are read
  const functions: HostFunction[] = set.tools.flatMap((tool) => [
    ...approvalFunctions(tool, async (runId) => (runId === "run_1" ? whole : null)),
  ]);
  const registry = createRegistry(functions);
  const call = async (args: readonly unknown[], position = 1): Promise<unknown> => {
    const { signal } = new AbortController();
    const incoming = {
      name: "tools.pay",
      args: encodeValue(args, bounds),
      position,
      signal,
      idempotencyKey: "k",
      runId: "run_1",
    };
    const outcome = await dispatch(registry, incoming, { limits, clock: "real" });
    return outcome.ok
      ? decodeValue(outcome.value, bounds)
      : `${outcome.error.code}: ${outcome.error.message}`;
  };
  return { carriedOut, call };
}

const callId = "call_1";
const input = { cents: 5 };

/** The question at position 0 and what it was answered. */
function asked(
  outcome: CallOutcome | null,
  more: readonly Partial<CallRow>[] = [],
  name = "zz$ask.tools.pay",
): Partial<RunHistory> {
  const question = {
    position: 0,
    name,
    callId,
    args: encodeValue([input], bounds),
    wait: { kind: "approval", title: "tools.pay", detail: encodeValue(input, bounds), timeoutMs: null },
  };
  return {
    calls: [question, ...more] as unknown as CallRow[], // the columns that are read
    deliveries:
      outcome === null ? [] : [{ kind: "call", order: 0, position: 0, guestClockMs: 0, at: 0, outcome }],
  };
}

const approved = answerOutcome(callId, true, undefined);

test("a call that was approved is carried out", async () => {
  const { call, carriedOut } = bench(asked(approved));
  expect(await call([input, callId])).toBe(1);
  expect(carriedOut).toEqual([input]);
});

test.each<[string, Partial<RunHistory>, readonly unknown[], RegExp]>([
  ["without an approval", {}, [input], /needs an approval/],
  ["with one that was made up", asked(approved), [input, "call_2"], /needs an approval/],
  ["with one that is no text", asked(approved), [input, null], /needs an approval/],
  ["before anybody answered", asked(null), [input, callId], /not approved yet/],
  ["that was refused", asked(answerOutcome(callId, false, "no")), [input, callId], /refused: no$/],
  ["with another input", asked(approved), [{ cents: 6 }, callId], /another input was approved/],
  ["of another tool", asked(approved, [], "zz$ask.tools.sell"), [input, callId], /needs an approval/],
  [
    "twice on one approval",
    asked(approved, [
      { position: 1, name: "tools.pay", callId: null, args: encodeValue([input, callId], bounds) },
    ]),
    [input, callId],
    /used before/,
  ],
])("a call %s is not", async (_, history, args, message) => {
  const { call, carriedOut } = bench(history);
  expect(await call(args, 2)).toMatch(message);
  expect(await call(args, 2)).toMatch(/^denied: /);
  expect(carriedOut).toEqual([]);
});
