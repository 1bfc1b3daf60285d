/** For tests: runs the repository's TypeScript compiler on a folder of files, as an author of a flow would. */

import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { flowTsconfig } from "../host-types.js";

const compiler = fileURLToPath(new URL("../../../../node_modules/typescript/bin/tsc", import.meta.url));

/** What the compiler says of the files, one entry per error, such as `flow.ts(3,5): error TS2339: …`; none when it is content. */
export async function checkFlow(files: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), "flowcell-types-"));
  try {
    // Authors need not check declarations; here they are what is tested.
    const tsconfig = flowTsconfig().replace('"skipLibCheck": true', '"skipLibCheck": false');
    const all: Readonly<Record<string, string>> = { "tsconfig.json": tsconfig, ...files };
    for (const [name, text] of Object.entries(all)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
    }
    return await run(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function run(folder: string): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    const args = [compiler, "--project", folder, "--pretty", "false"];
    execFile(
      process.execPath,
      args,
      { cwd: folder, timeout: 50_000, maxBuffer: 2 ** 24 },
      (error, stdout, stderr) => {
        const lines = stdout
          .split("\n")
          .filter((line) => line.includes(": error TS") || line.startsWith("error TS"));
        // Exit codes 1 and 2 are errors of types; anything else, or silence, is a compiler that did not do its work.
        const typeErrors = error === null || ((error.code === 1 || error.code === 2) && lines.length > 0);
        if (typeErrors) resolve(lines);
        else reject(new Error(`the compiler failed: ${error.message}\n${stdout}\n${stderr}`));
      },
    );
  });
}
