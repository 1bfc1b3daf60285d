import { expect, fakeHost, test } from "flowcell:test";
import flow from "./flow.js";
import { parseSales } from "./sales.js";

const heading = "sku,cents,quantity\n";

function files(contents: Record<string, string>, write: (path: string, text: string) => unknown): object {
  return {
    "fs.list": async () => Object.keys(contents).map((name) => ({ name, kind: "file" })),
    "fs.read": async (path: string) => contents[path.replace("/sales/", "")],
    "fs.write": async (path: string, text: string) => write(path, text),
  };
}

test("adds up every file and writes one report named by the day it was due", async () => {
  const written = new Map<string, string>();
  const contents = {
    "a.csv": `${heading}tea,450,2\n`,
    "b.csv": `${heading}cup,1000,1\ntea,450,1\n`,
    "notes.txt": "?",
  };
  const host = fakeHost(files(contents, (path, text) => written.set(path, text)));
  const result = await flow({ scheduledAt: "2025-03-30T01:00:00.000Z" }, host);
  expect(result).toEqual({ report: "/reports/sales-2025-03-30.md", files: 2, totalCents: 2350 });
  expect(written.get("/reports/sales-2025-03-30.md")).toContain("| tea | 13.50 |");
});

test("nothing is written when a file is wrong", async () => {
  const host = fakeHost(files({ "a.csv": `${heading}tea,cheap,2\n` }, () => undefined));
  await expect(flow({}, host)).rejects.toThrow("a.csv:2");
  expect(host.fs.write).toHaveBeenCalledTimes(0);
});

test("by hand it is today's report", async () => {
  const host = fakeHost(files({}, () => undefined));
  expect((await flow({}, host)).report).toBe("/reports/sales-2025-01-01.md");
});

test("a line that is no sale is named with its place", () => {
  expect(() => parseSales(`${heading}tea,450,1\n,1,1\n`, "x.csv")).toThrow('x.csv:3: ",1,1" is no sale');
});
