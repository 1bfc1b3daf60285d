// Runs the programs for the adapters in examples/codemode as their first lines say, in processes of their own, with what users load.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { flowcell, node, root } from "../cli/run-cli.js";

const folder = "examples/codemode";
const printed: Readonly<Record<string, string>> = {
  "ai.mjs": `approve? tools.sendReminder [{"customer":"Ada","text":"Please pay"}]
["sent to Ada"]
Ada was reminded.
`,
  "cloudflare.mjs": `{ result: { Ada: 4250, Bob: 900 }, logs: [ 'orders: 3' ] }
missing is not defined { file: 'script.js', line: 2, column: 10 }
`,
  "library.mjs": `suspended orders: 1
approve? mail.send [{"to":"Ada","text":"Order 7"}]
[ 'sent to Ada' ]
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

test("total.js is run as the page says", async () => {
  const page = readFileSync(join(root, "examples/README.md"), "utf8");
  const line = /`flowcell (exec examples\/codemode\/total\.js [^`]*)`/.exec(page)?.[1] ?? "";
  expect(await flowcell(line.split(" "))).toMatchObject({ code: 0, out: "1900\n" });
});

test("the page names every file, and each program with the command at its head", () => {
  const page = readFileSync(join(root, "examples/README.md"), "utf8");
  for (const name of readdirSync(join(root, folder))) expect(page).toContain(`\`codemode/${name}\``);
  for (const name of Object.keys(printed)) expect(page).toContain(`\`node ${command(name).join(" ")}\``);
});
