/** `flowcell enable FLOW` and `flowcell disable FLOW`. */

import type { Context } from "./context.js";

export async function enable(context: Context): Promise<number> {
  const flow = context.typed.argument(0);
  return await context.ask(async (service) => {
    await service.enable(flow, context.by);
    if (context.json) context.object({ ok: true, flow, enabled: true });
    else context.say(`enabled ${flow}`);
    return 0;
  });
}

export async function disable(context: Context): Promise<number> {
  const flow = context.typed.argument(0);
  return await context.ask(async (service) => {
    await service.disable(flow, context.by, context.typed.text("reason") ?? "");
    if (context.json) context.object({ ok: true, flow, enabled: false });
    else context.say(`disabled ${flow}`);
    return 0;
  });
}
