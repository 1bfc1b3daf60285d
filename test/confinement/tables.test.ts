// The tables that confinement is generated from: checked strictly, complete, and no other than what is committed.

import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { callNumbers, exitCodes, root } from "./harness.js";

const generator = join(root, "scripts/generate-seccomp.mjs");

interface Generator {
  readonly readSeccompTable: (source: string) => unknown;
  readonly readLandlockTable: (source: string) => unknown;
  readonly readExitCodes: (source: string) => unknown;
}

const { readSeccompTable, readLandlockTable, readExitCodes }: Generator = await import(generator);

function source(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** The text of a table with one piece replaced, which must be there. */
function changed(path: string, piece: string, by: string): string {
  const text = source(path);
  if (!text.includes(piece)) throw new Error(`${path} has no ${piece}`);
  return text.replace(piece, by);
}

describe("the generated files", () => {
  it("are those that the tables make", () => {
    const { status, stdout } = spawnSync(process.execPath, [generator, "--check"], { encoding: "utf8" });
    expect(stdout).toBe("");
    expect(status).toBe(0);
  });
});

describe("a table", () => {
  const seccomp = "profiles/linux/seccomp.json";

  it.each([
    ["an unknown key", '"reason":', '"because":', 'unknown key "because"'],
    ["a number twice", '"x64": 1,', '"x64": 0,', "appears twice"],
    ["a name twice", '"name": "write"', '"name": "read"', "appears twice"],
    ["a number out of range", '"x64": 231', '"x64": 1024', "from 0 to 1023"],
    ["an argument that does not exist", '"index": 2', '"index": 6', "from 0 to 5"],
    ["a width that no filter tests", '"bits": 64', '"bits": 48', "must be 32 or 64"],
    [
      "a value wider than the filter compares",
      '"oneOf": [4]',
      '"oneOf": [4294967296]',
      "from 0 to 4294967295",
    ],
    ["no value at all", '"oneOf": [4]', '"oneOf": []', "one to four values"],
    ["an architecture word of another form", '"0xc00000b7"', '"c00000b7"', "must be like"],
  ])("of system calls with %s is refused", (_what, piece, by, message) => {
    expect(() => readSeccompTable(changed(seccomp, piece, by))).toThrow(message);
  });

  it.each([
    ["a code twice", '"code": 65', '"code": 64', "a code appears twice"],
    ["a name twice", '"name": "start_image"', '"name": "usage"', "a name appears twice"],
    ["a code that shells use for signals", '"code": 106', '"code": 137', "from 64 to 125"],
    ["an unknown phase", '"phase": "engine"', '"phase": "later"', "phase must be one of"],
  ])("of exit codes with %s is refused", (_what, piece, by, message) => {
    expect(() => readExitCodes(changed("profiles/exit-codes.json", piece, by))).toThrow(message);
  });

  it.each([
    ["a right twice", '"bit": 1,', '"bit": 0,', "a right appears twice"],
    ["an ABI newer than the newest", '"abi": 10', '"abi": 12', "from 1 to 11"],
    ["an unknown set", '"set": "scoped"', '"set": "scope"', "set must be one of"],
  ])("of Landlock rights with %s is refused", (_what, piece, by, message) => {
    expect(() => readLandlockTable(changed("profiles/linux/landlock.json", piece, by))).toThrow(message);
  });
});

function sourcesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.[chS]$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
}

describe("the exit codes", () => {
  it("are all used by the worker's sources", () => {
    const text = sourcesBelow(join(root, "worker-native/src"))
      .map((file) => readFileSync(file, "utf8"))
      .join("\n");
    const unused = [...exitCodes().keys()].filter(
      (name) => !new RegExp(`\\bEXIT_${name.toUpperCase()}\\b`).test(text),
    );
    expect(unused).toEqual([]);
  });
});

describe("the system call numbers", () => {
  it("are those of the installed kernel headers", () => {
    const header = process.arch === "x64" ? "asm/unistd_64.h" : "asm/unistd.h";
    const macros = execFileSync("cc", ["-E", "-dM", "-include", header, "-x", "c", "/dev/null"], {
      encoding: "utf8",
    });
    const installed = [...macros.matchAll(/^#define __NR_(\w+) (\d+)$/gm)].map(
      (row): readonly [string, number] => [row[1] ?? "", Number(row[2])],
    );
    expect(installed.length).toBeGreaterThan(250);
    const own = callNumbers();
    const byNumber = new Map([...own].map(([name, number]) => [number, name]));
    const different = installed.filter(([name, number]) => {
      // Some numbers have two names (fadvise64 and fadvise64_64); one of them is in the table.
      if (own.has(name)) return own.get(name) !== number;
      return number < 470 && !byNumber.has(number);
    });
    expect(different).toEqual([]);
  });

  it("name each number once, on both architectures", () => {
    for (const arch of ["x64", "arm64"]) {
      const numbers = [...callNumbers(arch).values()];
      expect(new Set(numbers).size).toBe(numbers.length);
    }
  });
});
