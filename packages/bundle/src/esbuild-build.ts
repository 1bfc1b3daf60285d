/**
 * The long way from a file to a script: TypeScript, imports and new syntax through esbuild, behind the fence. esbuild is a
 * child process that all builds of this process share; it is loaded on the first build, does not keep the process alive,
 * and is started again when a build outlives its deadline or brings it down.
 */

import type { BuildFailure, BuildOptions, BuildResult, Message } from "esbuild";
import { type BundleCode, type BundleFailure, BundleStop, fail, failAt } from "./failure.js";
import { Fence, type FenceEntry, flowNamespace } from "./fence.js";
import { firstLine, foreignKind } from "./foreign-text.js";
import { type AuthorFile, BundleMap, type ScriptMap } from "./script-map.js";
import { columnFromBytes, computedImportText } from "./source-text.js";

/** What QuickJS 2025-09-13 runs; newer syntax is lowered. */
const engineTarget = "es2023";

/** Lines of `prefix`, which stand before what the map describes. */
export const linesBefore = 1;
const prefix = '(function(){"use strict";\n';
const suffix = "return __flowcell_entry})";

export interface BuiltScript {
  readonly text: string;
  readonly map: ScriptMap;
  readonly warnings: readonly string[];
  /** Files that the bundle was made from, relative to the entry's folder, sorted by bytes. */
  readonly inputs: readonly string[];
}

/** What esbuild made, with every file that it was given. */
export interface BuiltBundle extends BuiltScript {
  readonly map: BundleMap;
  /** By path relative to the entry's folder, in the order of `inputs`. */
  readonly files: ReadonlyMap<string, AuthorFile>;
}

export type BuildOutcome =
  | { readonly ok: true; readonly built: BuiltBundle }
  | { readonly ok: false; readonly failure: BundleFailure };

/** How a text is understood: the same for the bundle and for what the fence looks at before. */
const syntax = {
  target: engineTarget,
  charset: "utf8",
  legalComments: "none",
  // No tsconfig file is looked for.
  tsconfigRaw: { compilerOptions: { useDefineForClassFields: true } },
  logLevel: "silent",
} as const;

type Esbuild = typeof import("esbuild");

export async function buildScript(
  entry: FenceEntry,
  sourceBytes: number,
  deadlineMs: number,
): Promise<BuildOutcome> {
  const end = Date.now() + deadlineMs;
  const esbuild = await import("esbuild");
  const first = await attempt(esbuild, entry, sourceBytes, false, end);
  // Modules whose classes clash are renamed; error classes then print the wrong name, so such bundles keep names.
  const clashes = first.ok && first.renamed;
  const second = clashes ? await attempt(esbuild, entry, sourceBytes, true, end) : first;
  return second.ok ? { ok: true, built: second.built } : second;
}

type Attempt =
  | { readonly ok: true; readonly built: BuiltBundle; readonly renamed: boolean }
  | { readonly ok: false; readonly failure: BundleFailure };

/** One build; once more when another build, or a crash, took the service away under it. */
async function attempt(
  esbuild: Esbuild,
  entry: FenceEntry,
  sourceBytes: number,
  keepNames: boolean,
  end: number,
): Promise<Attempt> {
  for (let tries = 0; ; tries++) {
    const fence = new Fence(entry, sourceBytes, syntax);
    const outcome = await race(esbuild, esbuild.build(buildOptions(fence, entry, keepNames)), end);
    if (outcome === "deadline") {
      const what = "could not be bundled in time; is it generated code?";
      return { ok: false, failure: fail("bundler_deadline", `${entry.label}: ${what}`) };
    }
    if (outcome.ok) {
      if (isModule(outcome.result, entry)) return assemble(outcome.result, fence);
      return { ok: false, failure: noDefaultExport(entry) };
    }
    if (isBuildFailure(outcome.error)) return { ok: false, failure: translate(outcome.error, fence, entry) };
    await esbuild.stop();
    if (tries > 0) {
      return { ok: false, failure: fail("bundler_failed", `${entry.label}: esbuild failed on this source`) };
    }
  }
}

type Raced =
  | { readonly ok: true; readonly result: BuildResult }
  | { readonly ok: false; readonly error: unknown };

async function race(esbuild: Esbuild, build: Promise<BuildResult>, end: number): Promise<Raced | "deadline"> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<"deadline">((resolve) => {
    timer = setTimeout(() => resolve("deadline"), Math.max(0, end - Date.now()));
  });
  const settled = build.then(
    (result): Raced => ({ ok: true, result }),
    (error: unknown): Raced => ({ ok: false, error }),
  );
  const first = await Promise.race([settled, deadline]);
  clearTimeout(timer);
  // The service cannot interrupt one build; ending it ends this one, and other builds try again.
  if (first === "deadline") await esbuild.stop();
  return first;
}

function buildOptions(fence: Fence, entry: FenceEntry, keepNames: boolean): BuildOptions {
  return {
    entryPoints: ["entry"],
    // Whatever esbuild writes relative to a folder is relative to the flow's.
    ...(entry.root === undefined ? {} : { absWorkingDir: entry.root }),
    plugins: [fence.plugin()],
    bundle: true,
    write: false,
    outfile: "script.js",
    format: "iife",
    globalName: "__flowcell_entry",
    platform: "neutral",
    // Packages say where their code is by these fields; the neutral platform looks at neither by itself.
    mainFields: ["module", "main"],
    ...syntax,
    sourcemap: "external",
    sourcesContent: false,
    keepNames,
    metafile: true,
    // Said in the author's own words by locate().
    logOverride: { [computedImport]: "warning" },
    logLimit: 20,
  };
}

function assemble(result: BuildResult, fence: Fence): Attempt {
  const output = (ending: string): string =>
    result.outputFiles?.find((file) => file.path.endsWith(ending))?.text ?? "";
  const mapText = output(".map");
  const text = `${prefix}${output("script.js")}${suffix}`;
  const names: unknown = JSON.parse(mapText).names;
  const files = inputFiles(result, fence);
  const built: BuiltBundle = {
    text,
    map: new BundleMap(mapText, text, linesBefore, fence.files),
    warnings: result.warnings.filter(isAuthors).map((warning) => locate(warning, fence).message),
    inputs: [...files.keys()],
    files,
  };
  return { ok: true, built, renamed: Array.isArray(names) && names.length > 0 };
}

/** Every file of the bundle. What esbuild says it used and what the fence gave it must be the same. */
function inputFiles(result: BuildResult, fence: Fence): ReadonlyMap<string, AuthorFile> {
  const prefix = `${flowNamespace}:`;
  const used = Object.keys(result.metafile?.inputs ?? {}).filter((name) => name.startsWith(prefix));
  const missing = used.find((name) => !fence.files.has(name));
  if (missing !== undefined) throw new Error(`${missing} is in the bundle and was not read here`);
  const names = [...fence.files.keys()].map((name) => name.slice(prefix.length)).sort(byBytes);
  return new Map(
    names.flatMap((name) => {
      const file = fence.files.get(`${prefix}${name}`);
      return file === undefined ? [] : [[name, file]];
    }),
  );
}

/** A file that neither exports nor mentions CommonJS gets an empty object as default export from esbuild. */
function isModule(result: BuildResult, entry: FenceEntry): boolean {
  if (entry.testing !== undefined) return true;
  return result.metafile?.inputs[`${flowNamespace}:${entry.name}`]?.format !== undefined;
}

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function isAuthors(message: Message): boolean {
  return (
    message.location?.file.includes("node_modules/") !== true &&
    message.id !== "unsupported-source-map-comment"
  );
}

function isBuildFailure(error: unknown): error is BuildFailure {
  return (
    error instanceof Error && "errors" in error && Array.isArray(error.errors) && error.errors.length > 0
  );
}

function translate(error: BuildFailure, fence: Fence, entry: FenceEntry): BundleFailure {
  const stop = error.errors.find((message) => message.detail instanceof BundleStop)?.detail;
  if (stop instanceof BundleStop) return stop.failure;
  // The missing default export is reported against the module that asks for it; anything else explains it better.
  const message = error.errors.find((candidate) => !asksForDefault(candidate)) ?? error.errors[0];
  if (message === undefined) return fail("bundler_failed", `${entry.label}: esbuild failed without a reason`);
  if (asksForDefault(message)) return noDefaultExport(entry);
  return locate(message, fence, entry);
}

function asksForDefault(message: Message): boolean {
  return (
    message.text.startsWith("No matching export in") && message.location?.file.startsWith("entry:") === true
  );
}

const entryShape = "export default async function (input, host) { … }";

function noDefaultExport(entry: FenceEntry): BundleFailure {
  const kind = foreignKind(entry.text);
  if (kind !== undefined) return notJavaScript(entry, kind);
  return fail("no_default_export", `${entry.label}: there is no default export to run; write: ${entryShape}`);
}

function notJavaScript(entry: FenceEntry, kind: string): BundleFailure {
  const line = firstLine(entry.text);
  const seen = line === undefined ? kind : `${kind}: ${JSON.stringify(line.slice(0, 60))}`;
  const what = `this does not look like JavaScript or TypeScript (${seen}); a script is: ${entryShape}`;
  return fail("not_javascript", `${entry.label}: ${what}`);
}

/** How esbuild calls these remarks. */
const computedImport = "unsupported-dynamic-import";
const emptyImportMeta = "empty-import-meta";

/** What esbuild says of its own output formats, in words of what a script is. */
const ownWords: ReadonlyMap<string, string> = new Map([
  [computedImport, computedImportText],
  [
    emptyImportMeta,
    "import.meta is empty: a script is one bundle and stands nowhere; pass data as input, and import files by name",
  ],
]);

function locate(message: Message, fence: Fence, entry?: FenceEntry): BundleFailure {
  const { location } = message;
  const code: BundleCode =
    typeof message.detail === "string" ? (message.detail as BundleCode) : "syntax_error"; // only the fence sets a text
  if (location === null) return fail(code, message.text);
  const file = fence.label(location.file.slice(location.file.indexOf(":") + 1));
  const place = { file, line: location.line, column: columnFromBytes(location.lineText, location.column) };
  if (message.text.startsWith("Top-level await")) {
    const what = "await is possible inside functions only; move this into the default function";
    return failAt("top_level_await", place, what, location.lineText);
  }
  const known = ownWords.get(message.id);
  if (known !== undefined) return failAt(code, place, known, location.lineText);
  const kind = entry !== undefined && code === "syntax_error" ? foreignKind(entry.text) : undefined;
  if (entry !== undefined && kind !== undefined && file === entry.label) return notJavaScript(entry, kind);
  return failAt(code, place, message.text, location.lineText);
}
