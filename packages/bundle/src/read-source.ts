/**
 * Reads one source file of a flow. The caller has decided that the path may be read; this decides again on the opened
 * descriptor, because a link can be exchanged between a check and an open.
 *
 * TRUST: everything about the file belongs to its author: size, kind, encoding and where links lead.
 */

import { closeSync, constants, fstatSync, openSync, readlinkSync, readSync } from "node:fs";
import { basename, relative, sep } from "node:path";
import { type BundleFailure, fail } from "./failure.js";

export type SourceResult =
  | { readonly ok: true; readonly text: string; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly failure: BundleFailure };

/** `root`: the real path that the opened file must lie under; undefined for the entry, which the caller names himself. */
export function readSource(
  path: string,
  label: string,
  sourceBytes: number,
  root: string | undefined,
): SourceResult {
  let descriptor: number;
  try {
    // Without O_NONBLOCK opening a named pipe waits for a writer.
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    return { ok: false, failure: openFailure(error, label) };
  }
  try {
    return readOpened(descriptor, label, sourceBytes, root);
  } catch (error) {
    return { ok: false, failure: fail("unreadable", `${label}: cannot be read (${errorCode(error)})`) };
  } finally {
    closeSync(descriptor);
  }
}

function readOpened(
  descriptor: number,
  label: string,
  sourceBytes: number,
  root: string | undefined,
): SourceResult {
  const status = fstatSync(descriptor);
  if (status.isDirectory())
    return refuse("unsupported_file", `${label}: is a folder; name the script file in it`);
  if (!status.isFile()) return refuse("unsupported_file", `${label}: is not a regular file`);
  if (root !== undefined && !openedInside(descriptor, root))
    return refuse("import_refused", outsideText(label));
  if (status.size > sourceBytes)
    return refuse("source_too_large", tooLargeText(label, status.size, sourceBytes));
  const buffer = Buffer.allocUnsafe(status.size + 1);
  let length = 0;
  for (;;) {
    const count = readSync(descriptor, buffer, length, buffer.length - length, null);
    if (count === 0) break;
    length += count;
    if (length > status.size) return refuse("unreadable", `${label}: changed while it was read; try again`);
  }
  return decode(buffer.subarray(0, length), label);
}

function decode(bytes: Buffer, label: string): SourceResult {
  if (bytes.includes(0)) {
    return refuse("not_javascript", `${label}: is a binary file; JavaScript or TypeScript text is expected`);
  }
  try {
    // The decoder drops a byte order mark, as editors do when they count columns.
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return { ok: true, text, bytes };
  } catch {
    return refuse("not_javascript", `${label}: is not UTF-8 text; save it as UTF-8`);
  }
}

export function tooLargeText(label: string, bytes: number, sourceBytes: number): string {
  return `${label}: the source has ${bytes} bytes; the limit is ${sourceBytes} (limits.sourceBytes). Pass data as input instead of writing it into the script`;
}

export function outsideText(label: string): string {
  return `${label}: lies outside the folder of the script, where imports may not reach`;
}

/** Where the system tells it, the descriptor's own path decides, not a second look at the name. */
function openedInside(descriptor: number, root: string): boolean {
  if (process.platform !== "linux") return true;
  return isInside(root, readlinkSync(`/proc/self/fd/${descriptor}`));
}

/** Both real paths. */
export function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return (
    way !== "" &&
    way !== ".." &&
    !way.startsWith(`..${sep}`) &&
    !way.startsWith(sep) &&
    !/^[A-Za-z]:/.test(way)
  );
}

function openFailure(error: unknown, label: string): BundleFailure {
  const code = errorCode(error);
  if (code === "ENOENT" || code === "ENOTDIR") return fail("not_found", `${label}: no such file`);
  if (code === "EACCES") return fail("unreadable", `${label}: permission denied`);
  if (code === "ELOOP") return fail("unreadable", `${label}: too many links`);
  return fail("unreadable", `${label}: cannot be opened (${code})`);
}

function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}

function refuse(code: BundleFailure["code"], message: string): SourceResult {
  return { ok: false, failure: fail(code, message) };
}

/** What messages call the entry: as it was typed when that is relative, else the bare name (no host folders). */
export function entryLabel(path: string): string {
  const posix = path.split(sep).join("/");
  return posix.startsWith("/") || /^[A-Za-z]:/.test(posix)
    ? basename(path)
    : posix.replace(/^(?:\.\/+)+/, "");
}
