// Reads what matters for hygiene from a 64-bit little-endian ELF file, and makes broken copies of one for the refusal
// tests. Offsets are those of the ELF specification; every read is bounded by the file.

export interface Segment {
  readonly type: number;
  readonly flags: number;
  readonly offset: number;
  readonly address: number;
  readonly fileBytes: number;
  readonly memoryBytes: number;
  /** Where its program header lies in the file. */
  readonly header: number;
}

export interface Elf {
  readonly type: number;
  readonly machine: number;
  readonly segments: readonly Segment[];
  /** Tag and value, in order, without the end mark. */
  readonly dynamic: readonly (readonly [number, number])[];
  /** Names of symbols in the dynamic symbol table; a stripped static binary has none worth a name. */
  readonly symbols: readonly string[];
  /** Type and file offset of each relocation. */
  readonly relocations: readonly { readonly type: number; readonly at: number }[];
}

export const segmentType = { load: 1, dynamic: 2, interp: 3, stack: 0x6474e551, relro: 0x6474e552 } as const;
export const segmentFlag = { execute: 1, write: 2, read: 4 } as const;
export const dynamicTag = {
  needed: 1,
  hash: 4,
  stringTable: 5,
  symbolTable: 6,
  rela: 7,
  relaBytes: 8,
  textRelocations: 22,
  pltRelocations: 23,
  flags: 30,
  runPath: 29,
  flags1: 0x6ffffffb,
  gnuHash: 0x6ffffef5,
} as const;
export const typeDyn = 3;
export const machine = { x64: 62, arm64: 183 } as const;
export const relocationRelative = { x64: 8, arm64: 1027 } as const;

function number64(file: Buffer, at: number): number {
  return Number(file.readBigUInt64LE(at));
}

function readSegments(file: Buffer): Segment[] {
  const start = number64(file, 32);
  const size = file.readUInt16LE(54);
  return Array.from({ length: file.readUInt16LE(56) }, (_, index) => {
    const header = start + index * size;
    return {
      type: file.readUInt32LE(header),
      flags: file.readUInt32LE(header + 4),
      offset: number64(file, header + 8),
      address: number64(file, header + 16),
      fileBytes: number64(file, header + 32),
      memoryBytes: number64(file, header + 40),
      header,
    };
  });
}

function fileOffset(segments: readonly Segment[], address: number): number {
  const home = segments.find(
    (segment) =>
      segment.type === segmentType.load &&
      address >= segment.address &&
      address < segment.address + segment.fileBytes,
  );
  if (home === undefined) throw new Error(`address ${address.toString(16)} is in no segment`);
  return home.offset + (address - home.address);
}

function readDynamic(file: Buffer, segments: readonly Segment[]): (readonly [number, number])[] {
  const dynamic = segments.find((segment) => segment.type === segmentType.dynamic);
  const entries: (readonly [number, number])[] = [];
  if (dynamic === undefined) return entries;
  for (let at = dynamic.offset; at < dynamic.offset + dynamic.fileBytes; at += 16) {
    const tag = number64(file, at);
    if (tag === 0) break;
    entries.push([tag, number64(file, at + 8)]);
  }
  return entries;
}

function taggedValue(dynamic: readonly (readonly [number, number])[], tag: number): number | undefined {
  return dynamic.find(([candidate]) => candidate === tag)?.[1];
}

/** The dynamic symbols: the table runs up to the string table, as linkers lay it out. */
function readSymbols(file: Buffer, elf: Pick<Elf, "segments" | "dynamic">): string[] {
  const symbols = taggedValue(elf.dynamic, dynamicTag.symbolTable);
  const strings = taggedValue(elf.dynamic, dynamicTag.stringTable);
  if (symbols === undefined || strings === undefined) return [];
  const names = fileOffset(elf.segments, strings);
  const found: string[] = [];
  for (let at = fileOffset(elf.segments, symbols); at + 24 <= names; at += 24) {
    const name = names + file.readUInt32LE(at);
    const end = file.indexOf(0, name);
    if (end > name) found.push(file.toString("latin1", name, end));
  }
  return found;
}

export function readElf(file: Buffer): Elf {
  if (file.toString("latin1", 0, 4) !== "\x7fELF" || file[4] !== 2 || file[5] !== 1) {
    throw new Error("not a 64-bit little-endian ELF file");
  }
  const segments = readSegments(file);
  const dynamic = readDynamic(file, segments);
  const rela = taggedValue(dynamic, dynamicTag.rela);
  const bytes = taggedValue(dynamic, dynamicTag.relaBytes) ?? 0;
  const start = rela === undefined ? 0 : fileOffset(segments, rela);
  const relocations = Array.from({ length: bytes / 24 }, (_, index) => ({
    type: file.readUInt32LE(start + index * 24 + 8),
    at: start + index * 24,
  }));
  return {
    type: file.readUInt16LE(16),
    machine: file.readUInt16LE(18),
    segments,
    dynamic,
    symbols: readSymbols(file, { segments, dynamic }),
    relocations,
  };
}

export type Patch = "writable-code" | "executable-stack" | "odd-relocation" | "no-relro";

/** A copy of a good binary with one thing wrong. */
export function patchElf(good: Buffer, patch: Patch): Buffer {
  const file = Buffer.from(good);
  const elf = readElf(file);
  const segment = (matches: (candidate: Segment) => boolean): Segment => {
    const found = elf.segments.find(matches);
    if (found === undefined) throw new Error(`nothing to patch for ${patch}`);
    return found;
  };
  switch (patch) {
    case "writable-code": {
      const code = segment((one) => one.type === segmentType.load && (one.flags & segmentFlag.execute) !== 0);
      file.writeUInt32LE(code.flags | segmentFlag.write, code.header + 4);
      break;
    }
    case "executable-stack": {
      const stack = segment((one) => one.type === segmentType.stack);
      file.writeUInt32LE(stack.flags | segmentFlag.execute, stack.header + 4);
      break;
    }
    case "odd-relocation": {
      const first = elf.relocations[0];
      if (first === undefined) throw new Error("no relocation to patch");
      file.writeUInt32LE(1, first.at + 8);
      break;
    }
    case "no-relro": {
      const relro = segment((one) => one.type === segmentType.relro);
      file.writeUInt32LE(0, relro.header);
      break;
    }
  }
  return file;
}
