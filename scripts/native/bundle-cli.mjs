// Bundles what users load: the command line and the library, from the workspaces' sources into packages/flowcell/dist.
// Called by the bootstrap when everything else is built; also runs by itself.
//
// A run then loads one file of ours, and esbuild only for scripts that need it: loading the packages one by one costs far
// more than the run. Most of what is left is V8 compiling half a megabyte, so each bundle is stored with the code that V8
// made of it (bundle-code.mjs). dist/NAME.mjs is a small loader; it names bundle and code by a hash of the bundle, since V8
// itself compares nothing but the length of the text. Another version of V8 refuses the code and compiles.
//
// Every bundle is ASCII: a text with one other character takes twice the memory, and decoding it takes longer than reading.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { bundleStoreThread, sourceAlias } from "../lib/store-thread.mjs";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const home = join(root, "packages/flowcell");
const dist = join(home, "dist");
const { version } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));

/** Output name → source and the kind of its loader: the command line requires the commands for flows. */
const entries = {
  ai: { source: "src/ai.ts", kind: "mjs" },
  cli: { source: "src/cli/main.ts", kind: "mjs" },
  cloudflare: { source: "src/cloudflare.ts", kind: "mjs" },
  codemode: { source: "src/codemode.ts", kind: "mjs" },
  index: { source: "src/index.ts", kind: "mjs" },
  mcp: { source: "src/mcp.ts", kind: "mjs" },
  flows: { source: "src/cli/flows-command.ts", kind: "cjs" },
};
/** Bundles of their own, since no run needs them; loaded as they are. `imports`: loads modules of users by import(). */
const plain = [
  { name: "doctor", source: "src/cli/doctor-command.ts", imports: false },
  { name: "exec", source: "src/cli/exec-command.ts", imports: true },
  { name: "mcp", source: "src/cli/mcp-command.ts", imports: false },
];

const apart = {
  name: "apart",
  setup(hooks) {
    hooks.onResolve({ filter: /^\.\/(?:doctor|exec|flows|mcp)-command\.js$/ }, ({ path }) => ({
      path: path.replace("-command.js", ".cjs"),
      external: true,
    }));
    // commander starts subcommands that are programs of their own; flowcell has none.
    hooks.onResolve({ filter: /^node:child_process$/ }, ({ importer }) =>
      importer.includes("node_modules/commander/") ? { path: "none", namespace: "none" } : undefined,
    );
    hooks.onLoad({ filter: /.*/, namespace: "none" }, () => ({ contents: "module.exports = {};" }));
  },
};

/** The text and the map of one bundle. */
async function bundle(name, source, imports = false) {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: { [name]: join(home, source) },
    outdir: dist,
    bundle: true,
    write: false,
    // As ECMAScript modules Node would also read each of its own modules' exports one by one.
    format: "cjs",
    platform: "node",
    target: "node20",
    // import() in a script with stored code needs a callback that V8 does not store; require does as well.
    supported: { "dynamic-import": imports },
    alias: sourceAlias,
    // It finds its own binary beside its files.
    external: ["esbuild"],
    define: { FLOWCELL_VERSION: JSON.stringify(version), "import.meta.url": "__moduleUrl" },
    banner: { js: 'const __moduleUrl = require("node:url").pathToFileURL(__filename).href;' },
    plugins: [apart],
    minifyWhitespace: true,
    minifySyntax: true,
    // Node prints the line of an error that nobody caught.
    lineLimit: 200,
    sourcemap: "external",
    sourcesContent: false,
    legalComments: "none",
    logLevel: "warning",
  });
  const output = (ending) => outputFiles.find(({ path }) => path.endsWith(ending)).text;
  const text = output(".js");
  const foreign = /[^\0-\x7f]/.exec(text);
  if (foreign !== null) {
    const near = text.slice(Math.max(0, foreign.index - 60), foreign.index + 20);
    // esbuild escapes all but regular expressions.
    throw new Error(`the bundle ${name} is not ASCII: write \\u… in the regular expression near ${near}`);
  }
  return { text, map: output(".map") };
}

/** Around a bundle that has a loader, in its file: put around it by the loader, it would be a second copy of the text. */
const wrapper = ["(function (exports, require, module, __filename, __dirname) {", "})\n"];

/** A bundle with V8's code and its loader; returns the names of the files that belong to it. */
async function withCode(name, source, kind) {
  const { text, map } = await bundle(name, source);
  const stem = `${name}-${createHash("sha256").update(text).digest("hex").slice(0, 16)}`;
  put(`${stem}.cjs`, `${wrapper[0]}${text}\n//# sourceMappingURL=${stem}.cjs.map\n${wrapper[1]}`);
  put(`${stem}.cjs.map`, map);
  const names = storeCode(name, stem);
  put(`${name}.${kind}`, kind === "mjs" ? moduleLoader(stem, names) : plainLoader(stem));
  return [`${stem}.cjs`, `${stem}.cjs.map`, `${stem}.code`];
}

/** Whoever loads a file while it is replaced reads the old one or the new one. */
function put(file, contents) {
  const path = join(dist, file);
  writeFileSync(`${path}.new`, contents);
  renameSync(`${path}.new`, path);
}

/** Stores V8's code of a bundle and returns the names that it exports. A process each: code is what that process used. */
function storeCode(name, stem) {
  const program = join(root, "scripts/native/bundle-code.mjs");
  const { NODE_OPTIONS: _, ...env } = process.env;
  const args = [program, name, join(dist, `${stem}.cjs`), join(dist, `${stem}.code.new`)];
  // With flags of its own Node would make code that no other Node takes.
  const names = execFileSync(process.execPath, args, { encoding: "utf8", env });
  renameSync(join(dist, `${stem}.code.new`), join(dist, `${stem}.code`));
  return JSON.parse(names);
}

const loaderHead =
  "// Generated by scripts/native/bundle-cli.mjs: loads the bundle beside it, with V8's code for it if that is of this V8.";
const loaderBody = `let cachedData;
try {
  cachedData = readFileSync(\`\${stem}.code\`);
} catch {
  // V8 compiles.
}
const script = new vm.Script(readFileSync(path, "latin1"), { filename: path, cachedData });
`;

/** It imports nothing: for an import Node's module loader does work of its own, even where the module is Node's. */
function moduleLoader(stem, names) {
  return `${loaderHead}
const { getBuiltinModule } = process;
const { readFileSync } = getBuiltinModule("node:fs");
const { createRequire } = getBuiltinModule("node:module");
const { dirname } = getBuiltinModule("node:path");
const { fileURLToPath } = getBuiltinModule("node:url");
const vm = getBuiltinModule("node:vm");

const stem = fileURLToPath(new URL("./${stem}", import.meta.url));
const path = \`\${stem}.cjs\`;
${loaderBody}const module = { exports: {} };
script.runInThisContext()(module.exports, createRequire(path), module, path, dirname(path));

export const { ${names.join(", ")} } = module.exports;
`;
}

function plainLoader(stem) {
  return `${loaderHead}
const { readFileSync } = require("node:fs");
const { createRequire } = require("node:module");
const { join } = require("node:path");
const vm = require("node:vm");

const stem = join(__dirname, "${stem}");
const path = \`\${stem}.cjs\`;
${loaderBody}script.runInThisContext()(module.exports, createRequire(path), module, path, __dirname);
`;
}

mkdirSync(dist, { recursive: true });
const kept = new Set();
for (const [name, { source, kind }] of Object.entries(entries)) {
  for (const file of await withCode(name, source, kind)) kept.add(file);
}
for (const { name, source, imports } of plain) {
  const { text, map } = await bundle(name, source, imports);
  put(`${name}.cjs`, `${text}\n//# sourceMappingURL=${name}.cjs.map\n`);
  put(`${name}.cjs.map`, map);
}
await bundleStoreThread(join(dist, "store-thread.cjs"));
for (const file of readdirSync(dist)) {
  const [, stem] = /^([a-z]+)-[0-9a-f]{16}\./.exec(file) ?? [];
  if (stem !== undefined && stem in entries && !kept.has(file)) rmSync(join(dist, file));
}
process.stderr.write("flowcell: bundled packages/flowcell/dist\n");
