// The seccomp filter of both architectures, as the worker builds it, asked about every number and argument that
// matters and compared with the table. No kernel is involved.

import { execFileSync } from "node:child_process";
import { beforeAll, describe, expect, it } from "vitest";
import {
  type Arch,
  allow,
  type CallData,
  demanded,
  type Instruction,
  interpret,
  killProcess,
  seccompTable,
  type TableRow,
} from "./filter.js";
import { build, product } from "./harness.js";

const table = seccompTable();
const programs = new Map<string, readonly Instruction[]>();

beforeAll(() => {
  build("filter-dump");
  for (const line of execFileSync(product("bin/filter-dump"), { encoding: "utf8" }).trim().split("\n")) {
    const dump: { arch: string; program: Instruction[] } = JSON.parse(line);
    programs.set(dump.arch, dump.program);
  }
});

function programOf(arch: Arch): readonly Instruction[] {
  const program = programs.get(arch);
  if (program === undefined) throw new Error(`filter-dump has no program for ${arch}`);
  return program;
}

const archs: readonly Arch[] = ["x64", "arm64"];

/** x86-64, arm64, i386, x32 has no own number; 32-bit ARM; RISC-V; nonsense. */
const auditArchs = [0xc000003e, 0xc00000b7, 0x40000003, 0x40000028, 0xc00000f3, 0x3e, 0xb7, 0, 0xffffffff];

const oddNumbers = [
  0x3fffffff, 0x40000000, 0x40000001, 0x400000e7, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff,
];

/** A call with just the arguments that a row admits, all others full of bits that nobody tests. */
function admitted(row: TableRow, arch: Arch, pick: number): CallData {
  const args = [0x1111_2222_3333_4444n, -1n, 0x8000_0000_0000_0000n, 5n, 0xffff_ffffn, 1n << 40n];
  for (const arg of row.args) args[arg.index] = BigInt(arg.oneOf[pick % arg.oneOf.length] ?? 0);
  return { number: row.numbers[arch], arch: Number(table.architectures[arch].auditArch), args };
}

function withArg(call: CallData, index: number, value: bigint): CallData {
  return { ...call, args: call.args.map((old, at) => (at === index ? BigInt.asUintN(64, value) : old)) };
}

/** Values around the admitted ones: every single flipped bit, neighbours, and the edges of both word sizes. */
function perturbed(values: readonly number[]): bigint[] {
  const edges = [
    0n,
    1n,
    2n,
    3n,
    -1n,
    -2n,
    1n << 31n,
    (1n << 32n) - 1n,
    1n << 32n,
    1n << 63n,
    (1n << 63n) - 1n,
  ];
  const around = values.flatMap((value) => {
    const base = BigInt(value);
    const flips = Array.from({ length: 64 }, (_, bit) => base ^ (1n << BigInt(bit)));
    return [base, base - 1n, base + 1n, base | (0xffff_ffffn << 32n), ...flips];
  });
  return [...edges, ...around];
}

function compare(arch: Arch, call: CallData): void {
  const got = interpret(programOf(arch), call);
  const wanted = demanded(table, arch, call);
  if (got !== wanted) {
    const args = call.args.map((arg) => `0x${BigInt.asUintN(64, arg).toString(16)}`).join(", ");
    throw new Error(
      `${arch}: number ${call.number}, arch 0x${call.arch.toString(16)}, (${args}): program says ${got}, table ${wanted}`,
    );
  }
}

describe.each(archs)("the seccomp filter of %s", (arch) => {
  it("admits every row with every admitted value, whatever its untested arguments are", () => {
    for (const row of table.rows) {
      for (let pick = 0; pick < 4; pick += 1) {
        expect(interpret(programOf(arch), admitted(row, arch, pick)), row.name).toBe(allow);
      }
    }
  });

  it("kills a row's call for every other value of a tested argument", () => {
    let killed = 0;
    for (const row of table.rows) {
      for (const arg of row.args) {
        for (const value of perturbed(arg.oneOf)) {
          const call = withArg(admitted(row, arch, 0), arg.index, value);
          compare(arch, call);
          if (demanded(table, arch, call) === killProcess) killed += 1;
        }
      }
    }
    expect(killed).toBeGreaterThan(table.rows.length * 30);
  });

  it("decides as the table demands for every number, every argument pattern and every audit architecture", () => {
    const numbers = [...Array.from({ length: 1024 }, (_, number) => number), ...oddNumbers];
    const patterns = [0n, 1n, 2n, 3n, 4n, 7n, -1n, 1n << 32n].map((value) =>
      Array.from({ length: 6 }, () => value),
    );
    for (const number of numbers) {
      for (const auditArch of auditArchs) {
        for (const args of patterns) compare(arch, { number, arch: auditArch, args });
      }
    }
  });

  it("kills every call of a foreign architecture, also with an admitted number and arguments", () => {
    const own = Number(table.architectures[arch].auditArch);
    for (const row of table.rows) {
      for (const auditArch of auditArchs.filter((candidate) => candidate !== own)) {
        const call = { ...admitted(row, arch, 0), arch: auditArch };
        expect(interpret(programOf(arch), call), row.name).toBe(killProcess);
      }
    }
  });

  it("kills every x32 number and every number with a high bit", () => {
    for (const row of table.rows) {
      for (const bit of [0x40000000, 0x80000000]) {
        const call = { ...admitted(row, arch, 0), number: (row.numbers[arch] | bit) >>> 0 };
        expect(interpret(programOf(arch), call), row.name).toBe(killProcess);
      }
    }
  });

  it("answers nothing but allow and kill process", () => {
    const returns = programOf(arch).flatMap(([code, , , value]) => (code === 0x06 ? [value] : []));
    expect(new Set(returns)).toEqual(new Set([allow, killProcess]));
  });
});

describe("the seccomp filter of x64", () => {
  it("refuses x32 numbers before it looks at any row, not only because no row names them", () => {
    expect(programOf("x64").slice(3, 6)).toEqual([
      [0x20, 0, 0, 0],
      [0x35, 0, 1, 0x40000000],
      [0x06, 0, 0, killProcess],
    ]);
  });
});

describe("the seccomp table", () => {
  it("admits no call that opens, connects, starts, maps or signals", () => {
    expect(table.rows.map((row) => row.name).sort()).toEqual([
      "clock_gettime",
      "exit_group",
      "madvise",
      "mprotect",
      "read",
      "write",
    ]);
  });

  it("gives each row a reason and a place that needs it", () => {
    for (const row of table.rows) {
      expect(row.reason.length, row.name).toBeGreaterThan(40);
      expect(row.neededBy.length, row.name).toBeGreaterThan(0);
    }
  });
});
