/**
 * A service over a runner that does what the test says (fake-runner.ts), a store in memory and a clock of the test's own, for
 * the tests of the service: importing this sets the hooks that give every test a new store and close what it opened.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MemoryStore } from "@flowcell/journal";
import { limitCeilings } from "@flowcell/protocol";
import { afterAll, afterEach, beforeEach, vi } from "vitest";
import type { CellPool, FlowService, FlowServiceOptions } from "../ports.js";
import { createFlowService } from "../service.js";
import { FakeRunner } from "./fake-runner.js";

const root = mkdtempSync(join(tmpdir(), "service-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const pool: CellPool = {
  health: () => ({ waiting: 0 }),
  activate: async () => ({
    status: "completed",
    logsTruncated: false,
    warnings: [],
    usage: { cpuMs: 0, wallMs: 0, heapPeakBytes: 0 },
    replayCpuMs: 0,
    started: true,
    confinement: null,
  }),
};

export const start = Date.parse("2026-01-01T00:00:00Z");
export let store = new MemoryStore();
let folders = 0;
const open = new Set<FlowService>();

beforeEach(() => {
  vi.useFakeTimers({ now: start });
  store = new MemoryStore();
});
afterEach(async () => {
  for (const service of open) await service.close();
  open.clear();
  vi.useRealTimers();
});

export interface Opened {
  readonly service: FlowService;
  readonly runner: FakeRunner;
}

export async function openService(over: Partial<FlowServiceOptions> = {}): Promise<Opened> {
  let runner: FakeRunner | undefined;
  const options: FlowServiceOptions = {
    store,
    pool,
    fingerprint: "engine",
    mounts: new Map(),
    secretValue: () => undefined,
    privateHosts: [],
    caPem: undefined,
    deniedPaths: [],
    ceilings: limitCeilings,
    functions: [],
    activeMost: 3,
    ...over,
  };
  const service = await createFlowService(options, {
    createRunner: (given) => {
      runner = new FakeRunner(given);
      return runner;
    },
  });
  open.add(service);
  if (runner === undefined) throw new Error("no runner");
  return { service, runner };
}

export async function install(service: FlowService, id: string, manifest: object = {}): Promise<string> {
  const folder = join(root, String(folders++));
  mkdirSync(folder);
  writeFileSync(join(folder, "flow.json"), JSON.stringify({ format: 1, id, ...manifest }));
  writeFileSync(join(folder, "flow.js"), "export default () => 1;");
  const { hash } = await service.install({ folder, by: "author" });
  await service.approve({ flow: id, hash, by: "op" });
  return hash;
}

export async function begin(service: FlowService, flow: string, input?: unknown): Promise<string> {
  return (await service.start({ flow, input, by: "me" })).runId;
}

/** Everything that is under way without a timer. */
export const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);
