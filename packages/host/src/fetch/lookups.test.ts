/** Lookups of names: their bound, the turns of their owners, and that nothing is looked up for nobody. */

import { describe, expect, test } from "vitest";
import { Lookups } from "./lookups.js";

const never = new AbortController().signal;

/** Lookups that are answered when a test says so. */
function stage(atOnce = 2) {
  const begun: string[] = [];
  const open = new Map<string, { answer(): void; fail(error: Error): void }>();
  const lookups = new Lookups((host) => {
    begun.push(host);
    return new Promise((resolve, reject) => {
      open.set(host, { answer: () => resolve([`address of ${host}`]), fail: reject });
    });
  }, atOnce);
  const answer = async (host: string): Promise<void> => {
    open.get(host)?.answer();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { lookups, begun, open, answer };
}

describe("lookups", () => {
  test("of one owner are made one after another, and another owner's name is not behind them", async () => {
    const { lookups, begun, answer } = stage();
    const [slow, other] = [{}, {}];
    for (const host of ["slow1", "slow2", "slow3"]) void lookups.ask(slow, host, never);
    const found = lookups.ask(other, "quick", never);
    expect(begun).toEqual(["slow1", "quick"]);
    await answer("quick");
    expect(await found).toEqual(["address of quick"]);
    // The place that is free is not for an owner that has one.
    expect(begun).toEqual(["slow1", "quick"]);
    await answer("slow1");
    expect(begun).toEqual(["slow1", "quick", "slow2"]);
  });

  test("are no more than may be at once, and owners take turns", async () => {
    const { lookups, begun, answer } = stage();
    const owners = [{}, {}, {}];
    for (const turn of [1, 2]) {
      for (const [index, owner] of owners.entries()) void lookups.ask(owner, `${index}.${turn}`, never);
    }
    expect(begun).toEqual(["0.1", "1.1"]);
    await answer("0.1");
    expect(begun).toEqual(["0.1", "1.1", "2.1"]);
    await answer("1.1");
    await answer("2.1");
    await answer("0.2");
    expect([...begun].sort()).toEqual(["0.1", "0.2", "1.1", "1.2", "2.1", "2.2"]);
  });

  test("of one name are one while it is asked for", async () => {
    const { lookups, begun, answer } = stage();
    const owner = {};
    const all = ["a", "a", "b", "b"].map((host) => lookups.ask(owner, host, never));
    await answer("a");
    await answer("b");
    expect((await Promise.all(all)).flat()).toEqual([
      "address of a",
      "address of a",
      "address of b",
      "address of b",
    ]);
    expect(begun).toEqual(["a", "b"]);
  });

  test("that nobody waits for any more are not begun; others of the same name are", async () => {
    const { lookups, begun, answer } = stage();
    const owner = {};
    const [one, both] = [new AbortController(), new AbortController()];
    void lookups.ask(owner, "a", never);
    void lookups.ask(owner, "gone", one.signal);
    void lookups.ask(owner, "wanted", both.signal);
    void lookups.ask(owner, "wanted", never);
    one.abort();
    both.abort();
    await answer("a");
    expect(begun).toEqual(["a", "wanted"]);
  });

  test("that fail let the next begin", async () => {
    const { lookups, begun, open } = stage(1);
    const failing = lookups.ask({}, "a", never);
    const next = lookups.ask({}, "b", never);
    open.get("a")?.fail(new Error("no such name"));
    await expect(failing).rejects.toThrow("no such name");
    await new Promise((resolve) => setImmediate(resolve));
    expect(begun).toEqual(["a", "b"]);
    open.get("b")?.answer();
    expect(await next).toEqual(["address of b"]);
  });
});
