// A process that owns a store. Given folders, it installs and approves the flows in them; else it drives one run to its end, unless it is killed at a unit of the journal: before the unit is
// handed to the store, after that without waiting, or when it is on disk. It does what an operator would do on the way: sends
// the signal, answers the approval, and says of unknown calls what the world knows of them.
//
// Prints one JSON line for each thing that the test waits for; the last is the report of the run.
import { setTimeout as delay } from "node:timers/promises";
import { createFlowService, type FlowService, type RunReport } from "@flowcell/flows";
import { openSqliteStore, type Store, type Unit, type UnitResult } from "@flowcell/journal";
import { createPool } from "@flowcell/pool";
import { limitCeilings } from "@flowcell/protocol";
import { defaultBuildFolder, defaultPolicy, preparePlan, readWorkerBuild } from "@flowcell/sandbox";
import type { ChildOptions } from "./crash-lab.js";

const MiB = 1024 * 1024;

function options(): ChildOptions {
  const text = process.argv[2];
  if (text === undefined) throw new Error("no options");
  return JSON.parse(text) as ChildOptions; // written by the test
}

const { store: path, threadPath, folders, mount, base, cut } = options();

function say(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function die(): never {
  process.kill(process.pid, "SIGKILL");
  // The signal is delivered before this process runs on; a loop says so to the compiler.
  for (;;);
}

/** Units that change a run are steps of the journal. */
let steps = 0;

function cutting(store: Store): Store {
  const commit = (unit: Unit): Promise<UnitResult> => {
    if (unit.fence === undefined && !unit.operations.some(({ kind }) => kind === "createRun")) {
      return store.commit(unit);
    }
    steps += 1;
    if (cut === null || steps !== cut.step) return store.commit(unit);
    if (cut.when === "before") die();
    const result = store.commit(unit);
    if (cut.when === "after") return result.then(() => die());
    setImmediate(() => die());
    return result;
  };
  return new Proxy(store, {
    get: (target, key) => {
      if (key === "commit") return commit;
      const member: unknown = Reflect.get(target, key);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

async function open(): Promise<{ service: FlowService; close: () => Promise<void> }> {
  const ceilings = { ...limitCeilings, heapBytes: 64 * MiB, cpuMs: 10_000 };
  const { heapBytes, cpuMs } = ceilings;
  const { result } = preparePlan(defaultPolicy("flow", { limits: { heapBytes, cpuMs } }));
  if (!result.ok) throw new Error(result.failure.blockers.map(({ message }) => message).join("; "));
  const built = readWorkerBuild(defaultBuildFolder());
  if (!built.ok) throw new Error(built.message);
  const pool = createPool({ plan: result.plan, spares: 0, workersMax: 4 });
  // A killed process is gone a little later than its parent knows.
  const store = await openSqliteStore({ path, threadPath, heldMs: 10_000 });
  const service = await createFlowService({
    store: cutting(store),
    pool,
    fingerprint: built.build.fingerprint,
    mounts: new Map([["data", mount]]),
    secretValue: () => undefined,
    privateHosts: ["127.0.0.1"],
    caPem: undefined,
    deniedPaths: [],
    ceilings,
    functions: [],
    activeMost: 8,
  });
  return {
    service,
    close: async () => {
      await service.close();
      await store.close();
      await pool.close();
    },
  };
}

async function install(service: FlowService): Promise<void> {
  for (const folder of folders) {
    const { flow, hash } = await service.install({ folder, by: "author" });
    await service.approve({ flow, hash, by: "operator" });
  }
}

/** What an operator does who can look at the world. */
async function operate(service: FlowService, report: RunReport): Promise<void> {
  const { runId } = report;
  await service.signal({ runId, name: "go", value: "went", signalId: "only", by: "operator" });
  if (report.status === "needs_reconcile") {
    for (const call of report.calls.filter(({ state }) => state === "unknown")) {
      const seen = await (await fetch(`${base}/seen`)).json();
      const decision = seen === 0 ? "not_applied" : "observed";
      say({ reconciled: call.position, decision });
      await service.reconcile({
        runId,
        position: call.position,
        decision,
        ...(decision === "observed" ? { value: observed } : {}),
        by: "operator",
      });
    }
    return;
  }
  for (const { callId } of report.pending) {
    if (callId !== null) await service.answer({ callId, approve: true, value: "yes", by: "operator" });
  }
}

/** What the world's answer to the request would have been. */
const observed = {
  status: 200,
  statusText: "OK",
  headers: [],
  url: `${base}/once`,
  redirected: false,
  body: new Uint8Array([52, 50]),
};

async function toItsEnd(service: FlowService): Promise<void> {
  const { runId } = await service.start({
    flow: "crash",
    input: { base },
    by: "test",
    deduplicationKey: "the-run",
  });
  say({ runId });
  for (;;) {
    const report = await service.wait(runId, { signal: AbortSignal.timeout(1000) });
    if (report.state === "finished") break;
    if (report.state === "suspended") await operate(service, report);
    await delay(5);
  }
  // Others that it set going.
  for (let unfinished = 1; unfinished > 0; await delay(10)) {
    unfinished = (await service.runs({ limit: 100 })).filter(({ state }) => state !== "finished").length;
  }
  const report = await service.run(runId);
  const others = (await service.runs({ limit: 100 })).map(({ flow, status }) => `${flow} ${status}`);
  say({ report, others, replay: await service.replay(runId), steps });
}

const { service, close } = await open();
if (folders.length > 0) await install(service);
else await toItsEnd(service);
await close();
