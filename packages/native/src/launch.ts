// Launching a worker and what a parent may do to it afterwards: kill, collect, measure.
//
// Called by pool and by sandbox's probes, on the main thread. A LaunchedWorker is the only way to reach the process:
// it holds the pidfd and forgets it when the process has been collected, so neither a reused pid nor a reused
// descriptor number can be hit. The three pipe ends belong to the caller, who wraps or closes them.
//
// TRUST: stdout and stderr carry bytes of a process that may be subverted. Nothing here looks at them.

import { closeSync, readSync } from "node:fs";
import { constants } from "node:os";
import { LaunchError } from "./launch-error.js";
import { EXIT, type LauncherLibrary, LIMITS, launcherLibrary, RESULT } from "./library.js";

/** Limits set before the worker is executed; soft and hard are the same. The core limit is always 0. */
export interface LaunchLimits {
  /** RLIMIT_DATA: private writable memory of the process. */
  readonly dataBytes: number;
  /** RLIMIT_CPU: whole seconds of CPU over the life of the process, then SIGKILL. A back-stop, not a budget. */
  readonly cpuSeconds: number;
  /** RLIMIT_STACK. */
  readonly stackBytes: number;
}

export interface LaunchRequest {
  /** Absolute path of the binary. */
  readonly path: string;
  /** What follows the path in argv; none by default. */
  readonly args?: readonly string[];
  readonly limits: LaunchLimits;
  /** Another launcher library than that of this clone: tests run copies of both as an ordinary user. */
  readonly launcherPath?: string;
}

/** How a worker ended. */
export interface WorkerExit {
  /** Exit code, null if a signal ended it. */
  readonly code: number | null;
  /** "SIGKILL", "SIGSYS", …; null after an exit. Both are null if other code in this process collected the worker. */
  readonly signal: string | null;
  /** CPU time over its whole life, user and system, in microseconds; null if other code collected it. */
  readonly cpuUs: number | null;
}

const SIGNAL_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.signals).map(([name, value]) => [value, name]),
);

/** A worker process. Made by launchWorker only. */
export class LaunchedWorker {
  readonly pid: number;
  /** Write end of the worker's standard input; non-blocking, close-on-exec, the caller's to close. */
  readonly stdin: number;
  /** Read end of its standard output. */
  readonly stdout: number;
  /** Read end of its standard error. */
  readonly stderr: number;
  /** What was set: where this process runs under a lower hard limit itself, that one. The caller judges. */
  readonly limits: LaunchLimits;
  readonly #library: LauncherLibrary;
  /** -1 once the process has been collected. */
  #pidfd: number;
  #exit: WorkerExit | null = null;

  constructor(library: LauncherLibrary, result: Int32Array, limits: LaunchLimits) {
    this.#library = library;
    this.#pidfd = at(result, RESULT.pidfd);
    this.pid = at(result, RESULT.pid);
    this.stdin = at(result, RESULT.stdin);
    this.stdout = at(result, RESULT.stdout);
    this.stderr = at(result, RESULT.stderr);
    this.limits = limits;
  }

  /** Sends SIGKILL. False if the worker has been collected, by reap() or by others: nothing was signalled. */
  kill(): boolean {
    return this.#pidfd >= 0 && this.#library.kill(this.#pidfd) === 0;
  }

  /**
   * Collects the worker if it is dead: null while it lives, otherwise how it ended, the same answer for ever after.
   * Never waits. Death shows as the end of stdout and stderr; the process may be collectable a moment later.
   */
  reap(): WorkerExit | null {
    if (this.#exit !== null || this.#pidfd < 0) return this.#exit;
    const out = new BigInt64Array(EXIT.length);
    const collected = this.#library.reap(this.#pidfd, out);
    if (collected === 0) return null;
    this.#exit = collected === 1 ? decodeExit(out) : { code: null, signal: null, cpuUs: null };
    closeSync(this.#pidfd);
    this.#pidfd = -1;
    return this.#exit;
  }

  /**
   * CPU time used so far, user and system, in microseconds, measured by the kernel's scheduler (not by ticks). After
   * reap() the final figure; null if other code in this process collected the worker.
   */
  cpuUs(): number | null {
    if (this.#exit !== null) return this.#exit.cpuUs;
    const ns = Number(this.#library.cpuNs(this.pid, this.#pidfd));
    return ns < 0 ? null : Math.floor(ns / 1000);
  }
}

/**
 * Starts `path` as a worker: exactly three descriptors, empty environment, own session, default signals, limits set,
 * dies with this process. Blocks for about 0.1 ms. Throws LaunchError, and NativeMissingError without the library.
 */
export function launchWorker(request: LaunchRequest): LaunchedWorker {
  const args = request.args ?? [];
  for (const text of [request.path, ...args]) {
    // The C side would see the text end at the NUL, and start something else than was asked for.
    if (text.includes("\0")) throw new LaunchError("arguments", 0, JSON.stringify(text));
  }
  const limits = new BigUint64Array(LIMITS.length);
  limits[LIMITS.dataBytes] = wholeNumber("dataBytes", request.limits.dataBytes);
  limits[LIMITS.cpuSeconds] = wholeNumber("cpuSeconds", request.limits.cpuSeconds);
  limits[LIMITS.stackBytes] = wholeNumber("stackBytes", request.limits.stackBytes);
  const library = launcherLibrary(request.launcherPath);
  const result = new Int32Array(RESULT.length);
  const step = library.launchWorker(request.path, args, args.length, limits, result);
  if (step !== 0) {
    throw new LaunchError(library.stepName(step) ?? String(step), at(result, RESULT.error), request.path);
  }
  return new LaunchedWorker(library, result, {
    dataBytes: Number(limits[LIMITS.dataBytes]),
    cpuSeconds: Number(limits[LIMITS.cpuSeconds]),
    stackBytes: Number(limits[LIMITS.stackBytes]),
  });
}

/** Reads what a non-blocking descriptor holds now, at most `bytesMax`; never waits. */
export function drainFd(fd: number, bytesMax: number): Buffer {
  const buffer = Buffer.alloc(bytesMax);
  let length = 0;
  while (length < bytesMax) {
    let read: number;
    try {
      read = readSync(fd, buffer, length, bytesMax - length, null);
    } catch (error) {
      if (isEagain(error)) break;
      throw error;
    }
    if (read === 0) break;
    length += read;
  }
  return buffer.subarray(0, length);
}

/** Closes a pipe end that was never wrapped in a stream. */
export function closeFd(fd: number): void {
  closeSync(fd);
}

function isEagain(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EAGAIN";
}

function wholeNumber(name: keyof LaunchLimits, value: number): bigint {
  if (!Number.isSafeInteger(value) || value <= 0) {
    throw new RangeError(`flowcell: limits.${name} must be a whole number above 0, not ${value}`);
  }
  return BigInt(value);
}

function at(words: Int32Array, index: number): number {
  const word = words[index];
  if (word === undefined) throw new RangeError(`flowcell: no word ${index} in a result of ${words.length}`);
  return word;
}

function decodeExit(out: BigInt64Array): WorkerExit {
  const words = new Int32Array(out.buffer, out.byteOffset, 2);
  const signal = at(words, 1);
  return {
    code: signal === 0 ? at(words, 0) : null,
    signal: signal === 0 ? null : (SIGNAL_NAMES.get(signal) ?? `SIG${signal}`),
    cpuUs: Number((out[EXIT.userUs] ?? 0n) + (out[EXIT.systemUs] ?? 0n)),
  };
}
