// Runs the whole suite (`npm test`), or with --quick the unit tests and the repository's own rules only. Every check
// (format, lint, types, generated files, native sanitizer builds) is a test of its own, so that the closing line
// counts all of them. Other arguments go to vitest.
//
// A test that fails is tried once more: hundreds of tests start processes beside whatever else the machine does, and one
// hiccup must not hide the state of the others. What passes only then is named above the closing line, as the defect it is.
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const args = process.argv.slice(2);
const quick = args.includes("--quick");
const rest = args.filter((arg) => arg !== "--quick");
const filters = quick ? ["packages", "test/repo"] : [];

/** What tests run beside the products: fixtures, tools, C unit tests. (Sanitizer builds are made by their tests.) */
const built = spawnSync(process.execPath, [join(root, "scripts/build-native.mjs"), "--tests"], {
  cwd: root,
  stdio: ["ignore", "ignore", "inherit"],
});
if (built.status !== 0) process.exit(built.status ?? 70);

const { status, signal } = spawnSync(
  process.execPath,
  [
    join(root, "node_modules/vitest/vitest.mjs"),
    "run",
    "--retry=1",
    "--reporter=default",
    `--reporter=${join(root, "scripts/lib/count-reporter.mjs")}`,
    ...filters,
    ...rest,
  ],
  { cwd: root, stdio: "inherit" },
);
process.exitCode = signal === null ? (status ?? 70) : 70;
