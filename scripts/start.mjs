// `npm start`: runs the main job once. An example script over a real table of 2 MB goes into a confined worker; what is
// printed is the confinement that was live, the host's checks, the result and the timings, and what to type next.
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const command = ["run", "examples/summarise-csv.js", "--input", "@examples/data/UnicodeData.txt", "--trace"];

process.stderr.write(`\n$ node_modules/.bin/flowcell ${command.join(" ")}\n`);
const { status, signal } = spawnSync(
  process.execPath,
  [join(root, "packages/flowcell/bin/flowcell.mjs"), ...command],
  { cwd: root, stdio: "inherit" },
);
process.exitCode = signal === null ? (status ?? 70) : 70;
if (process.exitCode === 0) {
  process.stderr.write(
    "\nnext: node_modules/.bin/flowcell doctor   (or: flowcell run --help, examples/README.md)\n",
  );
}
