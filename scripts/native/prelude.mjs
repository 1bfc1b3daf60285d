// Bundles the prelude: packages/prelude/src/main.ts and all that it imports become one script, prelude.js, whose
// completion value is the object of functions that C keeps. Called by scripts/native/engine.mjs before it makes the
// image, and by the prelude's own tests. The output depends on the sources and the pinned packages alone.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build } from "esbuild";

/** Builds the script and writes it to `out` (default worker-native/build/prelude.js) if it changed; resolves to the path. */
export async function buildPrelude({ root, out, log = () => {} }) {
  const output = out ?? join(root, "worker-native", "build", "prelude.js");
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
    logLevel: "silent",
  });
  const [bundle] = result.outputFiles;
  const script = `(()=>{${bundle.text.trimEnd()}return prelude.exports})()\n`;
  if (current(output) !== script) {
    mkdirSync(dirname(output), { recursive: true });
    writeFileSync(output, script);
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
