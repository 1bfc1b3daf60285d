/**
 * What the pool needs of the operating system and of the sandbox: start a worker, judge its Welcome, kill it, collect
 * it, read its CPU clock. `systemBackend` is the real one; unit tests put fakes in its place.
 */
import type { Untrusted } from "@flowcell/protocol";

/** How a process ended; both null when other code collected it. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: string | null;
  /** Over its whole life; null when unknown. */
  readonly cpuUs: number | null;
  /** After SIGSYS, where the kernel's log could be read: what the process called, for messages. */
  readonly refusedCall?: string | undefined;
}

export interface WorkerProcess {
  readonly pid: number;
  /** SIGKILL; false when the process is collected already. */
  kill(): boolean;
  /** Collects it if it is dead; null while it lives, or while its end is still being looked into. Never waits. */
  reap(): ProcessExit | null;
  /** CPU time used so far, the final figure after `reap`; null when it cannot be read. */
  cpuUs(): number | null;
  /** Private memory that it occupies now; null when it cannot be read. */
  privateBytes(): number | null;
}

export interface PipeHandlers {
  /** TRUST: bytes of a worker. The memory is reused after the call returns. */
  bytes(chunk: Buffer): void;
  /** The worker's output ended. Called once. */
  ended(): void;
}

/** The pipes of one worker. Writing never waits and never throws: a reader that is gone shows as the end of output. */
export interface WorkerPipes {
  write(bytes: Buffer): void;
  /** Bytes that the worker has not taken yet and that the pipe has no room for. */
  readonly unsentBytes: number;
  /** Closes everything; returns what the worker wrote to its standard error, cut and made printable. */
  close(): string;
}

export interface StartedWorker {
  readonly process: WorkerProcess;
  readonly pipes: WorkerPipes;
}

/** The parent's judgement of a Welcome. `fact` names what failed. */
export type Judgement<Confinement> =
  | { readonly ok: true; readonly confinement: Confinement }
  | {
      readonly ok: false;
      readonly reason: "welcome_refused" | "observation_failed";
      readonly fact: string;
      readonly message: string;
    };

export interface WorkerBackend<Confinement> {
  /** Starts a process, or throws StartError. `handlers` are called from the event loop, never from inside this. */
  start(handlers: PipeHandlers): StartedWorker;
  /** Judges the header of a Welcome against the plan and against what the parent sees of the process. */
  judge(welcome: Untrusted<string>, process: WorkerProcess): Judgement<Confinement>;
  /** RLIMIT_CPU of a worker in seconds: a death by SIGKILL at that time is the limit's. */
  readonly cpuLimitSeconds: number;
}

/** A process could not be started. */
export class StartError extends Error {
  override readonly name = "StartError";
  /** The step that failed. */
  readonly fact: string;

  constructor(fact: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.fact = fact;
  }
}
