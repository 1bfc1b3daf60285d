/**
 * The three pipe ends of one worker in the parent.
 *
 * Used by the system backend. Reading goes through a net.Socket with one buffer for all workers: a chunk is handed on
 * inside the read callback, and nobody keeps the memory (the frame decoder copies what spans chunks, the pool copies
 * attachments that it keeps). Writing goes straight to the descriptor: the worker waits in read(2), so the pipe has room
 * and one system call is all; only what does not fit goes through a stream that waits for room. Standard error is not
 * read while the worker lives, since a confined worker cannot write there.
 *
 * TRUST: the bytes of stdout are passed on unseen; those of stderr are cut and made printable.
 */
import { closeSync, writeSync } from "node:fs";
import { Socket, type SocketConstructorOpts } from "node:net";
import { drainFd } from "@flowcell/native";
import type { PipeHandlers, WorkerPipes } from "./backend.js";

/** As much as a pipe holds by default, so that one read empties it. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

/** Enough for a message and a little context; a worker that was not confined could write without end. */
const diagnosticsMax = 1024;

export interface PipeDescriptors {
  readonly stdin: number;
  readonly stdout: number;
  readonly stderr: number;
}

export function openPipes(descriptors: PipeDescriptors, handlers: PipeHandlers): WorkerPipes {
  return new DescriptorPipes(descriptors, handlers);
}

class DescriptorPipes implements WorkerPipes {
  readonly #stdin: number;
  readonly #stderr: number;
  readonly #reader: Socket;
  /** Made when a write did not fit; from then on it owns the descriptor. */
  #overflow: Socket | null = null;
  #broken = false;
  #closed = false;

  constructor(descriptors: PipeDescriptors, handlers: PipeHandlers) {
    this.#stdin = descriptors.stdin;
    this.#stderr = descriptors.stderr;
    let ended = false;
    const end = (): void => {
      if (ended) return;
      ended = true;
      handlers.ended();
    };
    // Node documents `onread` for `connect` alone, but the constructor takes it the same way.
    const options: SocketConstructorOpts & { onread: unknown } = {
      fd: descriptors.stdout,
      readable: true,
      writable: false,
      onread: {
        buffer: readBuffer,
        callback: (length: number): boolean => {
          handlers.bytes(readBuffer.subarray(0, length));
          return true;
        },
      },
    };
    this.#reader = new Socket(options);
    this.#reader.on("end", end);
    this.#reader.on("error", end);
    this.#reader.on("close", end);
    this.#reader.unref();
  }

  get unsentBytes(): number {
    return this.#overflow?.writableLength ?? 0;
  }

  write(bytes: Buffer): void {
    if (this.#broken || this.#closed) return;
    if (this.#overflow !== null) {
      // It owns the descriptor and may have closed it: the number must not be used any more.
      this.#overflow.write(bytes);
      return;
    }
    let sent = 0;
    try {
      sent = writeSync(this.#stdin, bytes);
    } catch (error) {
      if (!isAgain(error)) {
        this.#broken = true;
        return;
      }
    }
    if (sent < bytes.byteLength) this.#openOverflow().write(sent === 0 ? bytes : bytes.subarray(sent));
  }

  close(): string {
    if (this.#closed) return "";
    this.#closed = true;
    this.#reader.destroy();
    if (this.#overflow === null) closeSync(this.#stdin);
    else this.#overflow.destroy();
    let diagnostics = "";
    try {
      diagnostics = printable(drainFd(this.#stderr, diagnosticsMax));
    } catch {
      // Nothing to be learnt from a pipe that cannot be read.
    }
    closeSync(this.#stderr);
    return diagnostics;
  }

  #openOverflow(): Socket {
    const overflow = new Socket({ fd: this.#stdin, readable: false, writable: true });
    overflow.unref();
    // A worker that died: its output ends, which is how everybody learns of it.
    overflow.on("error", () => {
      this.#broken = true;
    });
    this.#overflow = overflow;
    return overflow;
  }
}

function isAgain(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EAGAIN";
}

/** ASCII as it is, line ends as spaces, everything else as "?". */
function printable(bytes: Buffer): string {
  return bytes
    .toString("latin1")
    .replace(/[\r\n\t]+/g, " ")
    .replace(/[^\x20-\x7e]/g, "?")
    .trim();
}
