#!/usr/bin/env node
// Makes the tables of docs/CONFINEMENT.md from packages/sandbox/src: controls, facts of a Welcome, observations, blockers.
//
//   node scripts/generate-confinement.mjs [--check]

import process from "node:process";
import { between, present, settle } from "./lib/generated-files.mjs";
import { loadSources } from "./lib/load-sources.mjs";

const DOC = "docs/CONFINEMENT.md";
const SOURCES = "packages/sandbox/src";

const cell = (text) => String(text).replaceAll("|", "\\|").replaceAll("\n", " ");
const code = (names) => names.map((name) => `\`${name}\``).join(", ");

function table(head, rows) {
  const line = (cells) => `| ${cells.map(cell).join(" | ")} |\n`;
  return line(head) + line(head.map(() => "---")).replaceAll(" --- ", "---") + rows.map(line).join("");
}

/** What holds a control on Linux: under a root parent, on a kernel that has everything. */
function held(status) {
  if (status.state === "enforced") return code(status.layers);
  return `${status.state}: ${status.missing}`;
}

const { CONTROL_ROWS, CONTROLS } = await loadSources(`${SOURCES}/controls.ts`);
const { linuxControls } = await loadSources(`${SOURCES}/linux-controls.ts`);
const { FACT_NAMES, FACT_ROWS } = await loadSources(`${SOURCES}/welcome.ts`);
const { OBSERVATIONS, OBSERVATION_RULES } = await loadSources(`${SOURCES}/observe.ts`);
const { UNIT_TESTS } = await loadSources(`${SOURCES}/evidence.ts`);
const { BLOCKER_CODES } = await loadSources(`${SOURCES}/blocker.ts`);

const everything = { landlockAbi: 11, memoryDenyWriteExecute: true };
const asRoot = linuxControls({ ...everything, root: true });
const asUser = linuxControls({ ...everything, root: false });

const parts = {
  controls: table(
    [
      "control",
      "what holds",
      "Linux, root parent",
      "Linux, ordinary parent",
      "macOS, Windows",
      "does not prove",
    ],
    CONTROLS.map((control, index) => [
      code([control]),
      CONTROL_ROWS[control].title,
      held(asRoot[index]),
      held(asUser[index]) === held(asRoot[index]) ? "the same" : held(asUser[index]),
      "not built yet",
      CONTROL_ROWS[control].doesNotProve,
    ]),
  ),
  facts: table(
    ["fact", "must be", "speaks for"],
    FACT_NAMES.map((fact) => [code([fact]), FACT_ROWS[fact].rule, code(FACT_ROWS[fact].controls)]),
  ),
  observations: table(
    ["observation", "from", "must be", "speaks for"],
    OBSERVATIONS.map((name) => {
      const { source, rule, controls } = OBSERVATION_RULES[name];
      return [code([name]), source, rule, controls.length === 0 ? "good order at launch" : code(controls)];
    }),
  ),
  "unit tests": table(
    ["control", "tests of the code that holds it"],
    CONTROLS.filter((control) => UNIT_TESTS[control].length > 0).map((control) => [
      code([control]),
      code(UNIT_TESTS[control]),
    ]),
  ),
  blockers: `${code(BLOCKER_CODES)}\n`,
};

let text = present(DOC);
if (text === undefined) throw new Error(`${DOC} is missing`);
for (const [name, part] of Object.entries(parts)) text = between(text, name, `\n${part}\n`);
process.exitCode = settle([[DOC, text]], process.argv.includes("--check")) ? 0 : 1;
