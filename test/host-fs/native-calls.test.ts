// The C test of the file calls, plain and under the sanitizers.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));

test.each([
  ["plain", [], "build"],
  ["under ASan and UBSan", ["--sanitize"], "build/sanitize"],
])("the file calls keep their promises, %s", (_, options, folder) => {
  const build = [`${root}scripts/build-native.mjs`, ...options, "--target", "files-test"];
  execFileSync(process.execPath, build, { stdio: "pipe" });
  expect(execFileSync(`${root}worker-native/${folder}/test/files-test`, { encoding: "utf8" })).toBe("");
});
