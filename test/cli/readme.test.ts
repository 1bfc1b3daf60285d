// The README's list of commands is the table of commands.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { commands } from "../../packages/flowcell/src/cli/commands.js";
import { root } from "./run-cli.js";

test("the README lists every command with its arguments and its line", () => {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const listed = /<!-- commands: .* -->\n([\s\S]*?)<!-- end: commands -->/.exec(readme)?.[1] ?? "";
  const rows = commands.map(({ name, arguments: args, summary }) => {
    const typed = [name, ...args.map((one) => one.replace(/[<>]/g, ""))].join(" ").replaceAll("|", "\\|");
    return `| \`${typed}\` | ${summary} |\n`;
  });
  expect(listed).toBe(`| command | what it does |\n|---|---|\n${rows.join("")}`);
});
