/** The folder that a command was given as a flow's: what is wrong with it is told with its name. */

import { existsSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { UsageError } from "../cli/usage.js";

const scriptEndings: ReadonlySet<string> = new Set([".ts", ".mts", ".js", ".mjs"]);

/** Throws UsageError for what cannot be a flow's folder; what is in its files is looked at by whoever reads them. */
export function flowPath(path: string): string {
  const status = statSync(path, { throwIfNoEntry: false });
  if (status === undefined) throw new UsageError("request", `${path}: there is no such folder`);
  if (!status.isDirectory()) {
    const run = scriptEndings.has(extname(path)) ? `; a script file runs with: flowcell run ${path}` : "";
    throw new UsageError(
      "request",
      `${path}: is a file; a flow is a folder with flow.json and a script${run}`,
    );
  }
  if (existsSync(join(path, "flow.json"))) return path;
  throw new UsageError(
    "request",
    `${path}: holds no flow: there is no flow.json in it; a script file runs by its own name: flowcell run ${join(path, "FILE")}`,
  );
}
