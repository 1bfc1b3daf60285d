// Recordings of runs, one folder for each journal format: kept for ever, and replayed by every later build in real workers. A
// build that replays one differently would strand the suspended runs of its users. And altered ones, so that a replay that
// compares nothing is caught.
//
// RECORD=1 writes recordings that are missing; one that is there is never written again.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FlowService } from "@flowcell/flows";
import { exportRun, importRun, journalFormat, type NewVersion, type RunHistory } from "@flowcell/journal";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { Laboratory } from "../flows/laboratory.js";
import { type RecordedFlow, recorded } from "./recorded-flows.js";
import { overHistories } from "./recorded-store.js";

const home = fileURLToPath(new URL(`./format-${journalFormat}`, import.meta.url));
let laboratory: Laboratory;

beforeAll(() => {
  laboratory = new Laboratory();
});

afterEach(() => laboratory.reset());
afterAll(() => laboratory.close());

const versionFile = (name: string): string => join(home, `${name}.version.json`);
const historyFile = (name: string): string => join(home, `${name}.json`);

/** Runs the flow for real and keeps what came of it. */
async function record({ name, flow, input, drive }: RecordedFlow): Promise<void> {
  const world = createServer((request, response) => response.end(`answer to ${request.method}`));
  await new Promise<void>((resolve) => world.listen(0, "127.0.0.1", resolve));
  const address = world.address();
  if (address === null || typeof address === "string") throw new Error("the world has no port");
  const service = await laboratory.service({ privateHosts: ["127.0.0.1"] });
  const hash = await laboratory.approved(service, flow);
  const { runId } = await service.start({
    flow: name,
    input: { ...input, base: `http://127.0.0.1:${address.port}` },
    by: "recorder",
  });
  await drive(service, runId);
  const history = await laboratory.store.history(runId);
  const version = await laboratory.store.version(name, hash);
  if (history === null || version === null) throw new Error("nothing was recorded");
  const { number: _n, state: _s, decidedAt: _a, decidedBy: _b, decisionReason: _r, ...kept } = version;
  mkdirSync(home, { recursive: true });
  writeFileSync(versionFile(name), `${JSON.stringify(kept, null, 1)}\n`);
  writeFileSync(historyFile(name), exportRun(history));
  world.close();
}

/** A service whose store has the recorded version and, for its run, this history. */
async function serviceWith(name: string, history: RunHistory): Promise<FlowService> {
  const version = JSON.parse(readFileSync(versionFile(name), "utf8")) as NewVersion; // written by `record`
  await laboratory.store.commit({ operations: [{ kind: "addVersion", version }] });
  laboratory.store = overHistories(laboratory.store, [history]);
  return await laboratory.service();
}

async function replay(name: string, history: RunHistory) {
  return await (await serviceWith(name, history)).replay(history.run.runId);
}

if (process.env["RECORD"] === "1") {
  test.each(recorded.map((flow) => [flow.name, flow] as const))(
    "records %s",
    { timeout: 60_000 },
    async (name, flow) => {
      if (!existsSync(historyFile(name))) await record(flow);
    },
  );
}

const names = existsSync(home)
  ? readdirSync(home)
      .filter((file) => file.endsWith(".json") && !file.endsWith(".version.json"))
      .map((file) => file.slice(0, -".json".length))
  : [];

const read = (name: string): RunHistory => importRun(readFileSync(historyFile(name), "utf8"));

describe("recordings", () => {
  test("are there for every flow that is recorded", () => {
    expect([...names].sort()).toEqual(recorded.map(({ name }) => name).sort());
  });

  test.each(names)("%s is read, and written again as it was", (name) => {
    expect(exportRun(read(name))).toBe(readFileSync(historyFile(name), "utf8"));
  });

  test.each(names)("%s replays without a difference", { timeout: 60_000 }, async (name) => {
    const history = read(name);
    const report = await replay(name, history);
    expect(report).toMatchObject({ matched: true, divergence: null });
    expect(report.deliveries).toBe(history.deliveries.length);
  });
});

describe("an altered recording", () => {
  const history = (): RunHistory => read("every-effect");

  test("with another outcome diverges at the first call that depends on it", {
    timeout: 60_000,
  }, async () => {
    const whole = history();
    const get = whole.calls.find(({ name }) => name === "kv.get");
    const deliveries = whole.deliveries.map((delivery) =>
      delivery.kind === "call" && delivery.position === get?.position
        ? {
            ...delivery,
            outcome: { ok: true, value: { text: "41", devalue: false, attachments: [] } } as const,
          }
        : delivery,
    );
    const report = await replay("every-effect", { ...whole, deliveries });
    expect(report.matched).toBe(false);
    expect(report.divergence?.where).toBe(`call ${(get?.position ?? 0) + 1}`);
  });

  test("with another argument diverges there and shows both sides", { timeout: 60_000 }, async () => {
    const whole = history();
    const calls = whole.calls.map((call) =>
      call.name === "kv.compareAndSet" ? { ...call, digest: "0".repeat(64) } : call,
    );
    const report = await replay("every-effect", { ...whole, calls });
    expect(report.matched).toBe(false);
    expect(JSON.stringify(report.divergence?.expected)).toContain("0".repeat(64));
    expect(JSON.stringify(report.divergence?.actual)).toContain("kv.compareAndSet");
  });

  test("without its last delivery diverges at the end", { timeout: 60_000 }, async () => {
    const whole = history();
    const last = whole.deliveries.at(-1);
    const report = await replay("every-effect", {
      ...whole,
      run: { ...whole.run, nextOrder: whole.run.nextOrder - 1 },
      deliveries: whole.deliveries.filter((delivery) => delivery !== last),
    });
    expect(report.matched).toBe(false);
  });

  test("with another result diverges at the end", { timeout: 60_000 }, async () => {
    const whole = history();
    const result = { text: '"other"', devalue: false, attachments: [] };
    const report = await replay("every-effect", { ...whole, run: { ...whole.run, result } });
    expect(report.matched).toBe(false);
    expect(report.divergence?.where).toBe("the end of the script");
  });

  test("with another seed diverges", { timeout: 60_000 }, async () => {
    const whole = read("races");
    const report = await replay("races", { ...whole, run: { ...whole.run, seed: "ff".repeat(32) } });
    expect(report.matched).toBe(false);
  });
});

test("a recorded run that waits is read as one that waits", () => {
  const { run, calls, deliveries } = read("waiting");
  expect(run.state).toBe("suspended");
  const open = calls.filter(
    ({ position }) => !deliveries.some((one) => one.kind === "call" && one.position === position),
  );
  expect(open.map(({ name }) => name)).toEqual(["approval.request"]);
});
