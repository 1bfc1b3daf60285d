/**
 * Servers on 127.0.0.1 and calls of `fetch` against them, for the tests of this folder. A call goes the way that a worker's
 * call goes: encoded, read by the row's schema, carried out, and its outcome decoded. No name is resolved by the system.
 */

import { readFileSync } from "node:fs";
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttps } from "node:https";
import { type AddressInfo, createServer as createTcp, type Server, type Socket } from "node:net";
import {
  createFetchFunction,
  createRegistry,
  dispatch,
  type FetchOptions,
  type HostFunction,
} from "@flowcell/host";
import type { NetRule } from "@flowcell/manifest";
import { decodeValue, encodeValue, type HostErrorData, profileLimits } from "@flowcell/protocol";
import { afterEach, expect } from "vitest";

const fixture = (name: string): string =>
  readFileSync(new URL(`./fixtures/${name}`, import.meta.url), "utf8");

/** The authority that signed the certificate of the https servers: for api.test, other.test and 127.0.0.1. */
export const authority = fixture("test-authority.pem");
const identity = { key: fixture("test-server-key.pem"), cert: fixture("test-server.pem") };

export interface Running {
  readonly port: number;
  /** Connections that were accepted, in order. */
  readonly connections: readonly Socket[];
  /** The address of this machine that each came to. */
  readonly reachedAt: readonly (string | undefined)[];
}

export interface RunningHttp extends Running {
  readonly requests: readonly Received[];
}

export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  /** Names as they came, each with its value. */
  readonly rawHeaders: readonly string[];
  readonly body: string;
}

const running: { readonly server: Server; readonly sockets: Set<Socket> }[] = [];

afterEach(async () => {
  for (const { server, sockets } of running.splice(0)) {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function listen(server: Server): Promise<Running> {
  const sockets = new Set<Socket>();
  const connections: Socket[] = [];
  const reachedAt: (string | undefined)[] = [];
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    connections.push(socket);
    reachedAt.push(socket.localAddress);
    socket.on("error", () => {}); // a test's client may leave at any time
    socket.on("close", () => sockets.delete(socket));
  });
  running.push({ server, sockets });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // of a server that listens to a port
  return { port, connections, reachedAt };
}

/** A server that says whatever a test wants it to say. */
export function tcpServer(onConnection: (socket: Socket) => void): Promise<Running> {
  return listen(
    createTcp((socket) => {
      onConnection(socket);
      socket.resume(); // so that it notices when the other side leaves
    }),
  );
}

export type Answer = (request: Received, response: ServerResponse) => void;

function collector(answer: Answer, requests: Received[]) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "", headers, rawHeaders } = request;
      const received = { method, url, headers, rawHeaders, body: Buffer.concat(chunks).toString() };
      requests.push(received);
      answer(received, response);
    });
  };
}

export async function httpServer(answer: Answer): Promise<RunningHttp> {
  const requests: Received[] = [];
  return { ...(await listen(createHttp(collector(answer, requests)))), requests };
}

export async function httpsServer(answer: Answer): Promise<RunningHttp> {
  const requests: Received[] = [];
  const server = createHttps(identity, collector(answer, requests));
  server.on("tlsClientError", () => {}); // a client that refuses the certificate
  return { ...(await listen(server)), requests };
}

/** Every method to every host. */
export const everything: readonly NetRule[] = [
  { host: "*", methods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] },
];

/** The names that tests may use, all at 127.0.0.1; another name fails the test's call, never asks a server. */
const testNames: readonly string[] = ["api.test", "other.test", "wrong.test"];

export function testOptions(change: Partial<FetchOptions> = {}): FetchOptions {
  return {
    rules: everything,
    secrets: [],
    secretValue: () => undefined,
    privateHosts: ["127.0.0.1", ...testNames],
    ca: authority,
    resolve: async (host) => {
      if (testNames.includes(host)) return ["127.0.0.1"];
      throw Object.assign(new Error(`no name ${host}`), { code: "ENOTFOUND" });
    },
    ...change,
  };
}

export interface Fetched {
  readonly status: number;
  readonly statusText: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly url: string;
  readonly redirected: boolean;
  readonly body: Uint8Array | null;
}

export interface Asked {
  readonly url: string;
  readonly method?: string;
  readonly headers?: readonly (readonly [string, string])[];
  readonly redirect?: string;
  readonly body?: Uint8Array | string;
  readonly idempotencyKey?: string;
}

export type Outcome =
  | { readonly ok: true; readonly value: Fetched }
  | { readonly ok: false; readonly error: HostErrorData };

export interface CallOptions {
  readonly signal?: AbortSignal;
}

export async function callFunction(
  row: HostFunction,
  { method = "GET", headers = [], redirect = "follow", body, ...rest }: Asked,
  { signal = new AbortController().signal }: CallOptions = {},
): Promise<Outcome> {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const request = { method, headers, redirect, ...(bytes === undefined ? {} : { body: bytes }), ...rest };
  const call = { position: 0, name: "fetch", args: encodeValue([request]), signal, idempotencyKey: "k" };
  const limits = profileLimits("flow");
  const outcome = await dispatch(createRegistry([row]), call, { limits, clock: "real" });
  if (!outcome.ok) return outcome;
  return { ok: true, value: decodeValue(outcome.value) as Fetched }; // what the row's output schema says
}

export function call(asked: Asked, change?: Partial<FetchOptions>, options?: CallOptions): Promise<Outcome> {
  return callFunction(createFetchFunction(testOptions(change)), asked, options);
}

/** The result of a call that must succeed. */
export async function fetched(asked: Asked, change?: Partial<FetchOptions>): Promise<Fetched> {
  const outcome = await call(asked, change);
  if (!outcome.ok) throw new Error(`${outcome.error.code}: ${outcome.error.message}`);
  return outcome.value;
}

/** The error of a call that must fail. */
export async function refusal(
  asked: Asked,
  change?: Partial<FetchOptions>,
  options?: CallOptions,
): Promise<HostErrorData> {
  const outcome = await call(asked, change, options);
  if (outcome.ok) throw new Error(`it answered ${outcome.value.status}`);
  return outcome.error;
}

export function text({ body }: Fetched): string {
  return new TextDecoder().decode(body ?? undefined);
}

export function headerValues({ headers }: Fetched, name: string): readonly string[] {
  return headers.filter(([key]) => key === name).map(([, value]) => value);
}

/** Waits until a condition holds; the bound is generous, since machines that run tests are busy. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  const end = Date.now() + 30_000;
  while (!condition()) {
    expect(Date.now(), `waited too long until ${what}`).toBeLessThan(end);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
