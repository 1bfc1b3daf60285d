// `npm start`: runs the main job once. A flow is installed, approved and started: its script runs in a confined worker, every
// host call goes into the journal, an SQLite file, before the script hears of it. What is printed is the result, the journal,
// the confinement that was live and the timings, and what to type next. Everything is in a temporary folder.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const flow = "examples/flows/nightly-report";
const scratch = mkdtempSync(join(tmpdir(), "flowcell-start-"));
const reports = join(scratch, "reports");
mkdirSync(reports);

const say = (text) => process.stderr.write(`${text}\n`);

/** Runs one command; its standard output when `captured`. Ends this script with its code when it fails. */
function flowcell(args, captured = false) {
  say(
    `\n$ node_modules/.bin/flowcell ${args.map((arg) => (/[^\w./=-]/.test(arg) ? `'${arg}'` : arg)).join(" ")}`,
  );
  const begun = performance.now();
  const { status, signal, stdout } = spawnSync(
    process.execPath,
    [join(root, "packages/flowcell/bin/flowcell.mjs"), ...args],
    {
      cwd: root,
      env: { ...process.env, FLOWCELL_DATA: join(scratch, "data") },
      encoding: "utf8",
      stdio: ["ignore", captured ? "pipe" : "inherit", "inherit"],
    },
  );
  if (captured) process.stdout.write(stdout);
  say(`  (${Math.round(performance.now() - begun)} ms with the start of the command)`);
  if (status !== 0) throw new CommandFailed(args[0], signal === null ? (status ?? 70) : 70);
  return stdout ?? "";
}

class CommandFailed extends Error {
  constructor(name, code) {
    super(`flowcell ${name} ended with ${code}; the reason is above`);
    this.code = code;
  }
}

try {
  const installed = flowcell(["install", flow], true);
  const hash = /hash +([0-9a-f]{12})/.exec(installed)?.[1] ?? "";
  const mounts = ["--mount", `sales=${flow}/sales`, "--mount", `reports=${reports}`];
  flowcell(["approve", "nightly-report", "--hash", hash, ...mounts]);
  flowcell(["start", "nightly-report", "--input", "{}"]);
  const listed = flowcell(["runs"], true);
  const run = /run_[\w-]{22}/.exec(listed)?.[0] ?? "";
  flowcell(["runs", run]);
  flowcell(["journal", run]);
  flowcell(["replay", run]);
  for (const name of readdirSync(reports)) {
    say(`\n$ cat ${name}   (what the flow wrote)`);
    process.stdout.write(readFileSync(join(reports, name), "utf8"));
  }
  say(
    "\nnext: node_modules/.bin/flowcell run examples/flows/nightly-report --mount reports=/tmp --input '{}' --approve   (or: flowcell --help, docs/FLOWS.md)",
  );
} catch (error) {
  if (!(error instanceof CommandFailed)) throw error;
  say(`flowcell: ${error.message}`);
  process.exitCode = error.code;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
