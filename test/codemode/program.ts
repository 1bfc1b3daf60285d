// Processes of these tests that use codemode as an embedding program does: a file of this folder, bundled with the sources.
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { buildSync } from "esbuild";

const root = fileURLToPath(new URL("../../", import.meta.url));
const packages = join(root, "packages");

/** Builds `<name>.child.ts` into the folder and answers the program's path. */
export function buildProgram(name: string, folder: string): string {
  const entry = fileURLToPath(new URL(`${name}.child.ts`, import.meta.url));
  const program = join(folder, `${name}.cjs`);
  buildSync({
    entryPoints: [entry],
    outfile: program,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20",
    logLevel: "error",
    external: ["koffi", "esbuild", "better-sqlite3", "better-sqlite3-node20"],
    // The program finds native parts by its own address, which the bundle moves.
    define: { "import.meta.url": JSON.stringify(pathToFileURL(entry).href) },
    alias: Object.fromEntries(
      readdirSync(packages).map((one) => [`@flowcell/${one}`, join(packages, one, "src/index.ts")]),
    ),
  });
  return program;
}

export class Program {
  readonly lines: string[] = [];
  readonly ended: Promise<number | null>;
  readonly #child: ChildProcess;

  constructor(program: string, ...args: readonly string[]) {
    this.#child = spawn(process.execPath, [program, ...args], {
      env: { PATH: process.env["PATH"] ?? "", NODE_PATH: join(root, "node_modules") },
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.ended = new Promise((resolve) => this.#child.once("close", (code) => resolve(code)));
    const { stdout } = this.#child;
    if (stdout === null) throw new Error("the program has no output");
    createInterface(stdout).on("line", (line) => this.lines.push(line));
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}
