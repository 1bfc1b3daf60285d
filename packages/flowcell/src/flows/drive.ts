/**
 * Waiting for a run. Where a service runs, it drives the run and this process only listens. Where none does, this process
 * is the owner of the store and drives, until the run is finished or waits for somebody or for long; what it leaves, a
 * later owner finds.
 *
 * An owner that ends while others wait lets them go; whoever waits asks again, and may become the owner itself.
 */

import type { FlowService, RunReport } from "@flowcell/flows";
import { type Connection, connect } from "../owner/connect.js";
import type { DataFolder } from "../owner/data-folder.js";
import { OwnerBusy, OwnerLeft, OwnerLost } from "../owner/failures.js";
import type { Drives } from "../owner/open.js";
import type { Context } from "./context.js";

export interface Driving {
  /** Sets something going and answers the run that it is about. Done once: a lost owner may have done it. */
  readonly begin: (service: FlowService) => Promise<string>;
  /** `here`: only when this process has to drive the run, because no service does; `ended`: the same, to the run's end. */
  readonly wait: "always" | "here" | "ended" | "never";
}

/** Undefined when nobody waits for the run. */
export interface Driven {
  readonly runId: string;
  readonly report: RunReport | undefined;
  /** Whether the wait was ended by a signal: the run is not. */
  readonly left: boolean;
}

export async function drive(context: Context, { begin, wait }: Driving): Promise<Driven> {
  const folder = context.folder();
  // Nothing is driven for a command that does not wait: it would only be interrupted.
  const drives: Drives = wait === "never" ? "nothing" : "runs";
  let connection = await connect(folder, drives, context.parts);
  try {
    let runId: string | undefined;
    while (runId === undefined) {
      if (connection.owner !== null && wait !== "never") {
        context.remark(`no service running; using the store in ${folder.path}`);
      }
      try {
        runId = await begin(connection.service);
      } catch (error) {
        if (!(error instanceof OwnerLeft)) throw error;
        connection = await again(connection, folder, drives, context);
      }
    }
    const waits = wait === "always" || (wait !== "never" && connection.owner !== null);
    if (!waits) return { runId, report: undefined, left: false };
    const stop = new AbortController();
    const release = stopOnSignals(context, stop, runId);
    try {
      for (;;) {
        try {
          const report = await settled(connection, runId, stop.signal, wait === "ended");
          return { runId, report, left: stop.signal.aborted };
        } catch (error) {
          const busy = error instanceof OwnerBusy && !stop.signal.aborted;
          if (!busy && !(error instanceof OwnerLost)) throw error;
          // The run has begun: what it comes to is worth waiting for a connection.
          if (busy) await pause(busyMs, stop.signal);
          connection = await again(connection, folder, "runs", context);
        }
      }
    } finally {
      release();
    }
  } finally {
    await connection.close();
  }
}

async function again(
  lost: Connection,
  folder: DataFolder,
  drives: Drives,
  context: Context,
): Promise<Connection> {
  await lost.close();
  return await connect(folder, drives, context.parts);
}

/**
 * Until the run is finished, or waits for somebody or for long. A store that failed answers no wait. What was just done to a
 * suspended run may take a moment to reach it: for that long it is not believed that nothing will come of it.
 */
async function settled(
  { service }: Connection,
  runId: string,
  signal: AbortSignal,
  ended: boolean,
): Promise<RunReport> {
  const failed = service.failed.then((error) => {
    throw error;
  });
  failed.catch(() => undefined);
  if (ended) return await Promise.race([service.wait(runId, { signal, through: "finished" }), failed]);
  const before = await Promise.race([service.run(runId), failed]);
  const reachedBy = before.state === "suspended" ? Date.now() + reachMs : 0;
  for (;;) {
    const report = await Promise.race([service.wait(runId, { signal }), failed]);
    const still = report.state === "suspended" && report.activations === before.activations;
    const reaching = still && Date.now() < reachedBy;
    if (signal.aborted || (!reaching && !comesByItself(report, Date.now()))) return report;
    await Promise.race([pause(againMs, signal), failed]);
  }
}

const againMs = 200;
const busyMs = 1_000;
const reachMs = 3_000;
const longMs = 60_000;

/** Whether what a suspended run waits for needs nobody and is near: a sleep, a timer of the script; or is a child. */
export function comesByItself(
  { status, pending, dueAt }: Pick<RunReport, "status" | "pending" | "dueAt">,
  now: number,
): boolean {
  if (status !== "suspended") return false;
  if (pending.some(({ name }) => name !== "sleep" && name !== "flow.wait")) return false;
  if (dueAt !== null && dueAt - now <= longMs) return true;
  // Children say themselves when they are done; what nothing is told about may be over already.
  return pending.length === 0 ? dueAt === null : pending.every(({ name }) => name === "flow.wait");
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end, { once: true });
  });
}

/** The first signal ends the wait, the second this process. */
function stopOnSignals(context: Context, stop: AbortController, runId: string): () => void {
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stop.signal.aborted) {
      release();
      process.kill(process.pid, signal);
      return;
    }
    context.remark(`flowcell: no longer waiting; the run is not cancelled (flowcell cancel ${runId})`);
    stop.abort();
  };
  const release = (): void => {
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  return release;
}
