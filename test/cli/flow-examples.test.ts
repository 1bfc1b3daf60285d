// The four example flows through the real command line: each is right, its own tests pass, and it does what its page says.
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { at, FlowBench, textAt } from "./flow-bench.js";
import { root } from "./run-cli.js";

const flows = join(root, "examples/flows");
const ids = readdirSync(flows);

let bench: FlowBench;
let server: Server;
let url = "";
let tea = 450;
beforeAll(async () => {
  bench = new FlowBench();
  server = createServer((_, response) => {
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify([
        { symbol: "tea", cents: tea },
        { symbol: "cup", cents: 1250 },
      ]),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  const { port } = server.address() as AddressInfo; // a TCP server has a port
  url = `http://127.0.0.1:${port}/prices`;
});
afterAll(async () => {
  await bench.remove();
  await new Promise((resolve) => server.close(resolve));
});

describe("every example flow", () => {
  test.each(ids)("%s is right, and the page lists it", async (id) => {
    const { code, json } = await bench.json("check", join(flows, id));
    expect({ code, json }).toMatchObject({ code: 0, json: { ok: true, flow: id, errors: [], warnings: [] } });
    expect(readFileSync(join(root, "examples/README.md"), "utf8")).toContain(`\n| \`flows/${id}\` `);
  });

  test.each(ids)("%s passes its own tests inside a worker", async (id) => {
    const { code, json } = await bench.json("test", join(flows, id));
    expect({ code, json }).toMatchObject({ code: 0, json: { ok: true, failed: 0, skipped: 0 } });
    expect(at(json, "passed")).toBeGreaterThan(1);
  });
});

describe("the example", () => {
  test("price-watch compares with what the run before it saw", async () => {
    await bench.approved(join(flows, "price-watch"), "--allow-net", new URL(url).host);
    const input = ["--input", JSON.stringify({ url, percent: 5 })];
    const first = await bench.json("start", "price-watch", ...input);
    expect(first.json).toMatchObject({ ok: true, value: { seen: 2, changed: [] } });
    tea = 540;
    const second = await bench.json("start", "price-watch", ...input);
    expect(second.json).toMatchObject({
      value: { seen: 2, changed: [{ symbol: "tea", before: 450, now: 540, percent: 20 }] },
      logs: [{ text: "tea: 450 → 540 (20 %)" }],
    });
    const wrong = await bench.json("start", "price-watch", "--input", '{"percent":5}');
    expect(wrong.code).toBe(2);
    expect(wrong.err).toContain("url");
  });

  test("nightly-report has a next time, and writes its report by hand too", async () => {
    const reports = join(bench.folder, "reports");
    mkdirSync(reports);
    const sales = join(flows, "nightly-report/sales");
    const folder = join(flows, "nightly-report");
    await bench.approved(folder, "--mount", `sales=${sales}`, "--mount", `reports=${reports}`);
    const { json } = await bench.json("start", "nightly-report", "--input", "{}");
    expect(json).toMatchObject({ ok: true, value: { files: 2, totalCents: 14_240 } });
    const [name = ""] = readdirSync(reports);
    expect(textAt(json, "value.report")).toBe(`/reports/${name}`);
    expect(readFileSync(join(reports, name), "utf8")).toContain("| tea | 67.50 |");
    const list = await bench.json("list");
    expect(list.json).toMatchObject({
      flows: expect.arrayContaining([
        expect.objectContaining({ flow: "nightly-report", nextFireAt: expect.any(Number) }),
      ]),
    });
  });

  test("change-request changes the file after a yes, once", async () => {
    const file = bench.write("config/allowed-hosts.txt", "a.example.com\n");
    await bench.approved(join(flows, "change-request"), "--mount", `config=${join(bench.folder, "config")}`);
    const input = ["--input", '{"host":"b.example.com","why":"prices"}'];
    const asked = await bench.json("start", "change-request", ...input);
    expect(asked.code).toBe(8);
    expect(readFileSync(file, "utf8")).toBe("a.example.com\n");
    const answered = await bench.json("approve", textAt(asked.json, "pending.0.callId"));
    expect(answered.json).toMatchObject({ run: { status: "completed", value: { changed: true } } });
    expect(readFileSync(file, "utf8")).toBe("a.example.com\nb.example.com\n");
    const again = await bench.json("start", "change-request", ...input);
    expect(again.json).toMatchObject({ value: { changed: false, because: "it is there already" } });
  });

  test("quarter-close starts a child for each branch and adds them up", async () => {
    await bench.approved(join(flows, "branch-total"));
    await bench.approved(join(flows, "quarter-close"));
    const branches = { berlin: [100, 50], hamburg: [7], kiel: [] };
    const { code, json } = await bench.json(
      "start",
      "quarter-close",
      "--input",
      JSON.stringify({ branches }),
    );
    expect({ code, json }).toMatchObject({
      code: 0,
      json: {
        value: { totals: { berlin: 150, hamburg: 7 }, all: 157, failed: ["kiel: kiel has no bookings"] },
      },
    });
    const children = await bench.json("runs", "--flow", "branch-total");
    const trigger = { kind: "flow", runId: textAt(json, "runId") };
    expect(children.json).toMatchObject({ runs: [{ trigger }, { trigger }, { trigger }] });
  });
});
