/**
 * The fence around esbuild, as an esbuild plugin. esbuild runs as the user who starts flowcell and would put any file that
 * the user can read into the bundle; the author of a flow must get no further than the flow's own folder. Every import is
 * resolved here and every byte is read here: modules live in a namespace of their own, in which esbuild opens nothing.
 *
 * Kept true: what enters the bundle is a .ts, .js or .json file whose real path, after links, lies under the real folder of
 * the entry (its own node_modules included). esbuild looks into no folder but to resolve a name that stands in the text. No
 * tsconfig is read, no environment is consulted, no URL is fetched, no source
 * map of an input is followed.
 */

import { realpathSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, extname, isAbsolute, join, relative, sep } from "node:path";
import type {
  Loader,
  OnLoadResult,
  OnResolveArgs,
  OnResolveResult,
  PartialMessage,
  Plugin,
  PluginBuild,
  TransformOptions,
} from "esbuild";
import { type BundleCode, type BundleFailure, BundleStop, fail, failAt } from "./failure.js";
import { findDeepNesting, nestingMax } from "./nesting.js";
import { patternImport } from "./pattern-import.js";
import { isInside, outsideText, readSource } from "./read-source.js";
import type { AuthorFile } from "./script-map.js";
import { LineIndex } from "./source-text.js";

/** The namespace of the author's modules; paths in it are relative to the root, with forward slashes. */
export const flowNamespace = "flow";
const stubNamespace = "entry";
const stubPath = "entry";
const stubFlow = "flow";
const libraryNamespace = "library";

/** Sources of one bundle together: tree shaking can drop most of a package, so they may exceed what is sent. */
const totalFactor = 8;

const loaders: ReadonlyMap<string, Loader> = new Map<string, Loader>([
  [".ts", "ts"],
  [".mts", "ts"],
  [".cts", "ts"],
  [".js", "js"],
  [".mjs", "js"],
  [".cjs", "js"],
  [".json", "json"],
]);

/** One module: its text and what messages call it. */
interface Module {
  readonly text: string;
  /** The file as it was read; absent for a script that has no file. */
  readonly bytes?: Uint8Array;
  readonly label: string;
  readonly loader: Loader;
}

export interface FenceEntry extends Module {
  /** The entry's real folder; absent for a script that has no file, which then cannot import. */
  readonly root?: string;
  /** The entry's name in that folder. */
  readonly name: string;
  /** The entry is a test of a flow: it need not export anything, the library runs it. */
  readonly testing?: TestLibrary;
}

/** A module that has no file: tests of flows import it. */
export interface TestLibrary {
  /** What they write: `flowcell:test`. */
  readonly specifier: string;
  /** TypeScript. Exports `run(flow, input, host)` beside what tests use, where `flow` is the flow's module. */
  readonly text: string;
  /** The flow's entry in the folder. */
  readonly flow: string;
}

export class Fence {
  readonly #entry: FenceEntry;
  readonly #sourceBytes: number;
  readonly #syntax: TransformOptions;
  #total = 0;
  /** Every author's file that was read, by the name that esbuild's map uses. */
  readonly files = new Map<string, AuthorFile>();

  /** `syntax`: how the bundler that asks understands a text, as far as that is a matter of options. */
  constructor(entry: FenceEntry, sourceBytes: number, syntax: TransformOptions) {
    this.#entry = entry;
    this.#sourceBytes = sourceBytes;
    this.#syntax = syntax;
  }

  plugin(): Plugin {
    return {
      name: "flowcell-fence",
      setup: (build) => {
        build.onResolve({ filter: /.*/ }, (args) => this.#resolve(build, args));
        build.onLoad({ filter: /.*/, namespace: stubNamespace }, () => ({
          contents: this.#stub(),
          loader: "js",
        }));
        build.onLoad({ filter: /.*/, namespace: libraryNamespace }, () => ({
          contents: this.#entry.testing?.text ?? "",
          loader: "ts",
        }));
        build.onLoad({ filter: /.*/, namespace: flowNamespace }, (args) => this.#load(args.path, build));
        // Nothing resolves to another namespace; should a later esbuild do so, it loads nothing.
        build.onLoad({ filter: /.*/ }, () => refusal("import_refused", "not a module of this script"));
      },
    };
  }

  #stub(): string {
    const { testing } = this.#entry;
    // Only the default export is asked for: esbuild reports it when it is missing and drops what is unused.
    if (testing === undefined) return `export { default } from ${JSON.stringify(stubPath)};`;
    return [
      `import ${JSON.stringify(stubPath)};`,
      `import * as flow from ${JSON.stringify(stubFlow)};`,
      `import { run } from ${JSON.stringify(testing.specifier)};`,
      "export default (input, host) => run(flow, input, host);",
    ].join("\n");
  }

  /** Files beside the entry are named the way the entry was. */
  label(path: string): string {
    if (path === this.#entry.name) return this.#entry.label;
    if (this.#entry.testing !== undefined) return path;
    const slash = this.#entry.label.lastIndexOf("/");
    return slash === -1 ? path : `${this.#entry.label.slice(0, slash)}/${path}`;
  }

  async #resolve(build: PluginBuild, args: OnResolveArgs): Promise<OnResolveResult | undefined> {
    // Our own question below, for esbuild itself to answer.
    if (args.pluginData === this) return undefined;
    if (args.kind === "entry-point") return { path: stubPath, namespace: stubNamespace };
    const { testing, name } = this.#entry;
    if (testing !== undefined && args.path === testing.specifier) {
      return { path: testing.specifier, namespace: libraryNamespace };
    }
    if (args.namespace === stubNamespace) {
      const isFlow = testing !== undefined && args.path === stubFlow;
      return { path: isFlow ? testing.flow : name, namespace: flowNamespace };
    }
    return refusedSpecifier(args) ?? (await this.#resolveInside(build, args));
  }

  async #resolveInside(build: PluginBuild, args: OnResolveArgs): Promise<OnResolveResult> {
    const root = this.#entry.root;
    if (root === undefined) {
      if (isBuiltin(args.path)) return nodeModule(args.path);
      return refusal(
        "import_refused",
        `cannot import ${quoted(args.path)}: this script has no folder to import from`,
      );
    }
    const real = await realTarget(build, args, root, this);
    if (real === undefined || !isInside(root, real)) {
      // A package of the flow may be called `events` or `buffer`; without it the author means Node's module.
      if (isBuiltin(args.path)) return nodeModule(args.path);
      return real === undefined ? notFound(args.path) : refusal("import_refused", outsideText(args.path));
    }
    if (!loaders.has(extname(real))) return refusal("import_refused", loaderText(args.path));
    return { path: relative(root, real).split(sep).join("/"), namespace: flowNamespace };
  }

  async #load(path: string, build: PluginBuild): Promise<OnLoadResult> {
    const module = path === this.#entry.name ? this.#entry : this.#read(path);
    this.#total += module.text.length;
    const most = this.#sourceBytes * totalFactor;
    if (this.#total > most) {
      const text = `the sources of this script and its imports exceed ${most} characters`;
      throw new BundleStop(fail("source_too_large", `${module.label}: ${text}`));
    }
    const { label, text, bytes } = module;
    this.files.set(`${flowNamespace}:${path}`, { label, text, ...(bytes === undefined ? {} : { bytes }) });
    const deep = deepNesting(module.label, module.text);
    if (deep !== undefined) throw new BundleStop(deep);
    if (module.loader === "js" || module.loader === "ts") {
      const { transform } = build.esbuild;
      const pattern = await patternImport(label, text, module.loader, transform, this.#syntax);
      if (pattern !== undefined) throw new BundleStop(pattern);
    }
    return { contents: withoutSourceMap(module.text), loader: module.loader };
  }

  #read(path: string): Module {
    const root = this.#entry.root;
    const loader = loaders.get(extname(path));
    if (root === undefined || loader === undefined) throw new Error(`module ${path} was not resolved here`);
    const label = this.label(path);
    const result = readSource(join(root, path), label, this.#sourceBytes, root);
    if (!result.ok) throw new BundleStop(result.failure);
    return { text: result.text, bytes: result.bytes, label, loader };
  }
}

/** esbuild's answer to where an import leads, links followed. */
async function realTarget(
  build: PluginBuild,
  args: OnResolveArgs,
  root: string,
  guard: Fence,
): Promise<string | undefined> {
  const importer = args.importer.startsWith(`${flowNamespace}:`)
    ? args.importer.slice(flowNamespace.length + 1)
    : args.importer;
  const found = await build.resolve(args.path, {
    kind: args.kind,
    resolveDir: dirname(join(root, importer)),
    pluginData: guard,
  });
  if (found.errors.length > 0 || found.namespace !== "file") return undefined;
  try {
    return realpathSync(found.path);
  } catch {
    return undefined;
  }
}

/** Imports that are refused by their text alone. */
function refusedSpecifier(args: OnResolveArgs): OnResolveResult | undefined {
  const { path } = args;
  const { type } = args.with;
  if (Object.keys(args.with).length > (type === "json" ? 1 : 0)) {
    return refusal(
      "import_refused",
      `cannot import ${quoted(path)} with attributes: only type "json" is known`,
    );
  }
  if (path.startsWith("node:")) return nodeModule(path);
  if (/^[A-Za-z][A-Za-z0-9+.-]*:/.test(path) || path.startsWith("//")) {
    return refusal(
      "import_refused",
      `cannot import ${quoted(path)}: URLs are not modules here; use a file beside the script`,
    );
  }
  if (isAbsolute(path)) return refusal("import_refused", outsideText(path));
  if (path.startsWith("#")) {
    return refusal(
      "import_refused",
      `cannot import ${quoted(path)}: package-internal names are not resolved; use a relative path`,
    );
  }
  return undefined;
}

const nodeHints: ReadonlyMap<string, string> = new Map([
  ["fs", "For files use host functions, or pass the content in as input"],
  ["path", "Join strings, or use new URL(…)"],
  ["http", "For HTTP use host functions"],
  ["https", "For HTTP use host functions"],
  ["net", "For the network use host functions"],
  ["crypto", "Use crypto.randomUUID() and crypto.getRandomValues()"],
  ["timers", "Use setTimeout or host.sleep"],
  ["url", "URL and URLSearchParams are global"],
  ["buffer", "Use Uint8Array, TextEncoder and TextDecoder"],
  ["events", "EventTarget is global"],
  ["process", "Settings come in as input"],
  ["child_process", "A script starts no processes"],
]);

function nodeModule(path: string): OnResolveResult {
  const name = path.replace(/^node:/, "").split("/")[0] ?? "";
  const hint = nodeHints.get(name);
  return refusal(
    "node_module",
    `flows have no Node modules (${quoted(path)}).${hint === undefined ? "" : ` ${hint}`}`,
  );
}

function notFound(path: string): OnResolveResult {
  const local = path.startsWith(".");
  const advice = local
    ? "check the spelling, the name is relative to the importing file"
    : "install it in node_modules beside the script; packages of outer folders are not used";
  return refusal("import_not_found", `cannot find ${quoted(path)}: ${advice}`);
}

function loaderText(path: string): string {
  return `cannot import ${quoted(path)}: only .ts, .js and .json files are modules; pass other data as input`;
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 77)}...` : text);
}

/** `detail` carries the code through esbuild's messages. */
function refusal(code: BundleCode, text: string): { readonly errors: PartialMessage[] } {
  return { errors: [{ text, detail: code }] };
}

export function deepNesting(label: string, text: string): BundleFailure | undefined {
  const offset = findDeepNesting(text);
  if (offset === undefined) return undefined;
  const lines = new LineIndex(text);
  const place = { file: label, ...lines.position(offset) };
  const what = `the code is nested more than ${nestingMax} levels deep here; split it`;
  return failAt("nesting_too_deep", place, what, lines.line(place.line));
}

/**
 * esbuild follows a `sourceMappingURL` comment of an input, and takes the last one. A last one that is no map stops it
 * without touching the author's text.
 */
function withoutSourceMap(text: string): string {
  return text.includes("sourceMappingURL=") ? `${text}\n//# sourceMappingURL=none` : text;
}

/** The loader of an entry file by its name, undefined for a kind that cannot be one. */
export function entryLoader(name: string): "ts" | "js" | undefined {
  const loader = loaders.get(extname(name));
  return loader === "ts" || loader === "js" ? loader : undefined;
}
