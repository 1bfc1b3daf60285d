// What `flowcell exec` does at a terminal: somebody is asked what a script may call. As a process it is tested in test/cli.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { execCommand } from "./exec-command.js";
import { Typed } from "./typed.js";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "exec-"));
  const tools = `export const pay = {
    description: "Pays.",
    inputSchema: { type: "object" },
    needsApproval: true,
    execute: ({ cents }) => "paid " + cents,
  };`;
  writeFileSync(join(folder, "tools.mjs"), tools);
  writeFileSync(join(folder, "pay.js"), "return await tools.pay({ cents: 5 })");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function exec(
  answer?: string,
  approve: readonly string[] = [],
): Promise<{ code: number; out: string; err: string; asked: string[] }> {
  const told = { out: "", err: "" };
  const asked: string[] = [];
  const ask = (question: string): Promise<string> => {
    asked.push(question);
    return Promise.resolve(answer ?? "");
  };
  const code = await execCommand(
    new Typed([join(folder, "pay.js")], { tools: join(folder, "tools.mjs"), approve }),
    {
      out: (text) => {
        told.out += text;
      },
      err: (text) => {
        told.err += text;
      },
      outIsTerminal: false,
      ...(answer === undefined ? {} : { ask }),
    },
  );
  return { code, ...told, asked };
}

test("a yes lets the call happen, with what it is about shown before", async () => {
  const { code, out, asked } = await exec("y");
  expect([code, out]).toEqual([0, "paid 5\n"]);
  expect(asked).toEqual([expect.stringMatching(/^tools\.pay\(\{\s*"cents": 5\s*\}\)\nMay it be called\?/)]);
});

test("anything else refuses it, and the script is told", async () => {
  const { code, out, err } = await exec("");
  expect([code, out]).toEqual([3, ""]);
  expect(err).toMatch(/tools\.pay: the approval was refused/);
});

test("where nobody sits the execution stays suspended, with an exit code of its own", async () => {
  const { code, err } = await exec();
  expect(code).toBe(8);
  expect(err).toMatch(/suspended.*approval of tools\.pay/);
});

test("what was approved beforehand is not asked", async () => {
  const { code, out, asked } = await exec("n", ["tools.pay"]);
  expect([code, out, asked]).toEqual([0, "paid 5\n", []]);
});
