// Bundling a flow's folder: which file is the entry, what is in the result, and that it is the same anywhere.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { bundleFlow, type FlowBundle, readFlowFile, restoreScriptMap } from "./index.js";

const limits = { sourceBytes: 1024 * 1024 };
const root = mkdtempSync(join(tmpdir(), "flow-folder-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folders = 0;

function folder(files: Readonly<Record<string, string | Uint8Array>>): string {
  const base = join(root, `a b ${"x".repeat(folders % 5)}${folders++}`);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(base, name)), { recursive: true });
    writeFileSync(join(base, name), content);
  }
  return base;
}

async function bundleOf(files: Readonly<Record<string, string | Uint8Array>>): Promise<FlowBundle> {
  const result = await bundleFlow(folder(files), limits);
  if (!result.ok) throw new Error(result.failure.message);
  return result.bundle;
}

async function failureOf(base: string): Promise<string> {
  const result = await bundleFlow(base, limits);
  if (result.ok) throw new Error("expected a failure");
  return result.failure.message;
}

const withImports = {
  "flow.ts": `import { twice } from "./lib/twice.ts"; import dot from "dot"; import table from "./table.json";
export default async function (input: number): Promise<number> { return twice(dot(input)) + table.add; }\n`,
  "lib/twice.ts": "export const twice = (n: number): number => n * 2;\n",
  "table.json": '{"add": 1}',
  "node_modules/dot/package.json": '{"name": "dot", "main": "main.js"}',
  "node_modules/dot/main.js": "module.exports = (n) => n;\n",
};

describe("the entry", () => {
  for (const name of ["flow.ts", "flow.js", "flow.mts", "flow.mjs"]) {
    test(`${name} is one`, async () => {
      const made = await bundleOf({ [name]: "export default () => 1;", "other.ts": "no script" });
      expect(made.entry).toBe(name);
      expect(made.inputs.map(({ path }) => path)).toEqual([name]);
    });
  }

  test("a folder without one is refused with the names it could have", async () => {
    expect(await failureOf(folder({ "main.ts": "export default () => 1;" }))).toBe(
      "the folder holds no script; name it flow.ts, flow.js, flow.mts, flow.mjs",
    );
  });

  test("a folder with two is refused, and both are named", async () => {
    const base = folder({ "flow.ts": "export default () => 1;", "flow.js": "export default () => 2;" });
    expect(await failureOf(base)).toBe("the folder holds flow.ts and flow.js; keep one of them");
  });

  test("a link out of the folder is refused, a link inside is followed", async () => {
    const outside = folder({ "flow.ts": "export default () => 1;" });
    const base = folder({ "README.md": "" });
    symlinkSync(join(outside, "flow.ts"), join(base, "flow.ts"));
    expect(await failureOf(base)).toContain("lies outside the folder");
    const inside = folder({ "src/main.ts": "export default () => 1;" });
    symlinkSync("src/main.ts", join(inside, "flow.ts"));
    expect((await bundleFlow(inside, limits)).ok).toBe(true);
  });

  test("a file and a missing folder are refused", async () => {
    const base = folder({ "flow.ts": "" });
    expect(await failureOf(join(base, "flow.ts"))).toContain("a flow is a folder");
    expect(await failureOf(join(base, "nothing"))).toContain("no such folder");
  });
});

describe("the result", () => {
  test("holds the bytes of every file that is in it, packages too, sorted, and no other file", async () => {
    const made = await bundleOf({ ...withImports, "notes.txt": "x", "lib/unused.ts": "export {};" });
    expect(made.inputs.map(({ path }) => path)).toEqual([
      "flow.ts",
      "lib/twice.ts",
      "node_modules/dot/main.js",
      "table.json",
    ]);
    for (const { path, bytes, text } of made.inputs) {
      expect(Buffer.from(bytes).toString()).toBe(withImports[path as keyof typeof withImports]); // a key of the object
      expect(text).toBe(Buffer.from(bytes).toString());
    }
  });

  test("keeps a byte order mark in the bytes and drops it from the text", async () => {
    const made = await bundleOf({ "flow.ts": "\ufeffexport default () => 1;" });
    expect(made.inputs[0]?.bytes.length).toBe(26);
    expect(made.inputs[0]?.text).toBe("export default () => 1;");
  });

  test("is the same for the same files in another place, and under a link", async () => {
    for (const files of [withImports, { "flow.js": "export default () => 1;" }]) {
      const first = await bundleOf(files);
      const place = folder(files);
      const second = await bundleFlow(place, limits);
      const link = `${place}-link`;
      symlinkSync(place, link);
      const third = await bundleFlow(link, limits);
      expect(second).toEqual({ ok: true, bundle: first });
      expect(third).toEqual({ ok: true, bundle: first });
    }
  });

  test("differs when any of its files does", async () => {
    const first = await bundleOf(withImports);
    for (const path of ["flow.ts", "lib/twice.ts", "node_modules/dot/main.js"] as const) {
      const second = await bundleOf({ ...withImports, [path]: `${withImports[path]}// changed\n` });
      expect(second.inputs).not.toEqual(first.inputs);
    }
  });

  test("has bounds: a source, and the sources together", async () => {
    const result = await bundleFlow(folder({ "flow.ts": `export default () => ${"1+".repeat(1000)}1;` }), {
      sourceBytes: 1000,
    });
    expect(result).toMatchObject({ ok: false, failure: { code: "source_too_large" } });
  });
});

describe("the map", () => {
  test("is restored from its text for a single file", async () => {
    const made = await bundleOf({ "flow.ts": "export default function () {\n  throw new Error('x');\n}\n" });
    const map = restoreScriptMap(made.mapText, made.text, made.inputs);
    const line = made.text.split("\n").findIndex((text) => text.includes("throw")) + 1;
    expect(map.toSource(line, 3)).toEqual({ file: "flow.ts", line: 2, column: 3 });
  });

  test("is restored from its text for a bundle, and knows the files' lines", async () => {
    const made = await bundleOf(withImports);
    const map = restoreScriptMap(made.mapText, made.text, made.inputs);
    const lines = made.text.split("\n");
    const line = lines.findIndex((text) => text.includes("n * 2")) + 1;
    const column = (lines[line - 1] ?? "").indexOf("n * 2") + 1;
    const place = map.toSource(line, column);
    expect(place).toMatchObject({ file: "lib/twice.ts", line: 1 });
    expect(map.sourceLine({ file: "lib/twice.ts", line: 1, column: 1 })).toContain("twice");
  });
});

describe("another file of the folder", () => {
  test("is read up to its bound, and not through a link that leads out", () => {
    const base = folder({ "flow.json": "{}" });
    const read = readFlowFile(base, "flow.json", 2);
    expect(read.ok && Buffer.from(read.bytes).toString()).toBe("{}");
    expect(readFlowFile(base, "flow.json", 1)).toMatchObject({
      ok: false,
      failure: { message: "flow.json: is larger than 1 bytes" },
    });
    const other = folder({ "a.txt": "" });
    writeFileSync(join(root, "outside.json"), "{}");
    symlinkSync(join(root, "outside.json"), join(other, "flow.json"));
    expect(readFlowFile(other, "flow.json", 100)).toMatchObject({
      ok: false,
      failure: { message: "flow.json: is a link out of the flow's folder" },
    });
    expect(readFileSync(join(other, "flow.json"), "utf8")).toBe("{}");
  });
});
