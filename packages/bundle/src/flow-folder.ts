/**
 * From the folder of a flow to the one script that an approval is about: the bundle, every file that went into it with its
 * bytes, and the map back, as text that can be stored. The catalog of flows calls it when a flow is installed; nobody
 * bundles a flow again after that. `readFlowFile` reads the other file of a flow under the same fence: its manifest.
 *
 * TRUST: the folder belongs to the flow's author: kinds of files, links, sizes and texts are whatever the author made them.
 *
 * Kept true: the entry is the one file with an entry's name; nothing from outside the real folder is read; the result depends
 * on names and bytes inside the folder alone, so that the same folder in another place gives the same bytes.
 */

import { existsSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { buildScript, linesBefore } from "./esbuild-build.js";
import { type BundleFailure, fail } from "./failure.js";
import { deepNesting, entryLoader, type FenceEntry, flowNamespace } from "./fence.js";
import { plainScript } from "./plain-script.js";
import { readSource, tooLargeText } from "./read-source.js";
import { type AuthorFile, BundleMap, type Edit, EditedText, type ScriptMap } from "./script-map.js";

export const flowEntryNames: readonly string[] = Object.freeze([
  "flow.ts",
  "flow.js",
  "flow.mts",
  "flow.mjs",
]);

const deadlineMsDefault = 10_000;
/** Files in one bundle. */
const inputsMost = 2_000;

export interface FlowInput {
  /** Relative to the folder, with forward slashes. */
  readonly path: string;
  /** What is in the file. */
  readonly bytes: Uint8Array;
  /** The same without a byte order mark. */
  readonly text: string;
}

export interface FlowBundle {
  /** The entry's name in the folder. */
  readonly entry: string;
  /** The script as workers get it. */
  readonly text: string;
  /** How positions in it map to the author's files; `restoreScriptMap` makes a map of it. */
  readonly mapText: string;
  /** Every file that is in it, packages included, sorted by the bytes of the path. */
  readonly inputs: readonly FlowInput[];
  readonly warnings: readonly string[];
}

export type FlowBundleResult =
  | { readonly ok: true; readonly bundle: FlowBundle }
  | { readonly ok: false; readonly failure: BundleFailure };

export interface FlowBundleOptions {
  /** Bytes that any one source, and the script as it is sent, may have. */
  readonly sourceBytes: number;
  readonly deadlineMs?: number;
}

export type FlowFileResult =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly failure: BundleFailure };

/** One file of the folder, UTF-8 text of at most `bytesMost`, not reached by a link that leads out. */
export function readFlowFile(folder: string, name: string, bytesMost: number): FlowFileResult {
  const root = realFolder(folder);
  if (typeof root !== "string") return { ok: false, failure: root };
  const source = readSource(join(root, name), name, bytesMost, root);
  if (source.ok) return { ok: true, bytes: source.bytes };
  const { code } = source.failure;
  if (code === "source_too_large") {
    return refuse(fail(code, `${name}: is larger than ${bytesMost} bytes`));
  }
  if (code === "import_refused") return refuse(fail(code, `${name}: is a link out of the flow's folder`));
  return source;
}

export async function bundleFlow(folder: string, options: FlowBundleOptions): Promise<FlowBundleResult> {
  const root = realFolder(folder);
  if (typeof root !== "string") return refuse(root);
  const found = flowEntryNames.filter((name) => existsSync(join(root, name)));
  const [name, ...others] = found;
  if (name === undefined) {
    return refuse(fail("not_found", `the folder holds no script; name it ${flowEntryNames.join(", ")}`));
  }
  if (others.length > 0) {
    return refuse(fail("unsupported_file", `the folder holds ${found.join(" and ")}; keep one of them`));
  }
  const source = readSource(join(root, name), name, options.sourceBytes, root);
  if (!source.ok) return source;
  const loader = entryLoader(name) ?? "ts";
  const { text, bytes } = source;
  const deep = deepNesting(name, text);
  if (deep !== undefined) return refuse(deep);
  return await bundle({ text, bytes, label: name, loader, root, name }, options);
}

/** The map of a stored bundle, from what `bundleFlow` made of it. Throws for text that it did not write. */
export function restoreScriptMap(
  mapText: string,
  bundleText: string,
  sources: readonly { readonly path: string; readonly text: string }[],
): ScriptMap {
  // The text comes from the store, where bundleFlow's own words were put.
  const stored = JSON.parse(mapText) as StoredMap;
  if (stored.kind === "edits") {
    const source = sources.find(({ path }) => path === stored.file);
    if (source === undefined) throw new Error(`the sources of the bundle lack ${stored.file}`);
    return new EditedText(stored.file, unmarked(source.text), stored.edits);
  }
  const files = new Map<string, AuthorFile>(
    sources.map(({ path, text }) => [`${flowNamespace}:${path}`, { label: path, text: unmarked(text) }]),
  );
  return new BundleMap(stored.map, bundleText, linesBefore, files);
}

/** Positions count without a byte order mark, which a source may have been stored with. */
function unmarked(text: string): string {
  return text.startsWith("\ufeff") ? text.slice(1) : text;
}

/** What a map says beside the sources, which are stored anyway. */
type StoredMap =
  | { readonly kind: "edits"; readonly file: string; readonly edits: readonly Edit[] }
  | { readonly kind: "esbuild"; readonly map: string };

async function bundle(
  entry: FenceEntry & { readonly bytes: Uint8Array },
  options: FlowBundleOptions,
): Promise<FlowBundleResult> {
  const plain = plainScript(entry.label, entry.text, entry.loader === "ts");
  if (plain !== undefined) {
    const stored: StoredMap = { kind: "edits", file: entry.name, edits: plain.edits };
    const input = { path: entry.name, bytes: entry.bytes, text: entry.text };
    return limited(
      { entry: entry.name, text: plain.text, mapText: JSON.stringify(stored), inputs: [input], warnings: [] },
      options.sourceBytes,
    );
  }
  const outcome = await buildScript(entry, options.sourceBytes, options.deadlineMs ?? deadlineMsDefault);
  if (!outcome.ok) return refuse(outcome.failure);
  const { text, map, files, warnings } = outcome.built;
  if (files.size > inputsMost) {
    const what = `the bundle has ${files.size} files; the limit is ${inputsMost}`;
    return refuse(fail("source_too_large", `${entry.label}: ${what}`));
  }
  const inputs = [...files].map(([path, file]) => {
    if (file.bytes === undefined) throw new Error(`${path} was bundled without its bytes`);
    return { path, bytes: file.bytes, text: file.text };
  });
  const stored: StoredMap = { kind: "esbuild", map: map.mapText };
  return limited(
    { entry: entry.name, text, mapText: JSON.stringify(stored), inputs, warnings },
    options.sourceBytes,
  );
}

function limited(made: FlowBundle, sourceBytes: number): FlowBundleResult {
  const bytes = Buffer.byteLength(made.text);
  if (bytes <= sourceBytes) return { ok: true, bundle: made };
  return refuse(fail("source_too_large", tooLargeText(`${made.entry} with its imports`, bytes, sourceBytes)));
}

function realFolder(folder: string): string | BundleFailure {
  let real: string;
  try {
    real = realpathSync(folder);
  } catch {
    return fail("not_found", "there is no such folder");
  }
  if (statSync(real).isDirectory()) return real;
  return fail("unsupported_file", "this is a file; a flow is a folder with flow.json and a script");
}

function refuse(failure: BundleFailure): { readonly ok: false; readonly failure: BundleFailure } {
  return { ok: false, failure };
}
