/**
 * `flowcell approve`, `reject` and `revoke`: an operator's decisions about a version, or about a call that a run makes
 * wait. An approval is given for a hash: on a terminal after everything was shown, elsewhere only when the hash is named.
 *
 * Kept true: while somebody reads, nothing is held. The store is let go of before the question, and the hash that was shown
 * is what the answer approves.
 */

import { isDeepStrictEqual } from "node:util";
import { type FlowService, OperationError, type VersionReport } from "@flowcell/flows";
import { UsageError } from "../cli/usage.js";
import {
  hasOptions,
  readSettings,
  type SettingOptions,
  withOptions,
  writeSettings,
} from "../owner/settings.js";
import { connectOwner } from "../owner/socket-client.js";
import type { Context } from "./context.js";
import { drive } from "./drive.js";
import { printChange } from "./run-changes.js";
import { changes } from "./show.js";
import { short } from "./tables.js";
import { bundleLine, dryRunText, headText, reachText } from "./version-text.js";

export async function approve(context: Context): Promise<number> {
  const subject = context.typed.argument(0);
  if (isCall(subject)) return await answer(context, subject, true);
  refuseValue(context);
  await keepSettings(context);
  const { version, changed } = await looked(context, subject);
  const { flow, hash, number } = version;
  if (version.state === "approved")
    return decided(context, version, `version ${number} of ${flow} is approved already`);
  if (!(await confirmed(context, version, changed))) {
    context.remark("not approved");
    return 3;
  }
  return await context.ask(async (service) => {
    await service.approve({ flow, hash, by: context.by });
    return decided(
      context,
      { ...version, state: "approved" },
      `approved version ${number} of ${flow} (${short(hash)})`,
    );
  });
}

interface Looked {
  readonly version: VersionReport;
  /** Its changes, or its source, as a reviewer reads them. */
  readonly changed: string;
}

/** The store is let go of when this returns. */
async function looked(context: Context, flow: string): Promise<Looked> {
  return await context.ask(async (service) => {
    const named = context.typed.text("hash");
    const version = await service.show(flow, named);
    // Where the hash was named, nobody is shown them.
    return { version, changed: named === undefined ? await changes(service, version) : "" };
  });
}

export async function reject(context: Context): Promise<number> {
  const { typed } = context;
  const subject = typed.argument(0);
  if (isCall(subject)) return await answer(context, subject, false);
  refuseValue(context);
  return await context.ask(async (service) => {
    const { flow, hash, number } = await service.show(subject, typed.text("hash"));
    await service.reject({ flow, hash, by: context.by, reason: typed.text("reason") ?? null });
    return decided(
      context,
      { flow, hash, number, state: "rejected" },
      `rejected version ${number} of ${flow} (${short(hash)})`,
    );
  });
}

export async function revoke(context: Context): Promise<number> {
  const { typed } = context;
  return await context.ask(async (service) => {
    const { flow, hash, number } = await named(service, typed.argument(0), typed.text("hash"));
    await service.revoke({ flow, hash, by: context.by, reason: typed.text("reason") ?? null });
    return decided(
      context,
      { flow, hash, number, state: "revoked" },
      `revoked version ${number} of ${flow} (${short(hash)})`,
    );
  });
}

/** The version of this hash, else the one that is approved. */
async function named(service: FlowService, flow: string, hash: string | undefined): Promise<VersionReport> {
  if (hash !== undefined) return await service.show(flow, hash);
  const newest = await service.show(flow);
  const report = (await service.list()).find((one) => one.flow === newest.flow);
  if (typeof report?.approvedHash === "string") return await service.show(flow, report.approvedHash);
  throw new OperationError("conflict", `flow ${flow} has no approved version; name one with --hash`);
}

type Decided = Pick<VersionReport, "flow" | "hash" | "number" | "state">;

function decided(context: Context, { flow, hash, number, state }: Decided, what: string): number {
  if (context.json) context.object({ ok: true, flow, hash, number, state });
  else context.say(what);
  return 0;
}

/** Shows what is to be approved and asks; where the hash was named, its reach is shown and nobody is asked. */
async function confirmed(context: Context, version: VersionReport, changed: string): Promise<boolean> {
  const { typed, streams } = context;
  const { flow, hash } = version;
  if (typed.text("hash") !== undefined) {
    if (!context.json) streams.out(`${reachText(version)}\n`);
    return true;
  }
  const { ask } = streams;
  if (ask === undefined || context.json) {
    throw new UsageError(
      "request",
      `nobody can be asked here; review it with flowcell show ${flow} --diff, then: flowcell approve ${flow} --hash ${short(hash)}`,
    );
  }
  const dry = dryRunText(version.dryRun);
  streams.out(`${reachText(version)}\n${changed}\n`);
  streams.out(`${dry}${dry === "" ? "" : "\n"}${headText(version)}${bundleLine(version)}\n`);
  return /^y(es)?$/i.test((await ask(`\napprove ${short(hash)} of ${flow}? [y/N] `)).trim());
}

// ------------------------------------------------------------------------------------------------------------------ calls

function isCall(subject: string): boolean {
  return subject.startsWith("call_");
}

function refuseValue({ typed }: Context): void {
  if (typed.text("value") === undefined) return;
  throw new UsageError("request", "--value answers a call (call_…); a version is approved as it is");
}

async function answer(context: Context, callId: string, yes: boolean): Promise<number> {
  const { typed } = context;
  const foreign = typed.given(["hash", "reason", "mount", "allowNet", "secret", "caFile"]);
  if (foreign !== undefined) {
    throw new UsageError(
      "request",
      `--${foreign.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} is for versions; a call takes --value`,
    );
  }
  const value = context.value("value");
  const { report } = await drive(context, {
    wait: typed.wait ? "here" : "never",
    begin: async (service) => {
      const answered = await service.answer({
        callId,
        approve: yes,
        by: context.by,
        ...(value === undefined ? {} : { value }),
      });
      return answered.runId;
    },
  });
  const what = `${yes ? "approved" : "rejected"} ${callId}`;
  return printChange(context, { callId, approved: yes }, what, report);
}

// --------------------------------------------------------------------------------------------------------------- settings

/** Kept before the approval, which fails where something that the manifest names is missing. */
async function keepSettings(context: Context): Promise<void> {
  const options = settingOptions(context);
  if (!hasOptions(options)) return;
  const folder = context.folder();
  const before = readSettings(folder.settingsFile);
  const settings = withOptions(before, options);
  if (isDeepStrictEqual(before, settings)) return;
  const owner = await connectOwner(folder.socketFile);
  if (owner !== null) {
    await owner.close();
    throw new UsageError(
      "request",
      "a service is running and has read its settings; give these options to flowcell serve, or end it (SIGTERM), approve, and start it again",
    );
  }
  writeSettings(folder.settingsFile, settings);
}

export function settingOptions({ typed }: Context): SettingOptions {
  return {
    mount: typed.list("mount"),
    allowNet: typed.list("allowNet"),
    secret: typed.list("secret"),
    caFile: typed.text("caFile"),
  };
}
