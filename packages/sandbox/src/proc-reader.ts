// Reads small kernel texts, bounded. The only place of this package that touches /proc, so that tests can put texts
// of their choosing in its place.
//
// Called by probe.ts and observe.ts. Synchronous on purpose: a read of /proc never waits for a disk, takes some ten
// microseconds, and a worker that is being judged must not be used in between.
import { closeSync, openSync, readdirSync, readSync, type Stats, statfsSync, statSync } from "node:fs";

/** Who owns a file and which file it is. */
export interface FileIdentity {
  readonly uid: number;
  readonly device: number;
  readonly inode: number;
}

/** What this package reads from the kernel. Failures are Node's system errors, with their `code`. */
export interface ProcReader {
  /** The whole text; an error with code EFBIG when it is longer than `bytesMax`. */
  text(path: string, bytesMax: number): string;
  /** The names in a folder. */
  names(path: string): readonly string[];
  /** Identity of the file that a path leads to, links followed. */
  identity(path: string): FileIdentity;
  /** Whether the path lies on a genuine procfs. */
  isProcfs(path: string): boolean;
}

/** `PROC_SUPER_MAGIC`. */
const PROCFS_MAGIC = 0x9fa0;

class TooLongError extends Error {
  readonly code = "EFBIG";
}

/**
 * Reads go here first: a fresh buffer for each of the ten texts of an observation would cost more than the kernel does. It
 * is used by one synchronous read at a time and holds nothing between two.
 */
const shared = Buffer.allocUnsafeSlow(16 * 1024);

function readText(path: string, bytesMax: number): string {
  const descriptor = openSync(path, "r");
  try {
    let buffer = shared;
    let length = 0;
    for (;;) {
      if (length === buffer.length) {
        const larger = Buffer.allocUnsafeSlow(buffer.length * 4);
        buffer.copy(larger, 0, 0, length);
        buffer = larger;
      }
      const count = readSync(descriptor, buffer, length, buffer.length - length, null);
      if (count === 0) return buffer.toString("utf8", 0, length);
      length += count;
      if (length > bytesMax) throw new TooLongError(`${path} has more than ${bytesMax} bytes`);
    }
  } finally {
    closeSync(descriptor);
  }
}

/** The kernel of this host. */
export const hostProc: ProcReader = {
  text: readText,
  names: (path) => readdirSync(path),
  identity(path) {
    const stats: Stats = statSync(path);
    return { uid: stats.uid, device: stats.dev, inode: stats.ino };
  },
  isProcfs: (path) => statfsSync(path).type === PROCFS_MAGIC,
};

/** The code of a system error such as `EACCES`, or a word for anything else. */
export function errorCode(error: unknown): string {
  if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
  return "unknown error";
}
