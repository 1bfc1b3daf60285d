// Makes V8's code of one bundle, in a process of its own: `node bundle-code.mjs NAME BUNDLE CODE` prints the names that the
// bundle exports. Called by bundle-cli.mjs.
//
// V8 compiles a function when it is first called, and stores what is compiled. So the bundle first does what its users begin
// with: half of a first run would be compiling otherwise. A host that confines no worker stores less, and nothing is wrong.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import vm from "node:vm";

const tools = { echo: { description: "Says it again", execute: async (value) => value } };

/** Name of a bundle → what its users begin with, given its exports. A bundle that is not here stores what its start compiles. */
const firstUses = {
  ai: async ({ codemodeTool }) => {
    const tool = await codemodeTool({ tools });
    await tool.execute({ code: "async () => await codemode.echo(1)" }, { toolCallId: "first", messages: [] });
    await tool.close();
  },
  cli: ({ main }) => runCommand(main),
  cloudflare: async ({ FlowcellExecutor }) => {
    const executor = new FlowcellExecutor();
    const provider = { name: "codemode", fns: { echo: async (value) => value } };
    await executor.execute("async () => await codemode.echo(1)", [provider]);
    await executor.close();
  },
  codemode: async ({ createCodemode }) => {
    const codemode = await createCodemode({ tools });
    await codemode.execute("return await tools.echo(1)");
    await codemode.close();
  },
  index: async ({ createRuntime }) => {
    const runtime = createRuntime();
    await runtime.run({ source: "export default async () => 1 + 1" });
    await runtime.close();
  },
};

/** `flowcell run` of a file, whose result and exit code are not this program's. */
async function runCommand(main) {
  const folder = mkdtempSync(join(tmpdir(), "flowcell-code-"));
  const file = join(folder, "first.js");
  writeFileSync(file, "export default async () => 1 + 1;\n");
  const { stdout, stderr } = process;
  const write = [stdout.write, stderr.write];
  stdout.write = stderr.write = () => true;
  try {
    await main(["run", file]);
  } finally {
    [stdout.write, stderr.write] = write;
    process.exitCode = 0;
    rmSync(folder, { recursive: true });
  }
}

async function storeCode(name, path, codePath) {
  const script = new vm.Script(readFileSync(path, "latin1"), { filename: path });
  const module = { exports: {} };
  script.runInThisContext()(module.exports, createRequire(path), module, path, dirname(path));
  await firstUses[name]?.(module.exports);
  writeFileSync(codePath, script.createCachedData());
  process.stdout.write(JSON.stringify(Object.keys(module.exports)));
}

await storeCode(...process.argv.slice(2));
