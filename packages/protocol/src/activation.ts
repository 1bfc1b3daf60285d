/**
 * The two fixed structs that the worker's C reads and writes itself, because it parses no JSON: `ActivateBudget` is
 * attachment 0 of Activate, `UsageReport` the last attachment of Finished and Refused. The field tables here are the one
 * declaration: C structs with static asserts on every offset are generated from them (worker-native/generated/protocol.h).
 *
 * All fields are unsigned and little-endian. TRUST: a UsageReport is what the worker says about itself; it is shown, and
 * never preferred over what the parent measured.
 */

import { activateBudgetBytes, usageReportBytes } from "./messages.js";
import { ProtocolError } from "./protocol-error.js";
import { type Untrusted, untrusted } from "./untrusted.js";

export interface StructField {
  readonly name: string;
  readonly offset: number;
  readonly bits: 32 | 64;
  /** A field with one legal value; a reader refuses any other. */
  readonly constant?: number;
  /** A reader refuses a larger value. */
  readonly most?: number;
  readonly meaning: string;
}

export interface StructTable {
  readonly name: string;
  readonly bytes: number;
  readonly fields: readonly StructField[];
}

export const activateBudgetTable: StructTable = {
  name: "activate_budget",
  bytes: activateBudgetBytes,
  fields: [
    { name: "size", offset: 0, bits: 32, constant: activateBudgetBytes, meaning: "bytes of this struct" },
    { name: "flags", offset: 4, bits: 32, most: 1, meaning: "1: the worker ends after this activation" },
    { name: "cpu_budget_us", offset: 8, bits: 64, meaning: "JavaScript CPU time, microseconds" },
    { name: "heap_bytes", offset: 16, bits: 32, meaning: "engine memory" },
    { name: "stack_bytes", offset: 20, bits: 32, meaning: "JavaScript stack" },
    { name: "result_bytes", offset: 24, bits: 32, meaning: "text of the result" },
    { name: "reserved0", offset: 28, bits: 32, constant: 0, meaning: "" },
    { name: "reserved1", offset: 32, bits: 64, constant: 0, meaning: "" },
  ],
};

export const usageReportTable: StructTable = {
  name: "usage_report",
  bytes: usageReportBytes,
  fields: [
    { name: "cpu_us", offset: 0, bits: 64, meaning: "engine CPU time, microseconds" },
    { name: "heap_peak_bytes", offset: 8, bits: 32, meaning: "largest engine memory" },
    { name: "heap_now_bytes", offset: 12, bits: 32, meaning: "engine memory at the end" },
    { name: "gc_runs", offset: 16, bits: 32, meaning: "forced garbage collections" },
    { name: "interrupts", offset: 20, bits: 32, meaning: "calls of the interrupt handler, saturating" },
  ],
};

export interface ActivateBudget {
  readonly cpuBudgetUs: number;
  readonly heapBytes: number;
  readonly stackBytes: number;
  readonly resultBytes: number;
  /** The worker ends instead of making itself pristine for another activation. */
  readonly singleUse: boolean;
}

export interface UsageReport {
  readonly cpuUs: number;
  readonly heapPeakBytes: number;
  readonly heapNowBytes: number;
  readonly gcRuns: number;
  readonly interrupts: number;
}

/** Fields must be whole and in range: they come from checked limits. */
export function encodeActivateBudget(budget: ActivateBudget): Buffer {
  const bytes = Buffer.alloc(activateBudgetBytes);
  bytes.writeUInt32LE(activateBudgetBytes, 0);
  bytes.writeUInt32LE(budget.singleUse ? 1 : 0, 4);
  writeUInt64LE(bytes, budget.cpuBudgetUs, 8);
  bytes.writeUInt32LE(budget.heapBytes, 16);
  bytes.writeUInt32LE(budget.stackBytes, 20);
  bytes.writeUInt32LE(budget.resultBytes, 24);
  return bytes;
}

export function decodeActivateBudget(raw: Uint8Array): ActivateBudget {
  const view = structView(raw, activateBudgetTable);
  return {
    cpuBudgetUs: readUInt64(view, 8, "cpu_budget_us"),
    heapBytes: view.getUint32(16, true),
    stackBytes: view.getUint32(20, true),
    resultBytes: view.getUint32(24, true),
    singleUse: view.getUint32(4, true) === 1,
  };
}

export function encodeUsageReport(report: UsageReport): Buffer {
  const bytes = Buffer.alloc(usageReportBytes);
  writeUInt64LE(bytes, report.cpuUs, 0);
  bytes.writeUInt32LE(report.heapPeakBytes, 8);
  bytes.writeUInt32LE(report.heapNowBytes, 12);
  bytes.writeUInt32LE(report.gcRuns, 16);
  bytes.writeUInt32LE(report.interrupts, 20);
  return bytes;
}

export function decodeUsageReport(raw: Uint8Array): Untrusted<UsageReport> {
  const view = structView(raw, usageReportTable);
  return untrusted({
    cpuUs: readUInt64(view, 0, "cpu_us"),
    heapPeakBytes: view.getUint32(8, true),
    heapNowBytes: view.getUint32(12, true),
    gcRuns: view.getUint32(16, true),
    interrupts: view.getUint32(20, true),
  });
}

function structView(raw: Uint8Array, table: StructTable): DataView {
  if (raw.byteLength !== table.bytes) {
    throw new ProtocolError("bad_struct", `${table.name} of ${raw.byteLength} bytes`);
  }
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  for (const { name, offset, bits, constant, most } of table.fields) {
    if (most !== undefined && view.getUint32(offset, true) > most) {
      throw new ProtocolError("bad_struct", `${table.name}.${name}`);
    }
    if (constant === undefined) continue;
    const low = view.getUint32(offset, true);
    const high = bits === 64 ? view.getUint32(offset + 4, true) : 0;
    if (low !== constant || high !== 0) throw new ProtocolError("bad_struct", `${table.name}.${name}`);
  }
  return view;
}

const two32 = 2 ** 32;

function writeUInt64LE(bytes: Buffer, value: number, offset: number): void {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new RangeError(`not an unsigned whole number: ${value}`);
  bytes.writeUInt32LE(value % two32, offset);
  bytes.writeUInt32LE(Math.floor(value / two32), offset + 4);
}

/** Beyond 2^53 no microsecond count is honest. */
function readUInt64(view: DataView, offset: number, field: string): number {
  const value = view.getUint32(offset + 4, true) * two32 + view.getUint32(offset, true);
  if (!Number.isSafeInteger(value)) throw new ProtocolError("bad_struct", field);
  return value;
}
