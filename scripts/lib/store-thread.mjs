// Bundles the thread of the SQLite store into one file: it is started as a file, so that no other bundle can hold it.
// Called by scripts/native/bundle-cli.mjs for users, and by vitest (as its global setup) for tests, which import sources.
import { mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** The workspaces' sources stand in for their builds, so that a bundle is never made from stale ones. */
export const sourceAlias = Object.fromEntries(
  readdirSync(join(root, "packages")).map((name) => [
    `@flowcell/${name}`,
    join(root, "packages", name, "src/index.ts"),
  ]),
);

/** Whoever loads the file while it is replaced reads the old one or the new one. */
export async function bundleStoreThread(path) {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ["packages/journal/src/sqlite/thread.ts"],
    bundle: true,
    write: false,
    format: "cjs",
    platform: "node",
    target: "node20",
    alias: sourceAlias,
    // The driver is loaded by require from beside its binary.
    define: { "import.meta.url": "__moduleUrl" },
    banner: { js: 'const __moduleUrl = require("node:url").pathToFileURL(__filename).href;' },
    legalComments: "none",
    logLevel: "warning",
  });
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}.new`;
  writeFileSync(draft, outputFiles[0].contents);
  renameSync(draft, path);
}

/** What vitest calls before the tests, and again before tests that run again. */
export async function setup(project) {
  const path = join(root, "packages/journal/dist/store-thread.cjs");
  await bundleStoreThread(path);
  project.onTestsRerun(() => bundleStoreThread(path));
}
