/**
 * What one set of grants lets a script reach: the decision about a path and the handles it was made for. Every row begins
 * with `locate`; what a row then does, it does to those handles.
 *
 * The order: every guarded root, the rules for the path as written (a path that no rule grants is not looked up, so that
 * refusals do not tell what exists), the mount, the walk, which stops at a denied folder, then the rules for where the
 * walk ended, with the protection met on the way. The weakest answer holds.
 */

import { type FsRule, rulesAt, strongestAccess } from "@flowcell/manifest";
import type { Descriptor, FileCalls, FileFacts } from "@flowcell/native";
import { Guards } from "./guards.js";
import { assertNotReplaced, FsMountError, isReplaced, type Mount } from "./mounts.js";
import { grantText, problem, type Subject, systemProblem } from "./problems.js";
import { parseScriptPath, type ScriptPath, scriptText } from "./script-path.js";
import { deniedBy, guardsAbove, type Handle, refuseGuarded, walk } from "./walk.js";

export type Need = "read" | "write";

/** A path that was walked and may be used as was asked. `close` it on every way out. */
export class Place {
  readonly subject: Subject;
  readonly mount: string;
  readonly parent: Handle | undefined;
  readonly entry: Handle | undefined;
  /** As in Walked. */
  readonly missing: readonly string[];
  readonly obstacle: FileFacts["kind"] | undefined;
  /** Components below the mount, without links. */
  readonly names: readonly string[];

  constructor(subject: Subject, mount: string, walked: ReturnType<typeof walk>) {
    this.subject = subject;
    this.mount = mount;
    this.parent = walked.parent;
    this.entry = walked.entry;
    this.missing = walked.missing;
    this.obstacle = walked.obstacle;
    this.names = walked.names;
  }

  /** The last name, and the folder that holds it or would. Throws `conflict` for a mount itself. */
  slot(): { readonly folder: Descriptor; readonly name: string } {
    const name = this.names.at(-1);
    if (this.parent === undefined || name === undefined) {
      throw problem("conflict", this.subject, "is a mount, not a file");
    }
    return { folder: this.parent.descriptor, name };
  }

  close(): void {
    this.parent?.descriptor.close();
    this.entry?.descriptor.close();
  }
}

export class FsScope {
  readonly calls: FileCalls;
  readonly guards: Guards;
  readonly #mounts: ReadonlyMap<string, Mount>;
  readonly #rules: readonly FsRule[];
  #open = true;

  /** Owns the mounts from here on, also when it throws. */
  constructor(
    calls: FileCalls,
    mounts: ReadonlyMap<string, Mount>,
    rules: readonly FsRule[],
    alwaysDenied: readonly string[],
  ) {
    this.calls = calls;
    this.#mounts = mounts;
    this.#rules = rules;
    let guards: Guards | undefined;
    try {
      guards = new Guards(calls, mounts, rules, alwaysDenied);
      this.guards = guards;
      for (const mount of mounts.values()) this.#assertNotOwn(mount);
    } catch (error) {
      guards?.close();
      this.#closeMounts();
      throw error;
    }
  }

  /** Throws HostError; then nothing is left open. */
  locate(call: string, text: string, need: Need, followLast = true): Place {
    const path = parseScriptPath(call, text);
    const subject = { call, file: path.text };
    this.refreshGuards(subject);
    this.#decide(path, path.names, need, subject);
    const mount = this.#mounts.get(path.mount);
    if (mount === undefined) throw new RangeError(`no mount for a rule: ${path.mount}`);
    try {
      assertNotReplaced(this.calls, mount, subject);
    } catch (error) {
      throw systemProblem(subject, error);
    }
    const { calls, guards } = this;
    const walked = walk(path.names, { calls, guards, mount, subject, followLast });
    const place = new Place(subject, mount.name, walked);
    try {
      this.#decide(path, walked.names, need, subject);
      if (need === "write") refuseGuarded(walked.protectors, subject);
      return place;
    } catch (error) {
      place.close();
      throw error;
    }
  }

  /** Looks all guarded roots up again. Throws HostError, also once the scope is closed. */
  refreshGuards(subject: Subject): void {
    if (!this.#open) throw problem("cancelled", subject, "cannot be reached: the run has ended");
    try {
      this.guards.refresh();
    } catch (error) {
      throw systemProblem(subject, error);
    }
  }

  /** Whether rules let a folder be made at these names; for folders between a granted one and a file. */
  mayWrite(mount: string, names: readonly string[]): boolean {
    return this.#access(mount, names).write;
  }

  /** Whether a mount leads elsewhere now than it did when it was opened. */
  isReplaced(): boolean {
    return [...this.#mounts.values()].some((mount) => isReplaced(this.calls, mount));
  }

  close(): void {
    this.#open = false;
    this.guards.close();
    this.#closeMounts();
  }

  #closeMounts(): void {
    for (const { root } of this.#mounts.values()) root.close();
  }

  #access(mount: string, names: readonly string[]): ReturnType<typeof strongestAccess> {
    const granted = rulesAt(this.#rules, mount, names.join("/"));
    const guarded = this.guards.at(mount, names);
    return strongestAccess([...granted, ...guarded].map(({ access }) => access));
  }

  #decide(path: ScriptPath, names: readonly string[], need: Need, subject: Subject): void {
    const access = this.#access(path.mount, names);
    if (access[need]) return;
    const guards = this.guards.at(path.mount, names);
    const denial = guards.find((guard) => guard.access === "deny");
    if (denial !== undefined) throw deniedBy(denial, subject);
    const protector = guards.find((guard) => guard.access === "protect");
    if (need === "write" && protector !== undefined) throw deniedBy(protector, subject);
    const real = scriptText(path.mount, names);
    const where = real === path.text ? "" : `leads by a link to ${real}, which `;
    const grant = grantText(path.mount, grantedNames(subject.call, names), need);
    const lacks = need === "write" && access.read ? "may be read but not written" : "is not granted";
    throw problem("denied", subject, `${where}${lacks}; ${grant}`, { detail: { grant } });
  }

  #assertNotOwn(mount: Mount): void {
    const found = [...this.guards.of(mount.facts.identity), ...guardsAbove({ ...this, mount })];
    if (!found.some(({ rule }) => rule === null)) return;
    throw new FsMountError(
      mount.name,
      "lies inside a folder of flowcell's own (its store, configuration or installation); map it to another folder",
      mount.folder,
    );
  }
}

/** What a grant would be given for: the folder of a file, or the file where that folder is the whole mount. */
function grantedNames(call: string, names: readonly string[]): readonly string[] {
  const ofFile = call !== "fs.list" && call !== "fs.stat";
  return ofFile && names.length > 1 ? names.slice(0, -1) : names;
}
