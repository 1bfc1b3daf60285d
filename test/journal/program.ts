// Processes of these tests that own a store: writer.child.ts as one file, started with the thread that vitest bundled, and
// under a library that makes the disk slow or broken when a test says so (disk.c).

import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const root = fileURLToPath(new URL("../../", import.meta.url));
export const threadPath = join(root, "packages/journal/dist/store-thread.cjs");

/** Builds the program into the folder and answers its path. */
export function buildWriter(folder: string): string {
  const file = join(folder, "writer.cjs");
  buildSync({
    entryPoints: [fileURLToPath(new URL("writer.child.ts", import.meta.url))],
    outfile: file,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20",
    // threadPath is given, so that nothing asks where this module lies.
    define: { "import.meta.url": '"file:///none"' },
    alias: { "@flowcell/protocol": join(root, "packages/protocol/src/index.ts") },
  });
  return file;
}

/** Builds the library of disk.c into the folder and answers its path. */
export function buildDisk(folder: string): string {
  const library = join(folder, "disk.so");
  const source = fileURLToPath(new URL("disk.c", import.meta.url));
  const flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"];
  execFileSync(process.env["CC"] ?? "cc", [...flags, source, "-o", library, "-ldl"]);
  return library;
}

export interface WriterOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Kilobytes that a file may have; a write beyond fails, as on a full disk. */
  readonly fileKilobytes?: number;
}

/** A writer that runs, with the lines that it has printed. */
export class Writer {
  readonly lines: string[] = [];
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  readonly #child: ChildProcess;
  #wake: () => void = () => undefined;

  constructor(program: string, mode: string, path: string, options: WriterOptions = {}) {
    const args = [program, mode, path, threadPath];
    const { env = {}, fileKilobytes } = options;
    const spawnOptions: SpawnOptions = {
      env: { PATH: process.env["PATH"] ?? "", ...env },
      stdio: ["ignore", "pipe", "inherit"],
    };
    // A shell counts the limit in blocks of 512 bytes; the signal that would end the process is ignored.
    const limited = `trap '' XFSZ; ulimit -f ${(fileKilobytes ?? 0) * 2}; exec "$0" "$@"`;
    this.#child =
      fileKilobytes === undefined
        ? spawn(process.execPath, args, spawnOptions)
        : spawn("sh", ["-c", limited, process.execPath, ...args], spawnOptions);
    this.ended = new Promise((resolve) =>
      this.#child.once("close", (code, signal) => {
        this.#wake();
        resolve({ code, signal });
      }),
    );
    const { stdout } = this.#child;
    if (stdout === null) throw new Error("the writer has no output");
    createInterface(stdout).on("line", (line) => {
      this.lines.push(line);
      this.#wake();
    });
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** Waits until a line satisfies the condition; rejects when the writer ends before. */
  async until(condition: (line: string) => boolean): Promise<string> {
    let hasEnded = false;
    void this.ended.then(() => {
      hasEnded = true;
    });
    for (;;) {
      const found = this.lines.find(condition);
      if (found !== undefined) return found;
      if (hasEnded) throw new Error(`the writer ended; it printed:\n${this.lines.slice(-20).join("\n")}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        setTimeout(resolve, 500).unref();
      });
    }
  }
}
