// Every system call that a confined worker makes over the whole guest suite is admitted by a row of the filter's table, and
// every row and every admitted value is needed by some guest.
//
// The workers run under the tracer (worker-native/tools/tracer.c), hence a test build that allows it; everything else is
// as in production, the pool included. The tracer stops a worker at every call, so nothing is said of time here.
import { constants } from "node:os";
import type { WorkerConfinement } from "@flowcell/sandbox";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ProcessExit, StartedWorker, WorkerBackend } from "../../packages/pool/src/backend.js";
import { Pool } from "../../packages/pool/src/pool.js";
import { type Arch, seccompTable } from "../confinement/filter.js";
import { build, product } from "../confinement/harness.js";
import { judgeTraces, startTraced, type Trace } from "../confinement/trace.js";
import { childrenOf, look } from "../parent/processes.js";
import { type GuestCase, show } from "./case.js";
import { greedy } from "./greedy.js";
import { honest } from "./honest.js";
import { hostile } from "./hostile.js";
import { Laboratory } from "./laboratory.js";

const arch: Arch = process.arch === "arm64" ? "arm64" : "x64";
const traces: Promise<Trace>[] = [];
const signalNames = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** What a traced worker says about itself is not judged here: it is the same code with one step left out. */
const confinement: WorkerConfinement = {
  backend: "traced",
  os: process.platform,
  arch,
  isolation: "process",
  tier: 3,
  layers: [],
  controls: {},
  notes: ["a test build under a tracer"],
};

function startWorker(handlers: Parameters<WorkerBackend<WorkerConfinement>["start"]>[0]): StartedWorker {
  const program = [product("test/worker-deviating"), "--test-deviation=traced"];
  const { child, trace } = startTraced(product("test/tracer"), program);
  traces.push(trace);
  let exit: ProcessExit | null = null;
  // A trace that fails ends the test that reads the traces; the pool needs to know only that the worker is gone.
  void trace.then(
    (ended) => {
      exit = {
        code: ended.exit < 0 ? null : ended.exit,
        signal: signalNames.get(ended.signal) ?? null,
        cpuUs: null,
      };
    },
    () => {
      exit = { code: null, signal: null, cpuUs: null };
    },
  );
  child.stdin.on("error", () => {}); // a worker that ends does not take the rest
  child.stdout.on("data", (chunk: Buffer) => handlers.bytes(chunk));
  child.stdout.on("end", () => handlers.ended());
  const tracer = child.pid ?? 0;
  /** Beside the worker the tracer has children that copy its pipes. */
  const worker = (): number | undefined =>
    childrenOf(tracer).find(({ name }) => name.startsWith("worker"))?.pid;
  return {
    process: {
      pid: tracer,
      // The worker is killed and the tracer left to write down what it saw.
      kill: () => {
        const pid = worker();
        return pid !== undefined && killed(pid);
      },
      reap: () => exit,
      cpuUs: () => {
        const pid = worker();
        const seen = pid === undefined ? null : look(pid);
        return seen === null ? null : seen.cpuTicks * 10_000;
      },
      privateBytes: () => null,
    },
    pipes: {
      write: (bytes) => void child.stdin.write(bytes),
      get unsentBytes(): number {
        return child.stdin.writableLength;
      },
      close: () => {
        child.stdin.destroy();
        return "";
      },
    },
  };
}

/** False for a process that ended by itself since it was found, as a worker does after an exhausted budget. */
function killed(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return false;
    throw error;
  }
}

const backend: WorkerBackend<WorkerConfinement> = {
  start: startWorker,
  judge: () => ({ ok: true, confinement }),
  cpuLimitSeconds: 3600,
};

const laboratory = new Laboratory({}, () => new Pool(backend, { spares: 0, workersMax: 1 }));

beforeAll(() => build("worker-deviating", "tracer"));

afterAll(() => laboratory.close());

/** The case with room for what tracing costs. */
function slowly(guest: GuestCase): GuestCase {
  const { wallMs } = guest.limits ?? {};
  // A wall limit that is the point of a case stays; where it is only a fence it is moved out.
  return wallMs === undefined || wallMs < 1000
    ? guest
    : { ...guest, limits: { ...guest.limits, wallMs: 60_000 } };
}

test("no guest makes a worker call what its filter does not admit", { timeout: 600_000 }, async () => {
  for (const guest of [...honest, ...greedy, ...hostile]) {
    const { result } = await laboratory.guest(slowly(guest), "traced");
    expect(
      ["violation", "worker_lost", "sandbox_unavailable", "internal"],
      `${guest.name}: ${show(result)}`,
    ).not.toContain(result.status);
  }
  await laboratory.close();
  const ended = await Promise.all(traces);
  expect(ended.length).toBeGreaterThan(10);
  for (const { filtered, killedBy } of ended)
    expect({ filtered, killedBy }).toEqual({ filtered: true, killedBy: null });
  expect(judgeTraces(seccompTable(), arch, ended)).toEqual({ refused: [], unneeded: [] });
});
