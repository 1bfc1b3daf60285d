/**
 * From an entry file (or a text) to the expression that a worker evaluates, with the map back. The library and the command
 * line call it; it chooses the short way (plain-script.ts) or the long one (esbuild-build.ts) and remembers single files.
 *
 * The script text is an expression that evaluates to a function without running the author's code; calling the function
 * runs the entry module and returns an object whose `default` is the entry's default export.
 */

import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { Limits } from "@flowcell/protocol";
import { type BuiltScript, buildScript } from "./esbuild-build.js";
import { type BundleFailure, fail } from "./failure.js";
import { deepNesting, entryLoader, type FenceEntry } from "./fence.js";
import { plainScript } from "./plain-script.js";
import { entryLabel, readSource, tooLargeText } from "./read-source.js";
import type { ScriptMap } from "./script-map.js";

export interface BundleOptions {
  /** Bytes that any one source, and the script as it is sent, may have. */
  readonly sourceBytes: Limits["sourceBytes"];
  /** What messages and stacks call the entry; by default the path when it is relative, else its last part. */
  readonly label?: string;
  /** For esbuild, start included; 10 s by default. */
  readonly deadlineMs?: number;
}

export interface Script {
  /** What the entry is called in messages. */
  readonly label: string;
  readonly text: string;
  /** SHA-256 of the text, hexadecimal. */
  readonly sha256: string;
  readonly map: ScriptMap;
  /** esbuild's remarks on the author's own files, one line each. */
  readonly warnings: readonly string[];
  /** Files it was made from, relative to the entry's folder. */
  readonly inputs: readonly string[];
}

export type BundleResult =
  | { readonly ok: true; readonly script: Script }
  | { readonly ok: false; readonly failure: BundleFailure };

const deadlineMsDefault = 10_000;
const kinds = "script files end in .ts, .mts, .js or .mjs";

/** `path` is relative to the working directory. Links are followed once: imports are fenced to the real file's folder. */
export async function bundleFile(path: string, options: BundleOptions): Promise<BundleResult> {
  const label = options.label ?? entryLabel(path);
  const loader = entryLoader(path);
  if (loader === undefined) return refuse(unsupported(path, label));
  let real: string;
  try {
    real = realpathSync(path);
  } catch {
    return refuse(fail("not_found", `${label}: no such file`));
  }
  const source = readSource(real, label, options.sourceBytes, undefined);
  if (!source.ok) return refuse(source.failure);
  return bundle({ text: source.text, label, loader, root: dirname(real), name: basename(real) }, options);
}

/** A script without a file: it cannot import. TypeScript unless `label` ends in .js or .mjs; "script.ts" by default. */
export async function bundleSource(text: string, options: BundleOptions): Promise<BundleResult> {
  const label = options.label ?? "script.ts";
  const bytes = Buffer.byteLength(text);
  if (bytes > options.sourceBytes) {
    return refuse(fail("source_too_large", tooLargeText(label, bytes, options.sourceBytes)));
  }
  return bundle({ text, label, loader: entryLoader(label) ?? "ts", name: basename(label) }, options);
}

function unsupported(path: string, label: string): BundleFailure {
  if (!/\.[A-Za-z0-9]+$/.test(path)) {
    // Most likely a mistyped name or a folder: say so before talking about endings.
    const source = readSource(path, label, 0, undefined);
    if (!source.ok && source.failure.code !== "source_too_large") return source.failure;
  }
  return fail("unsupported_file", `${label}: not a script; ${kinds}`);
}

async function bundle(entry: FenceEntry, options: BundleOptions): Promise<BundleResult> {
  const key = cacheKey(entry);
  const known = recall(key);
  if (known !== undefined) return limited(known, options.sourceBytes);
  const deep = deepNesting(entry.label, entry.text);
  if (deep !== undefined) return refuse(deep);
  const plain = plainScript(entry.label, entry.text, entry.loader === "ts");
  if (plain !== undefined) {
    const built = { text: plain.text, map: plain, warnings: [], inputs: [entry.name] };
    return limited(remember(key, entry, built), options.sourceBytes);
  }
  const outcome = await buildScript(entry, options.sourceBytes, options.deadlineMs ?? deadlineMsDefault);
  if (!outcome.ok) return refuse(outcome.failure);
  return limited(remember(key, entry, outcome.built), options.sourceBytes);
}

function limited(script: Script, sourceBytes: number): BundleResult {
  const bytes = Buffer.byteLength(script.text);
  if (bytes <= sourceBytes) return { ok: true, script };
  return refuse(
    fail("source_too_large", tooLargeText(`${script.label} with its imports`, bytes, sourceBytes)),
  );
}

function refuse(failure: BundleFailure): BundleResult {
  return { ok: false, failure };
}

/**
 * Scripts of one file by label and text, least recently used first. A script with imports is built anew each time: whether
 * its answer still holds depends on files that were not there.
 */
const cache = new Map<string, Script>();
const cacheEntriesMax = 64;
const cacheCharactersMax = 16 * 1024 * 1024;
let cacheCharacters = 0;

function cacheKey(entry: FenceEntry): string {
  const hash = createHash("sha256");
  for (const part of [entry.loader, entry.label, entry.name, entry.root ?? ""])
    hash.update(`${part.length}:${part}`);
  return hash.update(entry.text).digest("hex");
}

function recall(key: string): Script | undefined {
  const script = cache.get(key);
  if (script === undefined) return undefined;
  cache.delete(key);
  cache.set(key, script);
  return script;
}

function remember(key: string, entry: FenceEntry, built: BuiltScript): Script {
  const { text, map, warnings, inputs } = built;
  const sha256 = createHash("sha256").update(text).digest("hex");
  const script: Script = { label: entry.label, text, sha256, map, warnings, inputs };
  if (inputs.length > 1) return script;
  cache.set(key, script);
  cacheCharacters += text.length;
  for (const [oldest, { text: dropped }] of cache) {
    if (cache.size <= cacheEntriesMax && cacheCharacters <= cacheCharactersMax) break;
    cache.delete(oldest);
    cacheCharacters -= dropped.length;
  }
  return script;
}
