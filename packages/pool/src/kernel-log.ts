/**
 * Which system call a worker died of, in the kernel's own words: its filter kills with SIGSYS, and the kernel writes one
 * line of audit type 1326 about it to its log. The only place that names the call; SIGSYS itself carries it to nobody.
 *
 * Called by `SystemProcess` (system-backend.ts) for a process that ended by SIGSYS, and by nobody else. The log is opened
 * then, never waited for, and closed with the answer. Where it cannot be read (an ordinary user, most containers) or says
 * nothing (an audit daemon takes the lines, or too many came), there is no name.
 *
 * Kept true: a name is of this process. Pids are used again, so only a line written between the launch and the look counts;
 * when the system's clock was set in between, none does.
 * In a pid namespace of its own this process knows other pids than the log, so there nothing is looked up. TRUST: lines of type 1326 are the kernel's; one that a program wrote
 * to the log begins in another way. All that hangs on a name is a message.
 */
import { closeSync, constants, openSync, readlinkSync, readSync } from "node:fs";
import { syscallName } from "@flowcell/sandbox";

/** One record after the other; undefined when there is none (now). */
export interface LogReader {
  next(): string | undefined;
  close(): void;
}

/** When a process was launched, on both clocks. */
export interface Moment {
  readonly epochMs: number;
  readonly monotonicMs: number;
}

export function moment(): Moment {
  return { epochMs: Date.now(), monotonicMs: performance.now() };
}

const audit =
  /^(\d+),\d+,\d+,[^;]*;audit: type=1326 audit\((\d+)\.(\d{3}):\d+\): [^\n]* pid=(\d+) comm=[^\n]* sig=31 arch=([0-9a-f]+) syscall=(\d+) /;

const architectures: Readonly<Record<string, "x64" | "arm64">> = { c000003e: "x64", c00000b7: "arm64" };

/** The log's time has the grain of a tick; a clock that runs this much apart from the other was set. */
const clockSlackMs = 50;
/** How long after the death the line may take: another thread of the kernel writes it. */
const patienceMs = 60;
/** One look at the log: so much of the event loop's time, no more. A full log has some ten thousand records. */
const lookMsMax = 15;

/** The search for one process, in as many looks as it takes. */
export class RefusedCallSearch {
  readonly #pid: number;
  readonly #launched: Moment;
  readonly #died: Moment;
  readonly #now: () => Moment;
  #reader: LogReader | undefined;

  constructor(
    pid: number,
    launched: Moment,
    open: () => LogReader | undefined = openKernelLog,
    now: () => Moment = moment,
  ) {
    this.#pid = pid;
    this.#launched = launched;
    this.#now = now;
    this.#died = now();
    this.#reader = open();
  }

  /** What the process called; null when nobody will know; undefined when another look may tell. */
  look(): string | null | undefined {
    const reader = this.#reader;
    if (reader === undefined) return null;
    let answer: string | null | undefined;
    try {
      answer = this.#read(reader);
    } catch {
      answer = null; // the log went away: there is no name
    }
    if (answer !== undefined) {
      this.#reader = undefined;
      reader.close();
    }
    return answer;
  }

  #read(reader: LogReader): string | null | undefined {
    const { epochMs, monotonicMs } = this.#now();
    const sinceLaunch = epochMs - this.#launched.epochMs;
    const reallySince = monotonicMs - this.#launched.monotonicMs;
    if (Math.abs(sinceLaunch - reallySince) > clockSlackMs) return null;
    for (;;) {
      const record = reader.next();
      if (record === undefined) break;
      const call = this.#callOf(record, epochMs);
      if (call !== undefined) return call;
      if (this.#now().monotonicMs - monotonicMs > lookMsMax) break;
    }
    return this.#now().monotonicMs - this.#died.monotonicMs > patienceMs ? null : undefined;
  }

  #callOf(record: string, nowMs: number): string | undefined {
    const found = audit.exec(record);
    if (found === null || Number(found[4]) !== this.#pid) return undefined;
    const at = Number(found[2]) * 1000 + Number(found[3]);
    if (at < this.#launched.epochMs || at > nowMs) return undefined;
    const number = Number(found[6]);
    const architecture = architectures[found[5] ?? ""];
    if (architecture === undefined) return `number ${number} of the architecture ${found[5]}`;
    const name = syscallName(architecture, number);
    return name === undefined ? `number ${number}` : `${name} (number ${number})`;
  }
}

/** The kernel's own number of the first pid namespace: the log counts pids as that one does. */
const firstNamespace = "pid:[4026531836]";

/** /dev/kmsg from its oldest record on; undefined where it cannot be read, or where pids are counted otherwise. */
export function openKernelLog(path = "/dev/kmsg"): LogReader | undefined {
  let descriptor: number;
  try {
    if (readlinkSync("/proc/self/ns/pid") !== firstNamespace) return undefined;
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  const buffer = Buffer.allocUnsafe(16 * 1024);
  return {
    next: () => readRecord(descriptor, buffer),
    close: () => closeSync(descriptor),
  };
}

/** Each read gives one record. The oldest may be overwritten in between, which is said once by EPIPE. */
function readRecord(descriptor: number, buffer: Buffer): string | undefined {
  for (let tries = 0; tries < 3; tries++) {
    try {
      const length = readSync(descriptor, buffer, 0, buffer.byteLength, null);
      return length === 0 ? undefined : buffer.toString("latin1", 0, length);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code; // what node:fs throws
      if (code === "EAGAIN") return undefined;
      if (code !== "EPIPE") throw error;
    }
  }
  return undefined;
}
