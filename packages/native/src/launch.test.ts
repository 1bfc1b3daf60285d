// What launchWorker refuses before anything is launched, and that no failure is without a remedy. Launching itself is
// tested in test/native.

import { execFileSync } from "node:child_process";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { launchWorker } from "./launch.js";
import { errnoName, isKnownStep, LaunchError } from "./launch-error.js";
import { launcherLibrary } from "./library.js";
import { nativePaths } from "./paths.js";

const limits = { dataBytes: 1 << 30, cpuSeconds: 600, stackBytes: 8 << 20 };

describe("a launch request", () => {
  it.each([
    ["dataBytes", 0],
    ["cpuSeconds", 1.5],
    ["stackBytes", Number.POSITIVE_INFINITY],
  ])("is refused with %s = %d", (name, value) => {
    expect(() => launchWorker({ path: "/bin/true", limits: { ...limits, [name]: value } })).toThrow(
      `limits.${name} must be a whole number above 0`,
    );
  });

  it("is refused with a NUL in the path or an argument, which C would take for the end", () => {
    for (const request of [{ path: "/bin/true\0x" }, { path: "/bin/true", args: ["a\0b"] }]) {
      expect(() => launchWorker({ ...request, limits })).toThrow(LaunchError);
    }
  });
});

describe("a launch error", () => {
  it("says what, why and what to do", () => {
    const error = new LaunchError("pipes", 24, "/opt/worker");
    expect(error).toMatchObject({ step: "pipes", errno: 24, errnoName: "EMFILE" });
    expect(error.message).toBe(
      "flowcell: cannot launch /opt/worker: step pipes failed (EMFILE). Raise the limit on open files (ulimit -n, LimitNOFILE=).",
    );
    expect(new LaunchError("thread", 0, "/opt/worker")).toMatchObject({ errno: 0, errnoName: null });
    expect(errnoName(9999)).toBe("errno 9999");
  });

  it("has a remedy for every step of the library", () => {
    // …/worker-native/build/lib/launcher.so
    const root = dirname(dirname(dirname(dirname(nativePaths().launcher))));
    execFileSync(process.execPath, [join(root, "scripts/build-native.mjs"), "--target", "launcher"], {
      stdio: "pipe",
    });
    const { stepName } = launcherLibrary();
    const names: string[] = [];
    for (let step = 1; ; step += 1) {
      const name = stepName(step);
      if (name === null) break;
      names.push(name);
    }
    expect(names).toContain("exec");
    expect(names.filter((name) => !isKnownStep(name))).toEqual([]);
  });
});
