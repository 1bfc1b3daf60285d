/**
 * `fs.write`: replaces a file as a whole. The data goes into a temporary file in the same folder, then to the disk, then
 * under the name, then the folder to the disk: at any instant, also of a power cut, the name leads to all of the old
 * content or all of the new.
 *
 * The temporary name comes from the call's idempotency key, so that a second try after a crash replaces what the first
 * one left. Kept true: only an entry of the walked folder is ever replaced, never what a link or a second name leads to.
 */

import { createHash } from "node:crypto";
import { fchmodSync, fchownSync } from "node:fs";
import type { Descriptor, FileFacts } from "@flowcell/native";
import * as z from "zod/mini";
import { type CallContext, defineHostFunction, type HostFunction } from "../registry.js";
import { dataArgument, dataBytes, optionsArgument, pathArgument, writtenResult } from "./arguments.js";
import { readAll, synchronise, writeAll } from "./data.js";
import { openForReading, requireFile, requireOneName } from "./files.js";
import { cancelled } from "./look.js";
import { errnoOf, grantText, problem, systemProblem, unlessErrno } from "./problems.js";
import type { FsScope, Place } from "./scope.js";
import { depthMax, scriptText } from "./script-path.js";
import { type Handle, refuseGuarded } from "./walk.js";

const call = "fs.write";

export function writeRow(scope: FsScope, bodyBytes: number): HostFunction {
  return defineHostFunction({
    name: call,
    doc: "Writes a file as a whole: it has all of the old content or all of the new at any time.",
    effect: "keyed",
    grant: "fs",
    signature:
      "(path: string, data: string | Uint8Array, options?: { createFolders?: boolean }): Promise<{ bytes: number }>",
    input: z.tuple([
      pathArgument,
      dataArgument,
      optionsArgument({ createFolders: z.optional(z.boolean({ error: "must be true or false" })) }),
    ]),
    output: writtenResult,
    handler: async ([path, data, options], context) => {
      const bytes = dataBytes(call, data, bodyBytes);
      const place = await locateForWriting(scope, path, options?.createFolders ?? false, context.signal);
      try {
        await replace(scope, place, bytes, context);
        return { bytes: bytes.length };
      } catch (error) {
        throw systemProblem(place.subject, error);
      } finally {
        place.close();
      }
    },
    recover: async ([path, data], _note, context) => {
      const bytes = dataBytes(call, data, bodyBytes);
      const isThere = await hasContent(scope, path, bytes, context.signal);
      return isThere ? { state: "applied", value: { bytes: bytes.length } } : { state: "not_applied" };
    },
  });
}

/** The place, once the folder of the file exists. Every folder that is made is found by a walk of its own. */
async function locateForWriting(
  scope: FsScope,
  path: string,
  createFolders: boolean,
  signal: AbortSignal,
): Promise<Place> {
  for (let made = 0; made <= depthMax; made += 1) {
    const place = scope.locate(call, path, "write");
    try {
      if (place.obstacle !== undefined) {
        throw problem("conflict", place.subject, "lies below something that is no folder");
      }
      if (place.missing.length <= 1) return place;
      if (!createFolders) {
        throw problem(
          "not_found",
          place.subject,
          "lies in a folder that does not exist; {createFolders: true} makes it",
        );
      }
      await makeFolder(scope, place);
    } catch (error) {
      place.close();
      throw systemProblem(place.subject, error);
    }
    place.close();
    if (signal.aborted) throw cancelled(place.subject);
  }
  throw problem("conflict", { call, file: path }, "lies in folders that others remove while they are made");
}

/** The first folder that is missing. */
async function makeFolder(scope: FsScope, place: Place): Promise<void> {
  const [name] = place.missing;
  if (name === undefined || place.parent === undefined) throw new RangeError("no folder is missing");
  const names = place.names.slice(0, place.names.length - place.missing.length + 1);
  if (!scope.mayWrite(place.mount, names)) {
    const folder = scriptText(place.mount, names);
    const grant = grantText(place.mount, names, "write");
    throw problem("denied", place.subject, `lies in ${folder}, which may not be made; ${grant}`, {
      detail: { grant },
    });
  }
  const folder = place.parent.descriptor;
  // Somebody else may have made it meanwhile; the next walk looks at what it is.
  unlessErrno(
    ["EEXIST"],
    () => scope.calls.makeFolder(folder, name),
    () => undefined,
  );
  await synchroniseFolder(scope, folder);
}

async function replace(scope: FsScope, place: Place, bytes: Uint8Array, context: CallContext): Promise<void> {
  const { calls } = scope;
  const { folder, name } = place.slot();
  const old = place.entry && oldFile(scope, place, place.entry);
  const temporary = temporaryName(context.idempotencyKey);
  const file = createTemporary(scope, place, folder, temporary, old);
  let renamed = false;
  try {
    await writeAll(file, bytes);
    if (old !== undefined) keepOwnerAndMode(file, old);
    await synchronise(file);
    if (context.signal.aborted) throw cancelled(place.subject);
    // From here to the rename nothing waits: the event loop cannot come between check and act, other processes can.
    assertReplaceable(scope, place, folder, name);
    assertStillOurs(scope, place, file, folder, temporary);
    calls.rename(folder, temporary, name);
    renamed = true;
  } finally {
    file.close();
    if (!renamed) removeQuietly(scope, folder, temporary);
  }
  try {
    await synchroniseFolder(scope, folder);
  } catch (error) {
    throw problem("outcome_unknown", place.subject, "was written, but the disk did not confirm it", {
      cause: error,
    });
  }
}

/** The file that is to be replaced, if this user could also write into it: a read-only file stays what it is. */
function oldFile({ calls }: FsScope, { subject }: Place, entry: Handle): FileFacts {
  requireFile(entry, subject);
  requireOneName(entry.facts, subject);
  calls.reopen(entry.descriptor, "write").close();
  return entry.facts;
}

/** Of one try only: the next try of the same call finds it, no other call does. */
function temporaryName(idempotencyKey: string): string {
  return `.flowcell-${createHash("sha256").update(idempotencyKey).digest("hex").slice(0, 32)}`;
}

/** What replaces a file is for its owner alone until it has that file's mode; a new file is what the umask makes it. */
function createTemporary(
  { calls }: FsScope,
  { subject }: Place,
  folder: Descriptor,
  temporary: string,
  old: FileFacts | undefined,
): Descriptor {
  const create = (): Descriptor => calls.create(folder, temporary, old === undefined ? 0o666 : 0o600);
  return unlessErrno(["EEXIST"], create, () => {
    unlessErrno(
      ["ENOENT"],
      () => calls.remove(folder, temporary),
      () => undefined,
    );
    return unlessErrno(["EEXIST"], create, () => {
      throw problem("conflict", subject, "is being written by another process under the same temporary name");
    });
  });
}

/** As far as this user may: an ordinary one cannot give files away. */
function keepOwnerAndMode({ fd }: Descriptor, old: FileFacts): void {
  for (const group of [old.group, -1]) {
    const isDone = unlessErrno(
      ["EPERM", "EINVAL"],
      () => {
        fchownSync(fd, group === -1 ? -1 : old.user, group);
        return true;
      },
      () => false,
    );
    if (isDone) break;
  }
  fchmodSync(fd, old.mode);
}

/** What bears the name now, perhaps not what did when the call began. */
function assertReplaceable(scope: FsScope, { subject }: Place, folder: Descriptor, name: string): void {
  scope.refreshGuards(subject);
  const handle = unlessErrno(
    ["ENOENT"],
    () => scope.calls.step(folder, name),
    () => undefined,
  );
  if (handle === undefined) return;
  try {
    const facts = scope.calls.facts(handle);
    requireFile({ descriptor: handle, facts }, subject);
    requireOneName(facts, subject);
    refuseGuarded(scope.guards.of(facts.identity), subject);
  } finally {
    handle.close();
  }
}

function assertStillOurs(
  { calls }: FsScope,
  { subject }: Place,
  file: Descriptor,
  folder: Descriptor,
  temporary: string,
): void {
  const gone = (): undefined => undefined;
  const handle = unlessErrno(["ENOENT"], () => calls.step(folder, temporary), gone);
  try {
    if (handle !== undefined && calls.facts(handle).identity === calls.facts(file).identity) return;
    throw problem("conflict", subject, "was not written: another process took the temporary file away");
  } finally {
    handle?.close();
  }
}

function removeQuietly({ calls }: FsScope, folder: Descriptor, temporary: string): void {
  try {
    calls.remove(folder, temporary);
  } catch (error) {
    // The failure that led here is the one to report; what is left is replaced by the next try or shows by its name.
    if (errnoOf(error) === undefined) throw error;
  }
}

/** Some file systems have no way to synchronise a folder; they say so by EINVAL. */
export async function synchroniseFolder({ calls }: FsScope, handle: Descriptor): Promise<void> {
  const folder = calls.reopenFolder(handle);
  try {
    await synchronise(folder);
  } catch (error) {
    if (errnoOf(error) !== "EINVAL") throw error;
  } finally {
    folder.close();
  }
}

async function hasContent(
  scope: FsScope,
  path: string,
  bytes: Uint8Array,
  signal: AbortSignal,
): Promise<boolean> {
  const place = scope.locate(call, path, "write");
  try {
    if (place.entry === undefined) return false;
    const { file, sizeBytes } = openForReading(scope, place);
    try {
      if (sizeBytes !== bytes.length) return false;
      const found = await readAll(file, sizeBytes, sizeBytes, signal);
      return found !== undefined && Buffer.compare(found, bytes) === 0;
    } finally {
      file.close();
    }
  } finally {
    place.close();
  }
}
