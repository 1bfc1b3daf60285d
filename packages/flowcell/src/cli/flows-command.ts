/**
 * Every command that has to do with flows: the root of a bundle of its own, which `flowcell run FILE` does not load. It
 * finds the command's code by its name and tells what went wrong in one line, or in one JSON object. Nothing that is thrown
 * here may leave the bundle but bugs: its classes are not those of the command line's own bundle.
 */

import { exitCodes } from "@flowcell/protocol";
import { check } from "../flows/check.js";
import { Context } from "../flows/context.js";
import { approve, reject, revoke } from "../flows/decide.js";
import { drain } from "../flows/drain.js";
import { install } from "../flows/install.js";
import { journal } from "../flows/journal.js";
import { list } from "../flows/list.js";
import { reconcile } from "../flows/reconcile.js";
import { replay } from "../flows/replay.js";
import { cancel, signal } from "../flows/run-changes.js";
import { runFolder } from "../flows/run-folder.js";
import { runs } from "../flows/runs.js";
import { serve } from "../flows/serve.js";
import { show } from "../flows/show.js";
import { start } from "../flows/start.js";
import { systemParts } from "../flows/system-parts.js";
import { testFlow } from "../flows/test-flow.js";
import { disable, enable } from "../flows/toggle.js";
import { types } from "../flows/types.js";
import { tell } from "../owner/failures.js";
import type { OwnerParts } from "../owner/open.js";
import { objectText, remarkText } from "./human.js";
import type { Streams, Typed } from "./typed.js";
import { UsageError } from "./usage.js";
import { usageJson } from "./usage-json.js";

export type FlowsCommand = (context: Context) => Promise<number>;

export const flowsCommands: Readonly<Record<string, FlowsCommand>> = {
  approve,
  cancel,
  check,
  disable,
  drain,
  enable,
  install,
  journal,
  list,
  reconcile,
  reject,
  replay,
  revoke,
  run: runFolder,
  runs,
  serve,
  show,
  signal,
  start,
  test: testFlow,
  types,
};

export async function flowsCommand(
  name: string,
  typed: Typed,
  streams: Streams,
  parts: OwnerParts = systemParts(streams),
): Promise<number> {
  const command = Object.hasOwn(flowsCommands, name) ? flowsCommands[name] : undefined;
  if (command === undefined) throw new Error(`the command ${name} has no code`);
  try {
    return await command(new Context(typed, streams, parts));
  } catch (error) {
    if (error instanceof UsageError) {
      streams.err(remarkText(error.message));
      if (typed.flag("json")) streams.out(usageJson(error));
      return exitCodes.usage;
    }
    const told = tell(error);
    if (told === undefined) throw error;
    const { code, message, problems, exitCode } = told;
    const more = problems.filter((problem) => !message.includes(problem));
    streams.err(remarkText([message, ...more].join("\n")));
    if (typed.flag("json")) {
      streams.out(objectText({ ok: false, error: { code, message, problems } }));
    }
    return exitCode;
  }
}
