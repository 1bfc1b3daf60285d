#!/usr/bin/env node
// Makes the tables of docs/MANIFEST.md from packages/manifest/src: the fields, the keywords and the formats of schemas.
//
//   node scripts/generate-manifest.mjs [--check]

import process from "node:process";
import { between, present, settle } from "./lib/generated-files.mjs";
import { loadSources } from "./lib/load-sources.mjs";

const DOC = "docs/MANIFEST.md";

function table(head, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |\n`;
  return line(head) + line(head.map(() => "---")).replaceAll(" ", "") + rows.map(line).join("");
}

/** A bar inside a cell would end it. */
function cell(text) {
  return text.replaceAll("|", "\\|");
}

function code(text) {
  return text === "" || text === "required" ? text : `\`${text}\``;
}

const { manifestFields } = await loadSources("packages/manifest/src/field-table.ts");
const { keywordNames } = await loadSources("packages/manifest/src/schema-keywords.ts");
const { formatNames } = await loadSources("packages/manifest/src/schema-formats.ts");

const document = present(DOC);
if (document === undefined) throw new Error(`flowcell: ${DOC} is missing`);
const fields = manifestFields().map(({ path, type, initial, meaning }) => {
  const [field, kind] = path.split(" ");
  return [
    kind === undefined ? `\`${field}\`` : `\`${field}\` ${kind}`,
    cell(type),
    code(initial),
    cell(meaning),
  ];
});
const withFields = between(document, "fields", table(["field", "type", "default", "meaning"], fields));
const names = (list) => `${list.map((name) => `\`${name}\``).join(", ")}\n`;
const withKeywords = between(withFields, "keywords", names(keywordNames));
const same = settle(
  [[DOC, between(withKeywords, "formats", names(formatNames))]],
  process.argv.includes("--check"),
);
process.exit(same ? 0 : 1);
