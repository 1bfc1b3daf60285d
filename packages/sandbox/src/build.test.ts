// Tests of the worker build file: what the build writes is read, everything else is refused with a reason.
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseWorkerBuild, readWorkerBuild, type WorkerBuild, workerDigestMatches } from "./build.js";
import { FAKE_BUILD } from "./fake-host.js";

let folder = "";
const bytes = Buffer.from("a worker");
const build: WorkerBuild = {
  ...FAKE_BUILD,
  worker: {
    file: "bin/worker",
    bytes: bytes.length,
    sha256: createHash("sha256").update(bytes).digest("hex"),
  },
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "flowcell-build-"));
  mkdirSync(join(folder, "bin"));
  writeFileSync(join(folder, "bin", "worker"), bytes);
  writeFileSync(join(folder, "worker.json"), JSON.stringify(build));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("a build is read with the absolute path of its worker, and its binary can be compared", () => {
  const result = readWorkerBuild(folder);
  expect(result).toEqual({ ok: true, build, workerPath: join(folder, "bin", "worker") });
  expect(workerDigestMatches(build, join(folder, "bin", "worker"))).toBe(true);
  writeFileSync(join(folder, "bin", "worker"), "A worker");
  expect(workerDigestMatches(build, join(folder, "bin", "worker"))).toBe(false);
});

describe("refused", () => {
  const message = (): string => {
    const result = readWorkerBuild(folder);
    return result.ok ? "read" : `${result.message} | ${result.remedy}`;
  };

  test("a folder that is not built, a missing worker, a changed size", () => {
    writeFileSync(join(folder, "bin", "worker"), "another worker");
    expect(message()).toContain("has 14 bytes, its build wrote 8");
    rmSync(join(folder, "bin"), { recursive: true });
    expect(message()).toContain("is missing");
    rmSync(join(folder, "worker.json"));
    expect(message()).toContain("has not been built here | run `npm run build`");
  });

  test("a relative folder", () => {
    expect(readWorkerBuild("worker-native/build").ok).toBe(false);
  });

  test.each<[string, string]>([
    ["no JSON", "{"],
    ["an empty file", ""],
    ["a long text", `"${"x".repeat(20_000)}"`],
    ["another format", JSON.stringify({ ...build, format: 2 })],
    ["an unknown key", JSON.stringify({ ...build, extra: 1 })],
    ["a short digest", JSON.stringify({ ...build, buildId: "b1" })],
    ["an upper-case digest", JSON.stringify({ ...build, fingerprint: build.fingerprint.toUpperCase() })],
    [
      "a filter of no instructions",
      JSON.stringify({ ...build, seccomp: { ...build.seccomp, x64: { sha256: build.buildId, length: 0 } } }),
    ],
    ["a missing architecture", JSON.stringify({ ...build, seccomp: { x64: build.seccomp.x64 } })],
    [
      "a worker above the folder",
      JSON.stringify({ ...build, worker: { ...build.worker, file: "../worker" } }),
    ],
    [
      "a worker by its absolute path",
      JSON.stringify({ ...build, worker: { ...build.worker, file: "/bin/sh" } }),
    ],
    ["a hidden worker", JSON.stringify({ ...build, worker: { ...build.worker, file: "bin/.worker" } })],
  ])("%s", (_name, text) => {
    expect(parseWorkerBuild(text)).toHaveProperty("problem");
    writeFileSync(join(folder, "worker.json"), text);
    expect(message()).toContain("is not usable");
  });
});
