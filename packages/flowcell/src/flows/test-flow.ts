/**
 * `flowcell test PATH`: a flow's own test files, each in a confined worker of its own, in virtual time and with the same
 * seed each time. Nothing of the folder runs in this process, and a test can reach nothing outside but `replay`.
 *
 * TRUST: what a test file answers is the author's; it is read field by field and made printable.
 */

import { readFileSync } from "node:fs";
import {
  type BundleFailure,
  bundleFlowTest,
  mapStack,
  printable,
  renderFrame,
  type Script,
  type ScriptMap,
} from "@flowcell/bundle";
import { readFlowFolder } from "@flowcell/flows";
import { createPool } from "@flowcell/pool";
import {
  type CallOutcome,
  decodeValue,
  type EncodedValue,
  encodeValue,
  hostErrorData,
  type Limits,
  limitCeilings,
  profileLimits,
} from "@flowcell/protocol";
import { defaultPolicy, formatBlocker, preparePlan } from "@flowcell/sandbox";
import { asset } from "../assets.js";
import { failureText, logText, safeLines } from "../cli/human.js";
import { UsageError } from "../cli/usage.js";
import { ceilings } from "../owner/open.js";
import { assembleResult, type RunResult } from "../result.js";
import type { Context } from "./context.js";
import { flowPath } from "./flow-path.js";
import { testFiles } from "./flow-types.js";
import { ReplayBench } from "./replay-bench.js";
import { plural } from "./tables.js";

const MiB = 1024 * 1024;

/** The module that tests import. */
const specifier = "flowcell:test";

/** For a whole file of tests. */
const limits: Limits = Object.freeze({
  ...profileLimits("flow"),
  cpuMs: 10_000,
  wallMs: 300_000,
  heapBytes: 256 * MiB,
  resultBytes: 4 * MiB,
  sourceBytes: limitCeilings.sourceBytes,
  valueBytes: limitCeilings.valueBytes,
  bodyBytes: limitCeilings.bodyBytes,
  outputBytes: MiB,
});

/** The first of January 2025, and bytes that count up: a test sees the same world each time. */
const clock = { epochMs: Date.UTC(2025, 0, 1), mode: "virtual" } as const;
const seed = Uint8Array.from({ length: 32 }, (_, index) => index);

interface TestOutcome {
  readonly name: string;
  readonly state: "passed" | "failed" | "skipped";
  readonly error?: { readonly message: string; readonly stack: string; readonly frame?: string };
}

interface FileOutcome {
  readonly file: string;
  readonly tests: readonly TestOutcome[];
  /** Why the file as a whole failed. */
  readonly failure?: string;
}

export async function testFlow(context: Context): Promise<number> {
  const folder = flowPath(context.typed.argument(0));
  const flow = await readFlowFolder(folder, ceilings);
  const files = testFiles(folder);
  if (files.length === 0) {
    throw new UsageError(
      "request",
      `${folder}: there is no test; name one flow.test.ts and import { test, expect } from ${JSON.stringify(specifier)}`,
    );
  }
  const { heapBytes, cpuMs } = limits;
  const { result } = preparePlan(defaultPolicy("flow", { limits: { heapBytes, cpuMs } }));
  if (!result.ok) {
    context.remark(`flowcell: ${result.failure.blockers.map(formatBlocker).join("\n")}`);
    return 6;
  }
  const pool = createPool({ plan: result.plan, spares: 0 });
  const bench = new ReplayBench(folder, context.parts, pool);
  try {
    const outcomes: FileOutcome[] = [];
    for (const file of files) {
      const outcome = await runFile({ context, folder, pool, bench }, file);
      if (!context.json) printFile(context, outcome);
      outcomes.push(outcome);
    }
    return finish(context, flow.manifest.id, outcomes);
  } finally {
    await bench.close();
    await pool.close();
  }
}

interface Place {
  readonly context: Context;
  readonly folder: string;
  readonly pool: ReturnType<typeof createPool>;
  readonly bench: ReplayBench;
}

async function runFile(place: Place, file: string): Promise<FileOutcome> {
  const library = { specifier, text: readFileSync(asset("guest/flowcell-test.ts"), "utf8") };
  const bundled = await bundleFlowTest(place.folder, file, { sourceBytes: limits.sourceBytes, library });
  if (!bundled.ok) return { file, tests: [], failure: bundleText(bundled.failure) };
  const { script } = bundled;
  const ran = await activate(place, script);
  if (!ran.ok) return { file, tests: [], failure: failureText(ran).trimEnd() };
  const tests = readOutcomes(ran.value, script.map);
  return tests.length === 0 ? { file, tests, failure: `${file}: it registers no test` } : { file, tests };
}

async function activate({ context, pool, bench }: Place, script: Script): Promise<RunResult> {
  const only = context.typed.text("only");
  const activation = await pool.activate({
    flow: script.sha256,
    script: script.text,
    input: encodeValue(only === undefined ? {} : { only }),
    names: ["recording.replay"],
    limits,
    clock,
    seed,
    isolation: "process",
    onHostCall: (call) => answer(bench, call.args),
    onConsole: ({ level, text, timeMs }) =>
      context.streams.err(logText({ level, text, time: new Date(timeMs).toISOString() })),
  });
  const { map, warnings } = script;
  return assembleResult(activation, { runId: "", map, warnings, limits, effectOf: () => "read" });
}

const valueLimits = {
  textBytes: limits.valueBytes,
  attachmentBytes: limits.bodyBytes,
  nodes: limits.valueBytes,
};

async function answer(bench: ReplayBench, args: EncodedValue): Promise<CallOutcome> {
  try {
    const given = decodeValue(args, valueLimits);
    const recording: unknown = Array.isArray(given) ? given[0] : undefined;
    return { ok: true, value: encodeValue(await bench.replay(recording), valueLimits) };
  } catch (error) {
    return { ok: false, error: hostErrorData(error) };
  }
}

/** What the library in the worker says, which an author can change. */
function readOutcomes(value: unknown, map: ScriptMap): readonly TestOutcome[] {
  if (!Array.isArray(value)) return [];
  return value.map((one: unknown): TestOutcome => {
    const name = textOf(one, "name");
    const state = textOf(one, "state");
    if (state === "passed" || state === "skipped") return { name, state };
    return { name, state: "failed", error: errorOf(field(one, "error"), map) };
  });
}

function errorOf(error: unknown, map: ScriptMap): NonNullable<TestOutcome["error"]> {
  const name = textOf(error, "name");
  const message = textOf(error, "message");
  const { stack, place } = mapStack(textOf(error, "stack"), map);
  const line = place === undefined ? undefined : map.sourceLine(place);
  const frame = place === undefined || line === undefined ? {} : { frame: renderFrame(place, line) };
  return { message: name === "AssertionError" ? message : `${name}: ${message}`, stack, ...frame };
}

function field(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return Object.entries(value).find(([key]) => key === name)?.[1];
}

function textOf(value: unknown, name: string): string {
  const text = field(value, name);
  return typeof text === "string" ? text : "";
}

function bundleText({ message, frame }: BundleFailure): string {
  return frame === undefined ? message : `${message}\n${frame}`;
}

const marks = { passed: "✓", failed: "✗", skipped: "-" } as const;

function printFile(context: Context, { file, tests, failure }: FileOutcome): void {
  context.say(printable(file));
  for (const { name, state, error } of tests) {
    context.say(`  ${marks[state]} ${printable(name)}`);
    if (error === undefined) continue;
    const lines = [
      error.message,
      ...(error.frame === undefined ? [] : [error.frame]),
      ...(error.stack === "" ? [] : [error.stack]),
    ];
    for (const line of lines.flatMap((text) => safeLines(text).split("\n"))) context.say(`      ${line}`);
  }
  if (failure !== undefined) for (const line of safeLines(failure).split("\n")) context.say(`  ${line}`);
}

function finish(context: Context, flow: string, files: readonly FileOutcome[]): number {
  const count = (state: TestOutcome["state"]): number =>
    files.flatMap(({ tests }) => tests).filter((one) => one.state === state).length;
  const broken = files.filter(({ failure }) => failure !== undefined).length;
  const [passed, failed, skipped] = [count("passed"), count("failed"), count("skipped")];
  const ok = failed === 0 && broken === 0;
  if (context.json) {
    context.object({ ok, flow, passed, failed, skipped, files });
  } else {
    const parts = [`${passed} passed`, `${failed} failed`];
    if (skipped > 0) parts.push(`${skipped} skipped`);
    if (broken > 0) parts.push(`${plural(broken, "file")} could not be run`);
    context.say(`\n${flow}: ${parts.join(", ")}`);
  }
  return ok ? 0 : 1;
}
