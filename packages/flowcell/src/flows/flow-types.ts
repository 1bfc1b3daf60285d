/**
 * The text of host.d.ts for a flow's folder, and the TypeScript compiler that checks the folder against it.
 *
 * TRUST: the folder is its author's. The compiler is flowcell's own or the machine's, never one that the folder brings; it
 * is given a configuration of ours, so that the folder's own is not read.
 */

import { spawn } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, dirname, isAbsolute, join, relative, sep } from "node:path";
import { type FlowFolder, flowLimits, grantedFunctions } from "@flowcell/flows";
import { flowTsconfig, hostTypes, mountsOf } from "@flowcell/manifest";
import { asset } from "../assets.js";
import { ceilings } from "../owner/open.js";

export const testTypesName = "flowcell-test.d.ts";
export const hostTypesName = "host.d.ts";

/** What the manifest grants, as declarations. Needs no mount and no secret of the operator's. */
export function hostTypesOf({ manifest }: FlowFolder, folder: string): string {
  // Any folder will do to have the rows: nothing is called.
  const mounts = new Map(mountsOf(manifest.grants.fs).map((name) => [name, realpathSync(folder)]));
  const never = (): never => {
    throw new Error("nothing is called to write types");
  };
  const granted = grantedFunctions(
    manifest,
    flowLimits(manifest, ceilings),
    {
      mounts,
      secretValue: () => undefined,
      privateHosts: [],
      caPem: undefined,
      deniedPaths: [],
      functions: [],
    },
    { startRun: never, emitEvent: never },
  );
  try {
    return hostTypes({ manifest, functions: granted.functions });
  } finally {
    granted.close();
  }
}

/** Declarations of `flowcell:test`, for editors. */
export function testTypes(): string {
  return readFileSync(asset("guest/flowcell-test.d.ts"), "utf8");
}

/** Test files of a flow: `*.test.ts` and the like, anywhere in its folder but in node_modules; sorted. */
export function testFiles(folder: string): readonly string[] {
  const found: string[] = [];
  const open = [""];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    for (const entry of readdirSync(join(folder, path), { withFileTypes: true })) {
      const inner = path === "" ? entry.name : `${path}/${entry.name}`;
      if (entry.isDirectory() && entry.name !== "node_modules" && !entry.name.startsWith("."))
        open.push(inner);
      if (entry.isFile() && /\.test\.[cm]?[jt]s$/.test(entry.name)) found.push(inner);
    }
    if (found.length > filesMax || open.length > filesMax) break;
  }
  return found.sort();
}

const filesMax = 1000;

export interface TypeProblem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly code: number;
  readonly message: string;
  /** Whether the flow is wrong, or only untidy. */
  readonly severity: "error" | "warning";
}

/** Null when there is no compiler on this machine. */
export async function checkTypes(folder: string, flow: FlowFolder): Promise<readonly TypeProblem[] | null> {
  const root = realpathSync(folder);
  const compiler = findCompiler(root);
  if (compiler === null) return null;
  const scratch = mkdtempSync(join(tmpdir(), "flowcell-check-"));
  try {
    writeFileSync(join(scratch, hostTypesName), hostTypesOf(flow, root));
    writeFileSync(join(scratch, testTypesName), testTypes());
    writeFileSync(join(scratch, "tsconfig.json"), configuration(root, flow));
    const output = await compile(compiler, scratch);
    return problemsOf(output, root, scratch);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The compiler's words for what a flow is written in; only what is wrong is asked for, not what is untidy. */
function configuration(root: string, flow: FlowFolder): string {
  const ours: unknown = JSON.parse(flowTsconfig());
  const compilerOptions =
    typeof ours === "object" && ours !== null && "compilerOptions" in ours ? ours.compilerOptions : {};
  const scripts = [flow.bundle.entry, ...testFiles(root)].map((name) => join(root, name));
  return JSON.stringify({
    compilerOptions: { ...Object(compilerOptions), noImplicitAny: false, typeRoots: [] },
    files: [...scripts, hostTypesName, testTypesName],
  });
}

interface Compiler {
  readonly command: string;
  readonly args: readonly string[];
}

function findCompiler(flowRoot: string): Compiler | null {
  const ours = ownCompiler();
  if (ours !== null) return { command: process.execPath, args: [ours] };
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
    if (!isAbsolute(folder) || isBelow(flowRoot, folder)) continue;
    const command = join(folder, "tsc");
    if (existsSync(command)) return { command, args: [] };
  }
  return null;
}

function ownCompiler(): string | null {
  try {
    const manifest = createRequire(import.meta.url).resolve("typescript/package.json");
    const file = join(dirname(manifest), "bin/tsc");
    return existsSync(file) ? file : null;
  } catch {
    return null;
  }
}

function isBelow(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === "" || !(way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way));
}

const compileMsMax = 60_000;
const outputMax = 1024 * 1024;

function compile({ command, args }: Compiler, scratch: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...args, "-p", scratch, "--pretty", "false"], {
      cwd: scratch,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: compileMsMax,
    });
    let output = "";
    const take = (text: string): void => {
      output = (output + text).slice(0, outputMax);
    };
    child.stdout.setEncoding("utf8").on("data", take);
    child.stderr.setEncoding("utf8").on("data", take);
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (code === 0 || code === 1 || code === 2) resolve(output);
      else reject(new Error(`the TypeScript compiler ended with ${signal ?? code}: ${output.slice(0, 500)}`));
    });
  });
}

const diagnostic = /^(.+?)\((\d+),(\d+)\): error TS(\d+): (.*)$/;

/** Beside syntax (1000 to 1999): names, properties, arguments and values that do not fit what was declared. */
const wrong: ReadonlySet<number> = new Set([
  2304, 2307, 2322, 2339, 2345, 2353, 2551, 2552, 2554, 2555, 2741, 2769,
]);

function problemsOf(output: string, root: string, scratch: string): readonly TypeProblem[] {
  const problems: TypeProblem[] = [];
  for (const line of output.split("\n")) {
    const match = diagnostic.exec(line.trimEnd());
    const path = match?.[1];
    if (match === null || path === undefined) continue;
    const absolute = isAbsolute(path) ? path : join(scratch, path);
    const code = Number(match[4]);
    problems.push({
      file: relative(root, absolute),
      line: Number(match[2]),
      column: Number(match[3]),
      code,
      message: match[5] ?? "",
      severity: (code >= 1000 && code < 2000) || wrong.has(code) ? "error" : "warning",
    });
  }
  return problems;
}
