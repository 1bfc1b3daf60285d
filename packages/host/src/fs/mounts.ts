/**
 * Mounts: names that the operator mapped to folders. Opened once per set of functions; every walk begins at the
 * descriptor that was opened here.
 *
 * Trust: the operator's folders. Links in their paths are followed, once, here.
 */

import { type Descriptor, FileCallError, type FileCalls, type FileFacts } from "@flowcell/native";
import { problem, type Subject, unlessErrno } from "./problems.js";

/** A mount that cannot be used: the operator's to mend. The message holds no path of the host, `folder` does. */
export class FsMountError extends Error {
  override readonly name = "FsMountError";
  readonly mount: string;
  readonly folder: string | undefined;

  constructor(mount: string, what: string, folder?: string) {
    super(`mount ${JSON.stringify(mount)} ${what}`);
    this.mount = mount;
    this.folder = folder;
  }
}

export interface Mount {
  readonly name: string;
  /** Absolute path on the host. Never shown to a script. */
  readonly folder: string;
  readonly root: Descriptor;
  readonly facts: FileFacts;
}

/** Opens the mounts of these names. Throws FsMountError; then nothing is left open. */
export function openMounts(
  calls: FileCalls,
  folders: ReadonlyMap<string, string>,
  names: readonly string[],
): ReadonlyMap<string, Mount> {
  const mounts = new Map<string, Mount>();
  try {
    for (const name of names) mounts.set(name, openMount(calls, name, folders.get(name)));
  } catch (error) {
    for (const { root } of mounts.values()) root.close();
    throw error;
  }
  return mounts;
}

function openMount(calls: FileCalls, name: string, folder: string | undefined): Mount {
  if (folder === undefined) {
    throw new FsMountError(
      name,
      `is mapped to no folder; map it: --mount ${name}=FOLDER, or mounts.${name} in the configuration`,
    );
  }
  if (!folder.startsWith("/")) throw new FsMountError(name, "is not mapped to an absolute folder", folder);
  const remedy = `check what the operator mapped it to (--mount ${name}=FOLDER, or mounts.${name} in the configuration)`;
  let root: Descriptor;
  try {
    root = calls.openHost(folder);
  } catch (error) {
    if (!(error instanceof FileCallError)) throw error;
    throw new FsMountError(name, `cannot be opened (${error.code}); ${remedy}`, folder);
  }
  try {
    const facts = mountFacts(calls, name, root, folder);
    if (facts.kind !== "folder") throw new FsMountError(name, `is no folder; ${remedy}`, folder);
    if (facts.kernel) {
      throw new FsMountError(
        name,
        `is on a file system that is an interface of the kernel; ${remedy}`,
        folder,
      );
    }
    return { name, folder, root, facts };
  } catch (error) {
    root.close();
    throw error;
  }
}

function mountFacts(calls: FileCalls, name: string, root: Descriptor, folder: string): FileFacts {
  try {
    return calls.facts(root);
  } catch (error) {
    if (!(error instanceof FileCallError)) throw error;
    const why = error.code === "ENOSYS" ? "needs Linux 5.8 or newer" : `cannot be looked at (${error.code})`;
    throw new FsMountError(name, why, folder);
  }
}

/** Whether the path that was mapped leads to another folder than was opened, or to none. */
export function isReplaced(calls: FileCalls, { folder, facts }: Mount): boolean {
  return currentIdentity(calls, folder) !== facts.identity;
}

/** The path that was mapped must still lead to the folder that was opened: the operator may have put another one there. */
export function assertNotReplaced(calls: FileCalls, mount: Mount, subject: Subject): void {
  const now = currentIdentity(calls, mount.folder);
  if (now === mount.facts.identity) return;
  throw problem(
    "unavailable",
    subject,
    now === undefined
      ? `cannot be reached: the folder of mount ${mount.name} is gone`
      : `cannot be reached: the folder of mount ${mount.name} was replaced while the run had it open`,
  );
}

function currentIdentity(calls: FileCalls, folder: string): string | undefined {
  const gone = ["ENOENT", "ENOTDIR", "ELOOP", "EACCES"];
  const handle = unlessErrno(
    gone,
    () => calls.openHost(folder),
    () => undefined,
  );
  try {
    return handle && calls.facts(handle).identity;
  } finally {
    handle?.close();
  }
}
