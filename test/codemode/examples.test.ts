// Runs the programs for the adapters in examples/codemode as their first lines say, in processes of their own, with what users load.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { node, root } from "../cli/run-cli.js";

const folder = "examples/codemode";
const printed: Readonly<Record<string, string>> = {
  "ai.mjs": `approve? tools.sendReminder [{"customer":"Ada","text":"Please pay"}]
["sent to Ada"]
Ada was reminded.
`,
  "cloudflare.mjs": `{ result: { Ada: 4250, Bob: 900 }, logs: [ 'orders: 3' ] }
missing is not defined { file: 'script.js', line: 2, column: 10 }
`,
  "mcp.mjs": `{"names":["LICENSE-UNICODE.txt","UnicodeData.txt"],"sum":"The sum of 2 and 3 is 5."}
`,
};

/** The command in the comment at the head. */
function command(name: string): string[] {
  const line = /^\/\/ {3}node (.*)$/m.exec(readFileSync(join(root, folder, name), "utf8"));
  return (line?.[1] ?? "").split(" ");
}

test.each(Object.keys(printed))("%s prints what it should", async (name) => {
  const words = command(name);
  expect(words.at(-1)).toBe(`${folder}/${name}`);
  const ran = await node(words);
  expect({ code: ran.code, out: ran.out, err: ran.code === 0 ? "" : ran.err }).toEqual({
    code: 0,
    out: printed[name],
    err: "",
  });
});
