import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const packages = fileURLToPath(new URL("./packages/", import.meta.url));

/** Tests import the workspaces' sources, so that a unit test never runs against a stale build. */
const alias = Object.fromEntries(
  readdirSync(packages).map((name) => [`@flowcell/${name}`, `${packages}${name}/src/index.ts`]),
);

export default defineConfig({
  resolve: { alias },
  test: {
    // A thread cannot load TypeScript: the store's is bundled from its sources before the tests.
    globalSetup: ["scripts/lib/store-thread.mjs"],
    include: ["packages/*/src/**/*.test.ts", "test/**/*.test.ts", "scripts/**/*.test.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
