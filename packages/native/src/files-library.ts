// The koffi binding to the file calls of the launcher library (worker-native/src/launch/files.h). Called by files.ts
// only. Loaded on first use, and from a file of its own, so that launching workers binds nothing that it does not call.
//
// All calls are synchronous, for the reason given in library.ts. They are short: no data is read or written by them.

import { createRequire } from "node:module";
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
  linkText(handle: number, out: Uint8Array, capacity: number): number;
  stillNamed(handle: number, folder: number, name: string): number;
  reopen(handle: number, mode: number): number;
  reopenFolder(handle: number): number;
  create(folder: number, name: string, mode: number): number;
  makeFolder(folder: number, name: string): number;
  rename(folder: number, from: string, to: string): number;
  remove(folder: number, name: string): number;
  list(folder: number, out: Uint8Array, capacity: number): number;
}

const loaded = new Map<string, FilesLibrary>();

/** The file calls of the launcher library at `path` (default: that of this clone), bound once. */
export function filesLibrary(path: string = nativePaths().launcher): FilesLibrary {
  const known = loaded.get(path);
  if (known !== undefined) return known;
  const library = bind(requireNative(path));
  loaded.set(path, library);
  return library;
}

function bind(path: string): FilesLibrary {
  const require = createRequire(import.meta.url);
  // `require` is untyped; koffi's own declarations describe what it returns.
  const koffi = require("koffi") as typeof import("koffi");
  const library = koffi.load(path);
  return {
    openHost: library.func("int32_t files_open_host(const char *path)"),
    resolve: library.func("int32_t files_resolve(int32_t folder, const char *path)"),
    step: library.func("int32_t files_step(int32_t folder, const char *name)"),
    same: library.func("int32_t files_same(int32_t folder)"),
    above: library.func("int32_t files_above(int32_t folder)"),
    facts: library.func("int32_t files_facts(int32_t handle, uint64_t *out)"),
    linkText: library.func("int32_t files_link_text(int32_t handle, uint8_t *out, uint32_t capacity)"),
    stillNamed: library.func("int32_t files_still_named(int32_t handle, int32_t folder, const char *name)"),
    reopen: library.func("int32_t files_reopen(int32_t handle, int32_t mode)"),
    reopenFolder: library.func("int32_t files_reopen_folder(int32_t handle)"),
    create: library.func("int32_t files_create(int32_t folder, const char *name, uint32_t mode)"),
    makeFolder: library.func("int32_t files_make_folder(int32_t folder, const char *name)"),
    rename: library.func("int32_t files_rename(int32_t folder, const char *from, const char *to)"),
    remove: library.func("int32_t files_remove(int32_t folder, const char *name)"),
    list: library.func("int32_t files_list(int32_t folder, uint8_t *out, uint32_t capacity)"),
  };
}
