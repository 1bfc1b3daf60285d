/**
 * `flowcell run FOLDER`: a flow in a store that is thrown away. Whoever types it is author and operator at once, so the
 * approval is given here: by itself for what touches nothing but the flow's own folder and store, else when the terminal,
 * --approve or an --allow-… option says so.
 *
 * Kept true: what is approved is what was looked at, by its hash; a folder that changed in between is refused.
 */

import { mkdtempSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { isAbsolute, join, relative, resolve, sep } from "node:path";
import { printable } from "@flowcell/bundle";
import {
  type FlowService,
  flowLimits,
  OperationError,
  type RunReport,
  reachOf,
  readFlowFolder,
} from "@flowcell/flows";
import type { Manifest } from "@flowcell/manifest";
import { outcomeTable } from "@flowcell/protocol";
import { UsageError } from "../cli/usage.js";
import { openDataFolder } from "../owner/data-folder.js";
import { ceilings, openOwner } from "../owner/open.js";
import { noSettings, type Settings, withOptions } from "../owner/settings.js";
import type { Context } from "./context.js";
import { settingOptions } from "./decide.js";
import { flowPath } from "./flow-path.js";
import { pendingLines, printRun } from "./run-text.js";
import { reachText } from "./version-text.js";

/** Options of `run` that are for files alone. */
const fileOptions: ReadonlyMap<string, string> = new Map([
  ["trace", "--trace looks into the run of a file; flowcell start and flowcell journal tell what a flow did"],
  ["limit", "--limit is for files; a flow asks for its budgets in flow.json"],
]);

export async function runFolder(context: Context): Promise<number> {
  const { typed } = context;
  const foreign = typed.given([...fileOptions.keys()]);
  if (foreign !== undefined) throw new UsageError("request", fileOptions.get(foreign) ?? foreign);
  const folder = realpathSync(flowPath(typed.argument(0)));
  const { manifest, hash } = await readFlowFolder(folder, ceilings);
  const input = context.value("input");
  const settings = settingsOf(context, folder, manifest);
  if (!(await allowed(context, folder, manifest, settings))) return outcomeTable.denied.exitCode;
  const scratch = mkdtempSync(join(tmpdir(), "flowcell-run-"));
  try {
    return await runIn(context, scratch, { folder, hash }, settings, input);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** A mount that nobody maps is the folder of that name inside the flow's, where there is one. */
function settingsOf(context: Context, folder: string, manifest: Manifest): Settings {
  const typed = withOptions(noSettings, settingOptions(context));
  const mounts: Record<string, string> = {};
  for (const { mount } of manifest.grants.fs) {
    const inside = join(folder, mount);
    if (statSync(inside, { throwIfNoEntry: false })?.isDirectory() === true) mounts[mount] = inside;
  }
  // Links are followed once: where a mount leads now is what is asked about, and what is opened.
  const real = Object.entries({ ...mounts, ...typed.mounts }).map(([name, path]) => [
    name,
    realpathSync(path),
  ]);
  return { ...typed, mounts: Object.fromEntries(real) };
}

// --------------------------------------------------------------------------------------------------------------- allowing

async function allowed(
  context: Context,
  folder: string,
  manifest: Manifest,
  settings: Settings,
): Promise<boolean> {
  const { typed, streams } = context;
  const wanted = needsYes(context, folder, manifest, settings);
  if (wanted.length === 0 || typed.flag("approve")) return true;
  const reach = reachOf(manifest, flowLimits(manifest, ceilings));
  streams.err(reachText({ reach, difference: null }));
  streams.err(`not allowed without a yes:\n${wanted.map((line) => `  ${printable(line)}\n`).join("")}`);
  if (streams.ask !== undefined && !context.json) {
    return /^y(es)?$/i.test((await streams.ask(`run ${printable(manifest.id)} with this? [y/N] `)).trim());
  }
  const message = `${manifest.id} asks for more than a flow gets by itself (${wanted.join("; ")}); look at it, then add --approve`;
  streams.err(`flowcell: denied: ${printable(message)}\n`);
  if (context.json)
    context.object({ ok: false, status: "denied", error: { code: "denied", message, wanted } });
  return false;
}

/** What goes beyond log, sleep, kv and reading inside the flow's folder, and was not allowed by an option. */
function needsYes(
  context: Context,
  folder: string,
  manifest: Manifest,
  settings: Settings,
): readonly string[] {
  const { typed } = context;
  const { fs, net, secrets, tools, flows, events } = manifest.grants;
  const hosts = new Set(typed.list("allowNet").map((text) => hostOf(text)));
  const readable = [folder, ...typed.list("allowRead").map(readableFolder)];
  const lines: string[] = [];
  for (const { mount, path, access } of fs) {
    const shown = `/${mount}${path === undefined ? "" : `/${path}`}`;
    const target = Object.hasOwn(settings.mounts, mount) ? settings.mounts[mount] : undefined;
    const inside = target !== undefined && readable.some((root) => isInside(root, target));
    if (access === "write") lines.push(`write files in ${shown}`);
    else if (access === "read" && !inside)
      lines.push(`read files in ${shown}, which is outside the flow's folder`);
  }
  for (const { host, action } of net) {
    if (action !== "deny" && !hosts.has(host.toLowerCase())) lines.push(`send requests to ${host}`);
  }
  lines.push(
    ...secrets.map(({ name }) => `use the secret ${name}`),
    ...tools.map((name) => `call the tool ${name}`),
    ...flows.map((id) => `start the flow ${id}`),
    ...events.map((name) => `emit the event ${name}`),
  );
  return lines;
}

/** `127.0.0.1:8080` → `127.0.0.1`; `[::1]:8080` → `::1`. */
function hostOf(text: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(text);
  if (bracketed?.[1] !== undefined) return bracketed[1].toLowerCase();
  const colons = text.split(":").length - 1;
  return (colons === 1 ? text.slice(0, text.indexOf(":")) : text).toLowerCase();
}

function readableFolder(path: string): string {
  try {
    return realpathSync(resolve(path));
  } catch {
    throw new UsageError("request", `--allow-read ${path}: no such folder`);
  }
}

function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === "" || !(way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way));
}

// ---------------------------------------------------------------------------------------------------------------- running

interface Looked {
  readonly folder: string;
  /** Of what was shown. */
  readonly hash: string;
}

async function runIn(
  context: Context,
  scratch: string,
  { folder, hash: shown }: Looked,
  settings: Settings,
  input: unknown,
): Promise<number> {
  const stop = new AbortController();
  const release = stopOnSignals(stop);
  const owner = await openOwner(openDataFolder(scratch, false), settings, "runs", context.parts);
  try {
    const { service } = owner;
    const { by } = context;
    const given = input === undefined ? {} : { input };
    const { flow, hash } = await service.install({ folder, by, ...given });
    if (hash !== shown) {
      throw new OperationError(
        "denied",
        `${folder} changed while you looked: it is not what was shown any more. It was not approved, and no call was made; run it again to see what it is now`,
      );
    }
    await service.approve({ flow, hash, by });
    const { runId } = await service.start({ flow, by, ...given });
    const report = await waitFor(context, service, runId, stop.signal);
    return printRun(context, report);
  } finally {
    release();
    await owner.close(0);
  }
}

/** Through every sleep; a wait that only somebody can end is answered on the terminal, or ends the command. */
async function waitFor(
  context: Context,
  service: FlowService,
  runId: string,
  signal: AbortSignal,
): Promise<RunReport> {
  for (;;) {
    const report = await service.wait(runId, { signal });
    if (report.state === "finished") return report;
    if (signal.aborted) {
      await service.cancel(runId, context.by);
      return await service.wait(runId, { through: "finished" });
    }
    if (await answered(context, service, report)) continue;
    if (report.pending.some(({ dueAt }) => dueAt !== null))
      return await finished(service, runId, signal, context);
    context.remark(
      "flowcell: the run waits for somebody, and its store is thrown away now; install the flow to answer it later",
    );
    return report;
  }
}

async function finished(
  service: FlowService,
  runId: string,
  signal: AbortSignal,
  context: Context,
): Promise<RunReport> {
  const report = await service.wait(runId, { signal, through: "finished" });
  if (report.state === "finished") return report;
  await service.cancel(runId, context.by);
  return await service.wait(runId, { through: "finished" });
}

async function answered(context: Context, service: FlowService, { pending }: RunReport): Promise<boolean> {
  const { ask, err } = context.streams;
  const call = pending.find(({ callId }) => callId !== null);
  if (ask === undefined || context.json || call?.callId == null) return false;
  err(`${pendingLines(call).slice(0, 2).join("\n")}\n`);
  const approve = /^y(es)?$/i.test((await ask("approve? [y/N] ")).trim());
  await service.answer({ callId: call.callId, approve, by: context.by });
  return true;
}

/** The first signal cancels the run and lets it end in order, the second ends this process. */
function stopOnSignals(stop: AbortController): () => void {
  const onSignal = (signal: NodeJS.Signals): void => {
    if (!stop.signal.aborted) {
      stop.abort();
      return;
    }
    release();
    process.kill(process.pid, signal);
  };
  const release = (): void => {
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  return release;
}
