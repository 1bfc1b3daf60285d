/** `flowcell list`: every flow, and what about it wants somebody's attention. */

import { printable } from "@flowcell/bundle";
import type { FlowReport } from "@flowcell/flows";
import type { Context } from "./context.js";
import { short, table, timeText } from "./tables.js";

export async function list(context: Context): Promise<number> {
  return await context.ask(async (service) => {
    const flows = await service.list();
    if (context.json) {
      context.object({ ok: true, flows });
      return 0;
    }
    if (flows.length === 0) context.say("no flow is installed; flowcell install PATH installs one");
    else context.say(`${table(heading, flows.map(row))}${remarks(flows)}`);
    return 0;
  });
}

const heading = ["flow", "state", "approved", "trigger", "next", "last run", "active", "waiting"];

function row(flow: FlowReport): readonly string[] {
  const { approvedHash, trigger, nextFireAt, lastRun, running, waiting } = flow;
  const last = lastRun === null ? "-" : `${lastRun.status ?? "running"} ${timeText(lastRun.at)}`;
  return [
    flow.flow,
    stateOf(flow),
    short(approvedHash),
    trigger,
    timeText(nextFireAt),
    last,
    String(running),
    String(waiting),
  ];
}

function stateOf({ enabled, approvedHash }: FlowReport): string {
  if (!enabled) return "disabled";
  return approvedHash === null ? "unapproved" : "enabled";
}

function remarks(flows: readonly FlowReport[]): string {
  const lines: string[] = [];
  for (const { flow, enabled, disabledBy, disabledReason, needsReconcile, versions } of flows) {
    if (!enabled)
      lines.push(
        `${flow}: disabled by ${disabledBy ?? "?"}${disabledReason ? `: ${disabledReason}` : ""} (flowcell enable ${flow})`,
      );
    if (needsReconcile > 0)
      lines.push(
        `${flow}: ${needsReconcile} to reconcile (flowcell runs --flow ${flow} --state needs_reconcile)`,
      );
    const newest = versions.toSorted((one, other) => other.number - one.number)[0];
    if (newest?.state === "installed")
      lines.push(
        `${flow}: version ${newest.number} waits for approval (flowcell approve ${flow} --hash ${short(newest.hash)})`,
      );
  }
  return lines.length === 0 ? "" : `\n\n${lines.map(printable).join("\n")}`;
}
