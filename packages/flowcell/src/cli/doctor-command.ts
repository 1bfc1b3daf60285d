/** `flowcell doctor`: prints what `runDoctor` found; exit code 6 when no confined worker can be had here. */

import { outcomeTable } from "@flowcell/protocol";
import { renderDoctor, runDoctor } from "@flowcell/sandbox";
import { objectText } from "./human.js";
import type { Streams } from "./typed.js";

export async function doctorCommand(options: { readonly json?: boolean }, streams: Streams): Promise<number> {
  const report = await runDoctor();
  if (options.json === true) streams.out(objectText(report));
  else streams.out(renderDoctor(report));
  return report.ok ? 0 : outcomeTable.sandbox_unavailable.exitCode;
}
