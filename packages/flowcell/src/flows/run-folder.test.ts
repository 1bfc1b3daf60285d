// `flowcell run FOLDER` without workers: what is approved is what was shown.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FlowService, type FlowServiceOptions, type RunReport, readFlowFolder } from "@flowcell/flows";
import { MemoryStore } from "@flowcell/journal";
import { limitCeilings } from "@flowcell/protocol";
import { afterEach, beforeEach, expect, test } from "vitest";
import { flowsCommand } from "../cli/flows-command.js";
import { Typed } from "../cli/typed.js";
import { fakeService } from "../owner/fake-service.js";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "run-folder-")));
  writeFileSync(join(folder, "flow.js"), "export default () => 1;\n");
  manifest({ net: [{ host: "api.example.com" }] });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function manifest(grants: object): void {
  writeFileSync(join(folder, "flow.json"), JSON.stringify({ format: 1, id: "flow", grants }));
}

const ended: RunReport = {
  runId: "run_1",
  flow: "flow",
  versionHash: "",
  state: "finished",
  ok: true,
  status: "completed",
  value: 1,
  createdAt: 0,
  startedAt: 0,
  finishedAt: 0,
  trigger: { kind: "manual", by: "me" },
  attempt: 1,
  activations: 1,
  usage: { cpuMs: 1, wallMs: 1, heapPeakBytes: 1, hostCalls: 0 },
  logs: [],
  calls: [],
  pending: [],
  dueAt: null,
  warnings: [],
  confinement: null,
};

interface Ran {
  readonly code: number;
  readonly err: string;
  readonly approved: readonly string[];
  readonly started: number;
  readonly options: FlowServiceOptions | undefined;
}

/** Answers yes, after `meanwhile`. The service installs what stands in the folder then. */
async function run(meanwhile: () => void, typed: Readonly<Record<string, unknown>> = {}): Promise<Ran> {
  let err = "";
  const approved: string[] = [];
  let started = 0;
  let options: FlowServiceOptions | undefined;
  const service: Partial<FlowService> = {
    install: async ({ folder: path }) => {
      const { hash } = await readFlowFolder(path, limitCeilings);
      const version = { flow: "flow", hash, added: true };
      return version as Awaited<ReturnType<FlowService["install"]>>; // the command reads these alone
    },
    approve: async ({ hash }) => void approved.push(hash),
    start: async () => {
      started++;
      return { runId: "run_1", created: true };
    },
    wait: async () => ended,
  };
  const streams = {
    out: () => undefined,
    err: (text: string) => {
      err += text;
    },
    outIsTerminal: true,
    ask: async () => {
      meanwhile();
      return "y";
    },
  };
  const parts = {
    openStore: async () => new MemoryStore(),
    openPool: () => ({
      activate: async () => Promise.reject(new Error("nothing is activated")),
      health: () => ({ waiting: 0 }),
      close: async () => undefined,
    }),
    fingerprint: () => "f",
    createService: (given: FlowServiceOptions) => {
      options = given;
      return fakeService(service);
    },
    deniedPaths: [],
    environment: {},
    onBug: (error: unknown) => {
      throw error;
    },
  };
  const code = await flowsCommand("run", new Typed([folder], typed), streams, parts);
  return { code, err, approved, started, options };
}

test("a folder that is as it was shown is approved by that hash, and runs", async () => {
  const { hash } = await readFlowFolder(folder, limitCeilings);
  expect(await run(() => undefined)).toMatchObject({ code: 0, approved: [hash], started: 1 });
});

test.each([
  ["manifest", () => manifest({ net: [{ host: "*" }] })],
  ["script", () => writeFileSync(join(folder, "flow.js"), "export default () => 2;\n")],
])("a %s that changed while somebody looked is not approved and does not run", async (_what, change) => {
  const ran = await run(change);
  expect(ran).toMatchObject({ code: 3, approved: [], started: 0 });
  expect(ran.err).toContain("changed while you looked");
});

test("a mount leads where it led when it was asked about", async () => {
  mkdirSync(join(folder, "first"));
  mkdirSync(join(folder, "second"));
  symlinkSync("first", join(folder, "data"));
  manifest({ net: [{ host: "api.example.com" }], fs: [{ mount: "data", access: "read" }] });
  const { options } = await run(() => {
    rmSync(join(folder, "data"));
    symlinkSync("second", join(folder, "data"));
  });
  expect(options?.mounts.get("data")).toBe(join(folder, "first"));
});

test("a folder without a flow is named, with how a script in it runs", async () => {
  rmSync(join(folder, "flow.json"));
  const { code, err } = await run(() => undefined);
  expect(code).toBe(2);
  expect(err).toBe(
    `flowcell: ${folder}: holds no flow: there is no flow.json in it; a script file runs by its own name: flowcell run ${folder}/FILE\n`,
  );
});
