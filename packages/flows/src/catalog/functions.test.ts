// Which host functions a version is given.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineHostFunction, type HostFunction } from "@flowcell/host";
import { type Manifest, parseManifest } from "@flowcell/manifest";
import { profileLimits } from "@flowcell/protocol";
import { afterAll, describe, expect, test } from "vitest";
import * as z from "zod/mini";
import {
  checkTools,
  type FunctionSources,
  grantedFunctions,
  grantedNames,
  toolMatches,
} from "./functions.js";

const root = mkdtempSync(join(tmpdir(), "functions-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

function tool(name: string): HostFunction {
  return defineHostFunction({
    name,
    doc: "A tool.",
    effect: "read",
    grant: "tools",
    input: z.tuple([]),
    handler: () => undefined,
  });
}

function manifestOf(grants: object): Manifest {
  const parsed = parseManifest(JSON.stringify({ format: 1, id: "f", grants }));
  if (!parsed.ok) throw new Error(parsed.problems.map(({ message }) => message).join("; "));
  return parsed.manifest;
}

const sources: FunctionSources = {
  mounts: new Map([["m", root]]),
  secretValue: () => "s",
  privateHosts: [],
  caPem: undefined,
  deniedPaths: [],
  functions: [tool("tools.a.one"), tool("tools.a.two"), tool("tools.b")],
};
const ports = {
  startRun: () => Promise.reject(new Error("not called")),
  emitEvent: () => Promise.reject(new Error("not called")),
};

function names(grants: object): readonly string[] {
  const manifest = manifestOf(grants);
  const granted = grantedFunctions(manifest, profileLimits("flow"), sources, ports);
  granted.close();
  expect(Object.isFrozen(granted.names)).toBe(true);
  expect(granted.names).toEqual(granted.functions.map(({ name }) => name).sort());
  // What the dry run knows without opening anything.
  expect(grantedNames(manifest, sources.functions)).toEqual(granted.names);
  return granted.names;
}

const always = ["approval.request", "signal.wait", "sleep"];

describe("granted functions", () => {
  test("without grants: what touches nothing but the run", () => {
    expect(names({})).toEqual(always);
  });

  for (const [grant, value, expected] of [
    ["kv", { maxBytes: 1 }, ["kv.compareAndSet", "kv.delete", "kv.get", "kv.list", "kv.set"]],
    ["net", [{ host: "a.example" }], ["fetch"]],
    ["flows", ["x"], ["flow.start", "flow.wait"]],
    ["events", ["x"], ["event.emit"]],
    ["tools", ["a.*"], ["tools.a.one", "tools.a.two"]],
    ["tools", ["b"], ["tools.b"]],
    [
      "fs",
      [{ mount: "m", access: "read" }],
      ["fs.append", "fs.delete", "fs.list", "fs.read", "fs.stat", "fs.write"],
    ],
  ] as const) {
    test(`with ${grant} ${JSON.stringify(value)}: ${expected.join(", ")}`, () => {
      expect(names({ [grant]: value })).toEqual([...always, ...expected].sort());
    });
  }

  test("with everything", () => {
    expect(
      names({
        kv: { maxBytes: 1 },
        net: [{ host: "a.example" }],
        flows: ["x"],
        events: ["x"],
        tools: ["*"],
        fs: [{ mount: "m", access: "write" }],
      }),
    ).toHaveLength(21);
  });
});

test("patterns of tools match whole names and whole parts", () => {
  expect(toolMatches("*", "tools.x.y")).toBe(true);
  expect(toolMatches("a.*", "tools.a.one")).toBe(true);
  expect(toolMatches("a.*", "tools.ab.one")).toBe(false);
  expect(toolMatches("a", "tools.a.one")).toBe(false);
  expect(toolMatches("a.one", "tools.a.one")).toBe(true);
  expect(toolMatches("own.name", "own.name")).toBe(true);
});

test("an embedder's function that would take the place of a built-in one is refused", () => {
  for (const name of ["sleep", "fetch", "kv.get", "flow.start", "fs.read"]) {
    expect(() => checkTools([tool(name)]), name).toThrow(/flowcell's own/);
  }
  expect(() => checkTools([tool("kv")])).toThrow(/rename/);
  expect(() => checkTools([tool("tools.a"), tool("tools.a")])).toThrow(/defined twice/);
  checkTools(sources.functions);
});
