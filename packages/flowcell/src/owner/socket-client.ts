/**
 * The service as another process has it: every method is one request on the owner's socket. Commands cannot tell it from
 * a service of their own, but for `OwnerLost` when the owner goes away and `OwnerBusy` when it takes no
 * more connections.
 */

import { createConnection, type Socket } from "node:net";
import type { FlowService } from "@flowcell/flows";
import { OwnerBusy, OwnerLeft, OwnerLost } from "./failures.js";
import { FrameReader, frameOf } from "./frames.js";
import type { OperationName } from "./operations.js";
import { reachable } from "./socket-path.js";
import {
  type Answer,
  answerBytesMax,
  errorOf,
  fromWire,
  isFarewell,
  type Request,
  readAnswer,
  readBusy,
  requestBytesMax,
  toWire,
} from "./wire.js";

/** Null when nobody listens: no owner, or one that has just gone. */
export async function connectOwner(path: string): Promise<SocketClient | null> {
  const named = reachable(path);
  const socket = createConnection(named.path);
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return new SocketClient(socket);
  } catch (error) {
    socket.destroy();
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ECONNREFUSED") return null;
    throw new OwnerLost(`the service's socket ${path} cannot be used (${String(code)})`);
  } finally {
    named.release();
  }
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class SocketClient implements FlowService {
  readonly #socket: Socket;
  readonly #reader = new FrameReader(answerBytesMax);
  readonly #waiting = new Map<number, Waiting>();
  readonly failed: Promise<unknown>;
  #nextId = 0;
  #lost: OwnerLost | OwnerBusy | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", () => undefined);
    this.failed = new Promise((resolve) => {
      socket.on("close", () => {
        this.#lose(new OwnerLost("the service went away before it answered"));
        resolve(this.#lost);
      });
    });
  }

  install: FlowService["install"] = (options) => this.#ask("install", options);
  approve: FlowService["approve"] = (options) => this.#ask("approve", options);
  reject: FlowService["reject"] = (options) => this.#ask("reject", options);
  revoke: FlowService["revoke"] = (options) => this.#ask("revoke", options);
  enable: FlowService["enable"] = (flow, by) => this.#ask("enable", { flow, by });
  disable: FlowService["disable"] = (flow, by, reason) => this.#ask("disable", { flow, by, reason });
  list: FlowService["list"] = () => this.#ask("list", {});
  show: FlowService["show"] = (flow, hash) =>
    this.#ask("show", hash === undefined ? { flow } : { flow, hash });
  start: FlowService["start"] = (options) => this.#ask("start", options);
  wait: FlowService["wait"] = (runId, { signal, through } = {}) =>
    this.#ask("wait", through === undefined ? { runId } : { runId, through }, signal);
  run: FlowService["run"] = (runId) => this.#ask("run", { runId });
  runs: FlowService["runs"] = (query) => this.#ask("runs", query);
  history: FlowService["history"] = (runId) => this.#ask("history", { runId });
  quarantined: FlowService["quarantined"] = (runId) => this.#ask("quarantined", { runId });
  cancel: FlowService["cancel"] = (runId, by) => this.#ask("cancel", { runId, by });
  signal: FlowService["signal"] = (options) => this.#ask("signal", options);
  answer: FlowService["answer"] = (options) => this.#ask("answer", options);
  reconcile: FlowService["reconcile"] = (options) => this.#ask("reconcile", options);
  replay: FlowService["replay"] = (runId) => this.#ask("replay", { runId });
  emit: FlowService["emit"] = (options) => this.#ask("emit", options);
  drain: FlowService["drain"] = (patienceMs) => this.#ask("drain", { patienceMs });

  /** Lets go of the owner; nothing of it ends. */
  async close(): Promise<void> {
    this.#socket.destroy();
    await this.failed;
  }

  async #ask<Result>(operation: OperationName, input: unknown, signal?: AbortSignal): Promise<Result> {
    if (this.#lost !== undefined) throw this.#lost;
    const id = this.#nextId++;
    const answered = new Promise<unknown>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    const abort = (): void => this.#send({ version: 1, id, abort: true });
    try {
      this.#send({ version: 1, id, operation, input: toWire(input) });
      signal?.addEventListener("abort", abort, { once: true });
      if (signal?.aborted === true) abort();
      // The owner is this program; what its service returned came through the codec unchanged.
      return (await answered) as Result;
    } finally {
      signal?.removeEventListener("abort", abort);
      this.#waiting.delete(id);
    }
  }

  #send(request: Request): void {
    if (!this.#socket.destroyed) this.#socket.write(frameOf(request, requestBytesMax));
  }

  #read(chunk: Buffer): void {
    try {
      for (const message of this.#reader.push(chunk)) {
        if (isFarewell(message)) throw new OwnerLeft("the service ended before it began what it was asked");
        const busy = readBusy(message);
        if (busy !== undefined)
          throw new OwnerBusy(`busy: the service has ${busy} connections, all in use; try again`);
        const answer = readAnswer(message);
        if (answer === undefined) throw new OwnerLost("the service sent what is no answer");
        this.#settle(answer);
      }
    } catch (error) {
      const known = error instanceof OwnerLost || error instanceof OwnerBusy;
      this.#lose(known ? error : new OwnerLost(String(error)));
      this.#socket.destroy();
    }
  }

  #settle(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    if (waiting === undefined) return;
    if (answer.ok) waiting.resolve(fromWire(answer.value));
    else waiting.reject(errorOf(answer.error));
  }

  #lose(lost: OwnerLost | OwnerBusy): void {
    this.#lost ??= lost;
    for (const { reject } of this.#waiting.values()) reject(this.#lost);
    this.#waiting.clear();
  }
}
