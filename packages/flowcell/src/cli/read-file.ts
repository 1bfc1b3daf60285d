/**
 * Files that somebody names on the command line, read within a bound. What a file says of its size is not believed: pipes
 * and the files of /proc say 0, and devices never end.
 *
 * Kept true: never more than `bytesMax` and one byte is held, whatever stands under the name.
 */

import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from "node:fs";
import { isatty } from "node:tty";

/** Why it was not read, for a message behind the file's name. */
export class FileProblem extends Error {
  override readonly name = "FileProblem";
  readonly kind: "missing" | "too_large" | "unreadable";

  constructor(kind: FileProblem["kind"], message: string) {
    super(message);
    this.kind = kind;
  }
}

export interface FileBounds {
  readonly bytesMax: number;
  /** Whether a pipe will do: what is read once, not what is kept by its name. */
  readonly pipes: boolean;
}

const chunkBytes = 64 * 1024;

/** Throws FileProblem. */
export function readBounded(path: string, { bytesMax, pipes }: FileBounds): Uint8Array {
  let descriptor: number | undefined;
  try {
    // Without O_NONBLOCK opening a named pipe waits for a writer, which is what somebody wants who names one.
    descriptor = openSync(path, constants.O_RDONLY | (pipes ? 0 : constants.O_NONBLOCK));
    const status = fstatSync(descriptor);
    refuseKind(status, pipes);
    if (status.size > bytesMax) throw new FileProblem("too_large", `has ${status.size} bytes`);
    return readAll(descriptor, bytesMax);
  } catch (error) {
    throw problemOf(error);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** Standard input, to its end. Throws FileProblem. */
export function readStandardInput(bytesMax: number): Uint8Array {
  if (isatty(0)) throw new FileProblem("unreadable", "is a terminal; send something into it, or name a file");
  try {
    return readAll(0, bytesMax);
  } catch (error) {
    throw problemOf(error);
  }
}

function refuseKind(status: Stats, pipes: boolean): void {
  if (status.isDirectory()) throw new FileProblem("unreadable", "is a folder");
  if (status.isCharacterDevice() || status.isBlockDevice()) {
    throw new FileProblem("unreadable", "is a device, not a file; send it through a pipe that ends");
  }
  if (!pipes && !status.isFile()) throw new FileProblem("unreadable", "is not a regular file");
}

function readAll(descriptor: number, bytesMax: number): Uint8Array {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, bytesMax + 1 - bytes));
    const count = readSome(descriptor, chunk);
    if (count === 0) return Buffer.concat(chunks, bytes);
    bytes += count;
    if (bytes > bytesMax) throw new FileProblem("too_large", `has more than ${bytesMax} bytes`);
    chunks.push(chunk.subarray(0, count));
  }
}

const againMs = 5;

function readSome(descriptor: number, chunk: Buffer): number {
  for (;;) {
    try {
      return readSync(descriptor, chunk, 0, chunk.length, null);
    } catch (error) {
      // Standard input may be set not to block, by whoever shares it.
      if (codeOf(error) !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, againMs);
    }
  }
}

function problemOf(error: unknown): FileProblem {
  if (error instanceof FileProblem) return error;
  const code = codeOf(error);
  if (code === "ENOENT") return new FileProblem("missing", "no such file");
  return new FileProblem("unreadable", reasons.get(code) ?? `cannot be read (${code})`);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}

const reasons: ReadonlyMap<string, string> = new Map([
  ["ENOTDIR", "part of the path is no folder"],
  ["EACCES", "permission denied"],
  ["ELOOP", "too many links"],
  ["EISDIR", "is a folder"],
  // Standard input by its name in /dev, where it is a socket.
  ["ENXIO", "is a socket or a device that cannot be opened; for standard input write -"],
]);
