/** `flowcell reconcile RUN [POSITION]`: what somebody found out about a call whose outcome is unknown. */

import { OperationError, type RunReport } from "@flowcell/flows";
import { UsageError } from "../cli/usage.js";
import type { Context } from "./context.js";
import { drive } from "./drive.js";
import { printChange } from "./run-changes.js";

type Decision = "observed" | "not_applied" | "cancel";

export async function reconcile(context: Context): Promise<number> {
  const { typed } = context;
  const runId = typed.argument(0);
  const decision = decisionOf(context);
  const value = context.value("value");
  if (value !== undefined && decision !== "observed") {
    throw new UsageError("request", "--value is what the call returned; it goes with --observed");
  }
  const asked = positionOf(typed.optional(1));
  let position = 0;
  const { report } = await drive(context, {
    wait: typed.wait ? "here" : "never",
    begin: async (service) => {
      position = asked ?? onlyUnknown(await service.run(runId));
      await service.reconcile({
        runId,
        position,
        decision,
        by: context.by,
        ...(value === undefined ? {} : { value }),
      });
      return runId;
    },
  });
  const what = `call ${position} of ${runId}: ${decision.replace("_", " ")}`;
  return printChange(context, { runId, position, decision }, what, report);
}

function decisionOf({ typed }: Context): Decision {
  const decisions: readonly (readonly [Decision, string])[] = [
    ["observed", "observed"],
    ["not_applied", "notApplied"],
    ["cancel", "cancel"],
  ];
  const [first, second] = decisions.filter(([, option]) => typed.flag(option));
  if (first !== undefined && second === undefined) return first[0];
  throw new UsageError("request", "say what was found out, by one of --observed, --not-applied, --cancel");
}

function positionOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[0-9]{1,9}$/.test(text)) return Number(text);
  throw new UsageError(
    "request",
    `a position is a whole number, as flowcell runs RUN shows it, not ${JSON.stringify(text)}`,
  );
}

function onlyUnknown({ runId, calls }: RunReport): number {
  const unknown = calls.filter(({ state }) => state === "unknown").map(({ position }) => position);
  const [first] = unknown;
  if (first === undefined)
    throw new OperationError("conflict", `run ${runId} has no call whose outcome is unknown`);
  if (unknown.length === 1) return first;
  throw new UsageError(
    "request",
    `run ${runId} has several such calls (${unknown.join(", ")}); name the POSITION`,
  );
}
