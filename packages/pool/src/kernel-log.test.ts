// What the kernel's log says about a process that its filter killed, and what it must not be believed to say.

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type LogReader, type Moment, openKernelLog, RefusedCallSearch } from "./kernel-log.js";

const launched: Moment = { epochMs: 1_800_000_000_000, monotonicMs: 5000 };

/** As the kernel writes it, `afterMs` after the launch. */
function line(
  pid: number,
  afterMs: number,
  { call = 228, arch = "c000003e", sig = 31, type = 1326 } = {},
): string {
  const at = launched.epochMs + afterMs;
  const time = `${Math.floor(at / 1000)}.${String(at % 1000).padStart(3, "0")}`;
  return `5,7,28669244434,-;audit: type=${type} audit(${time}:20400): auid=4294967295 uid=65534 gid=65534 ses=4294967295 pid=${pid} comm="worker" exe="/lib/worker" sig=${sig} arch=${arch} syscall=${call} compat=0 ip=0x7f43 code=0x80000000\n`;
}

class Log implements LogReader {
  readonly records: string[];
  closed = 0;
  clock: Moment = { epochMs: launched.epochMs + 100, monotonicMs: launched.monotonicMs + 100 };
  /** What one record costs. */
  readMs = 0;

  constructor(...records: string[]) {
    this.records = records;
  }

  next(): string | undefined {
    this.pass(this.readMs);
    return this.records.shift();
  }

  pass(ms: number): void {
    this.clock = { epochMs: this.clock.epochMs + ms, monotonicMs: this.clock.monotonicMs + ms };
  }

  close(): void {
    this.closed += 1;
  }

  search(pid = 42): RefusedCallSearch {
    return new RefusedCallSearch(
      pid,
      launched,
      () => this,
      () => this.clock,
    );
  }
}

test.each([
  ["on x86-64", {}, "clock_gettime (number 228)"],
  ["on arm64", { arch: "c00000b7", call: 198 }, "socket (number 198)"],
  ["that no table knows", { call: 9999 }, "number 9999"],
  ["of another architecture", { arch: "40000003", call: 5 }, "number 5 of the architecture 40000003"],
])("a call %s is named, and the log is closed", (_what, how, expected) => {
  const log = new Log("6,1,2,-;eth0: link up\n", line(41, 90), line(42, 90, how), line(43, 90));
  expect(log.search().look()).toBe(expected);
  expect(log.closed).toBe(1);
});

test.each([
  ["an earlier process with the same pid", line(42, -1)],
  ["a time to come", line(42, 5000)],
  ["another process", line(421, 90)],
  ["another signal", line(42, 90, { sig: 0 })],
  ["another kind of line", line(42, 90, { type: 1400 })],
  ["a program that wrote to the log", `12,7,1,-;init: ${line(42, 90).slice(16)}`],
])("a line about %s names nothing", (_what, record) => {
  const log = new Log(record);
  const search = log.search();
  expect(search.look()).toBeUndefined();
  log.pass(100);
  expect(search.look()).toBeNull();
  expect(log.closed).toBe(1);
});

test("a line that comes after the death is found by a later look", () => {
  const log = new Log();
  const search = log.search();
  expect(search.look()).toBeUndefined();
  log.records.push(line(42, 100));
  log.pass(3);
  expect(search.look()).toBe("clock_gettime (number 228)");
});

test("a clock that was set since the launch makes every time worthless", () => {
  const log = new Log(line(42, 90));
  log.clock = { epochMs: launched.epochMs + 100, monotonicMs: launched.monotonicMs + 4000 };
  expect(log.search().look()).toBeNull();
  expect(log.closed).toBe(1);
});

test("one look takes a bounded time of a long log, and the next goes on where it stopped", () => {
  const log = new Log(...Array.from({ length: 40 }, () => "6,1,2,-;noise\n"), line(42, 90));
  log.readMs = 1;
  const search = log.search();
  expect(search.look()).toBeUndefined();
  expect(log.records.length).toBeGreaterThan(20);
  let answer = search.look();
  for (let looks = 0; answer === undefined && looks < 10; looks++) answer = search.look();
  expect(answer).toBe("clock_gettime (number 228)");
});

test("a log that fails in the middle is closed and names nothing", () => {
  const log = new Log();
  log.next = () => {
    throw new Error("EIO");
  };
  expect(log.search().look()).toBeNull();
  expect(log.closed).toBe(1);
});

test("a log that cannot be opened names nothing; one that can leaves no descriptor", () => {
  expect(openKernelLog("/nonexistent/log")).toBeUndefined();
  const search = new RefusedCallSearch(42, launched, () => undefined);
  expect(search.look()).toBeNull();
  const folder = mkdtempSync(join(tmpdir(), "flowcell-log-"));
  const path = join(folder, "log");
  writeFileSync(path, "one record");
  const before = readdirSync("/proc/self/fd").length;
  const reader = openKernelLog(path);
  if (reader !== undefined) {
    expect(reader.next()).toBe("one record");
    expect(reader.next()).toBeUndefined();
    reader.close();
  }
  expect(readdirSync("/proc/self/fd").length).toBe(before);
  rmSync(folder, { recursive: true });
});
