// The image maker: the same prelude gives the same bytes, wherever it runs; a prelude that is not fit to be one gives none.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { build, root } from "./driver.js";

const maker = `${root}worker-native/build/engine/make_image`;
const testPrelude = `${root}worker-native/src/engine/testing/prelude.js`;
const sample = `${root}worker-native/src/engine/image/sample.js`;
let folder: string;

beforeAll(async () => {
  await build(["engine", "engine-test-image"]);
  folder = mkdtempSync(join(tmpdir(), "flowcell-image-"));
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

function make(prelude: string, name: string, options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}) {
  const out = join(folder, name);
  mkdirSync(out);
  return { out, ...spawnSync(maker, [prelude, sample, out], { encoding: "utf8", ...options }) };
}

function makeFrom(text: string, name: string): { status: number | null; stderr: string; files: string[] } {
  const path = join(folder, `${name}.js`);
  writeFileSync(path, text);
  const { out, status, stderr } = make(path, name);
  return { status, stderr, files: readdirSync(out) };
}

describe("the image", () => {
  it("is the same each time, in another folder, with another environment, at other addresses", () => {
    const first = make(testPrelude, "first");
    const second = make(testPrelude, "second", {
      cwd: folder,
      env: { LANG: "tr_TR.UTF-8", TZ: "Asia/Kathmandu", FILL: "x".repeat(5000) },
    });
    expect([first.status, second.status]).toEqual([0, 0]);
    const built = `${root}worker-native/build/engine/test-image`;
    for (const name of ["image.bin", "engine_image.c"]) {
      const bytes = readFileSync(join(first.out, name));
      expect(bytes.equals(readFileSync(join(second.out, name)))).toBe(true);
      // And it is what the test driver was linked with.
      expect(bytes.equals(readFileSync(join(built, name)))).toBe(true);
    }
  });

  it("of the worker is the same each time too", () => {
    const built = `${root}worker-native/build/engine/image`;
    const again = make(`${root}worker-native/build/prelude.js`, "worker");
    expect(again).toMatchObject({ status: 0, stderr: "" });
    for (const name of readdirSync(again.out)) {
      expect(readFileSync(join(again.out, name)).equals(readFileSync(join(built, name)))).toBe(true);
    }
  });
});

describe("a prelude is refused", () => {
  const head = "const native = globalThis.__flowcell_native; delete globalThis.__flowcell_native;";
  const functions = "{ activate() {}, start() {}, refuse() {}, deliver() {}, idle() {}, rejection() {} }";
  const prelude = (body: string, result = functions): string =>
    `(() => { ${head} ${body}; return ${result} })()`;

  it.each([
    ["when it does not parse", "(() => {", /prelude\.js threw: SyntaxError/],
    ["when it throws", prelude("null.x"), /prelude\.js threw: TypeError/],
    ["when it gives no object", prelude("", "7"), /completion value is no object/],
    ["when a function is missing", prelude("", functions.replace("idle() {}, ", "")), /no function idle/],
    ["when the natives stay on the global", `(${functions})`, /did not delete __flowcell_native/],
    ["when a rejection is left unhandled", prelude("Promise.reject(1)"), /rejection unhandled/],
    ["when it calls a native", prelude("native.cpuUs()"), /called native function 0x10002/],
    ["when it holds a NUL", `${prelude("")}//\0`, /holds a NUL/],
  ])("%s", (what, text, message) => {
    const { status, stderr, files } = makeFrom(text, what.replaceAll(" ", "-"));
    expect(status).toBe(1);
    expect(stderr).toMatch(message);
    expect(files).toEqual([]);
  });

  it("but one that does nothing wrong is taken", () => {
    expect(makeFrom(prelude("Promise.reject(1).catch(() => 0)"), "control")).toMatchObject({
      status: 0,
      stderr: "",
    });
  });
});
