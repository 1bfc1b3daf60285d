// Bundles the prelude: packages/prelude/src/main.ts and all that it imports become one script, prelude.js, whose
// completion value is the object of functions that C keeps. Called by scripts/native/engine.mjs before it makes the
// image, and by the prelude's own tests. The output depends on the sources and the pinned packages alone.
//
// The engine compiles a template literal to a call of the `concat` that it finds on String.prototype at run time, which
// is the guest's to replace. In the runtime's core (everything outside src/web) template literals therefore become
// additions here, so that the sources may use them.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { build } from "esbuild";

/** Builds the script and writes it to `out` (default worker-native/build/prelude.js) if it changed; resolves to the path. */
export async function buildPrelude({ root, out, log = () => {} }) {
  const output = out ?? join(root, "worker-native", "build", "prelude.js");
  const sources = join(root, "packages", "prelude", "src");
  const result = await build({
    absWorkingDir: root,
    entryPoints: ["packages/prelude/src/main.ts"],
    bundle: true,
    write: false,
    format: "iife",
    globalName: "prelude",
    platform: "neutral",
    mainFields: ["module", "main"],
    // What the engine's QuickJS (2025-09-13) accepts without any helper that would look intrinsics up at run time.
    target: "es2023",
    minify: true,
    charset: "ascii",
    legalComments: "none",
    treeShaking: true,
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
    plugins: [coreWithoutTemplates(sources)],
    logLevel: "silent",
  });
  const [bundle] = result.outputFiles;
  // The sources are modules, which are strict; esbuild does not say so in a script.
  const script = `(()=>{"use strict";${bundle.text.trimEnd()}return prelude.exports})()\n`;
  if (current(output) !== script) {
    mkdirSync(dirname(output), { recursive: true });
    // Several tests may make it at once: whoever reads it finds a whole one.
    const temporary = `${output}.${process.pid}.tmp`;
    writeFileSync(temporary, script);
    renameSync(temporary, output);
    log(`prelude: ${Math.round(script.length / 1024)} KiB`);
  }
  return output;
}

function current(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function coreWithoutTemplates(sources) {
  return {
    name: "core-without-templates",
    setup(pluginBuild) {
      pluginBuild.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const place = relative(sources, path);
        if (place.startsWith("..") || place.split(sep)[0] === "web") return undefined;
        return { contents: templatesToAdditions(await readFile(path, "utf8"), place), loader: "ts" };
      });
    },
  };
}

/**
 * Rewrites `a${b}c` to ("a"+(b)+"c"). Knows comments, strings and nested templates; a regular expression literal with a
 * quote or backtick in it would confuse it, and the core's are made by constructor.
 */
export function templatesToAdditions(source, name = "source") {
  let at = 0;
  const fail = (what) => {
    throw new Error(`${name}: ${what} at character ${at}`);
  };
  const copyString = (quote) => {
    const start = at++;
    while (source[at] !== quote) {
      if (at >= source.length || source[at] === "\n") fail("a string without an end");
      at += source[at] === "\\" ? 2 : 1;
    }
    return source.slice(start, ++at);
  };
  const copyThrough = (end) => {
    const found = source.indexOf(end, at);
    const to = found < 0 ? source.length : found + end.length;
    const text = source.slice(at, to);
    at = to;
    return text;
  };
  const template = () => {
    const parts = [];
    let raw = "";
    for (at++; source[at] !== "`"; ) {
      if (at >= source.length) fail("a template without an end");
      if (source.startsWith("${", at)) {
        at += 2;
        parts.push(literal(raw), `(${code("}")})`);
        raw = "";
        at++;
      } else if (source[at] === "\\") {
        raw += source.slice(at, at + 2);
        at += 2;
      } else raw += source[at++];
    }
    at++;
    if (raw !== "" || parts.length === 0) parts.push(literal(raw));
    return `(${parts.join("+")})`;
  };
  const literal = (raw) => `"${raw.replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
  /** Code up to an unmatched `end`, or to the end of the source. */
  const code = (end) => {
    let text = "";
    let depth = 0;
    while (at < source.length) {
      const char = source[at];
      if (char === '"' || char === "'") text += copyString(char);
      else if (char === "`") text += template();
      else if (source.startsWith("//", at)) text += copyThrough("\n");
      else if (source.startsWith("/*", at)) text += copyThrough("*/");
      else {
        if (char === end && depth === 0) return text;
        if (char === "{") depth++;
        if (char === "}") depth--;
        text += char;
        at++;
      }
    }
    if (end !== undefined) fail("a substitution without an end");
    return text;
  };
  return code(undefined);
}
