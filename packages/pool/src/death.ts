/**
 * What the end of a worker process means: exit code or signal → status and reason of the outcome table.
 *
 * Used for workers that died while an activation ran and nobody had given a verdict before. Starts that failed are
 * explained by packages/sandbox. TRUST: a subverted worker chooses its exit code; all that a code can make of its end is
 * a limit of the script's own or a lost worker, and the worker is gone either way. Signals are the kernel's word.
 */
import { exitCodeRow } from "@flowcell/sandbox";
import type { ProcessExit } from "./backend.js";
import type { Verdict } from "./types.js";

/** Codes of profiles/exit-codes.json that the engine's traps end with. */
const trapCodes = { engineTrap: 81, stackGuard: 82, fault: 83, engineMemory: 107 } as const;
const trapCodeSet: ReadonlySet<number | null> = new Set(Object.values(trapCodes));

/** Signals of a process that ran into something, as opposed to being told to end. */
const trapSignals: ReadonlySet<string> = new Set([
  "SIGSEGV",
  "SIGBUS",
  "SIGILL",
  "SIGTRAP",
  "SIGABRT",
  "SIGFPE",
]);

export type DeathKind = "syscall" | "trap" | "other";

/** For the counters per flow. */
export function deathKind(exit: ProcessExit | null): DeathKind {
  if (exit === null) return "other";
  if (exit.signal === "SIGSYS") return "syscall";
  if (exit.signal !== null) return trapSignals.has(exit.signal) ? "trap" : "other";
  return trapCodeSet.has(exit.code) ? "trap" : "other";
}

/** One clause for logs and evidence. */
export function describeExit(exit: ProcessExit | null): string {
  if (exit === null) return "the process did not end although it was killed";
  if (exit.signal !== null) return `the process ended by ${exit.signal}${callOf(exit)}`;
  if (exit.code === null) return "the process ended and other code collected it";
  const row = exitCodeRow(exit.code);
  return row === undefined
    ? `the process ended with code ${exit.code}`
    : `the process ended with code ${exit.code} (${row.name})`;
}

/** The refused call, where the kernel's log named it. */
function callOf({ refusedCall }: ProcessExit): string {
  return refusedCall === undefined ? "" : `: ${refusedCall}`;
}

export interface DeathContext {
  /** Bytes of a message that was cut off by the end. */
  readonly cutBytes: number;
  readonly cpuLimitSeconds: number;
  readonly cpuMs: number;
  readonly stackBytes: number;
  readonly heapBytes: number;
}

/** The verdict on an activation whose worker died without a word. */
export function deathVerdict(exit: ProcessExit | null, context: DeathContext): Verdict {
  if (exit === null) return lost("exit", describeExit(exit));
  if (exit.signal !== null) return signalVerdict(exit.signal, exit, context);
  switch (exit.code) {
    case trapCodes.engineTrap:
      return lost("engine_trap", describeExit(exit));
    case trapCodes.stackGuard:
      return {
        status: "budget_exceeded",
        reason: "stack",
        message: "the script recursed beyond the engine's own stack",
        limit: context.stackBytes,
        used: context.stackBytes,
      };
    case trapCodes.engineMemory:
      // The engine was refused memory and did not survive it: the cause is the same as where it does.
      return {
        status: "budget_exceeded",
        reason: "memory",
        message: `the script needed more memory than heapBytes (${context.heapBytes} bytes)`,
        limit: context.heapBytes,
        used: context.heapBytes,
      };
    case trapCodes.fault:
      return lost("signal", `${describeExit(exit)}: a memory fault outside the engine's memory`);
    case 0:
      if (context.cutBytes > 0) {
        return {
          status: "violation",
          reason: "protocol",
          message: `truncated: the worker ended in good order inside a message, after ${context.cutBytes} bytes of it`,
        };
      }
      return lost("exit", "the process ended in good order without an answer");
    default:
      return lost("exit", describeExit(exit));
  }
}

function signalVerdict(signal: string, exit: ProcessExit, context: DeathContext): Verdict {
  if (signal === "SIGSYS") {
    return {
      status: "violation",
      reason: "syscall",
      message: `the worker made a system call that its filter refuses${callOf(exit)}`,
    };
  }
  // The limit's signal comes at a whole second of the process's life time on the CPU; 50 ms are for its tick.
  const atLimit = exit.cpuUs !== null && exit.cpuUs >= context.cpuLimitSeconds * 1e6 - 50_000;
  if ((signal === "SIGKILL" || signal === "SIGXCPU") && atLimit) {
    return {
      status: "budget_exceeded",
      reason: "cpu",
      message: `the process reached the CPU limit of its whole life (${context.cpuLimitSeconds} s)`,
      limit: context.cpuMs,
      used: context.cpuMs,
    };
  }
  if (signal === "SIGKILL") {
    return lost(
      "signal",
      "the process ended by SIGKILL that the pool did not send: out of memory, or somebody killed it",
    );
  }
  return lost("signal", describeExit(exit));
}

function lost(reason: "engine_trap" | "signal" | "exit" | "closed", message: string): Verdict {
  return { status: "worker_lost", reason, message };
}
