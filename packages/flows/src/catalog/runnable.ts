/**
 * A version as the engine runs it: the stored bundle and the granted host functions. Made when a run of the version begins
 * and kept for all of them, because the pool keeps what it encodes of the names and the limits.
 *
 * Kept true: the script is the stored text, never built anew; the functions are those of the approved manifest and of the
 * service's own configuration; a mount that cannot be opened makes no Runnable, nor does stored text that is not what the
 * approval is about.
 */

import { restoreScriptMap } from "@flowcell/bundle";
import type { VersionRow } from "@flowcell/journal";
import { OperationError, type Runnable } from "../ports.js";
import { storedHash } from "./flow-folder.js";
import { type FlowPorts, type FunctionSources, grantedFunctions } from "./functions.js";
import { errorMapper } from "./run-error.js";
import type { VersionPlan } from "./version-plan.js";

export interface OpenRunnable {
  readonly runnable: Runnable;
  /** Whether what its functions hold is not what the operator's configuration leads to any more. */
  isReplaced(): boolean;
  /** Lets go of what its functions hold. */
  close(): void;
}

export function openRunnable(
  plan: VersionPlan,
  version: Pick<VersionRow, "manifestText" | "bundle" | "bundleMap" | "sources">,
  sources: FunctionSources,
  ports: FlowPorts,
): OpenRunnable {
  const { flow, hash, manifest, limits } = plan;
  if (storedHash(version) !== hash) {
    const what =
      "what is stored of this version is not what was approved: the store was changed or is damaged";
    throw new OperationError("denied", `flow ${flow}: ${what}; install and approve it again`);
  }
  const { functions, names, isReplaced, close } = grantedFunctions(manifest, limits, sources, ports);
  const { bundle, bundleMap } = version;
  const files = version.sources;
  const runnable: Runnable = Object.freeze({
    flow,
    hash,
    manifest,
    script: bundle,
    limits,
    functions,
    names,
    kvMaxBytes: manifest.grants.kv?.maxBytes ?? 0,
    mapError: errorMapper(() => restoreScriptMap(bundleMap, bundle, files)),
  });
  return { runnable, isReplaced, close };
}
