// Where the native products lie: worker-native/build/{lib,bin} of the clone this file belongs to.
//
// Called by library.ts for the launcher, and by those who launch for the worker and the probe. The folder is found by
// walking up from this module, which may run from src, from dist or from a bundle; nothing in the environment or the
// working directory can point it elsewhere.

import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Absolute paths of the native products. */
export interface NativePaths {
  readonly launcher: string;
  readonly worker: string;
  readonly probe: string;
}

/** A native product is not there. */
export class NativeMissingError extends Error {
  override readonly name = "NativeMissingError";
  readonly path: string;

  constructor(path: string) {
    super(`flowcell: ${path} does not exist. Build the native parts: npm run build`);
    this.path = path;
  }
}

/** From packages/native/{src,dist}/paths.js it is three levels; a bundle may lie a little deeper. */
const LEVELS_MAX = 6;

/** The products in `directory`, or in the build folder of this clone. Says nothing about whether they exist. */
export function nativePaths(directory: string = buildDirectory()): NativePaths {
  return {
    launcher: join(directory, "lib", "launcher.so"),
    worker: join(directory, "bin", "worker"),
    probe: join(directory, "bin", "probe"),
  };
}

/** `path` itself if it exists. */
export function requireNative(path: string): string {
  if (!existsSync(path)) throw new NativeMissingError(path);
  return path;
}

function buildDirectory(): string {
  const start = dirname(fileURLToPath(import.meta.url));
  let folder = start;
  for (let level = 0; level < LEVELS_MAX; level += 1) {
    folder = dirname(folder);
    const native = join(folder, "worker-native");
    if (existsSync(native)) return join(native, "build");
  }
  throw new NativeMissingError(join(start, "..", "..", "..", "worker-native"));
}
