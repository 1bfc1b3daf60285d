// Bundles what users load: the command line and the library, from the workspaces' sources into packages/flowcell/dist.
// Called by the bootstrap after the TypeScript build; also runs by itself. A run of `flowcell run` then loads one file of
// ours beside koffi, and esbuild only for scripts that need it: loading the packages one by one costs far more than
// the run. doctor is a file of its own, since no run needs it.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const home = join(root, "packages/flowcell");
const { version } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));

/** The workspaces' sources stand in for their builds, so that a bundle is never made from stale ones. */
const alias = Object.fromEntries(
  readdirSync(join(root, "packages")).map((name) => [
    `@flowcell/${name}`,
    join(root, "packages", name, "src/index.ts"),
  ]),
);

/** Output name → source. */
const entries = {
  cli: join(home, "src/cli/main.ts"),
  doctor: join(home, "src/cli/doctor-command.ts"),
  index: join(home, "src/index.ts"),
};

/** The command line's lazy import of doctor goes to the file beside it. */
const doctorApart = {
  name: "doctor-apart",
  setup(hooks) {
    hooks.onResolve({ filter: /^\.\/doctor-command\.js$/ }, () => ({ path: "./doctor.mjs", external: true }));
  },
};

await build({
  absWorkingDir: root,
  entryPoints: entries,
  outdir: join(home, "dist"),
  outExtension: { ".js": ".mjs" },
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20",
  sourcemap: true,
  sourcesContent: false,
  alias,
  // Both find their own binaries beside their files.
  external: ["koffi", "esbuild"],
  define: { FLOWCELL_VERSION: JSON.stringify(version) },
  plugins: [doctorApart],
  // CommonJS packages in the bundle may call require for Node's own modules.
  banner: {
    js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);',
  },
  legalComments: "none",
  logLevel: "warning",
});
process.stderr.write("flowcell: bundled packages/flowcell/dist\n");
