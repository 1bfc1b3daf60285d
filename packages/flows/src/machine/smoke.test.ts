import { expect, test } from "vitest";
import { RunMachine } from "./machine.js";
import { end, history, ok, options, startMs, value } from "./testing/histories.js";

test("an effect is begun after its intent is committed, and delivered after its outcome is", () => {
  const machine = new RunMachine(options(history()));
  const kinds = (commands: readonly { kind: string }[]): string[] => commands.map(({ kind }) => kind);
  expect(kinds(machine.start(startMs))).toEqual(["wake", "alarm"]);
  expect(kinds(machine.handle({ kind: "go" }, startMs))).toEqual(["activate", "frontier", "commit"]);
  expect(
    kinds(machine.handle({ kind: "committed", token: 1, results: [{ kind: "done" }] }, startMs)),
  ).toEqual([]);
  const call = { kind: "called", position: 0, name: "fetch", digest: "d", args: value([]) } as const;
  expect(kinds(machine.handle(call, startMs))).toEqual(["classify"]);
  const as = { kind: "effect", effect: "keyed", note: null } as const;
  expect(kinds(machine.handle({ kind: "classified", position: 0, as }, startMs))).toEqual(["commit"]);
  expect(
    kinds(machine.handle({ kind: "committed", token: 2, results: [{ kind: "done" }] }, startMs)),
  ).toEqual(["dispatch"]);
  expect(kinds(machine.handle({ kind: "outcome", position: 0, outcome: ok(1) }, startMs))).toEqual([
    "commit",
  ]);
  expect(
    kinds(machine.handle({ kind: "committed", token: 3, results: [{ kind: "done" }] }, startMs)),
  ).toEqual(["deliver"]);
  expect(
    kinds(machine.handle({ kind: "ended", end: end("completed", { value: value(1) }) }, startMs)),
  ).toEqual(["commit", "alarm"]);
  expect(
    kinds(machine.handle({ kind: "committed", token: 4, results: [{ kind: "done" }] }, startMs)),
  ).toEqual(["rest"]);
});
