/** `flowcell install PATH`: a folder becomes a version that waits for approval. */

import { resolve } from "node:path";
import type { Context } from "./context.js";
import { flowPath } from "./flow-path.js";
import { short } from "./tables.js";
import { bundleLine, dryRunText, headText, reachText } from "./version-text.js";

export async function install(context: Context): Promise<number> {
  const folder = resolve(flowPath(context.typed.argument(0)));
  const input = context.value("input");
  return await context.ask(async (service) => {
    const version = await service.install({
      folder,
      by: context.by,
      ...(input === undefined ? {} : { input }),
    });
    if (context.json) {
      const { manifestText: _manifest, sources: _sources, bundle: _bundle, ...report } = version;
      context.object({ ok: true, ...report });
      return 0;
    }
    const { streams } = context;
    streams.out(`${headText(version)}${bundleLine(version)}\n\n${reachText(version)}`);
    const dry = dryRunText(version.dryRun);
    if (dry !== "") streams.out(`\n${dry}`);
    const next =
      version.state === "installed"
        ? `\nnext: flowcell approve ${version.flow} --hash ${short(version.hash)}\n`
        : "";
    streams.out(version.added ? next : `\nthis version is installed already: ${version.state}\n${next}`);
    return 0;
  }, true);
}
