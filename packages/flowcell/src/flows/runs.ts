/** `flowcell runs [RUN]`: a list of runs, or everything about one. */

import { printable } from "@flowcell/bundle";
import type { RunRow } from "@flowcell/journal";
import type { Context } from "./context.js";
import { detailText, printRun, runJson } from "./run-text.js";
import { table, timeText } from "./tables.js";

export async function runs(context: Context): Promise<number> {
  const runId = context.typed.optional(0);
  return runId === undefined ? await listRuns(context) : await oneRun(context, runId);
}

async function oneRun(context: Context, runId: string): Promise<number> {
  return await context.ask(async (service) => {
    const report = await service.run(runId);
    if (context.json) {
      context.object(runJson(report));
      return 0;
    }
    context.streams.out(detailText(report));
    printRun(context, report);
    const quarantined = await service.quarantined(runId);
    for (const { position, reason, at } of quarantined) {
      context.remark(`quarantined: call ${position}, ${printable(reason)}, ${timeText(at)}`);
    }
    // Looking succeeded, however the run did.
    return 0;
  });
}

async function listRuns(context: Context): Promise<number> {
  const { typed } = context;
  const limit = typed.whole("limit", "--limit", 1, 1000) ?? 20;
  const [flow, state, before] = [typed.text("flow"), typed.text("state"), typed.text("before")];
  return await context.ask(async (service) => {
    const rows = await service.runs({
      limit,
      ...(flow === undefined ? {} : { flow }),
      ...(state === undefined ? {} : { state }),
      ...(before === undefined ? {} : { before }),
    });
    if (context.json) {
      context.object({ ok: true, runs: rows.map(rowJson) });
      return 0;
    }
    if (rows.length === 0) context.say("no runs");
    else context.say(table(["run", "flow", "state", "created", "changed"], rows.map(cells)));
    const last = rows.at(-1);
    if (last !== undefined && rows.length === limit)
      context.remark(`more: flowcell runs --before ${last.runId}`);
    return 0;
  });
}

function cells({ runId, flow, state, status, reason, createdAt, changedAt }: RunRow): readonly string[] {
  const why = status === null || reason === null ? "" : ` (${reason})`;
  return [runId, flow, `${status ?? state}${why}`, timeText(createdAt), timeText(changedAt)];
}

/** Input and result are not repeated in a list. */
function rowJson(row: RunRow): unknown {
  const {
    runId,
    flow,
    versionHash,
    trigger,
    state,
    status,
    reason,
    createdAt,
    startedAt,
    finishedAt,
    changedAt,
    attempt,
    dueAt,
  } = row;
  return {
    runId,
    flow,
    versionHash,
    trigger,
    state,
    status,
    reason,
    createdAt,
    startedAt,
    finishedAt,
    changedAt,
    attempt,
    dueAt,
  };
}
