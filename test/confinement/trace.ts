// Traces of confined programs, and what they say about the filter's table: a call that no row admits is a bug of the
// worker, a row or a value that no trace shows is a permission that nobody needs.
//
// Called by the trace tests here and by those that run the guest suite. The tracer is worker-native/tools/tracer.c; the
// program must be a test build that allows a tracer (--test-deviation=traced).

import { type ChildProcessByStdio, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { type Arch, demanded, killProcess, type Table } from "./filter.js";

/** A distinct call after the filter was on, and how often it was made. */
export interface TracedCall {
  readonly number: number;
  readonly name: string;
  readonly args: readonly bigint[];
  readonly count: number;
}

export interface Trace {
  readonly calls: readonly TracedCall[];
  /** -1 if a signal ended the program. */
  readonly exit: number;
  /** 0 if it exited. */
  readonly signal: number;
  /** Whether the filter was ever installed. */
  readonly filtered: boolean;
  /** The call at which SIGSYS ended it. */
  readonly killedBy: string | null;
}

interface TraceLine {
  readonly number?: number;
  readonly name?: string;
  readonly args?: readonly string[];
  readonly count?: number;
  readonly exit?: number;
  readonly signal?: number;
  readonly filtered?: boolean;
  readonly killedBy?: string | null;
}

/** Reads the tracer's output. Throws when it has no end: a trace that was cut off proves nothing. */
export function parseTrace(text: string): Trace {
  const lines: TraceLine[] = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
  const end = lines.pop();
  if (end?.exit === undefined || end.signal === undefined || end.filtered === undefined) {
    throw new Error("the trace has no end");
  }
  const calls = lines.map((line) => {
    if (line.number === undefined || line.name === undefined || line.args?.length !== 6) {
      throw new Error(`not a call: ${JSON.stringify(line)}`);
    }
    return { number: line.number, name: line.name, args: line.args.map(BigInt), count: line.count ?? 0 };
  });
  return {
    calls,
    exit: end.exit,
    signal: end.signal,
    filtered: end.filtered,
    killedBy: end.killedBy ?? null,
  };
}

/** A conversation with a traced program. */
export interface TracedProgram {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  /** The trace, once the program has ended. */
  readonly trace: Promise<Trace>;
}

/** Starts a program under the tracer; the caller talks to it through the child's pipes and ends it by closing stdin. */
export function startTraced(tracer: string, program: readonly string[]): TracedProgram {
  const folder = mkdtempSync(join(tmpdir(), "flowcell-trace-"));
  const out = join(folder, "trace");
  const child = spawn(tracer, [out, ...program], { stdio: ["pipe", "pipe", "pipe"], env: {} });
  const collect = async (): Promise<Trace> => {
    try {
      const [status] = await once(child, "close");
      if (status !== 0) throw new Error(`the tracer ended with ${status}`);
      return parseTrace(readFileSync(out, "utf8"));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  return { child, trace: collect() };
}

/** Runs a program under the tracer with all of its input given at once. */
export function traceProgram(tracer: string, program: readonly string[], input: string | Uint8Array): Trace {
  const folder = mkdtempSync(join(tmpdir(), "flowcell-trace-"));
  try {
    const out = join(folder, "trace");
    const { status, stderr } = spawnSync(tracer, [out, ...program], { input, env: {}, encoding: "utf8" });
    if (status !== 0) throw new Error(`the tracer ended with ${status}: ${stderr}`);
    return parseTrace(readFileSync(out, "utf8"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What traces say about the table. Both lists are empty for a table that fits. */
export interface TraceVerdict {
  /** Calls that the filter does not admit. */
  readonly refused: readonly string[];
  /** Rows, and values of rows ("mprotect prot 3"), that no trace shows. */
  readonly unneeded: readonly string[];
}

export function judgeTraces(table: Table, arch: Arch, traces: readonly Trace[]): TraceVerdict {
  const auditArch = Number(table.architectures[arch].auditArch);
  const refused = new Set<string>();
  const needed = new Set<string>();
  for (const call of traces.flatMap((trace) => trace.calls)) {
    if (demanded(table, arch, { number: call.number, arch: auditArch, args: call.args }) === killProcess) {
      refused.add(`${call.name}(${call.args.map((arg) => `0x${arg.toString(16)}`).join(", ")})`);
      continue;
    }
    const row = table.rows.find((candidate) => candidate.numbers[arch] === call.number);
    if (row === undefined) continue;
    needed.add(row.name);
    for (const arg of row.args) {
      needed.add(`${row.name} ${arg.name} ${BigInt.asUintN(arg.bits, call.args[arg.index] ?? 0n)}`);
    }
  }
  const permissions = table.rows.flatMap((row) => [
    row.name,
    ...row.args.flatMap((arg) => arg.oneOf.map((value) => `${row.name} ${arg.name} ${value}`)),
  ]);
  return { refused: [...refused], unneeded: permissions.filter((one) => !needed.has(one)) };
}
