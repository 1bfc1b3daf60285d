/**
 * What an entry is to the `fs.*` rows: a file whose data may be touched, a folder, or something that is let alone.
 *
 * Kept true: data descriptors exist only of regular files, opened through the handle that was decided about. A file with
 * more than one name is never changed, and not read where part of a mount is denied: its other name may be there.
 */

import type { Descriptor, FileFacts, FileKind } from "@flowcell/native";
import type { HostError } from "@flowcell/protocol";
import { problem, type Subject, systemProblem } from "./problems.js";
import type { FsScope, Place } from "./scope.js";
import type { Handle } from "./walk.js";

const kindTexts: Readonly<Record<FileKind, string>> = {
  file: "a file",
  folder: "a folder",
  link: "a link",
  fifo: "a fifo",
  socket: "a socket",
  device: "a device",
  other: "of an unknown kind",
};

/** The entry, or `not_found`. */
export function requireEntry(place: Place): Handle {
  if (place.entry !== undefined) return place.entry;
  throw problem(
    "not_found",
    place.subject,
    place.obstacle === undefined ? "does not exist" : "lies below something that is no folder",
  );
}

export function requireFile(handle: Handle, subject: Subject): void {
  if (handle.facts.kind !== "file") throw wrongKind(handle.facts.kind, "file", subject);
}

export function wrongKind(kind: FileKind, wanted: "file" | "folder", subject: Subject): HostError {
  const harmless = kind === "file" || kind === "folder" || kind === "link";
  return problem(harmless ? "conflict" : "denied", subject, `is ${kindTexts[kind]}, not a ${wanted}`, {
    detail: { kind },
  });
}

/** Refuses a file that has a second name. */
export function requireOneName(
  { links }: FileFacts,
  subject: Subject,
  verb: "read" | "changed" = "changed",
): void {
  if (links <= 1) return;
  const where = verb === "read" ? " where part of a mount is denied" : "";
  throw problem("denied", subject, `has ${links} names (hard links); such files are not ${verb}${where}`);
}

/**
 * The file has one name, the one by which it was reached, since it was reached. The count alone does not say so: a
 * process could give a file outside a name here, wait for the walk and take the name away again before the count.
 */
export function requireSoleName(
  scope: FsScope,
  place: Place,
  { descriptor, facts }: Handle,
  verb: "read" | "changed",
): void {
  requireOneName(facts, place.subject, verb);
  if (isStillNamed(scope, descriptor, place)) return;
  throw problem("conflict", place.subject, "was moved or removed by another process meanwhile", {
    retryable: true,
  });
}

function isStillNamed({ calls }: FsScope, descriptor: Descriptor, place: Place): boolean {
  const { folder, name } = place.slot();
  try {
    return calls.stillNamed(descriptor, folder, name);
  } catch (error) {
    throw systemProblem(place.subject, error);
  }
}

/** A descriptor for reading the file of a place. */
export function openForReading(
  scope: FsScope,
  place: Place,
): { readonly file: Descriptor; readonly sizeBytes: number } {
  const entry = requireEntry(place);
  requireFile(entry, place.subject);
  if (scope.guards.anyDenial) requireSoleName(scope, place, entry, "read");
  try {
    return { file: scope.calls.reopen(entry.descriptor, "read"), sizeBytes: entry.facts.sizeBytes };
  } catch (error) {
    throw systemProblem(place.subject, error);
  }
}
