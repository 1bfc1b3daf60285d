// The short way to a plan: ask this host, read this clone's worker build, compile.
// Called by the library entry points and the command line, once per pool.
import { defaultBuildFolder, readWorkerBuild, type WorkerBuildResult } from "./build.js";
import { type CompileResult, compile } from "./compile.js";
import { type HostCapabilities, hostSources, probe } from "./probe.js";

/** Where the native products lie, when not in this clone. */
export interface PrepareOptions {
  /** Absolute path of the folder with worker.json and bin/. */
  readonly buildFolder?: string | undefined;
  /** Absolute path of the launcher library. */
  readonly launcherPath?: string | undefined;
}

/** The compilation, with what went into it for whoever reports. */
export interface PreparedPlan {
  readonly result: CompileResult;
  readonly host: HostCapabilities;
  readonly worker: WorkerBuildResult;
}

/** Compiles a policy for this host and the worker that was built for it. Never throws for what the host lacks. */
export function preparePlan(policy: unknown, options: PrepareOptions = {}): PreparedPlan {
  const host = probe(hostSources(options.launcherPath));
  const worker = readBuild(options.buildFolder);
  return { result: compile(policy, host, worker), host, worker };
}

function readBuild(folder: string | undefined): WorkerBuildResult {
  try {
    return readWorkerBuild(folder ?? defaultBuildFolder());
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return {
      ok: false,
      message: `The worker's build cannot be found: ${message}`,
      remedy: "run `npm run build`",
    };
  }
}
