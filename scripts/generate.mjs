#!/usr/bin/env node
// Makes every generated file of the repository, or with --check compares.
//
//   node scripts/generate.mjs           writes the files that differ
//   node scripts/generate.mjs --check   writes nothing; exits 1 and names the files that differ
//
// The work is in scripts/generate-*.mjs; each runs by itself too and takes the same option. This one runs all of them.
// What they write is committed; a test runs --check.

import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const scripts = dirname(fileURLToPath(import.meta.url));
const options = process.argv.slice(2);
for (const option of options) {
  if (option !== "--check") {
    process.stderr.write(`flowcell: unknown option ${option} (there is only --check)\n`);
    process.exit(2);
  }
}

let failed = false;
for (const name of readdirSync(scripts)
  .filter((file) => /^generate-[a-z-]+\.mjs$/.test(file))
  .sort()) {
  const { status } = spawnSync(process.execPath, [join(scripts, name), ...options], { stdio: "inherit" });
  if (status !== 0) failed = true;
}
process.exit(failed ? 1 : 0);
