// A copy of the native package, its library and a program to launch, in a 0755 folder under the system's temporary
// folder, so that a process of any user can run it; a clone below a home directory often cannot be read by others.
// Used by tests that need a parent of their own: as an ordinary user, to be killed, or with another thread.

import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** The user that owns nothing. */
export const ORDINARY_USER = 65534;

export interface Installation {
  readonly directory: string;
  /** The launcher library's copy. */
  readonly launcherPath: string;
  /** The copies of `programs`, by base name. */
  readonly programs: Readonly<Record<string, string>>;
  /** Starts Node on an ES module of this text; `import { … } from "./native.mjs"` is packages/native. */
  start(script: string, options?: SpawnOptions): ChildProcess;
  /** The same, to its end: resolves to the JSON value it printed. Rejects with its stderr if it failed. */
  run(script: string, options?: SpawnOptions): Promise<unknown>;
  remove(): void;
}

/** Whether processes can be started as another user here. */
export const canDropIdentity = process.geteuid?.() === 0;

/** Copies the package as it is in the sources now, and the given programs (absolute paths). */
export function install(programs: readonly string[]): Installation {
  const directory = mkdtempSync(join(tmpdir(), "flowcell-native-"));
  buildSync({
    entryPoints: [join(root, "packages/native/src/index.ts")],
    outfile: join(directory, "native.mjs"),
    bundle: true,
    platform: "node",
    format: "esm",
    external: ["koffi"],
  });
  for (const name of ["koffi", "@koromix"]) {
    cpSync(join(root, "node_modules", name), join(directory, "node_modules", name), { recursive: true });
  }
  mkdirSync(join(directory, "bin"));
  const copies: Record<string, string> = {};
  for (const program of programs) {
    copies[basename(program)] = join(directory, "bin", basename(program));
    cpSync(program, join(directory, "bin", basename(program)));
  }
  const launcherPath = join(directory, "launcher.so");
  cpSync(join(root, "worker-native/build/lib/launcher.so"), launcherPath);
  chmodSync(directory, 0o755);
  let scripts = 0;
  const start = (script: string, options: SpawnOptions = {}): ChildProcess => {
    scripts += 1;
    const file = join(directory, `script-${scripts}.mjs`);
    writeFileSync(file, script, { mode: 0o644 });
    return spawn(process.execPath, [file], { cwd: directory, stdio: ["ignore", "pipe", "pipe"], ...options });
  };
  const run = (script: string, options: SpawnOptions = {}): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const child = start(script, options);
      let output = "";
      let complaint = "";
      child.stdout?.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
      child.stderr?.setEncoding("utf8").on("data", (text: string) => {
        complaint += text;
      });
      child.on("error", reject);
      child.on("close", (code) => {
        if (code === 0) resolve(JSON.parse(output));
        else reject(new Error(`exit ${code}\n${complaint}`));
      });
    });
  return {
    directory,
    launcherPath,
    programs: copies,
    start,
    run,
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
