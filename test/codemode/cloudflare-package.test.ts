// The executor inside the real @cloudflare/codemode, as its users have it: `/browser` as it is, `/ai` and the root with the loader,
// in processes of their own. They load what users load, the bundles and the loader of packages/flowcell.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createBrowserCodeTool } from "@cloudflare/codemode/browser";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FlowcellExecutor } from "../../packages/codemode/src/adapters/cloudflare.js";
import { node, type Ran, root } from "../cli/run-cli.js";

const loader = ["--import", "@flowcell/flowcell/cloudflare-node"];
const apps = "test/codemode/apps";

function program(ran: Ran): unknown {
  expect({ code: ran.code, err: ran.err }).toMatchObject({ code: 0 });
  return JSON.parse(ran.out);
}

test("the package is the version that the contract was read from", () => {
  const path = join(root, "node_modules/@cloudflare/codemode/package.json");
  expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ version: "0.5.6" });
});

describe("the loader", () => {
  const load =
    "await import('@cloudflare/codemode'); await import('@cloudflare/codemode/ai'); console.log(1)";

  test("lets Node load the package, which it cannot without", async () => {
    const without = await node(["--input-type=module", "-e", load]);
    expect(without.code).not.toBe(0);
    expect(without.err).toContain("cloudflare:");
    const ran = await node([...loader, "--input-type=module", "-e", load]);
    expect(ran).toMatchObject({ code: 0, out: "1\n", err: "" });
  });

  test("changes nothing else", async () => {
    const ran = await node([...loader, "--input-type=module", "-e", "await import('cloudflare:sockets')"]);
    expect(ran.code).not.toBe(0);
    expect(ran.err).toContain("cloudflare:");
  });

  test("gives an import() in the same program time", async () => {
    const code = `await import("@flowcell/flowcell/cloudflare-node"); ${load}`;
    expect(await node(["--input-type=module", "-e", code])).toMatchObject({ code: 0, out: "1\n" });
  });
});

test("scripts end as in the reference executor", async () => {
  const printed = program(await node([...loader, `${apps}/compare.mjs`])) as {
    compared: { what: string; equal: boolean; theirs: string; ours: string }[];
    apart: { code: string; theirs: string; ours: string }[];
  }; // what the program prints
  expect(printed.compared.length).toBeGreaterThan(40);
  expect(printed.compared.filter(({ equal }) => !equal)).toEqual([]);
  for (const { theirs, ours } of printed.apart) {
    expect(theirs).not.toContain("error:");
    expect(ours).toContain("error:");
  }
});

test("createCodeTool works in the AI SDK, and the program ends by itself", async () => {
  const printed = program(await node([...loader, `${apps}/code-tool.mjs`]));
  expect(printed).toMatchObject({
    text: "done",
    outcomes: [
      { result: { warmest: "Oslo!", rows: [1, 2, 3] }, logs: ["asking"] },
      expect.stringMatching(/Code execution failed: .*\n\nConsole output:\n\[warn\] soon$/s),
      { result: 42 },
      'Error: Code execution failed: Tool "dangerous" not found',
    ],
    description: expect.stringContaining("get_weather"),
  });
});

describe("createBrowserCodeTool, without a loader", () => {
  let executor: FlowcellExecutor;
  beforeAll(() => {
    executor = new FlowcellExecutor();
  });
  afterAll(() => executor.close());

  test("runs scripts against tools", async () => {
    const tool = createBrowserCodeTool({
      executor,
      tools: [
        {
          name: "add-numbers",
          description: "Adds",
          inputSchema: {
            type: "object",
            properties: { a: { type: "number" }, b: { type: "number" } },
          },
          execute: async (input) => {
            const { a, b } = input as { a: number; b: number }; // as its schema says
            return a + b;
          },
        },
      ],
    });
    expect(tool.description).toContain("add_numbers");
    const code = "const sum = await codemode.add_numbers({ a: 1, b: 2 });\nconsole.log('sum', sum);\nsum";
    expect(await tool.execute({ code })).toEqual({ result: 3, logs: ["sum 3"] });
    await expect(tool.execute({ code: "async () => { throw new Error('no'); }" })).rejects.toThrow(
      "Code execution failed: no",
    );
  });
});
