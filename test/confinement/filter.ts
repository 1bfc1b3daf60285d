// A second opinion on the seccomp filter: an interpreter of classic BPF as the kernel runs it, and the verdict that the
// table demands, computed without the program. The test asks both the same questions and compares.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./harness.js";

export type Arch = "x64" | "arm64";

/** What a filter sees of a call (the kernel's struct seccomp_data). */
export interface CallData {
  readonly number: number;
  readonly arch: number;
  readonly args: readonly bigint[];
}

export type Instruction = readonly [code: number, jumpTrue: number, jumpFalse: number, value: number];

export const allow = 0x7fff0000;
export const killProcess = 0x80000000;

function encode(call: CallData): DataView {
  const view = new DataView(new ArrayBuffer(64));
  view.setUint32(0, call.number >>> 0, true);
  view.setUint32(4, call.arch >>> 0, true);
  view.setBigUint64(8, 0x7f00_1234_5678n, true);
  for (let index = 0; index < 6; index += 1) {
    view.setBigUint64(16 + 8 * index, BigInt.asUintN(64, call.args[index] ?? 0n), true);
  }
  return view;
}

/**
 * Runs a program on a call and gives its return value. Knows just the instructions that the builder emits; any other, a
 * load outside the data or a jump outside the program throws, as the kernel would refuse to install it.
 */
export function interpret(program: readonly Instruction[], call: CallData): number {
  const data = encode(call);
  let accumulator = 0;
  for (let at = 0; at < program.length; at += 1) {
    const instruction = program[at];
    if (instruction === undefined) break;
    const [code, jumpTrue, jumpFalse, value] = instruction;
    switch (code) {
      case 0x20:
        if (value % 4 !== 0 || value + 4 > data.byteLength) throw new Error(`load at ${value}`);
        accumulator = data.getUint32(value, true);
        break;
      case 0x15:
        at += accumulator === value ? jumpTrue : jumpFalse;
        break;
      case 0x35:
        at += accumulator >= value ? jumpTrue : jumpFalse;
        break;
      case 0x06:
        return value;
      default:
        throw new Error(`instruction ${code.toString(16)} at ${at}`);
    }
  }
  throw new Error("the program ran off its end");
}

export interface TableArg {
  readonly index: number;
  readonly name: string;
  readonly bits: 32 | 64;
  readonly oneOf: readonly number[];
}

export interface TableRow {
  readonly name: string;
  readonly numbers: Readonly<Record<Arch, number>>;
  readonly args: readonly TableArg[];
  readonly reason: string;
  readonly neededBy: readonly string[];
}

export interface Table {
  readonly architectures: Readonly<
    Record<Arch, { readonly auditArch: string; readonly refuseFrom: string | null }>
  >;
  readonly rows: readonly TableRow[];
}

/** profiles/linux/seccomp.json; scripts/generate-seccomp.mjs checks its form. */
export function seccompTable(): Table {
  return JSON.parse(readFileSync(join(root, "profiles/linux/seccomp.json"), "utf8"));
}

function admits(arg: TableArg, value: bigint): boolean {
  const seen = BigInt.asUintN(arg.bits, value);
  return arg.oneOf.some((wanted) => BigInt(wanted) === seen);
}

/** What the table demands for a call on a machine of `arch`, by the table alone. */
export function demanded(table: Table, arch: Arch, call: CallData): number {
  const { auditArch, refuseFrom } = table.architectures[arch];
  if (call.arch >>> 0 !== Number(auditArch)) return killProcess;
  if (refuseFrom !== null && call.number >>> 0 >= Number(refuseFrom)) return killProcess;
  const row = table.rows.find((candidate) => candidate.numbers[arch] === call.number >>> 0);
  if (row === undefined) return killProcess;
  return row.args.every((arg) => admits(arg, call.args[arg.index] ?? 0n)) ? allow : killProcess;
}
