/** `flowcell start FLOW`: a run of the approved version, and its result. */

import { UsageError } from "../cli/usage.js";
import type { Context } from "./context.js";
import { drive } from "./drive.js";
import { printRun } from "./run-text.js";

export async function start(context: Context): Promise<number> {
  const { typed } = context;
  const flow = typed.argument(0);
  if (/[./\\]/.test(flow)) {
    throw new UsageError(
      "request",
      `start takes the id of an installed flow, as flowcell list shows it; a folder runs with: flowcell run ${flow}`,
    );
  }
  const input = context.value("input");
  const key = typed.text("key");
  let created = true;
  const { runId, report } = await drive(context, {
    wait: typed.wait ? "always" : "never",
    begin: async (service) => {
      const started = await service.start({
        flow,
        by: context.by,
        ...(input === undefined ? {} : { input }),
        ...(key === undefined ? {} : { deduplicationKey: key }),
      });
      created = started.created;
      return started.runId;
    },
  });
  if (!created) context.remark("the key was used before: this is the run that it started");
  if (report !== undefined) return printRun(context, report);
  if (context.json) context.object({ ok: true, runId, created });
  else context.say(runId);
  return 0;
}
