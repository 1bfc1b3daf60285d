// The worker's loop and bridge against a subverted engine: the C fuzzer, under AddressSanitizer and
// UndefinedBehaviorSanitizer. BRIDGE_FUZZ_SECONDS makes it longer; the seed of a failure is in its output.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { repositoryRoot } from "../repo/files.js";

beforeAll(() => {
  const words = ["scripts/build-native.mjs", "--sanitize", "--target", "bridge-fuzz-test"];
  execFileSync(process.execPath, words, { cwd: repositoryRoot, stdio: "pipe" });
}, 300_000);

test("an engine that answers with random words gets nothing but whole frames or an exit", () => {
  const program = join(repositoryRoot, "worker-native/build/sanitize/test/bridge-fuzz-test");
  const output = execFileSync(program, [process.env["BRIDGE_FUZZ_SECONDS"] ?? "3"], { encoding: "utf8" });
  expect(output).toContain("all properties hold");
});
