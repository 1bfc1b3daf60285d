/**
 * `flowcell serve`: the owner of a store for as long as it runs. Triggers fire, runs are driven, other commands are
 * answered over the socket. It has no HTTP.
 */

import { StoreHeld } from "@flowcell/journal";
import { outcomeTable } from "@flowcell/protocol";
import { tell } from "../owner/failures.js";
import { openOwner } from "../owner/open.js";
import { hasOptions, readSettings, secretLookup, withOptions, writeSettings } from "../owner/settings.js";
import type { Context } from "./context.js";
import { settingOptions } from "./decide.js";
import { patienceMsMax, patienceMsUsual } from "./drain.js";

export async function serve(context: Context): Promise<number> {
  const { typed, parts } = context;
  const patienceMs = typed.whole("patienceMs", "--patience-ms", 0, patienceMsMax) ?? patienceMsUsual;
  const folder = context.folder(true);
  const options = settingOptions(context);
  const settings = withOptions(readSettings(folder.settingsFile), options);
  // A signal that comes while the store is opened must not be lost.
  const stopped = stopSignal(context);
  const owner = await openOwner(folder, settings, "all", parts).catch((error: unknown) => {
    if (!(error instanceof StoreHeld)) throw error;
    throw new StoreHeld(
      `a service, or a command, holds the store in ${folder.path} already (flowcell list asks it)`,
    );
  });
  if (hasOptions(options)) writeSettings(folder.settingsFile, settings);
  const secretValue = secretLookup(settings, parts.environment);
  for (const [name, reference] of Object.entries(settings.secrets)) {
    if (secretValue(name) !== undefined) continue;
    context.remark(
      `flowcell: the secret ${name} has no value now (${reference}); runs that need it wait for one`,
    );
  }
  context.remark(`flowcell: serving ${folder.path} (socket ${folder.socketFile}; HTTP is not built yet)`);
  const end = await Promise.race([stopped, owner.service.failed.then((error) => ({ error }))]);
  if ("error" in end) {
    const told = tell(end.error);
    context.remark(`flowcell: the store failed: ${told?.message ?? String(end.error)}`);
    await owner.close(0).catch(() => undefined);
    return told?.exitCode ?? outcomeTable.internal.exitCode;
  }
  context.remark(
    `flowcell: ${end.signal}: draining, at most ${patienceMs / 1000} s; once more to end at once`,
  );
  await owner.close(patienceMs);
  context.remark("flowcell: drained");
  return 0;
}

/** The first signal; the second ends this process, and its workers die with it. */
function stopSignal({ streams }: Context): Promise<{ readonly signal: NodeJS.Signals }> {
  return new Promise((resolve) => {
    let seen = false;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (seen) {
        process.off("SIGINT", onSignal);
        process.off("SIGTERM", onSignal);
        streams.err("flowcell: ending at once\n");
        process.kill(process.pid, signal);
        return;
      }
      seen = true;
      resolve({ signal });
    };
    process.on("SIGINT", onSignal);
    process.on("SIGTERM", onSignal);
  });
}
