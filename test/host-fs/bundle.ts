// Programs of these tests for processes of their own: as an ordinary user, in a mount namespace, attacking or attacked. Each
// is one file with the native parts beside it, in a folder that any user can read.

import { cpSync, mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const root = fileURLToPath(new URL("../../", import.meta.url));
const packages = ["host", "manifest", "native", "protocol"];

/** Installs a program (a file beside this one) below `folder` and returns its path. */
export function installProgram(folder: string, program: string): string {
  const installed = join(folder, "installed");
  mkdirSync(join(installed, "worker-native/build/lib"), { recursive: true });
  const launcher = "worker-native/build/lib/launcher.so";
  cpSync(join(root, launcher), join(installed, launcher));
  for (const name of ["koffi", "@koromix"]) {
    cpSync(join(root, "node_modules", name), join(installed, "node_modules", name), { recursive: true });
  }
  const file = join(installed, "programs", basename(program).replace(/\.ts$/, ".mjs"));
  buildSync({
    entryPoints: [fileURLToPath(new URL(program, import.meta.url))],
    outfile: file,
    bundle: true,
    platform: "node",
    format: "esm",
    external: ["koffi"],
    alias: Object.fromEntries(
      packages.map((name) => [`@flowcell/${name}`, join(root, "packages", name, "src/index.ts")]),
    ),
  });
  return file;
}
