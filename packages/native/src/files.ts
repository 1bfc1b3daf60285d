// System calls on files that Node does not offer, with types: steps below an open folder, facts of a handle, changes
// below a handle. Called by the `fs.*` host functions, which decide what may be reached.
//
// Kept true: every descriptor that leaves this file is a Descriptor, which closes once, whoever closes it; no text with
// a zero byte or half a surrogate pair reaches C, where it would name another file.

import { closeSync } from "node:fs";
import { FACTS, type FilesLibrary, filesLibrary, OPEN } from "./files-library.js";
import { errnoName } from "./launch-error.js";

/** In the order of `enum files_kind`. */
const kinds = ["other", "file", "folder", "link", "fifo", "socket", "device"] as const;
export type FileKind = (typeof kinds)[number];

export interface FileFacts {
  /** Device and inode: the same text for the same file, for as long as a descriptor of it is open. */
  readonly identity: string;
  readonly device: bigint;
  /** The mount through which it was reached. */
  readonly mount: bigint;
  readonly kind: FileKind;
  readonly sizeBytes: number;
  readonly modifiedNs: bigint;
  /** Names that the file has. */
  readonly links: number;
  /** Permission bits. */
  readonly mode: number;
  readonly user: number;
  readonly group: number;
  /** On a file system that is an interface of the kernel: procfs, sysfs, cgroups and their like. */
  readonly kernel: boolean;
}

export interface ListedEntry {
  readonly name: string;
  readonly kind: FileKind;
  /** False: the name is not UTF-8; `name` shows it and does not lead to it. */
  readonly exact: boolean;
}

/** A file call that the operating system refused. */
export class FileCallError extends Error {
  override readonly name = "FileCallError";
  /** "ENOENT", "EACCES", … */
  readonly code: string;

  constructor(call: string, errno: number) {
    const code = errnoName(errno);
    super(`the operating system answered ${code} to ${call}`);
    this.code = code;
  }
}

/** An open descriptor. Its holder closes it; closing it again does nothing, using it afterwards throws. */
export class Descriptor {
  readonly #fd: number;
  #open = true;

  constructor(fd: number) {
    this.#fd = fd;
  }

  /** Throws RangeError once it is closed: the number may be another file's by then. */
  get fd(): number {
    if (!this.#open) throw new RangeError("flowcell: a closed descriptor was used");
    return this.#fd;
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    closeSync(this.#fd);
  }
}

/** Longer than a link can be; of a folder it holds what one look at the list gives. */
const scratchBytes = 8192;

/** The file calls. Each is synchronous, touches no data, and throws FileCallError. */
export class FileCalls {
  readonly #library: FilesLibrary;
  // Filled and read within one call: allocating them costs more than most of the calls do.
  readonly #words = new BigUint64Array(FACTS.length);
  readonly #bytes = new Uint8Array(scratchBytes);

  /** `launcherPath` as in LaunchRequest. Throws NativeMissingError. */
  constructor(launcherPath?: string) {
    this.#library = filesLibrary(launcherPath);
  }

  /** A handle of what an absolute path of the operator leads to, through links. */
  openHost(path: string): Descriptor {
    return descriptor("open", this.#library.openHost(checked(path)));
  }

  /** A handle of what a relative path leads to, through links: says what is there, not that it may be reached. */
  resolve(folder: Descriptor, path: string): Descriptor {
    return descriptor("open", this.#library.resolve(folder.fd, checked(path)));
  }

  /** A handle of one entry of a folder; of the link itself if it is one. */
  step(folder: Descriptor, name: string): Descriptor {
    return descriptor("open", this.#library.step(folder.fd, checked(name)));
  }

  /** A second handle of a folder. */
  same(folder: Descriptor): Descriptor {
    return descriptor("open", this.#library.same(folder.fd));
  }

  /** A handle of the folder above; of the root of all files, that root again. */
  above(folder: Descriptor): Descriptor {
    return descriptor("open", this.#library.above(folder.fd));
  }

  facts(handle: Descriptor): FileFacts {
    const out = this.#words;
    answer("statx", this.#library.facts(handle.fd, out));
    const word = (index: number): bigint => out[index] ?? 0n;
    return {
      identity: `${word(FACTS.device).toString(16)}:${word(FACTS.inode).toString(16)}`,
      device: word(FACTS.device),
      mount: word(FACTS.mount),
      kind: kindAt(Number(word(FACTS.kind))),
      sizeBytes: Number(word(FACTS.size)),
      modifiedNs: BigInt.asIntN(64, word(FACTS.modifiedNs)),
      links: Number(word(FACTS.links)),
      mode: Number(word(FACTS.mode)),
      user: Number(word(FACTS.user)),
      group: Number(word(FACTS.group)),
      kernel: word(FACTS.kernel) !== 0n,
    };
  }

  /** The text of a link; undefined when it is not UTF-8. */
  linkText(handle: Descriptor): string | undefined {
    const bytes = this.#bytes;
    const length = answer("readlink", this.#library.linkText(handle.fd, bytes, bytes.length));
    return exactText(bytes.subarray(0, length));
  }

  /**
   * Whether the entry `name` of `folder`, through which the handle was opened, is still that. A link count of 1 read before
   * this is then the count of that entry alone.
   */
  stillNamed(handle: Descriptor, folder: Descriptor, name: string): boolean {
    return answer("readlink", this.#library.stillNamed(handle.fd, folder.fd, checked(name))) === 1;
  }

  /** A descriptor for the data of the regular file that the handle is of, whatever has become of its name. */
  reopen(handle: Descriptor, mode: keyof typeof OPEN): Descriptor {
    return descriptor("open", this.#library.reopen(handle.fd, OPEN[mode]));
  }

  /** A descriptor of a folder for `list` and for synchronising it. */
  reopenFolder(handle: Descriptor): Descriptor {
    return descriptor("open", this.#library.reopenFolder(handle.fd));
  }

  /** A new file, open for appending; EEXIST whatever else bears the name. The umask applies to `mode`. */
  create(folder: Descriptor, name: string, mode: number): Descriptor {
    return descriptor("open", this.#library.create(folder.fd, checked(name), mode));
  }

  makeFolder(folder: Descriptor, name: string): void {
    answer("mkdir", this.#library.makeFolder(folder.fd, checked(name)));
  }

  rename(folder: Descriptor, from: string, to: string): void {
    answer("rename", this.#library.rename(folder.fd, checked(from), checked(to)));
  }

  remove(folder: Descriptor, name: string): void {
    answer("unlink", this.#library.remove(folder.fd, checked(name)));
  }

  /** The next entries of a folder from `reopenFolder`, in no order; none at its end. */
  list(folder: Descriptor): readonly ListedEntry[] {
    const bytes = this.#bytes;
    const length = answer("getdents", this.#library.list(folder.fd, bytes, bytes.length));
    const entries: ListedEntry[] = [];
    for (let at = 0; at < length; ) {
      const end = at + 2 + (bytes[at + 1] ?? 0);
      const raw = bytes.subarray(at + 2, end);
      const exact = exactText(raw);
      const name = exact ?? new TextDecoder().decode(raw);
      entries.push({ name, kind: kindAt(bytes[at] ?? 0), exact: exact !== undefined });
      at = end;
    }
    return entries;
  }
}

function kindAt(index: number): FileKind {
  return kinds[index] ?? "other";
}

function answer(call: string, result: number): number {
  if (result < 0) throw new FileCallError(call, -result);
  return result;
}

function descriptor(call: string, result: number): Descriptor {
  return new Descriptor(answer(call, result));
}

function checked(text: string): string {
  if (text.includes("\0") || /\p{Surrogate}/u.test(text)) {
    throw new RangeError("flowcell: a path holds a zero byte or half of a surrogate pair");
  }
  return text;
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function exactText(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes);
  } catch {
    return undefined;
  }
}
