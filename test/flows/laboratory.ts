// A service of flows over the real pool, for whole tests: folders with flows, a store, a clock that can be moved, and
// services that come and go on that store as processes do.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import {
  createFlowService,
  type FlowService,
  type FlowServiceOptions,
  type RunReport,
} from "@flowcell/flows";
import { MemoryStore, type Store } from "@flowcell/journal";
import { createPool, type Pool } from "@flowcell/pool";
import { type Limits, limitCeilings } from "@flowcell/protocol";
import {
  defaultBuildFolder,
  defaultPolicy,
  preparePlan,
  readWorkerBuild,
  type WorkerConfinement,
} from "@flowcell/sandbox";

const MiB = 1024 * 1024;
export const ceilings: Limits = { ...limitCeilings, heapBytes: 64 * MiB, cpuMs: 10_000 };

/** Long enough for a busy machine; nothing waits this long for what happens. */
const patienceMs = 40_000;

export interface FlowFiles {
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly script: string;
  readonly files?: Readonly<Record<string, string>>;
}

export class Laboratory {
  readonly root = mkdtempSync(join(tmpdir(), "flows-"));
  readonly pool: Pool<WorkerConfinement>;
  readonly fingerprint: string;
  /** Added to the real time. */
  offsetMs = 0;
  store: Store = new MemoryStore();
  readonly #open = new Set<FlowService>();
  #folders = 0;

  constructor() {
    const { heapBytes, cpuMs } = ceilings;
    const { result } = preparePlan(defaultPolicy("flow", { limits: { heapBytes, cpuMs } }));
    if (!result.ok) throw new Error(result.failure.blockers.map(({ message }) => message).join("; "));
    this.pool = createPool({ plan: result.plan, spares: 1, workersMax: 4 });
    const built = readWorkerBuild(defaultBuildFolder());
    if (!built.ok) throw new Error(built.message);
    this.fingerprint = built.build.fingerprint;
  }

  readonly now = (): number => Date.now() + this.offsetMs;

  folder({ manifest, script, files = {} }: FlowFiles): string {
    const base = join(this.root, `flow${this.#folders++}`);
    const all = { "flow.json": JSON.stringify({ format: 1, ...manifest }), "flow.ts": script, ...files };
    for (const [name, text] of Object.entries(all)) {
      mkdirSync(dirname(join(base, name)), { recursive: true });
      writeFileSync(join(base, name), text);
    }
    return base;
  }

  async service(over: Partial<FlowServiceOptions> = {}): Promise<FlowService> {
    const service = await createFlowService({
      store: this.store,
      pool: this.pool,
      fingerprint: this.fingerprint,
      mounts: new Map(),
      secretValue: () => undefined,
      privateHosts: [],
      caPem: undefined,
      deniedPaths: [],
      ceilings,
      functions: [],
      activeMost: 16,
      now: this.now,
      ...over,
    });
    this.#open.add(service);
    return service;
  }

  /** As a process that ends: what it drove is left where the store has it. */
  async stop(service: FlowService): Promise<void> {
    this.#open.delete(service);
    await service.close();
  }

  /** Installs and approves; answers the hash. */
  async approved(service: FlowService, flow: FlowFiles): Promise<string> {
    const { flow: id, hash } = await service.install({ folder: this.folder(flow), by: "author" });
    await service.approve({ flow: id, hash, by: "operator" });
    return hash;
  }

  /** Ends what a test left; each test has a store of its own. */
  async reset(): Promise<void> {
    for (const service of [...this.#open]) await this.stop(service);
    this.store = new MemoryStore();
    this.offsetMs = 0;
  }

  async close(): Promise<void> {
    await this.reset();
    await this.pool.close();
    rmSync(this.root, { recursive: true, force: true });
  }
}

export async function finished(service: FlowService, runId: string): Promise<RunReport> {
  const report = await service.wait(runId, {
    through: "finished",
    signal: AbortSignal.timeout(patienceMs),
  });
  if (report.state !== "finished") throw new Error(`run ${runId} is ${report.state} (${report.status})`);
  return report;
}

export async function suspended(service: FlowService, runId: string): Promise<RunReport> {
  const report = await service.wait(runId, { signal: AbortSignal.timeout(patienceMs) });
  if (report.state !== "suspended") throw new Error(`run ${runId} is ${report.state} (${report.status})`);
  return report;
}

export async function until<Value>(look: () => Promise<Value | undefined>, what: string): Promise<Value> {
  const end = Date.now() + patienceMs;
  for (;;) {
    const value = await look();
    if (value !== undefined) return value;
    if (Date.now() > end) throw new Error(`did not happen: ${what}`);
    await delay(20);
  }
}
