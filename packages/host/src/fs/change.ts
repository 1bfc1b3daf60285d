/**
 * `fs.append` and `fs.delete`: what may not be made twice. Before each, what the file was is noted with the intent; after
 * a crash the note and the file together tell whether it happened, or that nobody can know.
 */

import type { Descriptor } from "@flowcell/native";
import type { CallNote } from "@flowcell/protocol";
import * as z from "zod/mini";
import { defineHostFunction, type HostFunction, type RecoveredResult } from "../registry.js";
import { AppendTurns } from "./append-turns.js";
import { dataArgument, dataBytes, pathArgument, writtenResult } from "./arguments.js";
import { readRange, synchronise, writeAll } from "./data.js";
import { openForReading, requireFile, requireSoleName, wrongKind } from "./files.js";
import { cancelled } from "./look.js";
import { problem, systemProblem, unlessErrno } from "./problems.js";
import type { FsScope, Place } from "./scope.js";
import { synchroniseFolder } from "./write.js";

/** Of this process: scopes of different runs may append to one file. */
const turns = new AppendTurns();

export function appendRow(scope: FsScope, bodyBytes: number): HostFunction {
  const call = "fs.append";
  return defineHostFunction({
    name: call,
    doc: "Adds to the end of a file; makes the file if there is none.",
    effect: "once",
    grant: "fs",
    signature: "(path: string, data: string | Uint8Array): Promise<{ bytes: number }>",
    input: z.tuple([pathArgument, dataArgument]),
    output: writtenResult,
    prepare: ([path, data], { idempotencyKey, signal }) => {
      dataBytes(call, data, bodyBytes);
      const place = scope.locate(call, path, "write");
      try {
        assertAppendable(scope, place);
        const alone = turns.take(fileOf(place), idempotencyKey, signal);
        return { ...noteOf(place), alone };
      } finally {
        place.close();
      }
    },
    handler: async ([path, data], { idempotencyKey, signal }) => {
      const bytes = dataBytes(call, data, bodyBytes);
      try {
        await turns.wait(turnFile(scope, path), idempotencyKey);
        // Located after the wait: the turn before may have made the file.
        const place = scope.locate(call, path, "write");
        try {
          if (signal.aborted) throw cancelled(place.subject);
          await append(scope, place, bytes);
          return { bytes: bytes.length };
        } catch (error) {
          throw systemProblem(place.subject, error);
        } finally {
          place.close();
        }
      } finally {
        turns.end(idempotencyKey);
      }
    },
    recover: async ([path, data], note) => {
      const bytes = dataBytes(call, data, bodyBytes);
      const place = scope.locate(call, path, "write");
      try {
        return await wasAppended(scope, place, bytes, note);
      } finally {
        place.close();
      }
    },
  });
}

function turnFile(scope: FsScope, path: string): string {
  const place = scope.locate("fs.append", path, "write");
  try {
    return fileOf(place);
  } finally {
    place.close();
  }
}

/** Two places of one file have one of these: the folder, by what it is, and the name in it. */
function fileOf(place: Place): string {
  const { name } = place.slot();
  return `${place.parent?.facts.identity} ${name}`;
}

function noteOf({ entry }: Place): CallNote {
  return entry === undefined
    ? { file: null, size: 0 }
    : { file: entry.facts.identity, size: entry.facts.sizeBytes };
}

function assertAppendable(scope: FsScope, place: Place): void {
  const { entry, subject } = place;
  place.slot();
  if (place.obstacle !== undefined)
    throw problem("conflict", subject, "lies below something that is no folder");
  if (place.missing.length > 1) throw problem("not_found", subject, "lies in a folder that does not exist");
  if (entry === undefined) return;
  requireFile(entry, subject);
  requireSoleName(scope, place, entry, "changed");
}

async function append(scope: FsScope, place: Place, bytes: Uint8Array): Promise<void> {
  assertAppendable(scope, place);
  const { folder, name } = place.slot();
  const { entry, subject } = place;
  const file =
    entry === undefined
      ? scope.calls.create(folder, name, 0o666)
      : scope.calls.reopen(entry.descriptor, "append");
  let written = 0;
  try {
    await writeAll(file, bytes, (count) => {
      written = count;
    });
    await synchronise(file);
    if (entry === undefined) await synchroniseFolder(scope, folder);
  } catch (error) {
    if (written === 0) throw error;
    const what =
      written < bytes.length
        ? `has ${written} of ${bytes.length} bytes more`
        : "was written, but the disk did not confirm it";
    throw problem("outcome_unknown", subject, what, { detail: { written }, cause: error });
  } finally {
    file.close();
  }
}

async function wasAppended(
  scope: FsScope,
  place: Place,
  bytes: Uint8Array,
  note: CallNote | null,
): Promise<RecoveredResult> {
  const before = note?.["size"];
  if (note === null || typeof before !== "number") return { state: "unknown" };
  const { entry } = place;
  if (entry === undefined) return { state: note["file"] === null ? "not_applied" : "unknown" };
  if (note["file"] !== null && note["file"] !== entry.facts.identity) return { state: "unknown" };
  if (entry.facts.sizeBytes === before) return { state: "not_applied" };
  if (entry.facts.sizeBytes !== before + bytes.length || note["alone"] !== true) return { state: "unknown" };
  const { file } = openForReading(scope, place);
  try {
    const tail = await readRange(file, before, bytes.length);
    const isOurs = tail !== undefined && Buffer.compare(tail, bytes) === 0;
    return isOurs ? { state: "applied", value: { bytes: bytes.length } } : { state: "unknown" };
  } finally {
    file.close();
  }
}

export function deleteRow(scope: FsScope): HostFunction {
  const call = "fs.delete";
  return defineHostFunction({
    name: call,
    doc: "Deletes a file. Whether there was one.",
    effect: "once",
    grant: "fs",
    signature: "(path: string): Promise<boolean>",
    input: z.tuple([pathArgument]),
    output: z.boolean({ error: "must be true or false" }),
    prepare: ([path]) => {
      const place = scope.locate(call, path, "write", false);
      try {
        assertDeletable(scope, place);
        return noteOf(place);
      } finally {
        place.close();
      }
    },
    handler: async ([path]) => {
      const place = scope.locate(call, path, "write", false);
      try {
        assertDeletable(scope, place);
        if (place.entry === undefined) return false;
        const { folder, name } = place.slot();
        const wasThere = unlessErrno(
          ["ENOENT"],
          () => {
            scope.calls.remove(folder, name);
            return true;
          },
          () => false,
        );
        if (wasThere) await confirm(scope, place, folder);
        return wasThere;
      } catch (error) {
        throw systemProblem(place.subject, error);
      } finally {
        place.close();
      }
    },
    recover: ([path], note) => {
      if (note === null) return { state: "unknown" };
      const place = scope.locate(call, path, "write", false);
      try {
        return wasDeleted(place, note);
      } finally {
        place.close();
      }
    },
  });
}

function assertDeletable(scope: FsScope, place: Place): void {
  place.slot();
  const { entry, subject } = place;
  if (entry === undefined) return;
  if (entry.facts.kind !== "file") throw wrongKind(entry.facts.kind, "file", subject);
  requireSoleName(scope, place, entry, "changed");
}

async function confirm(scope: FsScope, { subject }: Place, folder: Descriptor): Promise<void> {
  try {
    await synchroniseFolder(scope, folder);
  } catch (error) {
    throw problem("outcome_unknown", subject, "was deleted, but the disk did not confirm it", {
      cause: error,
    });
  }
}

function wasDeleted({ entry }: Place, note: CallNote): RecoveredResult {
  if (note["file"] === null)
    return entry === undefined ? { state: "applied", value: false } : { state: "unknown" };
  if (entry === undefined) return { state: "applied", value: true };
  const isSame = entry.facts.identity === note["file"] && entry.facts.sizeBytes === note["size"];
  return { state: isSame ? "not_applied" : "unknown" };
}
