// Runs the built command line as its own process. Used by the tests of this folder.
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { vi } from "vitest";

// A test here starts up to a dozen processes, on machines that have other things to do.
vi.setConfig({ testTimeout: 240_000 });

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const bin = join(root, "packages/flowcell/bin/flowcell.mjs");

export interface Ran {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly nodeArgs?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly uid?: number;
  readonly gid?: number;
  /** Called with each piece of standard error, to act at a certain point of the run. */
  readonly onErr?: (soFar: string, kill: (signal: NodeJS.Signals) => void) => void;
}

export function flowcell(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  return node([...(options.nodeArgs ?? []), bin, ...args], options);
}

export function node(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      cwd: options.cwd ?? root,
      stdio: ["ignore", "pipe", "pipe"],
      env: options.env ?? process.env,
      ...(options.uid === undefined ? {} : { uid: options.uid }),
      ...(options.gid === undefined ? {} : { gid: options.gid }),
    });
    let out = "";
    let err = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err += text;
      options.onErr?.(err, (signal) => child.kill(signal));
    });
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal, out, err }));
  });
}

/** What `--json` prints, as far as tests look at it. */
export interface Printed {
  readonly ok?: unknown;
  readonly status?: unknown;
  readonly value?: unknown;
  readonly error?: unknown;
  readonly logs?: unknown;
  readonly calls?: unknown;
  readonly confinement?: unknown;
}

/** The one JSON object on standard output; the caller knows its shape. */
export async function flowcellJson(
  args: readonly string[],
  options: RunOptions = {},
): Promise<Ran & { readonly json: Printed }> {
  const ran = await flowcell(args, options);
  const json: unknown = JSON.parse(ran.out);
  if (typeof json !== "object" || json === null) throw new Error(`no object: ${ran.out}`);
  return { ...ran, json: { ...json } };
}
