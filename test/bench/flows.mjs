// The benchmark's side of flows: a service over an SQLite store with full durability, one flow whose calls have every effect,
// and what the disk itself takes for a flush, which is subtracted where the promise says so.
import {
  closeSync,
  fdatasyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFlowService } from "@flowcell/flows";
import { defineHostFunction } from "@flowcell/host";
import { openSqliteStore } from "@flowcell/journal";
import { createPool } from "@flowcell/pool";
import { limitCeilings } from "@flowcell/protocol";
import {
  defaultBuildFolder,
  defaultPolicy,
  formatFailure,
  preparePlan,
  readWorkerBuild,
} from "@flowcell/sandbox";
import * as z from "zod/mini";
import { median, percentile, samples, timed } from "./statistics.mjs";

const MiB = 1024 * 1024;
const ceilings = { ...limitCeilings, heapBytes: 256 * MiB, cpuMs: 60_000 };

/** One tool for each effect that a handler has; all of them answer at once. */
const tools = ["read", "keyed", "once"].map((effect) =>
  defineHostFunction({
    name: `tools.${effect}`,
    doc: "Answers with its argument.",
    effect,
    grant: "tools",
    input: z.tuple([z.number()]),
    handler: ([n]) => n,
  }),
);

const manifest = {
  format: 1,
  id: "bench",
  grants: { kv: { maxBytes: MiB }, tools: ["*"] },
  budgets: { cpuMs: 60_000, wallMs: 600_000, hostCalls: 20_000 },
  concurrency: { limit: 1000 },
};

const script = `
const calls = {
  local: (host, n) => host.kv.set("key", n),
  read: (host, n) => host.tools.read(n),
  keyed: (host, n) => host.tools.keyed(n),
  once: (host, n) => host.tools.once(n),
};
export default async function (input, host) {
  const call = calls[input.effect];
  for (let n = 0; n < input.count; n++) await call(host, n);
  if (input.wait) await host.signal.wait("go");
  return input.count;
}
`;

/** Milliseconds of one small append and its flush, in the folder where the store is. */
function flushP50(folder, count) {
  const file = openSync(join(folder, "probe"), "a");
  const page = Buffer.alloc(4096, 1);
  const times = [];
  for (let i = 0; i < count; i += 1) {
    const start = process.hrtime.bigint();
    writeSync(file, page);
    fdatasyncSync(file);
    times.push(Number(process.hrtime.bigint() - start) / 1e6);
  }
  closeSync(file);
  return median(times);
}

/** A service with the flow installed and approved, in a folder of its own. */
async function openFlows(workersMax) {
  const folder = mkdtempSync(join(tmpdir(), "flowcell-bench-"));
  const flow = join(folder, "flow");
  const data = join(folder, "data");
  mkdirSync(flow);
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(join(flow, "flow.json"), JSON.stringify(manifest));
  writeFileSync(join(flow, "flow.js"), script);
  const { heapBytes, cpuMs } = ceilings;
  const { result } = preparePlan(defaultPolicy("flow", { limits: { heapBytes, cpuMs } }));
  if (!result.ok) throw new Error(formatFailure(result.failure));
  const pool = createPool({ plan: result.plan, spares: 1, workersMax });
  const built = readWorkerBuild(defaultBuildFolder());
  if (!built.ok) throw new Error(built.message);
  const store = await openSqliteStore({ path: join(data, "store.sqlite") });
  const service = await createFlowService({
    store,
    pool,
    fingerprint: built.build.fingerprint,
    mounts: new Map(),
    secretValue: () => undefined,
    privateHosts: [],
    caPem: undefined,
    deniedPaths: [],
    ceilings,
    functions: tools,
    activeMost: 64,
  });
  const { hash } = await service.install({ folder: flow, by: "bench" });
  await service.approve({ flow: "bench", hash, by: "bench" });
  const start = async (input) => {
    const { runId } = await service.start({ flow: "bench", input, by: "bench" });
    return runId;
  };
  const finish = async (runId, through = "finished") => {
    const report = await service.wait(runId, { through });
    if (through === "finished" && report.status !== "completed") {
      throw new Error(`${report.status}: ${report.error?.message}`);
    }
    return report;
  };
  return {
    folder: data,
    service,
    start,
    finish,
    run: async (input) => finish(await start(input)),
    async close() {
      await service.close();
      await store.close();
      await pool.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** What a call of each effect writes to the log of a new store, whose log still grows with every page: header and page. */
async function pagesPerCall(effect) {
  const calls = 100;
  const flows = await openFlows(1);
  try {
    const log = () => statSync(join(flows.folder, "store.sqlite-wal")).size;
    await flows.run({ effect, count: 0 });
    const before = log();
    await flows.run({ effect, count: 0 });
    const empty = log() - before;
    await flows.run({ effect, count: calls });
    return (log() - before - 2 * empty) / (24 + 4096) / calls;
  } finally {
    await flows.close();
  }
}

/**
 * The time of one awaited call of each effect, without the run around it: runs of many calls against runs of none. `beyond`
 * is what is left when the disk's own flushes are subtracted, one for local and read, two for keyed and once. A flush of the
 * probe writes one page, those of a call write `pages` together. Nothing is measured before each effect has run for a while:
 * the first thousand calls of a process are mostly the compiler's.
 */
export async function journaledCalls(rounds) {
  const calls = 100;
  const flows = await openFlows(2);
  try {
    for (const effect of ["local", "read", "keyed", "once"]) await flows.run({ effect, count: 5 * calls });
    const empty = median(await samples(rounds, () => flows.run({ effect: "local", count: 0 })));
    const flushMs = flushP50(flows.folder, 200);
    const result = { flushP50: flushMs, effects: {} };
    for (const [effect, flushes] of [
      ["local", 1],
      ["read", 1],
      ["keyed", 2],
      ["once", 2],
    ]) {
      const times = await samples(rounds, () => flows.run({ effect, count: calls }));
      const each = times.map((ms) => (ms - empty) / calls);
      const p50 = median(each);
      const beyond = p50 - flushes * flushMs;
      result.effects[effect] = { p50, p99: percentile(each, 99), beyond, pages: await pagesPerCall(effect) };
    }
    return result;
  } finally {
    await flows.close();
  }
}

/** Journaled calls a second over twenty runs at the same time, each with a worker, all effects mixed. */
export async function journaledThroughput(callsEach) {
  const flows = await openFlows(20);
  try {
    const effects = ["local", "read", "keyed", "once"];
    const round = (count) =>
      Promise.all(
        Array.from({ length: 20 }, (_, i) => flows.run({ effect: effects[i % effects.length], count })),
      );
    await round(10);
    const ms = await timed(() => round(callsEach));
    return { perSecond: (20 * callsEach * 1000) / ms };
  } finally {
    await flows.close();
  }
}

/** From the signal that wakes a run with so many recorded calls to its end: a whole replay. */
export async function resumeAfter(calls) {
  const flows = await openFlows(2);
  try {
    const runId = await flows.start({ effect: "local", count: calls, wait: true });
    await flows.finish(runId, "suspended");
    const ms = await timed(async () => {
      await flows.service.signal({ runId, name: "go", by: "bench" });
      await flows.finish(runId);
    });
    return { calls, ms };
  } finally {
    await flows.close();
  }
}
