// Every text that comes from a script, a manifest, a file name, a server or a model, made as hostile as it can be: what a
// terminal gets of it steers nothing, and no line of it can be taken for flowcell's own.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FlowReport, OperationError, type RunReport, type VersionReport } from "@flowcell/flows";
import { MemoryStore, type RunHistory } from "@flowcell/journal";
import { encodeValue, profileLimits } from "@flowcell/protocol";
import { afterAll, describe, expect, test } from "vitest";
import { fakeService } from "../owner/fake-service.js";
import type { OwnerParts } from "../owner/open.js";
import { notStarted } from "../result.js";
import { report } from "./execution.js";
import { flowsCommand } from "./flows-command.js";
import { bugText, logText, objectText, remarkText, valueText } from "./human.js";
import { runProgram } from "./program.js";
import { guarded } from "./streams.js";
import { type Streams, Typed } from "./typed.js";

const scratch = mkdtempSync(join(tmpdir(), "hostile-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Moves the cursor, turns text round, has no width, ends lines; and a second line that looks like one of ours. */
const evil =
  "a\u001b[2J\u0007\u007f\u0085\u009b1A\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202e\u2066\u2069\ufeff\u3164\u{e0041}\ud800\rb\nFORGED";
const steering = /[^\P{Cc}\n\t]|[\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u115f\u1160\u3164\uffa0]/u;

const calls = [
  {
    position: 0,
    name: evil,
    effect: evil,
    state: "unknown" as const,
    code: evil,
    idempotencyKey: "k",
    madeAt: 0,
    durationMs: 1,
    inputBytes: 1,
    outputBytes: 1,
  },
];
const error = {
  code: evil,
  ownCode: evil,
  name: evil,
  message: evil,
  stack: `${evil}\n    at ${evil} (${evil})`,
};
const ended: RunReport = {
  runId: "run_1",
  flow: "flow",
  versionHash: "ab".repeat(32),
  state: "finished",
  ok: false,
  status: "script_error",
  error: { ...error, cause: error, errors: [error] },
  createdAt: 0,
  startedAt: 0,
  finishedAt: 0,
  trigger: { kind: "manual", by: evil },
  attempt: 1,
  activations: 1,
  usage: { cpuMs: 1, wallMs: 1, heapPeakBytes: 1, hostCalls: 1 },
  logs: [{ level: "log", time: "", text: evil }],
  calls,
  pending: [],
  dueAt: null,
  warnings: [{ code: evil, message: evil }],
  confinement: { layers: [{ layer: evil, detail: evil }] },
};
const { error: _error, ...withoutError } = ended;
const waiting: RunReport = {
  ...withoutError,
  state: "suspended",
  status: "suspended",
  pending: [{ callId: "call_1", position: 0, name: evil, waitsFor: evil, dueAt: 1, title: evil, args: evil }],
};

const version: VersionReport = {
  flow: "flow",
  hash: "ab".repeat(32),
  number: 2,
  state: "installed",
  installedAt: 0,
  installedBy: evil,
  decidedAt: 0,
  decidedBy: evil,
  decisionReason: evil,
  reach: {
    hosts: [evil],
    mounts: [evil],
    secrets: [evil],
    kvMaxBytes: 0,
    flows: [evil],
    events: [evil],
    tools: [evil],
    budgets: profileLimits("flow"),
    trigger: evil,
    remarks: [evil],
  },
  difference: { approvedHash: "cd".repeat(32), added: [evil], removed: [evil] },
  manifestText: JSON.stringify({ a: evil }),
  sources: [{ path: `${evil}.ts`, text: `const a = \`${evil.replace("\nFORGED", "")}\`;` }],
  bundle: `const a = \`${evil.replace("\nFORGED", "")}\`;`,
  dryRun: { status: "completed", message: evil, calls: [{ name: evil, args: evil }], logs: [evil] },
};
const flows: readonly FlowReport[] = [
  {
    flow: "flow",
    enabled: false,
    disabledBy: evil,
    disabledReason: evil,
    approvedHash: null,
    trigger: evil,
    nextFireAt: null,
    lastRun: null,
    running: 0,
    waiting: 0,
    needsReconcile: 1,
    versions: [],
  },
];
const history: RunHistory = {
  run: {
    runId: "run_1",
    flow: "flow",
    versionHash: "ab".repeat(32),
    trigger: { kind: "manual", by: evil },
    deduplicationKey: null,
    concurrencyKey: "k",
    input: encodeValue({ [evil]: evil }),
    seed: "00",
    guestStartMs: 0,
    createdAt: 0,
    notBefore: 0,
    deadlineMs: 1,
    attempt: 1,
    state: "finished",
    status: "script_error",
    reason: evil,
    startedAt: 0,
    finishedAt: 0,
    changedAt: 0,
    activeMs: 0,
    dueAt: null,
    activations: 1,
    failures: 0,
    cpuUs: 0,
    heapPeakBytes: 0,
    fingerprint: null,
    endOrder: null,
    endStatus: null,
    result: encodeValue(evil),
    errorJson: JSON.stringify(error),
    warningsJson: "[]",
    confinementJson: null,
    cancelRequestedBy: null,
    owner: null,
    generation: 1,
    nextOrder: 1,
    guestClockMs: 0,
    nextLog: 0,
  },
  calls: [0, 1].map((position) => ({
    position,
    name: evil,
    effect: "once" as const,
    digest: "",
    args: encodeValue([evil]),
    idempotencyKey: "k",
    madeAt: 0,
    note: null,
    wait: null,
    dueAt: null,
    callId: null,
    attempts: 1,
    cancelled: false,
    unknownReason: null,
  })),
  deliveries: [
    {
      order: 0,
      kind: "call",
      guestClockMs: 0,
      position: 0,
      outcome: { ok: false, error: { code: "conflict", message: evil, retryable: false } },
      at: 0,
    },
  ],
};

const service = fakeService({
  list: async () => flows,
  show: async (_flow, hash) =>
    hash?.startsWith("cd") === true ? { ...version, state: "approved", difference: null } : version,
  install: async () => ({ ...version, added: true }),
  approve: async () => {
    throw new OperationError("invalid", evil, [evil]);
  },
  enable: async () => {
    throw new Error(evil);
  },
  start: async () => ({ runId: "run_1", created: true }),
  run: async (runId) => (runId === "run_2" ? waiting : ended),
  wait: async () => ended,
  runs: async () => [history.run],
  history: async () => history,
  quarantined: async () => [{ runId: "run_1", position: 0, at: 0, reason: evil, outcome: null }],
  replay: async () => ({
    runId: "run_1",
    matched: false,
    deliveries: 1,
    calls: 1,
    divergence: { where: evil, expected: evil, actual: { [evil]: evil } },
  }),
});

const parts: OwnerParts = {
  openStore: async () => new MemoryStore(),
  openPool: () => ({
    activate: async () => Promise.reject(new Error("nothing is activated")),
    health: () => ({ waiting: 0 }),
    close: async () => undefined,
  }),
  fingerprint: () => "f",
  createService: () => service,
  deniedPaths: [],
  environment: {},
  onBug: (bug) => {
    throw bug;
  },
};

/** A folder with a flow whose texts are all hostile. */
function flowFolder(name: string, manifest: string, script: string): string {
  const folder = join(scratch, name);
  mkdirSync(folder);
  writeFileSync(join(folder, "flow.json"), manifest);
  writeFileSync(join(folder, "flow.js"), script);
  return folder;
}

type Act = (streams: Streams) => Promise<unknown>;

function flowsRow(name: string, args: readonly string[], options: Record<string, unknown> = {}): Act {
  const data = join(scratch, "data");
  mkdirSync(data, { recursive: true, mode: 0o700 });
  return async (streams) => {
    await flowsCommand(name, new Typed(args, { data, ...options }), streams, parts).catch((bug: unknown) =>
      streams.err(bugText(bug)),
    );
  };
}

const failed = notStarted("r", "script_error", { ...error, frame: "1 | a", remedy: evil });
const result = { ...failed, started: true, calls, warnings: [{ code: evil, message: evil }] };

const rows: readonly (readonly [what: string, act: Act])[] = [
  ["list", flowsRow("list", [])],
  ["show", flowsRow("show", ["flow"])],
  ["show --diff --source", flowsRow("show", ["flow"], { diff: true, source: true })],
  ["show --bundle", flowsRow("show", ["flow"], { bundle: true })],
  ["show --json", flowsRow("show", ["flow"], { json: true })],
  ["install", flowsRow("install", [scratch])],
  ["install --json", flowsRow("install", [scratch], { json: true })],
  ["approve, and a refusal", flowsRow("approve", ["flow"])],
  ["approve --json, and a refusal", flowsRow("approve", ["flow"], { hash: "abababab", json: true })],
  ["enable, and a bug", flowsRow("enable", ["flow"])],
  ["start", flowsRow("start", ["flow"])],
  ["start --json", flowsRow("start", ["flow"], { json: true })],
  ["runs", flowsRow("runs", [])],
  ["runs --json", flowsRow("runs", [], { json: true })],
  ["runs RUN", flowsRow("runs", ["run_1"])],
  ["runs RUN of one that waits", flowsRow("runs", ["run_2"])],
  ["runs RUN --json", flowsRow("runs", ["run_2"], { json: true })],
  ["journal", flowsRow("journal", ["run_1"])],
  ["journal --json", flowsRow("journal", ["run_1"], { json: true })],
  ["replay", flowsRow("replay", ["run_1"])],
  ["replay --json", flowsRow("replay", ["run_1"], { json: true })],
  ["check of a manifest", flowsRow("check", [flowFolder("m", JSON.stringify({ [evil]: 1, id: evil }), "")])],
  [
    "check of a script",
    flowsRow("check", [
      flowFolder(
        "s",
        '{"format":1,"id":"s"}',
        `import ${JSON.stringify(`./${evil}`)}; export default () => 1`,
      ),
    ]),
  ],
  ["run of a folder that is none", flowsRow("run", [flowFolder("r", evil, evil)])],
  [
    "run of a file",
    (streams) =>
      runProgram(["run", join(scratch, `${evil}.js`)], {
        version: "1",
        streams,
        doctor: async () => 0,
        exec: async () => 0,
        mcp: async () => 0,
        flows: async () => 0,
      }),
  ],
  [
    "a mistake that repeats what was typed",
    (streams) =>
      runProgram(["start", "--json", `--${evil}`], {
        version: "1",
        streams,
        doctor: async () => 0,
        exec: async () => 0,
        mcp: async () => 0,
        flows: async () => 0,
      }),
  ],
  ["the result of a run", async (streams) => report(result, false, streams)],
  ["the result of a run --json", async (streams) => report(result, true, streams)],
  ["console lines", async (streams) => streams.err(logText({ level: "log", time: "", text: evil }))],
  ["remarks", async (streams) => streams.err(remarkText(evil))],
  ["a bug", async (streams) => streams.err(bugText(new Error(evil)))],
  ["a value", async (streams) => streams.out(valueText({ a: evil, [evil]: 1n }, streams.outIsTerminal))],
  ["a value as JSON", async (streams) => streams.out(valueText({ [evil]: evil }, streams.outIsTerminal))],
  ["an object for --json", async (streams) => streams.out(objectText({ [evil]: evil }))],
];

async function shown(act: Act, wrap: (streams: Streams) => Streams): Promise<string> {
  let text = "";
  const write = (more: string): void => {
    text += more;
  };
  const ask = async (question: string): Promise<string> => {
    text += `${question}\n`;
    return "y";
  };
  await act(wrap({ out: write, err: write, outIsTerminal: true, ask }));
  return text;
}

describe("what a terminal gets", () => {
  test.each(rows)("of %s steers nothing and imitates nothing", async (_what, act) => {
    // As the command writes it, without the guard that the process puts around it.
    const text = await shown(act, (streams) => streams);
    expect(text).not.toBe("");
    expect(steering.exec(evil)).not.toBeNull();
    expect(steering.exec(text)).toBeNull();
    expect(text.split("\n").filter((line) => line.startsWith("FORGED"))).toEqual([]);
  });

  test("of a command that forgets all this steers nothing either", async () => {
    const act = async ({ out, err, ask }: Streams): Promise<void> => {
      out(evil);
      err(evil);
      await ask?.(evil);
    };
    expect(steering.exec(await shown(act, guarded))).toBeNull();
  });
});

test("a file gets the bundle, the types and the result byte for byte", async () => {
  let text = "";
  const out = (more: string): void => {
    text += more;
  };
  const streams = guarded({ out, err: () => undefined, outIsTerminal: false });
  await flowsRow("show", ["flow"], { bundle: true })(streams);
  expect(text).toBe(version.bundle);
  expect(valueText(evil, false)).toBe(`${evil}\n`);
});

test("JSON for --json means what it meant, and is text that steers nothing", () => {
  const value = { [evil]: [evil, "plain ü 漢 😀"] };
  const text = objectText(value);
  expect(JSON.parse(text)).toEqual(value);
  expect(text).toContain("plain ü 漢 😀");
});
