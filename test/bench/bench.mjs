#!/usr/bin/env node
// The benchmark: every number that docs/SPECIFICATION.md promises, measured in one run on this machine.
// Usage: npm run bench [-- --json] [-- --quick] [-- --no-peers]. `--json` prints one JSON object and nothing else on stdout;
// `--quick` takes a tenth of the samples; `--no-peers` leaves out the systems that codemode is compared with, which are
// installed into a folder of their own the first time. Nothing here fails because of a slow machine: promises that are compared with another
// engine are ratios within this run, the rest are reported beside the promise.
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { cpus, release } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { makePool, request, run, scriptOf } from "./cell.mjs";
import {
  atOnce,
  parallelCalls,
  resetPerSecond,
  sequentialCalls,
  singleUsePerSecond,
  warmReset,
  warmSingleUse,
} from "./codemode.mjs";
import { compareCompute } from "./compute.mjs";
import { journaledCalls, journaledThroughput, resumeAfter } from "./flows.mjs";
import { machine } from "./machine.mjs";
import { comparePeers } from "./peers.mjs";
import { median, percentile, samples, timed, warmUp } from "./statistics.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const options = new Set(process.argv.slice(2));
for (const option of options) {
  if (!["--json", "--quick", "--no-peers"].includes(option)) {
    process.stderr.write(`unknown option ${option}; there are --json, --quick and --no-peers\n`);
    process.exit(2);
  }
}
const scale = options.has("--quick") ? 0.1 : 1;
const count = (full) => Math.max(10, Math.round(full * scale));

const trivial = scriptOf("return 1+1");

/** Workers that are bound, idle and warm: one activation each has run. */
async function warmPool(workers, more = {}) {
  const pool = makePool({ spares: 0, workersMax: workers, activationsMax: 1_000_000, ...more });
  await run(pool, request("warm", trivial));
  return pool;
}

async function spawnToWelcome() {
  const pool = makePool({ spares: 0, workersMax: 2 });
  const times = [];
  for (let i = 0; i < count(200); i += 1) {
    const result = await pool.activate(request(`cold-${i}`, trivial, { isolation: "process" }));
    if (result.status !== "completed") throw new Error(result.error?.message);
    times.push(result.usage.queuedMs);
  }
  await pool.close();
  return { p50: median(times), p99: percentile(times, 99) };
}

function firstResult(file) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(here, file)], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return Number(stdout);
}

/** Turn by turn with quickjs-emscripten, which confines nothing. */
function importToFirstResult() {
  const times = [];
  const peer = [];
  for (let i = 0; i < count(30); i += 1) {
    times.push(firstResult("first-result.mjs"));
    peer.push(firstResult("first-result-peer.mjs"));
  }
  return { p50: median(times), p99: percentile(times, 99), quickjsEmscriptenP50: median(peer) };
}

async function warmActivation() {
  const pool = await warmPool(1);
  const wanted = request("warm", trivial);
  await warmUp(() => run(pool, wanted));
  const times = await samples(count(5000), () => run(pool, wanted));
  await pool.close();
  return { p50: median(times), p99: percentile(times, 99) };
}

async function awaitedHostCall() {
  const calls = 1000;
  const pool = await warmPool(1);
  const empty = request("warm", scriptOf("return 1"));
  const calling = request(
    "warm",
    scriptOf(`for (let i = 0; i < ${calls}; i++) await host.echo(i); return 1`),
  );
  await warmUp(() => run(pool, calling));
  const base = median(await samples(count(200), () => run(pool, empty)));
  const times = await samples(count(100), () => run(pool, calling));
  await pool.close();
  return { p50: (median(times) - base) / calls, p99: (percentile(times, 99) - base) / calls };
}

/** Proportional set size of a process in bytes; the kernel shows it to root only, for workers are not dumpable. */
function pssOf(pid) {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return Number(text.match(/^Pss: +(\d+) kB$/m)?.[1]) * 1024;
}

function childrenOf(pid) {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1] === String(pid);
      } catch {
        return false;
      }
    })
    .map(Number);
}

async function idleMemory() {
  if (process.getuid?.() !== 0) return { skipped: "only root may read a worker's smaps" };
  const workers = 20;
  const pool = makePool({ spares: 0, workersMax: workers });
  await Promise.all(Array.from({ length: workers }, (_, i) => run(pool, request(`flow-${i}`, trivial))));
  const pids = childrenOf(process.pid);
  const bytes = pids.map(pssOf);
  await pool.close();
  return { workers: pids.length, medianBytes: median(bytes), largestBytes: Math.max(...bytes) };
}

async function manyWorkers() {
  const workers = 200;
  const pool = makePool({ spares: 0, workersMax: workers });
  const ms = await timed(() =>
    Promise.all(Array.from({ length: workers }, (_, i) => run(pool, request(`flow-${i}`, trivial)))),
  );
  const live = pool.health().workers.total;
  await pool.close();
  return { workers: live, ms };
}

async function throughput(concurrency, total, wanted, poolOptions, warmUpMs = 0) {
  const pool = makePool({ activationsMax: 1_000_000, queueMax: 10_000, ...poolOptions });
  await Promise.all(Array.from({ length: concurrency * 4 }, (_, i) => run(pool, wanted(i))));
  await warmUp((i) => run(pool, wanted(i)), concurrency, warmUpMs);
  let next = 0;
  const ms = await timed(() =>
    Promise.all(
      Array.from({ length: concurrency }, async () => {
        while (next < total) {
          next += 1;
          await run(pool, wanted(next));
        }
      }),
    ),
  );
  await pool.close();
  return { perSecond: (total / ms) * 1000 };
}

const warmThroughput = () =>
  throughput(4, count(20_000), (i) => request(`flow-${i % 2}`, trivial), { workersMax: 2, spares: 0 }, 2000);
const singleUseThroughput = () =>
  throughput(4, count(1500), () => request("single", trivial, { isolation: "process" }), {
    workersMax: 8,
    spares: 4,
  });

const rows = [
  ["spawn → accepted Welcome", "≤ 3 ms p50", spawnToWelcome, (r) => `${r.p50.toFixed(2)} ms`],
  ["import → first result", "≤ 60 ms p50", importToFirstResult, (r) => `${r.p50.toFixed(1)} ms`],
  [
    "  the same by quickjs-emscripten, unconfined",
    "(beside it)",
    () => ({ p50: report.results["import → first result"].quickjsEmscriptenP50 }),
    (r) => `${r.p50.toFixed(1)} ms`,
  ],
  ["warm activation", "≤ 0.2 ms p50", warmActivation, (r) => `${r.p50.toFixed(3)} ms`],
  ["awaited host call", "≤ 0.08 ms p50", awaitedHostCall, (r) => `${r.p50.toFixed(4)} ms`],
  [
    "compute set against quickjs-emscripten",
    "≤ 0.85 ×",
    () => compareCompute(count(10)),
    (r) => `${r.ratio.toFixed(3)} ×`,
  ],
  [
    "idle worker, proportional set size",
    "≤ 4 MB",
    idleMemory,
    (r) => r.skipped ?? `${(r.medianBytes / 1e6).toFixed(2)} MB`,
  ],
  ["200 live workers", "≤ 2 s", manyWorkers, (r) => `${(r.ms / 1000).toFixed(2)} s`],
  ["warm activations", "≥ 6000/s", warmThroughput, (r) => `${Math.round(r.perSecond)}/s`],
  ["single-use activations", "≥ 300/s", singleUseThroughput, (r) => `${Math.round(r.perSecond)}/s`],
  ...flowRows(),
  ...codemodeRows(),
];

/** One row measures all effects; the others show its parts. */
function flowRows() {
  const part = (effect) => () => ({ ...report.results["journaled calls"].effects[effect] });
  const show = (r) => `${r.p50.toFixed(2)} ms, ${r.beyond.toFixed(2)} beyond, ${r.pages.toFixed(1)} pages`;
  return [
    [
      "journaled calls",
      "(a flush of this disk beside them)",
      () => journaledCalls(count(20)),
      (r) => `${r.flushP50.toFixed(2)} ms`,
    ],
    ["  local, one flush", "≤ 0.25 ms beyond it, p50", part("local"), show],
    ["  read, one flush", "≤ 0.25 ms beyond it, p50", part("read"), show],
    ["  keyed, two flushes", "≤ 0.40 ms beyond them, p50", part("keyed"), show],
    ["  once, two flushes", "≤ 0.40 ms beyond them, p50", part("once"), show],
    [
      "journaled calls, 20 runs at once",
      "≥ 2000/s",
      () => journaledThroughput(count(500)),
      (r) => `${Math.round(r.perSecond)}/s`,
    ],
    ["resume after 10,000 calls", "≤ 2 s", () => resumeAfter(10_000), (r) => `${(r.ms / 1000).toFixed(2)} s`],
  ];
}

function codemodeRows() {
  const peers = ["run", "sebastianwessel", "isolated-vm"];
  const measured = () => report.results["codemode beside its peers"];
  return [
    [
      "codemode 1+1, single use",
      "≤ 0.8 ms p50",
      () => warmSingleUse(count(200)),
      (r) => `${r.p50.toFixed(2)} ms`,
    ],
    ["codemode 1+1, reset", "≤ 0.3 ms p50", () => warmReset(count(2000)), (r) => `${r.p50.toFixed(2)} ms`],
    [
      "codemode, 100 calls in turn",
      "≤ 12 ms",
      () => sequentialCalls(count(100)),
      (r) => `${r.p50.toFixed(1)} ms`,
    ],
    [
      "codemode, 500 calls at once",
      "≤ 40 ms",
      () => parallelCalls(count(50)),
      (r) => `${r.p50.toFixed(1)} ms`,
    ],
    ["codemode, 60 scripts at once", "all succeed", atOnce, (r) => `${r.succeeded} of 60`],
    [
      "codemode, single use",
      "≥ 300/s",
      () => singleUsePerSecond(count(1000)),
      (r) => `${Math.round(r.perSecond)}/s`,
    ],
    [
      "codemode, reset",
      "≥ 3000/s",
      () => resetPerSecond(count(10_000)),
      (r) => `${Math.round(r.perSecond)}/s`,
    ],
    ...(options.has("--no-peers")
      ? []
      : [
          [
            "codemode beside its peers",
            "(1+1; 100 calls)",
            comparePeers,
            (r) => `${r.flowcell.warmP50.toFixed(2)}; ${r.flowcell.hundredCallsP50.toFixed(1)} ms`,
          ],
          ...peers.map((name) => [
            `  the same by ${name}`,
            "(beside it)",
            () => measured()[name] ?? { skipped: "could not be installed" },
            (r) => r.skipped ?? `${r.warmP50.toFixed(2)}; ${r.hundredCallsP50.toFixed(1)} ms`,
          ]),
        ]),
  ];
}

const report = {
  node: process.versions.node,
  kernel: release(),
  cpu: `${cpus().length} × ${cpus()[0]?.model ?? "unknown"}`,
  commit: execFileSync("git", ["rev-parse", "--short", "HEAD"], { cwd: here, encoding: "utf8" }).trim(),
  machine: await machine(),
  results: {},
};
const print = (line) => (options.has("--json") ? process.stderr : process.stdout).write(`${line}\n`);
const { pageFaultUs, processMs, nodeMs } = report.machine;
print(`${report.cpu}, Linux ${report.kernel}, Node ${report.node}`);
print(
  `first touch of a page ${pageFaultUs.toFixed(1)} µs, /bin/true ${processMs.toFixed(1)} ms, node -e 0 ${nodeMs.toFixed(0)} ms`,
);
for (const [name, promise, measure, show] of rows) {
  const result = await measure();
  report.results[name] = { promise, ...result };
  print(`${name.padEnd(44)} ${show(result).padStart(12)}   promised ${promise}`);
}
if (options.has("--json")) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
