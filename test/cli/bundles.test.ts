// What users load as it lies in packages/flowcell/dist: texts that cost one byte a character, and V8's code that V8 takes.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { node, root } from "./run-cli.js";

const dist = join(root, "packages/flowcell/dist");
const stems = readdirSync(dist)
  .filter((name) => /^[a-z]+-[0-9a-f]{16}\.cjs$/.test(name))
  .map((name) => name.replace(/\.cjs$/, ""));

test("each bundle with stored code has the loader that names it, and no older one is left", () => {
  const named = readdirSync(dist)
    .filter((name) => /^[a-z]+\.[cm]js$/.test(name))
    .flatMap(
      (name) => /"(?:\.\/)?([a-z]+-[0-9a-f]{16})"/.exec(readFileSync(join(dist, name), "latin1"))?.[1] ?? [],
    );
  expect(named).toEqual(
    expect.arrayContaining([expect.stringMatching(/^index-/), expect.stringMatching(/^cli-/)]),
  );
  expect(stems.sort()).toEqual(named.sort());
});

test.each(stems)("%s is ASCII, which its loader reads it as", (stem) => {
  const bytes = readFileSync(join(dist, `${stem}.cjs`));
  expect(bytes.findIndex((byte) => byte > 0x7f)).toBe(-1);
});

test.each(stems)("%s: V8 takes its stored code, in a process without flags", async (stem) => {
  const ran = await node([
    "-e",
    `const { readFileSync } = require("node:fs");
     const [path, code] = ${JSON.stringify([join(dist, `${stem}.cjs`), join(dist, `${stem}.code`)])};
     const options = { filename: path, cachedData: readFileSync(code) };
     const script = new (require("node:vm").Script)(readFileSync(path, "latin1"), options);
     console.log(script.cachedDataRejected);`,
  ]);
  expect(ran).toMatchObject({ code: 0, out: "false\n" });
});
