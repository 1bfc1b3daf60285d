/** `flowcell cancel RUN` and `flowcell signal RUN NAME`. */

import { OperationError, type RunReport } from "@flowcell/flows";
import type { Context } from "./context.js";
import { drive } from "./drive.js";
import { runJson, summaryText } from "./run-text.js";

/**
 * What a command prints that changed a run: what was done, and how the run stands when it was waited for. The code is that
 * of the change, not of the run.
 */
export function printChange(
  context: Context,
  done: object,
  what: string,
  report: RunReport | undefined,
): number {
  if (context.json) {
    context.object({ ok: true, ...done, ...(report === undefined ? {} : { run: runJson(report) }) });
    return 0;
  }
  context.say(what);
  if (report !== undefined) context.streams.err(summaryText(report));
  return 0;
}

export async function cancel(context: Context): Promise<number> {
  const runId = context.typed.argument(0);
  const { report } = await drive(context, {
    wait: "ended",
    begin: async (service) => {
      const cancelled = await service.cancel(runId, context.by);
      if (cancelled) return runId;
      const { status } = await service.run(runId);
      throw new OperationError("conflict", `run ${runId} is finished already (${status ?? "finished"})`);
    },
  });
  return printChange(context, { runId, cancelled: true }, `cancelled ${runId}`, report);
}

export async function signal(context: Context): Promise<number> {
  const { typed } = context;
  const [runId, name] = [typed.argument(0), typed.argument(1)];
  const value = context.value("value");
  const signalId = typed.text("id");
  let sent = false;
  const { report } = await drive(context, {
    wait: typed.wait ? "here" : "never",
    begin: async (service) => {
      sent = await service.signal({
        runId,
        name,
        by: context.by,
        ...(value === undefined ? {} : { value }),
        ...(signalId === undefined ? {} : { signalId }),
      });
      if (sent || signalId !== undefined) return runId;
      throw new OperationError("conflict", `run ${runId} is finished; it takes no signal any more`);
    },
  });
  const what = sent
    ? `sent ${name} to ${runId}`
    : `nothing sent: ${signalId} was sent before, or the run is finished`;
  return printChange(context, { runId, sent }, what, report);
}
