// The C unit tests of base/ and confine/, plain and under AddressSanitizer and UndefinedBehaviorSanitizer.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { build, product, root } from "./harness.js";

const tests = ["base-test", "confine-test"] as const;

beforeAll(() => {
  build(...tests);
  const words = ["--sanitize", ...tests.flatMap((test) => ["--target", test])];
  execFileSync(process.execPath, [join(root, "scripts/build-native.mjs"), ...words], { stdio: "pipe" });
}, 300_000);

describe.each(tests)("%s", (test) => {
  it("holds", () => {
    expect(execFileSync(product(`test/${test}`), { encoding: "utf8" })).toContain("all properties hold");
  });

  it("holds under the sanitizers", () => {
    expect(execFileSync(product(`sanitize/test/${test}`), { encoding: "utf8" })).toContain(
      "all properties hold",
    );
  });
});
