/** `flowcell replay RUN`: does the stored version still do what the journal says? */

import { printable } from "@flowcell/bundle";
import { outcomeTable } from "@flowcell/protocol";
import { indented, valueText } from "../cli/human.js";
import { taggedJson } from "../tagged-json.js";
import type { Context } from "./context.js";
import { plural } from "./tables.js";

export async function replay(context: Context): Promise<number> {
  const runId = context.typed.argument(0);
  return await context.ask(async (service) => {
    const report = await service.replay(runId);
    const { matched, deliveries, calls, divergence } = report;
    const code = matched ? 0 : outcomeTable.replay_diverged.exitCode;
    if (context.json) {
      const sides =
        divergence === null
          ? null
          : {
              where: divergence.where,
              expected: taggedJson(divergence.expected),
              actual: taggedJson(divergence.actual),
            };
      context.object({ ok: matched, ...report, divergence: sides });
      return code;
    }
    if (divergence === null) {
      context.say(
        `${runId}: the same (${plural(calls, "call")}, ${plural(deliveries, "delivery").replace(/deliverys$/, "deliveries")})`,
      );
      return code;
    }
    context.say(`${runId}: differs at ${printable(divergence.where)}`);
    context.say(`recorded: ${side(divergence.expected)}`);
    context.say(`now:      ${side(divergence.actual)}`);
    return code;
  });
}

function side(value: unknown): string {
  return indented(valueText(value, true).trimEnd(), " ".repeat("recorded: ".length));
}
