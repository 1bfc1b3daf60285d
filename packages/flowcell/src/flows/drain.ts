/** `flowcell drain`: asks a running service to finish what it does. */

import { OperationError } from "@flowcell/flows";
import { connectOwner } from "../owner/socket-client.js";
import type { Context } from "./context.js";

export const patienceMsUsual = 30_000;
export const patienceMsMax = 3_600_000;

export async function drain(context: Context): Promise<number> {
  const patienceMs = context.typed.whole("patienceMs", "--patience-ms", 0, patienceMsMax) ?? patienceMsUsual;
  const folder = context.folder();
  const owner = await connectOwner(folder.socketFile);
  if (owner === null)
    throw new OperationError("conflict", `no service runs on ${folder.path}: there is nothing to drain`);
  try {
    await owner.drain(patienceMs);
  } finally {
    await owner.close();
  }
  if (context.json) context.object({ ok: true });
  else context.say("drained: nothing runs, and nothing new begins until the service is started again");
  return 0;
}
