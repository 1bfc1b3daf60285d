/** `flowcell types PATH`: host.d.ts beside the flow, and what an editor needs to read it. */

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { printable } from "@flowcell/bundle";
import { readFlowFolder } from "@flowcell/flows";
import { flowTsconfig } from "@flowcell/manifest";
import { safeLines } from "../cli/human.js";
import { UsageError } from "../cli/usage.js";
import { errorCode } from "../owner/data-folder.js";
import { ceilings } from "../owner/open.js";
import type { Context } from "./context.js";
import { flowPath } from "./flow-path.js";
import { hostTypesName, hostTypesOf, testTypes, testTypesName } from "./flow-types.js";

export async function types(context: Context): Promise<number> {
  const folder = flowPath(context.typed.argument(0));
  const flow = await readFlowFolder(folder, ceilings);
  const text = hostTypesOf(flow, folder);
  if (context.typed.flag("print")) {
    if (context.json) context.object({ ok: true, flow: flow.manifest.id, text });
    else context.streams.out(context.streams.outIsTerminal ? safeLines(text) : text);
    return 0;
  }
  const files = [write(folder, hostTypesName, text), write(folder, testTypesName, testTypes())];
  // An author's own configuration is left alone.
  if (!existsSync(join(folder, "tsconfig.json"))) files.push(write(folder, "tsconfig.json", flowTsconfig()));
  if (context.json) context.object({ ok: true, flow: flow.manifest.id, files });
  else for (const file of files) context.say(`wrote ${printable(file)}`);
  return 0;
}

function write(folder: string, name: string, text: string): string {
  const path = join(folder, name);
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw new UsageError(
      "request",
      `${path}: cannot be written (${errorCode(error)}); --print prints the types instead`,
    );
  }
  return path;
}
