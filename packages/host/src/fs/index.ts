/**
 * The host functions for files: `fs.read`, `fs.write`, `fs.append`, `fs.list`, `fs.stat`, `fs.delete`, for one set of
 * grants. Whoever starts a run with a grant `fs` makes them, puts them into the run's registry and closes them at its end.
 *
 * To add a function: a row beside the others that begins with `scope.locate` and acts on nothing but what that returned.
 */

import { type FsRule, mountsOf, pathComponents } from "@flowcell/manifest";
import { FileCalls } from "@flowcell/native";
import type { HostFunction } from "../registry.js";
import { appendRow, deleteRow } from "./change.js";
import { listRow, readRow, statRow } from "./look.js";
import { openMounts } from "./mounts.js";
import { FsScope } from "./scope.js";
import { writeRow } from "./write.js";

export { FsMountError } from "./mounts.js";

export interface FsFunctionsOptions {
  /** Absolute folders of the host by mount name. Only those that rules name are opened. */
  readonly mounts: ReadonlyMap<string, string>;
  /** The grant `fs` of an approved manifest. */
  readonly rules: readonly FsRule[];
  /** Absolute paths that no grant reaches: flowcell's store, configuration, tokens and installation. */
  readonly alwaysDenied: readonly string[];
  /** Most bytes that one call reads or writes. */
  readonly bodyBytes: number;
  /** Most bytes that are read as text; by default 1 MiB, what a value may have. */
  readonly textBytes?: number;
  /** Most entries of a folder that is listed; by default 10,000. */
  readonly listEntriesMax?: number;
  /** Another launcher library than that of this clone: tests run copies as an ordinary user. */
  readonly launcherPath?: string;
}

export interface FsFunctions {
  readonly functions: readonly HostFunction[];
  /** Whether the operator put another folder where a mount was opened, or none: such functions only fail. */
  isReplaced(): boolean;
  /** Lets go of the mounts. Calls that are under way end; new ones are `cancelled`. */
  close(): void;
}

const textBytesDefault = 1 << 20;
const listEntriesDefault = 10_000;

/** Throws FsMountError for a mount that is not there, RangeError for rules that no schema would have passed. */
export function createFsFunctions(options: FsFunctionsOptions): FsFunctions {
  const { mounts, rules, alwaysDenied, bodyBytes } = options;
  for (const rule of rules) {
    if (pathComponents(rule.path ?? "") === undefined)
      throw new RangeError(`no rule for files: ${JSON.stringify(rule)}`);
  }
  const calls = new FileCalls(options.launcherPath);
  const scope = new FsScope(calls, openMounts(calls, mounts, mountsOf(rules)), rules, alwaysDenied);
  const limits = {
    bodyBytes,
    textBytes: Math.min(options.textBytes ?? textBytesDefault, bodyBytes),
    listEntriesMax: options.listEntriesMax ?? listEntriesDefault,
  };
  return {
    functions: [
      readRow(scope, limits),
      listRow(scope, limits),
      statRow(scope),
      writeRow(scope, bodyBytes),
      appendRow(scope, bodyBytes),
      deleteRow(scope),
    ],
    isReplaced: () => scope.isReplaced(),
    close: () => scope.close(),
  };
}
