/**
 * The owner's side of the socket: a process that holds a store answers the commands of other processes of the same user.
 *
 * Kept true: the socket stands in a folder that only its owner may enter and has mode 0600 itself. Only operations of the
 * table are called, with inputs that their rows let through. A client that is slow, silent or too busy is cut and
 * costs others nothing; what it waits for is let go. Connections that nobody uses make room for those that somebody wants
 * to use; when all are in use, one more is told so.
 */

import { chmodSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { type FlowService, OperationError } from "@flowcell/flows";
import { didYouMean, ValueError } from "@flowcell/protocol";
import { FrameError, FrameReader, frameOf } from "./frames.js";
import { inputProblem, isOperation, operationNames, operations } from "./operations.js";
import { reachable, type SocketPath } from "./socket-path.js";
import {
  type Answer,
  answerBytesMax,
  busyMessage,
  failureOf,
  farewell,
  fromWire,
  type Request,
  readRequest,
  requestBytesMax,
  toWire,
} from "./wire.js";

export interface SocketServerOptions {
  readonly path: string;
  readonly service: FlowService;
  /** A bug: an exception that nobody expects. */
  readonly onBug: (error: unknown) => void;
  /** Each waiting `start` has one. */
  readonly connectionsMax?: number;
  readonly openRequestsMax?: number;
  /** From the first byte of a frame to its last, and from the first byte of an answer that is not taken to its end. */
  readonly frameMs?: number;
  /** A connection that asks nothing for this long is closed. */
  readonly idleMs?: number;
}

const defaults = { connectionsMax: 1024, openRequestsMax: 16, frameMs: 30_000, idleMs: 60_000 };

/** Connections that are told that there are too many: at once, and how long each may take to read it. */
const refusedMax = 64;
const refusedMs = 5_000;

export class SocketServer {
  readonly #options: Required<SocketServerOptions>;
  readonly #server: Server;
  readonly #path: SocketPath;
  readonly #connections = new Set<Connection>();
  readonly #refused = new Set<Socket>();
  #closing = false;

  private constructor(options: Required<SocketServerOptions>) {
    this.#options = options;
    this.#path = reachable(options.path);
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /** The caller holds the store, so that a socket which is there is a dead owner's. */
  static async listen(options: SocketServerOptions): Promise<SocketServer> {
    const server = new SocketServer({ ...defaults, ...options });
    rmSync(options.path, { force: true });
    await new Promise<void>((resolve, reject) => {
      server.#server.once("error", reject);
      server.#server.listen(server.#path.path, () => {
        server.#server.off("error", reject);
        resolve();
      });
    });
    server.#server.on("error", options.onBug);
    chmodSync(options.path, 0o600);
    return server;
  }

  /** Answers what was asked but waits, takes nothing new, then lets every client go. */
  async close(patienceMs: number): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, patienceMs);
    });
    await Promise.race([Promise.all([...this.#connections].map((one) => one.finish())), patience]);
    clearTimeout(timer);
    for (const connection of this.#connections) connection.destroy();
    for (const socket of this.#refused) socket.destroy();
    await closed;
    rmSync(this.#options.path, { force: true });
    this.#path.release();
  }

  #accept(socket: Socket): void {
    if (this.#closing) {
      socket.destroy();
      return;
    }
    if (this.#connections.size >= this.#options.connectionsMax && !this.#makeRoom()) {
      this.#refuse(socket);
      return;
    }
    const connection = new Connection(socket, this.#options, () => this.#connections.delete(connection));
    this.#connections.add(connection);
  }

  /** Cuts a connection that nobody uses: one that never asked anything before one that rests, the oldest first. */
  #makeRoom(): boolean {
    const resting = [...this.#connections].filter(({ restsSince }) => restsSince !== undefined);
    const [first] = resting.sort(
      (one, other) =>
        Number(one.asked) - Number(other.asked) || (one.restsSince ?? 0) - (other.restsSince ?? 0),
    );
    if (first === undefined) return false;
    this.#connections.delete(first);
    first.destroy();
    return true;
  }

  /** Its end of the socket stays open for a moment, so that a client that is writing still reads this. */
  #refuse(socket: Socket): void {
    if (this.#refused.size >= refusedMax) {
      socket.destroy();
      return;
    }
    const timer = setTimeout(() => socket.destroy(), refusedMs);
    this.#refused.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => {
      clearTimeout(timer);
      this.#refused.delete(socket);
    });
    socket.resume();
    socket.end(frameOf(busyMessage(this.#connections.size), answerBytesMax));
  }
}

class Connection {
  readonly #socket: Socket;
  readonly #options: Required<SocketServerOptions>;
  readonly #reader = new FrameReader(requestBytesMax);
  readonly #open = new Map<
    number,
    { readonly stop: AbortController; readonly done: Promise<void>; readonly waits: boolean }
  >();
  #frameTimer: NodeJS.Timeout | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  #finishing = false;
  #restsSince: number | undefined;
  #asked = false;

  constructor(socket: Socket, options: Required<SocketServerOptions>, onClose: () => void) {
    this.#socket = socket;
    this.#options = options;
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    // Whatever it is, "close" follows.
    socket.on("error", () => undefined);
    socket.on("end", () => socket.end());
    socket.on("close", () => {
      clearTimeout(this.#frameTimer);
      clearTimeout(this.#idleTimer);
      for (const { stop } of this.#open.values()) stop.abort();
      onClose();
    });
    this.#rest();
  }

  /** Since when nothing is asked, on a clock that only goes forward; undefined while something is. */
  get restsSince(): number | undefined {
    return this.#reader.partial ? undefined : this.#restsSince;
  }

  /** Whether it ever asked anything. */
  get asked(): boolean {
    return this.#asked;
  }

  /** Answers everything that was begun, but waits, and says farewell. */
  async finish(): Promise<void> {
    this.#finishing = true;
    this.#socket.pause();
    const busy = [...this.#open.values()].filter(({ waits }) => !waits);
    await Promise.all(busy.map(({ done }) => done));
    await new Promise<void>((resolve) => {
      if (this.#socket.destroyed) resolve();
      else this.#socket.end(frameOf(farewell, answerBytesMax), () => resolve());
    });
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    let messages: unknown[];
    try {
      messages = this.#reader.push(chunk);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#socket.destroy();
      return;
    }
    for (const message of messages) this.#take(message);
    clearTimeout(this.#frameTimer);
    if (this.#reader.partial) this.#frameTimer = setTimeout(() => this.destroy(), this.#options.frameMs);
  }

  #take(message: unknown): void {
    const request = readRequest(message);
    if (request === undefined || this.#finishing) {
      this.#socket.destroy();
      return;
    }
    const known = this.#open.get(request.id);
    if ("abort" in request) {
      known?.stop.abort();
      return;
    }
    if (known !== undefined || this.#open.size >= this.#options.openRequestsMax) {
      this.#socket.destroy();
      return;
    }
    clearTimeout(this.#idleTimer);
    this.#restsSince = undefined;
    this.#asked = true;
    const stop = new AbortController();
    const done = this.#answer(request, stop.signal);
    this.#open.set(request.id, { stop, done, waits: request.operation === "wait" });
  }

  async #answer(request: Exclude<Request, { abort: true }>, signal: AbortSignal): Promise<void> {
    const { id } = request;
    let answer: Answer;
    try {
      const value = await perform(this.#options.service, request, signal);
      answer = { id, ok: true, value: toWire(value) };
    } catch (error) {
      const failure = failureOf(error);
      if (failure.kind === "internal") this.#options.onBug(error);
      answer = { id, ok: false, error: failure };
    }
    this.#open.delete(id);
    if (!this.#socket.destroyed) this.#send(answer);
    if (this.#open.size === 0) this.#rest();
  }

  #send(answer: Answer): void {
    const taken = this.#socket.write(frame(answer));
    if (taken) return;
    const slow = setTimeout(() => this.destroy(), this.#options.frameMs);
    this.#socket.once("drain", () => clearTimeout(slow));
    this.#socket.once("close", () => clearTimeout(slow));
  }

  #rest(): void {
    this.#restsSince = performance.now();
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(() => this.destroy(), this.#options.idleMs);
    this.#idleTimer.unref();
  }
}

function frame(answer: Answer): Buffer {
  try {
    return frameOf(answer, answerBytesMax);
  } catch (error) {
    if (!(error instanceof FrameError)) throw error;
    const message = `the answer is too large for the socket (${error.message}); stop the service and ask again`;
    const failure = { kind: "operation", code: "unavailable", message, problems: [] } as const;
    return frameOf({ id: answer.id, ok: false, error: failure }, answerBytesMax);
  }
}

async function perform(
  service: FlowService,
  request: Exclude<Request, { abort: true }>,
  signal: AbortSignal,
): Promise<unknown> {
  const name = request.operation;
  if (!isOperation(name)) {
    const near = didYouMean(name, operationNames);
    const hint = near === undefined ? "is the service of another version?" : `did you mean ${near}?`;
    throw new OperationError("invalid", `unknown operation ${JSON.stringify(name)}: ${hint}`);
  }
  const operation = operations[name];
  const parsed = operation.input.safeParse(decoded(name, request.input));
  if (!parsed.success) throw new OperationError("invalid", inputProblem(name, parsed.error.issues));
  return await operation.call(service, parsed.data, signal);
}

function decoded(name: string, input: Exclude<Request, { abort: true }>["input"]): unknown {
  try {
    return fromWire(input);
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    throw new OperationError("invalid", `${name}: ${error.message}`);
  }
}
