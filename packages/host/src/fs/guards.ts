/**
 * What must not be reached or changed, whatever path leads there: the roots of `deny` and `protect` rules, and flowcell's
 * own files. Each root is known by device and inode, looked up again for every call, and by its name, whichever says no.
 *
 * Kept true: a root that was seen once stays guarded when it is moved or replaced (its descriptor is held, so that its
 * inode number is not given to another file); a look-up that fails for any reason but that nothing is there fails the
 * call.
 */

import { realpathSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { type FsRule, pathComponents } from "@flowcell/manifest";
import type { Descriptor, FileCalls } from "@flowcell/native";
import type { Mount } from "./mounts.js";
import { errnoOf, unlessErrno } from "./problems.js";

/** Roots of one guard that stay guarded. The first ones are kept for good, beyond them only the newest. */
const keptMax = 16;

/** Nothing is there, or nothing that this process could reach by this way. */
const absentErrnos = ["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "ENAMETOOLONG"];

export interface Guard {
  readonly access: "deny" | "protect";
  /** The rule; null for flowcell's own files. */
  readonly rule: FsRule | null;
  /** Where it lies in mounts, by name. */
  readonly places: readonly GuardedPlace[];
  /** Whether nothing is there now. */
  readonly absent: boolean;
}

export interface GuardedPlace {
  readonly mount: string;
  readonly names: readonly string[];
}

interface KeptRoot {
  readonly identity: string;
  readonly device: bigint;
  readonly handle: Descriptor;
}

class WatchedGuard implements Guard {
  readonly access: "deny" | "protect";
  readonly rule: FsRule | null;
  readonly places: readonly GuardedPlace[];
  absent = true;
  readonly #open: () => Descriptor;
  readonly #calls: FileCalls;
  readonly #kept: KeptRoot[] = [];

  constructor(calls: FileCalls, guard: Pick<Guard, "access" | "rule" | "places">, open: () => Descriptor) {
    this.access = guard.access;
    this.rule = guard.rule;
    this.places = guard.places;
    this.#calls = calls;
    this.#open = open;
  }

  get kept(): readonly KeptRoot[] {
    return this.#kept;
  }

  /** Whether what it guards has changed. */
  refresh(): boolean {
    const handle = unlessErrno(absentErrnos, this.#open, () => undefined);
    this.absent = handle === undefined;
    if (handle === undefined) return false;
    try {
      const { identity, device } = this.#calls.facts(handle);
      if (this.#kept.some((root) => root.identity === identity)) {
        handle.close();
        return false;
      }
      if (this.#kept.length > keptMax) this.#kept.pop()?.handle.close();
      this.#kept.push({ identity, device, handle });
      return true;
    } catch (error) {
      handle.close();
      throw error;
    }
  }

  close(): void {
    for (const { handle } of this.#kept.splice(0)) handle.close();
  }
}

export class Guards {
  readonly #guards: readonly WatchedGuard[];
  /** By what files are, from all guards. */
  #byIdentity = new Map<string, Guard[]>();
  #devices = new Set<bigint>();

  /** `alwaysDenied`: absolute paths of the host. */
  constructor(
    calls: FileCalls,
    mounts: ReadonlyMap<string, Mount>,
    rules: readonly FsRule[],
    alwaysDenied: readonly string[],
  ) {
    this.#guards = [
      ...rules.flatMap((rule) => ruleGuard(calls, mounts, rule)),
      ...alwaysDenied.map((path) => ownGuard(calls, mounts, path)),
    ];
    try {
      this.refresh();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  get all(): readonly Guard[] {
    return this.#guards;
  }

  /** Whether part of a mount is denied. */
  get anyDenial(): boolean {
    return this.#guards.some((guard) => guard.access === "deny" && guard.places.length > 0);
  }

  /** Looks every root up again. */
  refresh(): void {
    let changed = false;
    for (const guard of this.#guards) changed = guard.refresh() || changed;
    if (!changed) return;
    this.#byIdentity = new Map();
    this.#devices = new Set();
    for (const guard of this.#guards) {
      for (const { identity, device } of guard.kept) {
        this.#devices.add(device);
        this.#byIdentity.set(identity, [...(this.#byIdentity.get(identity) ?? []), guard]);
      }
    }
  }

  /** The guards of exactly this file or folder. */
  of(identity: string): readonly Guard[] {
    return this.#byIdentity.get(identity) ?? [];
  }

  /** Whether a guarded root lies on this device: another mount of it could show a part of that root. */
  guardsOn(device: bigint): boolean {
    return this.#devices.has(device);
  }

  /** The guards whose place is this one or above it, by name. */
  at(mount: string, names: readonly string[]): readonly Guard[] {
    return this.#guards.filter((guard) =>
      guard.places.some((place) => place.mount === mount && isAtOrBelow(names, place.names, guard.absent)),
    );
  }

  close(): void {
    for (const guard of this.#guards) guard.close();
  }
}

/**
 * Compared as written. Where the root does not exist, names are alike that a file system may take for the same: there is
 * no inode yet to tell, and creating `Private` where case does not count would create the root of `private`.
 */
function isAtOrBelow(names: readonly string[], root: readonly string[], loosely: boolean): boolean {
  if (root.length > names.length) return false;
  return root.every((name, index) => {
    const other = names[index] ?? "";
    return name === other || (loosely && alike(name) === alike(other));
  });
}

function alike(name: string): string {
  return name
    .normalize("NFKC")
    .toUpperCase()
    .toLowerCase()
    .replace(/[. ]+$/, "");
}

function ruleGuard(
  calls: FileCalls,
  mounts: ReadonlyMap<string, Mount>,
  rule: FsRule,
): readonly WatchedGuard[] {
  const { access, mount: name, path = "" } = rule;
  if (access !== "deny" && access !== "protect") return [];
  const names = pathComponents(path);
  const mount = mounts.get(name);
  if (names === undefined || mount === undefined)
    throw new RangeError(`no rule for files: ${JSON.stringify(rule)}`);
  const places = [{ mount: name, names }];
  // Through links, however they are written: what the author meant by the name is guarded wherever it lies.
  return [new WatchedGuard(calls, { access, rule, places }, () => calls.resolve(mount.root, path))];
}

function ownGuard(calls: FileCalls, mounts: ReadonlyMap<string, Mount>, path: string): WatchedGuard {
  if (!path.startsWith("/")) throw new RangeError(`no absolute path: ${JSON.stringify(path)}`);
  const places = [...mounts.values()].flatMap((mount) => {
    const below = relative(realpathSync(mount.folder), canonical(path));
    const names = pathComponents(below);
    return names === undefined ? [] : [{ mount: mount.name, names }];
  });
  return new WatchedGuard(calls, { access: "deny", rule: null, places }, () => calls.openHost(path));
}

/** Where a path leads, also when its last components do not exist. */
function canonical(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    const errno = errnoOf(error);
    const parent = dirname(path);
    if (errno === undefined || !absentErrnos.includes(errno) || parent === path) throw error;
    return join(canonical(parent), basename(path));
  }
}
