/**
 * One MCP server as a child process: JSON-RPC messages, one a line, over its standard input and output. upstream.ts makes one
 * for every start of a server; the SDK's Client drives it.
 *
 * The SDK has a transport of this kind. This one gives the child no variable that the configuration did not name, bounds a
 * message, keeps the last lines of standard error, and ends the whole process group: servers are often started through npx,
 * which leaves them behind when it alone is killed.
 *
 * TRUST: bytes are the server's. A line that is no message is dropped and remembered; one that is too long ends the server.
 */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { deserializeMessage, serializeMessage } from "@modelcontextprotocol/sdk/shared/stdio.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";

export interface ChildSpec {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** Of one line: the content of a large file or picture, in base64. */
const messageBytesMost = 32 * 1024 * 1024;
const diagnosticLinesMost = 20;
const diagnosticCharsMost = 400;
/** How long a server may take to end after its input is closed, and again after SIGTERM. */
const patienceMs = 2_000;

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

export class ChildTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  readonly #spec: ChildSpec;
  readonly #lines = new LineBuffer();
  readonly #diagnostics: string[] = [];
  #child: Child | undefined;
  #closed: Promise<void> = Promise.resolve();
  #ended: string | undefined;

  constructor(spec: ChildSpec) {
    this.#spec = spec;
  }

  start(): Promise<void> {
    const { command, args, env, cwd } = this.#spec;
    return new Promise((resolve, reject) => {
      const child = spawn(command, args, {
        env: { ...env },
        cwd,
        stdio: ["pipe", "pipe", "pipe"],
        detached: true,
      });
      this.#child = child;
      this.#closed = new Promise((done) => {
        child.on("error", (error: NodeJS.ErrnoException) => {
          const reason = startProblem(error, this.#spec);
          this.#end(reason);
          done();
          reject(new Error(reason));
        });
        // What it started and left would keep its pipes open.
        child.once("exit", () => this.#signal("SIGKILL"));
        child.once("close", (code, signal) => {
          this.#end(
            code === null ? `it was ended by ${signal ?? "a signal"}` : `it ended with exit code ${code}`,
          );
          done();
        });
      });
      child.once("spawn", resolve);
      child.stdin.on("error", (error) => this.onerror?.(error));
      child.stdout.on("error", (error) => this.onerror?.(error));
      child.stderr.on("error", (error) => this.onerror?.(error));
      child.stdout.on("data", (bytes: Buffer) => this.#receive(bytes));
      child.stderr.setEncoding("utf8").on("data", (some: string) => this.#note(some));
    });
  }

  send(message: JSONRPCMessage): Promise<void> {
    const child = this.#child;
    if (child === undefined || this.#ended !== undefined)
      return Promise.reject(new Error("the server has ended"));
    return new Promise((resolve, reject) => {
      child.stdin.write(serializeMessage(message), (error) => (error == null ? resolve() : reject(error)));
    });
  }

  /** Closes its input, then asks, then forces. Resolves when the server is gone. */
  async close(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    child.stdin.end();
    const asks = setTimeout(() => this.#signal("SIGTERM"), patienceMs);
    const forces = setTimeout(() => this.#signal("SIGKILL"), 2 * patienceMs);
    await this.#closed;
    clearTimeout(asks);
    clearTimeout(forces);
    this.#child = undefined;
  }

  /** Why the server is gone; undefined while it runs. */
  get ended(): string | undefined {
    return this.#ended;
  }

  /** The last that it wrote to standard error or where messages belong. */
  get diagnostics(): readonly string[] {
    return this.#diagnostics;
  }

  #receive(bytes: Buffer): void {
    if (this.#ended !== undefined) return;
    const lines = this.#lines.push(bytes);
    if (lines === undefined) {
      this.#end(`it sent a message of more than ${messageBytesMost / 1024 / 1024} MiB`);
      this.#signal("SIGKILL");
      return;
    }
    for (const line of lines) {
      if (line.trim() === "") continue;
      let message: JSONRPCMessage;
      try {
        message = deserializeMessage(line);
      } catch {
        this.#note(`no message: ${line.slice(0, diagnosticCharsMost)}\n`);
        continue;
      }
      this.onmessage?.(message);
    }
  }

  #note(some: string): void {
    for (const line of some.split("\n").slice(-diagnosticLinesMost)) {
      // Control characters would reach an operator's terminal.
      const shown = line
        .slice(0, diagnosticCharsMost)
        .replaceAll(/\p{Cc}/gu, " ")
        .trimEnd();
      if (shown !== "") this.#diagnostics.push(shown);
    }
    this.#diagnostics.splice(0, this.#diagnostics.length - diagnosticLinesMost);
  }

  #end(reason: string): void {
    if (this.#ended !== undefined) return;
    this.#ended = reason;
    this.onclose?.();
  }

  #signal(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // Everything in the group is gone.
    }
  }
}

/** Bytes to lines. A line in many pieces is put together once. */
class LineBuffer {
  #pieces: Buffer[] = [];
  #bytes = 0;

  /** Undefined when a line is too long. */
  push(bytes: Buffer): string[] | undefined {
    const lines: string[] = [];
    let rest = bytes;
    for (let at = rest.indexOf(10); at !== -1; at = rest.indexOf(10)) {
      if (this.#bytes + at > messageBytesMost) return undefined;
      lines.push(Buffer.concat([...this.#pieces, rest.subarray(0, at)]).toString("utf8"));
      this.#pieces = [];
      this.#bytes = 0;
      rest = rest.subarray(at + 1);
    }
    if (rest.length > 0) this.#pieces.push(rest);
    this.#bytes += rest.length;
    return this.#bytes > messageBytesMost ? undefined : lines;
  }
}

function startProblem(error: NodeJS.ErrnoException, { command }: ChildSpec): string {
  const shown = JSON.stringify(command);
  if (error.code === "ENOENT") return `there is no command ${shown}, or no folder that it should start in`;
  if (error.code === "EACCES") return `${shown} may not be executed`;
  return `${shown} cannot be started: ${error.code ?? error.message}`;
}
