/** `flowcell show FLOW [HASH]`: a version for a reviewer. */

import type { FlowService, VersionReport } from "@flowcell/flows";
import { safeLines } from "../cli/human.js";
import type { Context } from "./context.js";
import { bundleLine, changesText, dryRunText, headText, reachText, sourceText } from "./version-text.js";

export async function show(context: Context): Promise<number> {
  const { typed, streams } = context;
  return await context.ask(async (service) => {
    const version = await service.show(typed.argument(0), typed.optional(1));
    if (context.json) {
      context.object({ ok: true, ...version });
      return 0;
    }
    if (typed.flag("bundle")) {
      // Byte for byte to a file; a template literal may hold what steers a terminal.
      streams.out(streams.outIsTerminal ? safeLines(version.bundle) : version.bundle);
      return 0;
    }
    streams.out(`${headText(version)}${bundleLine(version)}\n\n${reachText(version)}`);
    const dry = dryRunText(version.dryRun);
    if (dry !== "") streams.out(`\n${dry}`);
    if (typed.flag("diff")) streams.out(`\n${await changes(service, version)}`);
    if (typed.flag("source")) streams.out(`\n${sourceText(version)}`);
    return 0;
  });
}

/** Against the approved version; all of the source when there is none. */
export async function changes(service: FlowService, version: VersionReport): Promise<string> {
  if (version.difference === null) {
    return version.state === "approved" ? "this is the approved version\n" : sourceText(version);
  }
  const approved = await service.show(version.flow, version.difference.approvedHash);
  return changesText(approved, version);
}
