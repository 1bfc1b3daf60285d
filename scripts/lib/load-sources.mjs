// Loads TypeScript sources into a generator: bundled by esbuild in memory, since Node 20 runs no TypeScript and a build
// need not exist yet when sources are generated.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { ROOT } from "./generated-files.mjs";

/** The module at `entry` (below the root); `replaced` maps paths below the root to contents that stand in for files. */
export async function loadSources(entry, replaced = new Map()) {
  const workspaces = readdirSync(join(ROOT, "packages")).map((name) => [
    `@flowcell/${name}`,
    join(ROOT, "packages", name, "src/index.ts"),
  ]);
  const stand = new Map([...replaced].map(([path, contents]) => [join(ROOT, path), contents]));
  const { outputFiles } = await build({
    entryPoints: [join(ROOT, entry)],
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "error",
    alias: Object.fromEntries(workspaces),
    plugins: [
      {
        name: "replaced",
        setup(hooks) {
          hooks.onLoad({ filter: /\.ts$/ }, ({ path }) => {
            const contents = stand.get(path);
            return contents === undefined ? undefined : { contents, loader: "ts" };
          });
        },
      },
    ],
  });
  return await import(
    `data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`
  );
}
