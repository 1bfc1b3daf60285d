// What the entries of packages/flowcell for codemode load and export, in processes of their own.
import { expect, test } from "vitest";
import { node } from "../cli/run-cli.js";
import { oddServer } from "./mcp-client.js";

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
  ["ai", ["CodemodeOptionsError", "codemodeTool", "openSqliteStore"]],
  ["cloudflare", ["CodemodeOptionsError", "FlowcellExecutor", "reportOf"]],
  [
    "codemode",
    ["CodemodeOptionsError", "compactTypes", "createCodemode", "openSqliteStore", "toolDeclarations"],
  ],
  ["mcp", ["CodemodeOptionsError", "createCodemode", "openMcpTools", "openSqliteStore", "parseMcpConfig"]],
])("%s loads one bundle, and no package before it is used", async (entry, names) => {
  const loaded = await load(entry);
  expect(loaded.names).toEqual(expect.arrayContaining(names));
  expect(loaded.asked.filter((id) => !id.startsWith(".") && !id.startsWith("/"))).toEqual([]);
});

test("mcp gives a codemode the tools of servers, with their errors", async () => {
  const code = `
    import { createCodemode, openMcpTools, parseMcpConfig } from "@flowcell/flowcell/mcp";
    const odd = { command: process.execPath, args: [${JSON.stringify(oddServer)}] };
    const text = JSON.stringify({ mcpServers: { odd } });
    const { config } = await parseMcpConfig(text, { folder: process.cwd(), environment: process.env });
    const servers = await openMcpTools(config, { version: "1", onNote: () => undefined });
    const codemode = await createCodemode({ tools: servers.tools });
    const script = "return [await odd.add({ a: 1, b: 2 }), await odd.die_reading().catch((e) => e.code), " +
      "await odd.add({ a: 1 }).catch((e) => e.code)]";
    console.log(JSON.stringify((await codemode.execute(script)).value));
    await codemode.close();
    await servers.close();`;
  const ran = await node(["--input-type=module", "-e", code]);
  expect(ran).toMatchObject({ code: 0, err: "", out: '[{"sum":3},"unavailable","invalid_arguments"]\n' });
});

test("a mistyped option floods no terminal, though a bundle is one file", async () => {
  const code = `
    import { createCodemode } from "@flowcell/flowcell/codemode";
    await createCodemode({ toolz: {} });`;
  const ran = await node(["--input-type=module", "-e", code]);
  expect(ran.code).toBe(1);
  expect(ran.err).toContain("did you mean tools?");
  expect(ran.err.length).toBeLessThan(4_000);
});
