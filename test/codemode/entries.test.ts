// What the entries of packages/flowcell for codemode load and export, in processes of their own.
import { expect, test } from "vitest";
import { node } from "../cli/run-cli.js";

/** Modules that are asked for by `import` of an entry, Node's own left out, and the names that it exports. */
async function load(entry: string): Promise<{ asked: string[]; names: string[] }> {
  const code = `
    import Module from "node:module";
    const asked = new Set();
    const load = Module._load;
    Module._load = (id, ...rest) => (asked.add(id), load(id, ...rest));
    const names = Object.keys(await import("@flowcell/flowcell/${entry}")).sort();
    const others = [...asked].filter((id) => !Module.isBuiltin(id));
    console.log(JSON.stringify({ asked: others.sort(), names }));`;
  const ran = await node(["--input-type=module", "-e", code]);
  expect(ran).toMatchObject({ code: 0, err: "" });
  return JSON.parse(ran.out) as { asked: string[]; names: string[] }; // printed above
}

test.each([
  ["ai", ["CodemodeOptionsError", "codemodeTool"]],
  ["cloudflare", ["CodemodeOptionsError", "FlowcellExecutor", "reportOf"]],
  ["codemode", ["CodemodeOptionsError", "createCodemode"]],
])("%s loads one bundle, and no package before it is used", async (entry, names) => {
  const loaded = await load(entry);
  expect(loaded.names).toEqual(expect.arrayContaining(names));
  expect(loaded.asked.filter((id) => !id.startsWith(".") && !id.startsWith("/"))).toEqual([]);
});
