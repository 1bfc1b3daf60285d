#!/usr/bin/env node
// Makes the tables of docs/JOURNAL.md from packages/journal/src: what happens to a call after a crash, and what is on disk.
//
//   node scripts/generate-journal.mjs [--check]

import process from "node:process";
import { between, present, settle } from "./lib/generated-files.mjs";
import { loadSources } from "./lib/load-sources.mjs";

const DOC = "docs/JOURNAL.md";
const SOURCES = "packages/journal/src";

const cell = (text) => String(text).replaceAll("|", "\\|").replaceAll("\n", " ");

function table(head, rows) {
  const line = (cells) => `| ${cells.map(cell).join(" | ")} |\n`;
  return line(head) + line(head.map(() => "---")).replaceAll(" --- ", "---") + rows.map(line).join("");
}

/** A condition of a row, as one reads it. */
const asked = (value, yes, no) => (value === null ? "" : value ? yes : no);

const { recoveryTable, recoveryActions } = await loadSources(`${SOURCES}/recovery.ts`);
const { tableRows } = await loadSources(`${SOURCES}/sqlite/tables.ts`);

const parts = {
  recovery: table(
    ["effect", "and the call", "action", "because"],
    recoveryTable.map((row) => [
      row.effect === null ? "any" : `\`${row.effect}\``,
      [
        asked(row.unknown, "is marked unknown", "is not marked unknown"),
        asked(row.begun, "was begun", "was not begun"),
        asked(row.cancelled, "was given up by the script", "was not given up"),
      ]
        .filter((text) => text !== "")
        .join(", "),
      `\`${row.action}\``,
      row.reason,
    ]),
  ),
  actions: table(
    ["action", "the engine"],
    Object.entries(recoveryActions).map(([action, meaning]) => [`\`${action}\``, meaning]),
  ),
  tables: table(
    ["table", "a row is", "it can"],
    tableRows.map(({ table: name, row, change }) => [`\`${name}\``, row, change]),
  ),
};

let text = present(DOC);
if (text === undefined) throw new Error(`${DOC} is missing`);
for (const [name, part] of Object.entries(parts)) text = between(text, name, `\n${part}\n`);
process.exitCode = settle([[DOC, text]], process.argv.includes("--check")) ? 0 : 1;
