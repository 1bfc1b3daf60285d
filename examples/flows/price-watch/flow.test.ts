import { expect, fakeHost, test } from "flowcell:test";
import flow from "./flow.js";
import { percentChange } from "./percent.js";

const url = "http://127.0.0.1/prices";

function listOf(...cents: number[]): object {
  const lists = cents.map((tea) => [
    { symbol: "tea", cents: tea },
    { symbol: "cup", cents: 1250 },
  ]);
  return { fetch: async () => lists.shift() };
}

test("the first run has nothing to compare with", async () => {
  const host = fakeHost(listOf(450));
  expect(await flow({ url }, host)).toEqual({ seen: 2, changed: [] });
  expect(await host.kv.get("tea")).toBe(450);
});

test("a change is told once", async () => {
  const host = fakeHost(listOf(450, 540, 540));
  await flow({ url }, host);
  expect((await flow({ url }, host)).changed).toEqual([
    { symbol: "tea", before: 450, now: 540, percent: 20 },
  ]);
  expect((await flow({ url }, host)).changed).toEqual([]);
});

test("a change below the threshold is not told", async () => {
  const host = fakeHost(listOf(450, 460));
  await flow({ url, percent: 5 }, host);
  expect((await flow({ url, percent: 5 }, host)).changed).toHaveLength(0);
});

test("an answer that is an error ends the run", async () => {
  const host = fakeHost({ fetch: async () => new Response("", { status: 503 }) });
  await expect(flow({ url }, host)).rejects.toThrow("answered 503");
  expect(host.fetch).toHaveBeenCalledTimes(1);
});

test("percent are rounded to one decimal", () => {
  expect(percentChange(300, 310)).toBe(3.3);
});
