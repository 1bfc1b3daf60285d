/**
 * Sockets have names of at most 107 bytes, data folders may stand deeper. A longer path is reached through a descriptor of
 * its folder, by Linux's own name for that.
 */

import { closeSync, constants, openSync } from "node:fs";
import { basename, dirname } from "node:path";

const nameBytesMax = 107;

export interface SocketPath {
  /** What to hand to the system. */
  readonly path: string;
  /** After the last use of `path`. */
  release(): void;
}

export function reachable(path: string): SocketPath {
  if (Buffer.byteLength(path) <= nameBytesMax) return { path, release: () => undefined };
  const folder = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  return { path: `/proc/self/fd/${folder}/${basename(path)}`, release: () => closeSync(folder) };
}
