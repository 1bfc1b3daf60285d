/** The fixed structs: layout, round trip, refusals. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  activateBudgetTable,
  decodeActivateBudget,
  decodeUsageReport,
  encodeActivateBudget,
  encodeUsageReport,
  usageReportTable,
} from "./activation.js";
import { ProtocolError } from "./protocol-error.js";

const u32 = fc.integer({ min: 0, max: 0xffff_ffff });
const u53 = fc.maxSafeNat();

describe("the fixed structs", () => {
  it("have fields that follow each other without gap or overlap and are aligned", () => {
    for (const { bytes, fields } of [activateBudgetTable, usageReportTable]) {
      let end = 0;
      for (const { offset, bits } of fields) {
        expect(offset).toBe(end);
        expect(offset % (bits / 8)).toBe(0);
        end = offset + bits / 8;
      }
      expect(end).toBe(bytes);
    }
  });

  it("read back as they were written", () => {
    const budget = fc.record({
      cpuBudgetUs: u53,
      heapBytes: u32,
      stackBytes: u32,
      resultBytes: u32,
      singleUse: fc.boolean(),
    });
    fc.assert(
      fc.property(budget, (value) => {
        expect(decodeActivateBudget(encodeActivateBudget(value))).toEqual(value);
      }),
    );
    const report = fc.record({
      cpuUs: u53,
      heapPeakBytes: u32,
      heapNowBytes: u32,
      gcRuns: u32,
      interrupts: u32,
    });
    fc.assert(
      fc.property(report, (value) => {
        expect(decodeUsageReport(encodeUsageReport(value))).toEqual(value);
      }),
    );
  });

  it("lie in memory as the table says, little-endian", () => {
    const bytes = encodeActivateBudget({
      cpuBudgetUs: 0x0102030405,
      heapBytes: 0x0a0b0c0d,
      stackBytes: 1,
      resultBytes: 2,
      singleUse: true,
    });
    expect(bytes.toString("hex")).toBe(
      "2800000001000000050403020100000" + "00d0c0b0a010000000200000000000000" + "0000000000000000",
    );
  });

  it("are refused when their size or a constant field is wrong", () => {
    const budget = encodeActivateBudget({
      cpuBudgetUs: 1,
      heapBytes: 1,
      stackBytes: 1,
      resultBytes: 1,
      singleUse: false,
    });
    expect(() => decodeActivateBudget(budget.subarray(1))).toThrow(ProtocolError);
    expect(() => decodeActivateBudget(Buffer.concat([budget, Buffer.alloc(1)]))).toThrow(ProtocolError);
    for (const { name, offset, constant, most } of activateBudgetTable.fields) {
      if (constant === undefined && most === undefined) continue;
      const changed = Buffer.from(budget);
      changed[offset] = (changed[offset] ?? 0) ^ 2;
      expect(() => decodeActivateBudget(changed)).toThrow(new RegExp(`activate_budget\\.${name}$`));
    }
    expect(() => decodeUsageReport(Buffer.alloc(23))).toThrow(ProtocolError);
  });

  it("refuse a count that no number can hold", () => {
    expect(() => decodeUsageReport(Buffer.alloc(24, 0xff))).toThrow(ProtocolError);
  });

  it("are not written from numbers that are no counts", () => {
    for (const cpuBudgetUs of [-1, 0.5, Number.NaN, 2 ** 53]) {
      expect(() =>
        encodeActivateBudget({ cpuBudgetUs, heapBytes: 1, stackBytes: 1, resultBytes: 1, singleUse: false }),
      ).toThrow(RangeError);
    }
  });
});
