/**
 * The errors of the `fs.*` rows, worded for the author of a script. Kept true: a message names files only as scripts do,
 * by mount; what the operating system said appears as the name of its error.
 */

import type { FsRule } from "@flowcell/manifest";
import { FileCallError } from "@flowcell/native";
import { HostError, type HostErrorCode } from "@flowcell/protocol";
import { shorten } from "./script-path.js";

/** The call and the file that a problem is about. */
export interface Subject {
  readonly call: string;
  /** `/<mount>/a/b` */
  readonly file: string;
}

export function problem(
  code: HostErrorCode,
  { call, file }: Subject,
  what: string,
  options: { readonly detail?: object; readonly retryable?: boolean; readonly cause?: unknown } = {},
): HostError {
  return new HostError(code, `${call}: ${shorten(file)} ${what}`, {
    ...options,
    detail: { file: shorten(file), ...options.detail },
  });
}

/** A grant for a message: what to add to a manifest. */
export function grantText(mount: string, names: readonly string[], access: "read" | "write"): string {
  const rule: FsRule = names.length === 0 ? { mount, access } : { mount, path: names.join("/"), access };
  return `add ${JSON.stringify(rule)} to grants.fs`;
}

interface ErrnoRow {
  readonly code: HostErrorCode;
  readonly what: string;
  readonly retryable?: boolean;
}

const userMayNot = "cannot be reached by the user that flowcell runs as";

const errnoTable: Readonly<Record<string, ErrnoRow>> = {
  ENOENT: { code: "not_found", what: "does not exist" },
  ENOTDIR: { code: "not_found", what: "lies below something that is no folder" },
  EEXIST: { code: "conflict", what: "exists already" },
  EISDIR: { code: "conflict", what: "is a folder" },
  ETXTBSY: { code: "conflict", what: "is a program that is running" },
  EAGAIN: { code: "conflict", what: "is held by another process", retryable: true },
  ENAMETOOLONG: { code: "invalid_arguments", what: "is longer than this file system allows" },
  EINVAL: { code: "invalid_arguments", what: "has a name that this file system does not allow" },
  EILSEQ: { code: "invalid_arguments", what: "has a name that this file system does not allow" },
  EACCES: { code: "io_error", what: userMayNot },
  EPERM: { code: "io_error", what: userMayNot },
  EROFS: { code: "io_error", what: "is on a read-only file system" },
  ENOSPC: { code: "io_error", what: "cannot be written: the file system is full" },
  EDQUOT: { code: "io_error", what: "cannot be written: the quota is used up" },
  EMFILE: { code: "io_error", what: "cannot be opened: too many open files", retryable: true },
  ENFILE: { code: "io_error", what: "cannot be opened: too many open files", retryable: true },
  ENOSYS: { code: "io_error", what: "cannot be opened: this system has no procfs on /proc" },
  ENOMEM: { code: "io_error", what: "cannot be opened: out of memory", retryable: true },
};

/** What the operating system refused, as a HostError; anything that is no such refusal comes back as it is. */
export function systemProblem(subject: Subject, error: unknown): unknown {
  const errno = errnoOf(error);
  if (errno === undefined) return error;
  const row = errnoTable[errno] ?? { code: "io_error", what: "failed" };
  const options = { detail: { errno }, cause: error };
  const what = `${row.what} (${errno})`;
  return problem(
    row.code,
    subject,
    what,
    row.retryable === undefined ? options : { ...options, retryable: row.retryable },
  );
}

/** "ENOENT" of an error of a file call or of Node's fs. */
export function errnoOf(error: unknown): string | undefined {
  if (error instanceof FileCallError) return error.code;
  if (!(error instanceof Error) || !("syscall" in error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** The value, or what `otherwise` makes of a refusal with one of these errno names. */
export function unlessErrno<T, U>(errnos: readonly string[], act: () => T, otherwise: () => U): T | U {
  try {
    return act();
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === undefined || !errnos.includes(errno)) throw error;
    return otherwise();
  }
}
