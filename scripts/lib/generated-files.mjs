// Writes or compares generated files: the one way in which scripts/generate-*.mjs end.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** The present contents of a file below the root, or undefined. */
export function present(path) {
  try {
    return readFileSync(join(ROOT, path), "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** `files`: [path below the root, contents]. With --check returns false and names what differs, else writes it. */
export function settle(files, check) {
  let same = true;
  for (const [path, contents] of files) {
    if (present(path) === contents) continue;
    if (check) {
      same = false;
      process.stderr.write(`flowcell: ${path} is not what its sources say; run: npm run generate\n`);
      continue;
    }
    mkdirSync(dirname(join(ROOT, path)), { recursive: true });
    writeFileSync(join(ROOT, path), contents);
    process.stdout.write(`wrote ${path}\n`);
  }
  return same;
}

/** A document with the part between `<!-- generated: NAME -->` and `<!-- end: NAME -->` replaced. */
export function between(document, name, part) {
  const begin = `<!-- generated: ${name} -->\n`;
  const end = `<!-- end: ${name} -->`;
  const from = document.indexOf(begin);
  const to = document.indexOf(end);
  if (from === -1 || to === -1 || to < from)
    throw new Error(`the markers of "${name}" are missing or out of order`);
  return document.slice(0, from + begin.length) + part + document.slice(to);
}
