// The form of the shipped binaries, read from the files themselves: what the loader and the confinement rely on.

import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import {
  dynamicTag,
  type Elf,
  machine,
  patchElf,
  readElf,
  relocationRelative,
  segmentFlag,
  segmentType,
  typeDyn,
} from "./elf.js";
import { build, product } from "./harness.js";

const arch = process.arch === "arm64" ? "arm64" : "x64";

/** Everything about a confined binary's form that must hold, as texts of what does not. */
function faults(elf: Elf, bytes: Buffer): string[] {
  const found: string[] = [];
  const demand = (holds: boolean, fault: string): void => {
    if (!holds) found.push(fault);
  };
  const of = (type: number) => elf.segments.filter((segment) => segment.type === type);
  const loads = of(segmentType.load);
  const tags = elf.dynamic.map(([tag]) => tag);
  demand(elf.type === typeDyn, "is not position independent");
  demand(elf.machine === machine[arch], "is for another machine");
  demand(of(segmentType.interp).length === 0, "asks for an interpreter");
  demand(!tags.includes(dynamicTag.needed), "needs a shared library");
  demand(!tags.includes(dynamicTag.runPath), "has a library search path");
  demand(of(segmentType.relro).length === 1, "has no part that is sealed after relocation");
  demand(
    of(segmentType.stack).length === 1 &&
      of(segmentType.stack)[0]?.flags === (segmentFlag.read | segmentFlag.write),
    "has a stack that is not just readable and writable",
  );
  const both = segmentFlag.write | segmentFlag.execute;
  demand(
    !elf.segments.some((segment) => (segment.flags & both) === both),
    "has a writable and executable segment",
  );
  demand(
    loads.filter((segment) => (segment.flags & segmentFlag.execute) !== 0).length === 1,
    "has not one code segment",
  );
  demand(!tags.includes(dynamicTag.textRelocations), "has text relocations");
  demand(!tags.includes(dynamicTag.pltRelocations), "has lazily bound calls");
  demand(
    elf.relocations.every((one) => one.type === relocationRelative[arch]),
    "has relocations that need symbols",
  );
  demand(elf.symbols.length === 0, `has dynamic symbols: ${elf.symbols.slice(0, 5).join(", ")}`);
  for (const word of ["GLIBC", "libc.so", "/lib64/ld-", "/lib/ld-", "LD_PRELOAD"]) {
    demand(!bytes.includes(word), `mentions ${word}`);
  }
  return found;
}

describe.each(["probe", "worker"])("the shipped %s", (name) => {
  let bytes: Buffer;

  beforeAll(() => {
    build(name);
    bytes = readFileSync(product(`bin/${name}`));
  }, 600_000);

  it("is a sealed static program without a C library, an interpreter or writable code", () => {
    expect(faults(readElf(bytes), bytes)).toEqual([]);
  });

  it("would not pass with any one of these wrong", () => {
    for (const [patch, fault] of [
      ["writable-code", "has a writable and executable segment"],
      ["executable-stack", "has a stack that is not just readable and writable"],
      ["odd-relocation", "has relocations that need symbols"],
      ["no-relro", "has no part that is sealed after relocation"],
    ] as const) {
      const broken = patchElf(bytes, patch);
      expect(faults(readElf(broken), broken)).toContain(fault);
    }
  });
});

describe("an ordinary program", () => {
  it("fails the same check, so that the check can fail", () => {
    const bytes = readFileSync(process.execPath);
    expect(faults(readElf(bytes), bytes)).toContain("asks for an interpreter");
  });
});
