/**
 * Bytes in and out of descriptors, on libuv's threads. Called by the rows that read and write; they hold and close the
 * descriptors.
 */

import { fsync, read, write } from "node:fs";
import { promisify } from "node:util";
import type { Descriptor } from "@flowcell/native";

const readAt = promisify(read);
const writeAt = promisify(write);
const sync = promisify(fsync);

const chunkBytes = 1 << 20;

/**
 * The whole file, or undefined when it has more than `bytesMax`. `expected` is its size as it was: a file that grows
 * meanwhile is read on.
 */
export async function readAll(
  { fd }: Descriptor,
  expected: number,
  bytesMax: number,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  // One byte more tells a file that ends from one that goes on.
  let bytes = new Uint8Array(Math.min(expected, bytesMax) + 1);
  let length = 0;
  for (;;) {
    signal.throwIfAborted();
    const { bytesRead } = await readAt(
      fd,
      bytes,
      length,
      Math.min(chunkBytes, bytes.length - length),
      length,
    );
    if (bytesRead === 0) return bytes.slice(0, length);
    length += bytesRead;
    if (length > bytesMax) return undefined;
    if (length < bytes.length) continue;
    const grown = new Uint8Array(Math.min(2 * length, bytesMax) + 1);
    grown.set(bytes);
    bytes = grown;
  }
}

/** Exactly `length` bytes from `position`, or undefined when the file ends before. */
export async function readRange(
  { fd }: Descriptor,
  position: number,
  length: number,
): Promise<Uint8Array | undefined> {
  const bytes = new Uint8Array(length);
  for (let done = 0; done < length; ) {
    const { bytesRead } = await readAt(fd, bytes, done, Math.min(chunkBytes, length - done), position + done);
    if (bytesRead === 0) return undefined;
    done += bytesRead;
  }
  return bytes;
}

/** Writes at the end of a file open for appending. `onProgress` hears how many bytes are written so far. */
export async function writeAll(
  { fd }: Descriptor,
  bytes: Uint8Array,
  onProgress: (written: number) => void = () => undefined,
): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await writeAt(fd, bytes, written, bytes.length - written, null);
    written += bytesWritten;
    onProgress(written);
  }
}

/** What was written is on the disk when this returns. */
export async function synchronise({ fd }: Descriptor): Promise<void> {
  await sync(fd);
}
