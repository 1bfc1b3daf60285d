// Runs one short-lived native process to its end, or to the moment its output is enough, within a deadline.
// Called by doctor only: the pool has pipes of its own. A process that outlives its deadline or says too much is killed;
// when this module's promise settles the process has been collected and its descriptors are closed.
import { closeFd, drainFd, type LaunchedWorker, type WorkerExit } from "@flowcell/native";

/** What came of a process. */
export interface ChildOutcome {
  readonly exit: WorkerExit;
  /** Standard output as it came, cut at the bound. */
  readonly output: Buffer;
  /** Standard error likewise. */
  readonly errors: Buffer;
  readonly timedOut: boolean;
}

const POLL_MS = 1;
const CHUNK_BYTES = 4_096;

/** A process that this module reads. */
export class Child {
  readonly worker: LaunchedWorker;
  readonly #bytesMax: number;
  #output: Buffer = Buffer.alloc(0);
  #errors: Buffer = Buffer.alloc(0);
  #stdinOpen = true;

  constructor(worker: LaunchedWorker, bytesMax: number) {
    this.worker = worker;
    this.#bytesMax = bytesMax;
  }

  /** What the process has written so far. */
  get output(): Buffer {
    return this.#output;
  }

  /** Closes the process's standard input. */
  closeInput(): void {
    if (!this.#stdinOpen) return;
    this.#stdinOpen = false;
    closeFd(this.worker.stdin);
  }

  /** Resolves when `enough` says so or the process has ended; true for the former. Kills nothing. */
  async until(enough: (output: Buffer) => boolean, deadlineMs: number): Promise<boolean> {
    const end = Date.now() + deadlineMs;
    for (;;) {
      this.#drain();
      if (enough(this.#output)) return true;
      if (this.worker.reap() !== null || Date.now() >= end) {
        this.#drain();
        return enough(this.#output);
      }
      await pause();
    }
  }

  /** Waits for the end of the process, kills it at the deadline, and closes everything. */
  async finish(deadlineMs: number): Promise<ChildOutcome> {
    const end = Date.now() + deadlineMs;
    let timedOut = false;
    try {
      for (;;) {
        this.#drain();
        const exit = this.worker.reap();
        if (exit !== null) {
          this.#drain();
          return { exit, output: this.#output, errors: this.#errors, timedOut };
        }
        if (!timedOut && (Date.now() >= end || this.#output.length >= this.#bytesMax)) {
          timedOut = true;
          this.worker.kill();
        }
        await pause();
      }
    } finally {
      this.closeInput();
      closeFd(this.worker.stdout);
      closeFd(this.worker.stderr);
    }
  }

  #drain(): void {
    this.#output = this.#more(this.worker.stdout, this.#output);
    this.#errors = this.#more(this.worker.stderr, this.#errors);
  }

  #more(descriptor: number, before: Buffer): Buffer {
    const parts = [before];
    let room = this.#bytesMax - before.length;
    while (room > 0) {
      const bytes = drainFd(descriptor, Math.min(CHUNK_BYTES, room));
      if (bytes.length === 0) break;
      parts.push(bytes);
      room -= bytes.length;
    }
    return parts.length === 1 ? before : Buffer.concat(parts);
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, POLL_MS);
  });
}

/** The end of a process in one word: `exit 9` or the signal's name. */
export function endOf(exit: WorkerExit): string {
  if (exit.signal !== null) return exit.signal;
  return exit.code === null ? "collected by other code" : `exit ${exit.code}`;
}
