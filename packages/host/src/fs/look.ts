/** `fs.read`, `fs.list`, `fs.stat`: what may be repeated, since it changes nothing. */

import type { FileKind } from "@flowcell/native";
import { HostError } from "@flowcell/protocol";
import * as z from "zod/mini";
import { defineHostFunction, type HostFunction } from "../registry.js";
import { optionsArgument, pathArgument } from "./arguments.js";
import { readAll } from "./data.js";
import { openForReading, requireEntry, wrongKind } from "./files.js";
import { problem, type Subject, systemProblem } from "./problems.js";
import type { FsScope, Place } from "./scope.js";
import { isTemporaryName } from "./script-path.js";

export interface LookLimits {
  /** Of a file that is read. */
  readonly bodyBytes: number;
  /** Of a file that is read as text: text crosses inside a value, not as an attachment. */
  readonly textBytes: number;
  readonly listEntriesMax: number;
}

const readOptions = optionsArgument({
  encoding: z.optional(z.enum(["utf8", "bytes"], { error: 'must be "utf8" or "bytes"' })),
  maxBytes: z.optional(
    z.int({ error: "must be a whole number" }).check(z.minimum(0, "must not be negative")),
  ),
});

export function readRow(scope: FsScope, limits: LookLimits): HostFunction {
  return defineHostFunction({
    name: "fs.read",
    doc: "The content of a file, as text (UTF-8) or as bytes.",
    effect: "read",
    grant: "fs",
    signature:
      '<E extends "utf8" | "bytes" = "utf8">(path: string, options?: { encoding?: E; maxBytes?: number }): Promise<E extends "bytes" ? Uint8Array : string>',
    input: z.tuple([pathArgument, readOptions]),
    handler: async ([path, options = {}], { signal }) => {
      const { encoding = "utf8", maxBytes = Number.MAX_SAFE_INTEGER } = options;
      const own = encoding === "utf8" ? limits.textBytes : limits.bodyBytes;
      const bytesMax = Math.min(maxBytes, own);
      const { subject, file, sizeBytes } = open(scope, path);
      try {
        const tooLarge = (): HostError => {
          const hint = encoding === "utf8" && maxBytes > own && own < limits.bodyBytes;
          const remedy = hint ? '; {encoding: "bytes"} allows more' : "";
          const detail = { bytesMax };
          return problem("result_too_large", subject, `has more than ${bytesMax} bytes${remedy}`, { detail });
        };
        if (sizeBytes > bytesMax) throw tooLarge();
        const bytes = await readAll(file, sizeBytes, bytesMax, signal);
        if (bytes === undefined) throw tooLarge();
        return encoding === "bytes" ? bytes : decode(bytes, subject);
      } catch (error) {
        throw signal.aborted ? cancelled(subject) : systemProblem(subject, error);
      } finally {
        file.close();
      }
    },
  });
}

/** The descriptor is all that is left open. */
function open(
  scope: FsScope,
  path: string,
): ReturnType<typeof openForReading> & { readonly subject: Subject } {
  const place = scope.locate("fs.read", path, "read");
  try {
    return { ...openForReading(scope, place), subject: place.subject };
  } finally {
    place.close();
  }
}

function decode(bytes: Uint8Array, subject: Subject): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw problem("invalid_arguments", subject, 'is not text in UTF-8; read it with {encoding: "bytes"}', {
      detail: { reason: "not_utf8" },
    });
  }
}

export function cancelled(subject: Subject): HostError {
  return new HostError("cancelled", `${subject.call}: the call was cancelled`);
}

/** What scripts are told. A link that leads to a file is that file, except in a list, where nothing is followed. */
type ShownKind = "file" | "folder" | "link" | "other";

function shownKind(kind: FileKind): ShownKind {
  return kind === "file" || kind === "folder" || kind === "link" ? kind : "other";
}

export function listRow(scope: FsScope, limits: LookLimits): HostFunction {
  return defineHostFunction({
    name: "fs.list",
    doc: "The entries of a folder, sorted by name.",
    effect: "read",
    grant: "fs",
    signature: '(path: string): Promise<{ name: string; kind: "file" | "folder" | "link" | "other" }[]>',
    input: z.tuple([pathArgument]),
    handler: ([path]) => {
      const place = scope.locate("fs.list", path, "read");
      try {
        return list(scope, place, limits.listEntriesMax);
      } catch (error) {
        throw systemProblem(place.subject, error);
      } finally {
        place.close();
      }
    },
  });
}

function list(
  { calls }: FsScope,
  place: Place,
  entriesMax: number,
): readonly { readonly name: string; readonly kind: ShownKind }[] {
  const { descriptor, facts } = requireEntry(place);
  if (facts.kind !== "folder") throw wrongKind(facts.kind, "folder", place.subject);
  const folder = calls.reopenFolder(descriptor);
  try {
    const found: { name: string; kind: ShownKind }[] = [];
    for (;;) {
      const entries = calls.list(folder);
      if (entries.length === 0) break;
      for (const { name, kind, exact } of entries) {
        if (!isTemporaryName(name)) found.push({ name, kind: exact ? shownKind(kind) : "other" });
      }
      if (found.length > entriesMax) {
        const detail = { entriesMax };
        throw problem("result_too_large", place.subject, `has more than ${entriesMax} entries`, { detail });
      }
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
  } finally {
    folder.close();
  }
}

export function statRow(scope: FsScope): HostFunction {
  return defineHostFunction({
    name: "fs.stat",
    doc: "Kind, size and time of change of what a path leads to; null when there is nothing.",
    effect: "read",
    grant: "fs",
    signature:
      '(path: string): Promise<{ kind: "file" | "folder" | "other"; size: number; mtimeMs: number } | null>',
    input: z.tuple([pathArgument]),
    handler: ([path]) => {
      const place = scope.locate("fs.stat", path, "read");
      try {
        if (place.entry === undefined) return null;
        const { kind, sizeBytes, modifiedNs } = place.entry.facts;
        const size = kind === "file" ? sizeBytes : 0;
        return { kind: shownKind(kind), size, mtimeMs: Number(modifiedNs / 1_000_000n) };
      } finally {
        place.close();
      }
    },
  });
}
