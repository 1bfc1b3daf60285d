/** For tests: what the repository's TypeScript compiler says of generated declarations. */

import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const compiler = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));

const compilerOptions = {
  target: "es2023",
  lib: ["es2024"],
  types: [],
  module: "preserve",
  strict: true,
  composite: true,
  emitDeclarationOnly: true,
  skipLibCheck: false,
};

/**
 * One line for each error, such as `one/script.ts(3,5): error TS2339: …`. Files of different folders do not see each other:
 * each folder is a project, and one run of the compiler checks them all.
 */
export async function typeErrors(files: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const root = await mkdtemp(join(tmpdir(), "flowcell-tool-types-"));
  try {
    const folders = [...new Set(Object.keys(files).map((name) => dirname(name)))];
    const references = folders.map((path) => ({ path }));
    const all: Record<string, string> = {
      "tsconfig.json": JSON.stringify({ files: [], references }),
      ...files,
    };
    for (const folder of folders) {
      all[`${folder}/tsconfig.json`] = JSON.stringify({ compilerOptions, include: ["*.ts"] });
    }
    for (const [name, text] of Object.entries(all)) {
      await mkdir(dirname(join(root, name)), { recursive: true });
      await writeFile(join(root, name), text);
    }
    return await run(root);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

function run(root: string): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    const options = { cwd: root, timeout: 100_000, maxBuffer: 2 ** 24 };
    execFile(
      process.execPath,
      [compiler, "--build", "--pretty", "false"],
      options,
      (error, stdout, stderr) => {
        const lines = stdout.split("\n").filter((line) => /(?:^|: )error TS\d/.test(line));
        // Exit codes 1 and 2 are errors of types; anything else, or silence, is a compiler that did not do its work.
        const isVerdict = error === null || ((error.code === 1 || error.code === 2) && lines.length > 0);
        if (isVerdict) resolve(lines);
        else reject(new Error(`the compiler failed: ${error.message}\n${stdout}\n${stderr}`));
      },
    );
  });
}
