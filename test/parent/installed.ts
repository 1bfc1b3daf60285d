// A copy of the product in a 0755 folder under the system's temporary folder: the library in one file, the worker, the
// launcher library. For tests whose parent process must be one of their own: to be killed, to be counted, or to run as an
// ordinary user, who often cannot read a clone below a home directory.
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** The user that owns nothing. */
const ordinaryUser = 65534;

/** Who a test runs as: the user of the tests and, if that is root, an ordinary user as well. */
export interface TestUser {
  readonly name: string;
  readonly spawnOptions: Pick<SpawnOptions, "uid" | "gid">;
}

export const testUsers: readonly TestUser[] =
  process.geteuid?.() === 0
    ? [
        { name: "root", spawnOptions: {} },
        { name: "an ordinary user", spawnOptions: { uid: ordinaryUser, gid: ordinaryUser } },
      ]
    : [{ name: "an ordinary user", spawnOptions: {} }];

export interface Installed {
  readonly directory: string;
  /** Starts Node on an ES module of this text; `import { … } from "./flowcell.mjs"` is the library. */
  start(script: string, options?: SpawnOptions): ChildProcess;
  /** The same, to its end: everything it printed. Rejects with its standard error unless it exits with 0. */
  run(script: string, options?: SpawnOptions): Promise<string>;
  remove(): void;
}

/** Bundles the library from the sources as they are now and copies what has been built of the native parts. */
export function installProduct(): Installed {
  const directory = mkdtempSync(join(tmpdir(), "flowcell-installed-"));
  buildSync({
    entryPoints: [join(root, "packages/flowcell/src/index.ts")],
    outfile: join(directory, "flowcell.mjs"),
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    external: ["koffi", "esbuild"],
    alias: Object.fromEntries(
      readdirSync(join(root, "packages")).map((name) => [
        `@flowcell/${name}`,
        join(root, "packages", name, "src/index.ts"),
      ]),
    ),
    banner: {
      js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);',
    },
  });
  for (const name of ["koffi", "@koromix"]) {
    cpSync(join(root, "node_modules", name), join(directory, "node_modules", name), { recursive: true });
  }
  // The library looks for worker-native in the folders above its own, this one's name being as good as any.
  const native = join(directory, "worker-native/build");
  for (const file of ["bin/worker", "lib/launcher.so", "worker.json"]) {
    mkdirSync(join(native, file, ".."), { recursive: true });
    cpSync(join(root, "worker-native/build", file), join(native, file));
  }
  mkdirSync(join(directory, "run"));
  cpSync(join(directory, "flowcell.mjs"), join(directory, "run/flowcell.mjs"));
  for (const folder of [directory, join(directory, "run")]) chmodSync(folder, 0o755);

  let scripts = 0;
  const start = (script: string, options: SpawnOptions = {}): ChildProcess => {
    scripts += 1;
    const file = join(directory, "run", `script-${scripts}.mjs`);
    writeFileSync(file, script, { mode: 0o644 });
    return spawn(process.execPath, [file], { cwd: "/", stdio: ["ignore", "pipe", "pipe"], ...options });
  };
  const run = (script: string, options: SpawnOptions = {}): Promise<string> =>
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
      child.on("close", (code, signal) => {
        if (code === 0) resolve(output);
        else reject(new Error(`ended with ${code ?? signal}\n${output}\n${complaint}`));
      });
    });
  return { directory, start, run, remove: () => rmSync(directory, { recursive: true, force: true }) };
}
