/** `flowcell check PATH`: what is wrong with a flow's folder, before anybody installs it. Nothing of it is run. */

import { type FlowFolder, OperationError, readFlowFolder } from "@flowcell/flows";
import { indented } from "../cli/human.js";
import { ceilings } from "../owner/open.js";
import type { Context } from "./context.js";
import { checkTypes, type TypeProblem } from "./flow-types.js";
import { short } from "./tables.js";

export async function check(context: Context): Promise<number> {
  const folder = context.typed.argument(0);
  let flow: FlowFolder;
  try {
    flow = await readFlowFolder(folder, ceilings);
  } catch (error) {
    if (!(error instanceof OperationError)) throw error;
    return report(context, null, error.problems.length === 0 ? [error.message] : error.problems, [], false);
  }
  const types = await checkTypes(folder, flow);
  const errors = (types ?? []).filter(({ severity }) => severity === "error").map(line);
  const warnings = [
    ...flow.bundle.warnings,
    ...(types ?? []).filter(({ severity }) => severity === "warning").map(line),
  ];
  return report(context, flow, errors, warnings, types !== null);
}

function line({ file, line: at, column, code, message }: TypeProblem): string {
  return `${file}:${at}:${column}: ${message} (TS${code})`;
}

function report(
  context: Context,
  flow: FlowFolder | null,
  errors: readonly string[],
  warnings: readonly string[],
  typesChecked: boolean,
): number {
  const ok = errors.length === 0;
  if (context.json) {
    const found = flow === null ? {} : { flow: flow.manifest.id, hash: flow.hash };
    context.object({ ok, ...found, errors, warnings, typesChecked });
    return ok ? 0 : 1;
  }
  for (const text of errors) context.say(indented(text, "  "));
  for (const text of warnings) context.say(`warning: ${indented(text, "  ")}`);
  if (flow === null || !ok) return 1;
  const types = typesChecked
    ? "manifest, script and types are right"
    : "manifest and script are right; no TypeScript compiler was found";
  context.say(`${flow.manifest.id}: ${types} (hash ${short(flow.hash)})`);
  return 0;
}
