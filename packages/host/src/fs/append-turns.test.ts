/** Turns of appends: their order, and that nobody waits for a turn that will not be used. */

import { expect, test } from "vitest";
import { AppendTurns } from "./append-turns.js";

const never = new AbortController().signal;

/** Whether a promise has settled once everything that could settle it by now has run. */
async function isSettled(promise: Promise<void>): Promise<boolean> {
  let settled = false;
  void promise.then(() => {
    settled = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  return settled;
}

test("a turn waits for those before it and not for those after it", async () => {
  const turns = new AppendTurns();
  expect(["1", "2", "3"].map((key) => turns.take("f", key, never))).toEqual([true, false, false]);
  const second = turns.wait("f", "2");
  expect(await isSettled(turns.wait("f", "1"))).toBe(true);
  expect(await isSettled(second)).toBe(false);
  turns.end("3");
  expect(await isSettled(second)).toBe(false);
  turns.end("1");
  expect(await isSettled(second)).toBe(true);
});

test("turns of different files do not wait for each other", async () => {
  const turns = new AppendTurns();
  expect([turns.take("f", "1", never), turns.take("g", "2", never)]).toEqual([true, true]);
  expect(await isSettled(turns.wait("g", "2"))).toBe(true);
});

test("a call that took no turn waits for nobody", async () => {
  const turns = new AppendTurns();
  turns.take("f", "1", never);
  expect(await isSettled(turns.wait("f", "other"))).toBe(true);
});

test("the turn of a call that is aborted ends, also one that was aborted before", async () => {
  const turns = new AppendTurns();
  const controller = new AbortController();
  turns.take("f", "1", controller.signal);
  turns.take("f", "2", AbortSignal.abort());
  turns.take("f", "3", never);
  const third = turns.wait("f", "3");
  expect(await isSettled(third)).toBe(false);
  controller.abort();
  expect(await isSettled(third)).toBe(true);
  turns.end("3");
  expect(turns.take("f", "4", never), "nothing of them is left").toBe(true);
});

test("the turn of a call that is aborted while its handler writes ends with the handler", async () => {
  const turns = new AppendTurns();
  const controller = new AbortController();
  turns.take("f", "1", controller.signal);
  turns.take("f", "2", never);
  await turns.wait("f", "1");
  const second = turns.wait("f", "2");
  controller.abort();
  expect(await isSettled(second)).toBe(false);
  turns.end("1");
  expect(await isSettled(second)).toBe(true);
});

test("the second try of a call is alone with itself", () => {
  const turns = new AppendTurns();
  expect(turns.take("f", "1", never)).toBe(true);
  expect(turns.take("f", "1", never)).toBe(true);
});
