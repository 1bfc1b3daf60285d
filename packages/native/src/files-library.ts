// The file calls of the launcher library (worker-native/src/launch/files.h). Called by files.ts only; a program that only
// launches workers does not come here.
//
// All calls are synchronous, for the reason given in library.ts. They are short: no data is read or written by them.

import { loadLauncher } from "./library.js";
import { nativePaths, requireNative } from "./paths.js";

/** Indexes into `struct files_facts`, seen as unsigned 64-bit words. */
export const FACTS = {
  device: 0,
  inode: 1,
  mount: 2,
  size: 3,
  modifiedNs: 4,
  kind: 5,
  links: 6,
  mode: 7,
  user: 8,
  group: 9,
  kernel: 10,
  length: 11,
} as const;

/** `enum files_open_mode`. */
export const OPEN = { read: 0, append: 1, write: 2 } as const;

/** The functions of files.h. Negative numbers are negative errno values. */
export interface FilesLibrary {
  openHost(path: string): number;
  resolve(folder: number, path: string): number;
  step(folder: number, name: string): number;
  same(folder: number): number;
  above(folder: number): number;
  facts(handle: number, out: BigUint64Array): number;
  /** As much as `out` holds. */
  linkText(handle: number, out: Uint8Array): number;
  stillNamed(handle: number, folder: number, name: string): number;
  reopen(handle: number, mode: number): number;
  reopenFolder(handle: number): number;
  create(folder: number, name: string, mode: number): number;
  makeFolder(folder: number, name: string): number;
  rename(folder: number, from: string, to: string): number;
  remove(folder: number, name: string): number;
  list(folder: number, out: Uint8Array): number;
}

const loaded = new Map<string, FilesLibrary>();

/** The file calls of the launcher library at `path` (default: that of this clone), bound once. */
export function filesLibrary(path: string = nativePaths().launcher): FilesLibrary {
  const known = loaded.get(path);
  if (known !== undefined) return known;
  const library = loadLauncher<FilesLibrary>(requireNative(path), filesNames);
  loaded.set(path, library);
  return library;
}

const filesNames = [
  "openHost",
  "resolve",
  "step",
  "same",
  "above",
  "facts",
  "linkText",
  "stillNamed",
  "reopen",
  "reopenFolder",
  "create",
  "makeFolder",
  "rename",
  "remove",
  "list",
] as const;
