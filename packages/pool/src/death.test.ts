// What the end of a process is taken for.

import { exitCodeRow } from "@flowcell/sandbox";
import { describe, expect, test } from "vitest";
import { type DeathContext, deathKind, deathVerdict } from "./death.js";

const context: DeathContext = {
  cutBytes: 0,
  cpuLimitSeconds: 10,
  cpuMs: 1000,
  stackBytes: 4096,
  heapBytes: 8192,
};

const exited = (code: number): Parameters<typeof deathVerdict>[0] => ({ code, signal: null, cpuUs: 1 });
const killed = (signal: string, cpuUs: number | null = 1): Parameters<typeof deathVerdict>[0] => ({
  code: null,
  signal,
  cpuUs,
});

function codeOf(name: string): number {
  for (let code = 0; code < 256; code++) if (exitCodeRow(code)?.name === name) return code;
  throw new Error(`no exit code is called ${name}`);
}

describe("the verdict on a worker that died", () => {
  test.each([
    ["engine_trap", "worker_lost/engine_trap"],
    ["stack_guard", "budget_exceeded/stack"],
    ["fault", "worker_lost/signal"],
    ["engine_memory", "budget_exceeded/memory"],
    ["sender", "worker_lost/exit"],
    ["protocol", "worker_lost/exit"],
  ])("by the exit code %s is %s", (name, verdict) => {
    const { status, reason } = deathVerdict(exited(codeOf(name)), context);
    expect(`${status}/${reason}`).toBe(verdict);
  });

  test("after refused memory names the heap's limit", () => {
    expect(deathVerdict(exited(codeOf("engine_memory")), context)).toMatchObject({ limit: 8192, used: 8192 });
  });

  test.each([
    ["SIGSYS", 1, "violation/syscall"],
    ["SIGSEGV", 1, "worker_lost/signal"],
    ["SIGKILL", 1, "worker_lost/signal"],
    ["SIGKILL", 10_000_000, "budget_exceeded/cpu"],
    ["SIGXCPU", 9_960_000, "budget_exceeded/cpu"],
    ["SIGSEGV", 10_000_000, "worker_lost/signal"],
  ])("by %s after %i µs is %s", (signal, cpuUs, verdict) => {
    const { status, reason } = deathVerdict(killed(signal, cpuUs), context);
    expect(`${status}/${reason}`).toBe(verdict);
  });

  test("in good order is a lost worker, inside a message a violation", () => {
    expect(deathVerdict(exited(0), context)).toMatchObject({ status: "worker_lost", reason: "exit" });
    expect(deathVerdict(exited(0), { ...context, cutBytes: 3 })).toMatchObject({
      status: "violation",
      reason: "protocol",
    });
  });

  test("that nobody saw is a lost worker", () => {
    expect(deathVerdict(null, context)).toMatchObject({ status: "worker_lost", reason: "exit" });
  });
});

describe("the kind of a death", () => {
  test("is trap for each of the engine's own exits and for signals of faults", () => {
    for (const name of ["engine_trap", "stack_guard", "fault", "engine_memory"]) {
      expect(deathKind(exited(codeOf(name))), name).toBe("trap");
    }
    expect(deathKind(killed("SIGBUS"))).toBe("trap");
  });

  test("is syscall for the filter's signal, other for the rest", () => {
    expect(deathKind(killed("SIGSYS"))).toBe("syscall");
    expect(deathKind(killed("SIGKILL"))).toBe("other");
    expect(deathKind(exited(0))).toBe("other");
    expect(deathKind(null)).toBe("other");
  });
});
