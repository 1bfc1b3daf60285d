// The engine's test driver (worker-native/src/engine/testing/driver.c) from Node: one process per call.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../../", import.meta.url));
export const driverPath = `${root}worker-native/build/test/engine-driver`;

/** Brings native targets up to date, and says what objects they consist of. */
export async function build(names: readonly string[]): Promise<string[]> {
  // The build driver is untyped JavaScript.
  const { buildNative } = (await import(`${root}scripts/build-native.mjs`)) as {
    buildNative(options: {
      names: readonly string[];
      tests: boolean;
      log(line: string): void;
    }): Promise<Map<string, { objects: string[] }>>;
  };
  const built = await buildNative({ names, tests: true, log: () => {} });
  return [...built.values()].flatMap((one) => one.objects);
}

/** What one evaluation came to; see print_result in driver.c. */
export interface Evaluation {
  readonly outcome: "value" | "exception";
  /** The value or the thrown value as text; null when the engine had no memory to make one. */
  readonly text: string | null;
  readonly failure: "none" | "memory" | "stack";
  readonly heapPeakBytes: number;
  readonly gcRuns: number;
  readonly interrupts: number;
  readonly cStackBytes: number;
}

export interface Run {
  /** Exit code; null after a signal. */
  readonly code: number | null;
  readonly signal: string | null;
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  readonly stderr: string;
}

/** Runs the driver with these words, the script on its standard input. */
export function drive(words: readonly string[], script = "", path = driverPath): Run {
  if (!existsSync(path)) throw new Error(`${path} does not exist; node scripts/build-native.mjs --tests`);
  const { status, signal, stdout, stderr } = spawnSync(path, words, {
    input: script,
    encoding: "utf8",
    timeout: 120_000,
    maxBuffer: 64 * 1024 * 1024,
  });
  return {
    code: status,
    signal,
    stderr,
    lines: stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>), // the driver prints objects only
  };
}

export interface Limits {
  readonly heap?: number;
  readonly stack?: number;
  readonly repeat?: number;
}

function words(limits: Limits): string[] {
  return Object.entries(limits).map(([name, value]) => `${name}=${value}`);
}

/** Evaluates a script in a fresh process; an end of the process other than a normal one is an error with all that is known. */
export function evaluateAll(script: string, limits: Limits = {}): readonly Evaluation[] {
  const run = drive(["eval", ...words(limits)], script);
  if (run.code !== 0)
    throw new Error(
      `the driver ended with ${run.code ?? run.signal} on ${script.slice(0, 200)}\n${run.stderr}`,
    );
  return run.lines as unknown as readonly Evaluation[]; // print_result's fields
}

export function evaluate(script: string, limits: Limits = {}): Evaluation {
  const [evaluation] = evaluateAll(script, limits);
  if (evaluation === undefined) throw new Error("the driver printed nothing");
  return evaluation;
}
