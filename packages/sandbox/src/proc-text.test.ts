// Tests of the /proc parsers: what kernels really write is read, every deviation in a judged field is refused.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ProcTextError, parseChildren, parseLimits, parseMaps, parseStat, parseStatus } from "./proc-text.js";

/** A confined worker's status as Linux 6.1 to 7.3 write it; fields that are not judged are shortened. */
const STATUS = [
  "Name:\tworker",
  "Umask:\t0022",
  "State:\tS (sleeping)",
  "Tgid:\t412",
  "Ngid:\t0",
  "Pid:\t412",
  "PPid:\t77",
  "TracerPid:\t0",
  "Uid:\t65534\t65534\t65534\t65534",
  "Gid:\t65534\t65534\t65534\t65534",
  "FDSize:\t64",
  "Groups:\t ",
  "Threads:\t1",
  "SigBlk:\t0000000000000000",
  "SigIgn:\t0000000000000000",
  "SigCgt:\t0000000000000440",
  "CapInh:\t0000000000000000",
  "CapPrm:\t0000000000000000",
  "CapEff:\t0000000000000000",
  "CapBnd:\t000001ffffffffff",
  "CapAmb:\t0000000000000000",
  "CoreDumping:\t0",
  "NoNewPrivs:\t1",
  "Seccomp:\t2",
  "Seccomp_filters:\t1",
  "Speculation_Store_Bypass:\tthread force mitigated",
  "SpeculationIndirectBranch:\talways enabled",
  "",
].join("\n");

const LIMITS = [
  "Limit                     Soft Limit           Hard Limit           Units     ",
  "Max cpu time              1280                 1281                 seconds   ",
  "Max file size             0                    0                    bytes     ",
  "Max data size             140509184            140509184            bytes     ",
  "Max stack size            8388608              unlimited            bytes     ",
  "Max core file size        0                    0                    bytes     ",
  "Max resident set          unlimited            unlimited            bytes     ",
  "Max processes             0                    0                    processes ",
  "Max open files            3                    3                    files     ",
  "Max nice priority         0                    0                    ",
  "Max realtime timeout      unlimited            unlimited            us        ",
  "",
].join("\n");

describe("status", () => {
  test("reads a worker's status", () => {
    const status = parseStatus(STATUS);
    expect(status).toMatchObject({
      pid: 412,
      ppid: 77,
      threads: 1,
      seccompMode: 2,
      seccompFilters: 1,
      noNewPrivs: 1,
      groups: [],
      storeBypass: "thread force mitigated",
    });
    expect(status.uid).toEqual([65534, 65534, 65534, 65534]);
    expect(status.signalsCaught).toBe(0x440n);
  });

  test("reads several groups", () => {
    expect(parseStatus(STATUS.replace("Groups:\t ", "Groups:\t4 24 1000 ")).groups).toEqual([4, 24, 1000]);
  });

  test.runIf(process.platform === "linux")("reads what this kernel says about this process", () => {
    const status = parseStatus(readFileSync("/proc/self/status", "utf8"));
    expect(status.pid).toBe(process.pid);
    expect(status.uid[0]).toBe(process.getuid?.());
    expect(status.ppid).toBe(process.ppid);
  });

  test.each([
    ["a field that comes twice", STATUS.replace("Threads:\t1\n", "Threads:\t1\nThreads:\t2\n")],
    ["a second Seccomp line", `${STATUS}Seccomp:\t0\n`],
    ["a missing field", STATUS.replace("NoNewPrivs:\t1\n", "")],
    ["a kernel that does not count filters", STATUS.replace("Seccomp_filters:\t1\n", "")],
    ["a cut text", STATUS.slice(0, -4)],
    ["an empty text", ""],
    ["a line without a name", STATUS.replace("Ngid:\t0", "Ngid")],
    ["a number with a sign", STATUS.replace("Threads:\t1", "Threads:\t+1")],
    ["a number with a leading zero", STATUS.replace("Threads:\t1", "Threads:\t01")],
    ["a number in hexadecimal", STATUS.replace("Threads:\t1", "Threads:\t0x1")],
    ["a number beyond exactness", STATUS.replace("Threads:\t1", "Threads:\t9999999999999999")],
    ["three ids", STATUS.replace("Uid:\t65534\t65534\t65534\t65534", "Uid:\t65534\t65534\t65534")],
    ["five ids", STATUS.replace("Uid:\t65534", "Uid:\t65534\t65534")],
    ["a short mask", STATUS.replace("CapEff:\t0000000000000000", "CapEff:\t0")],
    ["a group that is no number", STATUS.replace("Groups:\t ", "Groups:\tadm ")],
  ])("refuses %s", (_name, text) => {
    expect(() => parseStatus(text)).toThrow(ProcTextError);
  });

  test("a name that imitates other lines is not taken for them", () => {
    // The kernel escapes line feeds in names; without the escape the text has the line twice and is refused.
    const escaped = STATUS.replace("Name:\tworker", "Name:\tx\\nSeccomp:\\t2");
    expect(parseStatus(escaped).seccompMode).toBe(2);
    expect(() => parseStatus(STATUS.replace("Name:\tworker", "Name:\tx\nSeccomp:\t2"))).toThrow(
      /Seccomp comes twice/,
    );
  });
});

describe("limits", () => {
  test("reads soft and hard values, and unlimited as -1", () => {
    const limits = parseLimits(LIMITS);
    expect(limits.cpuSeconds).toEqual({ soft: 1280, hard: 1281 });
    expect(limits.stackBytes).toEqual({ soft: 8388608, hard: -1 });
    expect(limits.openFiles).toEqual({ soft: 3, hard: 3 });
  });

  test.runIf(process.platform === "linux")("reads what this kernel says about this process", () => {
    expect(parseLimits(readFileSync("/proc/self/limits", "utf8")).openFiles.soft).toBeGreaterThan(2);
  });

  test.each([
    ["no header", LIMITS.slice(LIMITS.indexOf("\n") + 1)],
    ["a row that comes twice", LIMITS.replace("Max processes  ", "Max open files ")],
    ["a missing row", LIMITS.replace(/Max open files.*\n/, "")],
    ["a negative limit", LIMITS.replace("140509184            140509184", "-1                   140509184")],
    [
      "a number beyond exactness",
      LIMITS.replace("140509184            140509184", "9007199254740993     140509184"),
    ],
    ["a cut text", LIMITS.slice(0, -20)],
  ])("refuses %s", (_name, text) => {
    expect(() => parseLimits(text)).toThrow(ProcTextError);
  });
});

describe("stat", () => {
  const rest = "S 77 412 412 0 -1 4194560 100 0 0 0 0 0 0 0 20 0 1 0 9000 8000000 400 18446744073709551615";

  test.each(["worker", "a) b", ") S 1 1 1 0", "((", "x (y) "])("reads past the name %j", (name) => {
    expect(parseStat(`412 (${name}) ${rest}\n`)).toEqual({
      pid: 412,
      state: "S",
      ppid: 77,
      processGroup: 412,
      session: 412,
      terminal: 0,
      threads: 1,
    });
  });

  test.each(["", "412", "412 (x", `(x) ${rest}`, "412 (x) S 77 412", `412 (x) ${rest.replace("77", "-1")}`])(
    "refuses %j",
    (text) => {
      expect(() => parseStat(text)).toThrow(ProcTextError);
    },
  );
});

describe("children", () => {
  test("reads none and several, refuses a cut list", () => {
    expect(parseChildren("")).toEqual([]);
    expect(parseChildren("12 13 ")).toEqual([12, 13]);
    expect(() => parseChildren("12 1")).toThrow(ProcTextError);
    expect(() => parseChildren("x ")).toThrow(ProcTextError);
  });
});

describe("maps", () => {
  const text = [
    "7f0000000000-7f0000001000 r--p 00000000 fe:00 123                        /opt/flow cell/worker",
    "7f0000001000-7f0000200000 r-xp 00001000 fe:00 123                        /opt/flow cell/worker",
    "7f0000200000-7f0000300000 rw-p 00000000 00:00 0 ",
    "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]",
    "7ffc00100000-7ffc00102000 r-xp 00000000 00:00 0                          [vdso]",
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]",
    "",
  ].join("\n");

  test("counts nothing in an orderly process", () => {
    expect(parseMaps(text)).toEqual({
      mappings: 6,
      writableExecutable: 0,
      shared: 0,
      executableAnonymous: 0,
    });
  });

  test("counts what must not be there", () => {
    expect(parseMaps(text.replace("rw-p 00000000 00:00 0 \n", "rwxp 00000000 00:00 0 \n"))).toMatchObject({
      writableExecutable: 1,
      executableAnonymous: 1,
    });
    expect(parseMaps(text.replace("rw-p", "rw-s")).shared).toBe(1);
    expect(parseMaps(text.replace("rw-p", "r-xp")).executableAnonymous).toBe(1);
  });

  test.each(["", "x\n", text.slice(0, -3), text.replace("r--p", "r--")])("refuses %j", (bad) => {
    expect(() => parseMaps(bad)).toThrow(ProcTextError);
  });
});

test("no text whatever makes a parser fail in another way than by refusing", () => {
  const lines = fc.array(
    fc.oneof(fc.string(), fc.constantFrom(...STATUS.split("\n"), ...LIMITS.split("\n"))),
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        lines.map((all) => all.join("\n")),
      ),
      (text) => {
        for (const parse of [parseStatus, parseLimits, parseStat, parseChildren, parseMaps]) {
          try {
            parse(text);
          } catch (error) {
            expect(error).toBeInstanceOf(ProcTextError);
          }
        }
      },
    ),
  );
});
