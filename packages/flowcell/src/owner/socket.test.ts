// The owner's socket, both ends over a real one: values and errors as they were, hostile clients cut, ends in order.

import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FlowService, OperationError } from "@flowcell/flows";
import { StoreFailure } from "@flowcell/journal";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { OwnerBusy, OwnerLost, tell } from "./failures.js";
import { fakeService } from "./fake-service.js";
import { FrameReader, frameOf } from "./frames.js";
import { connectOwner, type SocketClient } from "./socket-client.js";
import { SocketServer } from "./socket-server.js";
import { answerBytesMax, requestBytesMax, toWire } from "./wire.js";

const scratch = mkdtempSync(join(tmpdir(), "socket-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const open: { close(): Promise<void> }[] = [];
const bugs: unknown[] = [];
let sockets = 0;
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
  bugs.length = 0;
});

interface Served {
  readonly path: string;
  readonly server: SocketServer;
  client(): Promise<SocketClient>;
}

async function serve(
  methods: Partial<FlowService>,
  options: Partial<Parameters<typeof SocketServer.listen>[0]> = {},
): Promise<Served> {
  const path = options.path ?? join(scratch, `${sockets++}.sock`);
  const onBug = (error: unknown): void => void bugs.push(error);
  const server = await SocketServer.listen({ service: fakeService(methods), onBug, ...options, path });
  open.push({ close: () => server.close(0) });
  const client = async (): Promise<SocketClient> => {
    const connected = await connectOwner(path);
    if (connected === null) throw new Error("nobody listens");
    open.push(connected);
    return connected;
  };
  return { path, server, client };
}

/** What a raw client gets until the connection ends. */
function raw(path: string, bytes: Buffer): Promise<unknown[]> {
  return new Promise((resolve) => {
    const reader = new FrameReader(answerBytesMax);
    const got: unknown[] = [];
    const socket = createConnection(path, () => socket.write(bytes));
    socket.on("data", (chunk: Buffer) => got.push(...reader.push(chunk)));
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(got));
  });
}

describe("a request", () => {
  test("brings its input to the service and its result back, whatever values they are", async () => {
    const value = {
      at: new Date(5),
      bytes: new Uint8Array([1, 2]),
      big: 10n,
      nothing: undefined,
      many: new Map([[1, -0]]),
    };
    const seen: unknown[] = [];
    const { client } = await serve({
      start: async (options) => {
        seen.push(options);
        return { runId: "run_1", created: true };
      },
      runs: async (query) => {
        seen.push(query);
        return [];
      },
      replay: async () => ({
        runId: "run_1",
        matched: false,
        deliveries: 1,
        calls: 2,
        divergence: { where: "x", expected: value, actual: undefined },
      }),
    });
    const service = await client();
    expect(await service.start({ flow: "a", by: "me", input: value })).toEqual({
      runId: "run_1",
      created: true,
    });
    expect(await service.runs({ limit: 5 })).toEqual([]);
    expect(seen).toEqual([{ flow: "a", by: "me", input: value }, { limit: 5 }]);
    expect((await service.replay("run_1")).divergence).toEqual({
      where: "x",
      expected: value,
      actual: undefined,
    });
  });

  test("fails as it failed there", async () => {
    const { client } = await serve({
      approve: async () => {
        throw new OperationError("conflict", "another answer was given", ["by you"]);
      },
      list: async () => {
        throw new StoreFailure("the disk is full");
      },
      run: async () => {
        throw new Error("secret detail");
      },
    });
    const service = await client();
    await expect(service.approve({ flow: "a", hash: "0".repeat(64), by: "me" })).rejects.toMatchObject({
      name: "OperationError",
      code: "conflict",
      message: "another answer was given",
      problems: ["by you"],
    });
    await expect(service.list()).rejects.toBeInstanceOf(StoreFailure);
    const bug = service.run("run_1");
    await expect(bug).rejects.toThrow(/a bug in flowcell/);
    await expect(bug).rejects.not.toThrow(/secret detail/);
    expect(bugs).toHaveLength(1);
  });

  test("of which the row knows a key less is refused before the service sees it", async () => {
    const { path } = await serve({});
    const ask = (operation: string, input: unknown): Promise<unknown[]> => {
      const end = new Promise<unknown[]>((resolve) => {
        const reader = new FrameReader(answerBytesMax);
        const socket = createConnection(path);
        socket.write(frameOf({ version: 1, id: 1, operation, input: toWire(input) }, requestBytesMax));
        socket.on("data", (chunk: Buffer) => {
          const got = reader.push(chunk);
          if (got.length > 0) {
            socket.destroy();
            resolve(got);
          }
        });
      });
      return end;
    };
    const failure = (message: unknown): unknown => ({
      id: 1,
      ok: false,
      error: expect.objectContaining({ kind: "operation", code: "invalid", message }),
    });
    expect(await ask("start", { flow: "a", by: "me", force: true })).toEqual([
      failure("start: unknown key force"),
    ]);
    expect(await ask("show", { flow: "a", hash: "xyz" })).toEqual([
      failure(expect.stringMatching(/^show: hash: must be 8 to 64 hex/)),
    ]);
    expect(await ask("strat", {})).toEqual([failure('unknown operation "strat": did you mean start?')]);
    expect(await ask("close", {})).toEqual([failure(expect.stringMatching(/^unknown operation "close"/))]);
    expect(await ask("__proto__", {})).toEqual([failure(expect.stringMatching(/^unknown operation/))]);
  });

  test("that waits is let go by its signal and by its connection's end", async () => {
    const ended: string[] = [];
    const { client } = await serve({
      wait: (runId, options) =>
        new Promise((_resolve, reject) => {
          options?.signal?.addEventListener("abort", () => {
            ended.push(runId);
            reject(new OperationError("unavailable", "stopped"));
          });
        }),
    });
    const service = await client();
    const stop = new AbortController();
    const first = service.wait("one", { signal: stop.signal });
    const second = service.wait("two");
    stop.abort();
    await expect(first).rejects.toThrow("stopped");
    expect(ended).toEqual(["one"]);
    const lost = expect(second).rejects.toBeInstanceOf(OwnerLost);
    await service.close();
    await lost;
    await expect.poll(() => ended).toEqual(["one", "two"]);
  });
});

describe("a client", () => {
  test.each([
    ["announces more than is allowed", Buffer.from([0xff, 0xff, 0xff, 0xff])],
    ["sends what is no JSON", Buffer.from([0, 0, 0, 1, 0x7b])],
    ["sends what is no request", frameOf({ hello: 1 }, 100)],
    [
      "has a version that is not known",
      frameOf({ version: 2, id: 1, operation: "list", input: toWire({}) }, 1000),
    ],
    [
      "asks twice under one number",
      Buffer.concat(
        [1, 1].map((id) => frameOf({ version: 1, id, operation: "list", input: toWire({}) }, 1000)),
      ),
    ],
    [
      "asks too much at once",
      Buffer.concat(
        [1, 2, 3].map((id) => frameOf({ version: 1, id, operation: "list", input: toWire({}) }, 1000)),
      ),
    ],
  ])("that %s is cut, and others are served", async (_what, bytes) => {
    let answered = 0;
    const { path, client } = await serve(
      {
        list: () => new Promise(() => undefined),
        run: async () => {
          answered++;
          throw new OperationError("not_found", "no");
        },
      },
      { openRequestsMax: 2 },
    );
    expect(await raw(path, bytes)).toEqual([]);
    await expect((await client()).run("run_1")).rejects.toThrow("no");
    expect(answered).toBe(1);
  });

  test("that begins a frame and does not end it is cut", async () => {
    const { path } = await serve({}, { frameMs: 50 });
    expect(await raw(path, Buffer.from([0, 0, 0, 9, 0x7b]))).toEqual([]);
  });

  test("that asks nothing is let go", async () => {
    const { path } = await serve({}, { idleMs: 50 });
    expect(await raw(path, Buffer.alloc(0))).toEqual([]);
  });

  test("beyond the last connection is told that the service is busy, and others are served", async () => {
    let answer: (() => void) | undefined;
    const waits: string[] = [];
    const { client } = await serve(
      {
        list: async () => [],
        wait: (runId) =>
          new Promise((_resolve, reject) => {
            waits.push(runId);
            if (runId === "run_1") answer = () => reject(new OperationError("not_found", "over"));
          }),
      },
      { connectionsMax: 2 },
    );
    const first = expect((await client()).wait("run_1")).rejects.toThrow("over");
    const waiting = await client();
    const second = expect(waiting.wait("run_2")).rejects.toBeInstanceOf(OwnerLost);
    await expect.poll(() => waits.toSorted()).toEqual(["run_1", "run_2"]);
    const busy = await client().then(
      async (third) => await third.list().catch((error: unknown) => error),
      (error: unknown) => error,
    );
    expect(busy).toBeInstanceOf(OwnerBusy);
    expect(tell(busy)).toMatchObject({
      code: "overloaded",
      exitCode: 9,
      message: "busy: the service has 2 connections, all in use; try again",
    });
    answer?.();
    await first;
    // The first connection rests now, and makes room.
    expect(await (await client()).list()).toEqual([]);
    await waiting.close();
    await second;
  });

  test("that asks nothing makes room for one that does, and one that asked before goes last", async () => {
    const { path, client } = await serve({ list: async () => [] }, { connectionsMax: 4 });
    const used = await client();
    expect(await used.list()).toEqual([]);
    const silent = [1, 2, 3].map(() => raw(path, Buffer.alloc(0)));
    for (let count = 0; count < 3; count++) expect(await (await client()).list()).toEqual([]);
    expect(await Promise.all(silent)).toEqual([[], [], []]);
    expect(await used.list()).toEqual([]);
  });

  test("more than a hundred that wait leave room for others", async () => {
    let waits = 0;
    const { client } = await serve({
      list: async () => [],
      wait: () => {
        waits++;
        return new Promise(() => undefined);
      },
    });
    const waiting = await Promise.all(Array.from({ length: 120 }, () => client()));
    const ended = Promise.allSettled(waiting.map((one) => one.wait("run_1")));
    await expect.poll(() => waits).toBe(120);
    expect(await (await client()).list()).toEqual([]);
    await Promise.all(waiting.map((one) => one.close()));
    await ended;
  });

  test("that does not take its answers is cut", async () => {
    const big = "x".repeat(8 * 1024 * 1024);
    let cut = false;
    const { path } = await serve(
      {
        list: async () => [big] as never,
        // Let go of when the server ends the connection.
        wait: (_runId, options) =>
          new Promise((_resolve, reject) => {
            options?.signal?.addEventListener("abort", () => {
              cut = true;
              reject(new OperationError("unavailable", "stopped"));
            });
          }),
      },
      { frameMs: 100 },
    );
    const ask = (id: number, operation: string, input: unknown): Buffer =>
      frameOf({ version: 1, id, operation, input: toWire(input) }, requestBytesMax);
    const socket = createConnection(path);
    socket.on("error", () => undefined);
    socket.pause();
    socket.write(Buffer.concat([ask(1, "wait", { runId: "run_1" }), ask(2, "list", {})]));
    const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
    await expect.poll(() => cut, { timeout: 30_000 }).toBe(true);
    let bytes = 0;
    socket.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    socket.resume();
    await closed;
    expect(bytes).toBeLessThan(big.length);
  });
});

describe("the socket", () => {
  test("is the owner's alone, replaces a dead owner's, and goes with the server", async () => {
    const path = join(scratch, "stale.sock");
    writeFileSync(path, "");
    const { server } = await serve({}, { path });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await server.close(0);
    expect(await connectOwner(path)).toBeNull();
  });

  test("works in a folder whose path is longer than a socket's name", async () => {
    const folder = join(scratch, "d".repeat(100), "e".repeat(100));
    mkdirSync(folder, { recursive: true });
    const { client } = await serve({ list: async () => [] }, { path: join(folder, "owner.sock") });
    expect(await (await client()).list()).toEqual([]);
  });

  test("closes when what was asked is answered, and does not wait for waits", async () => {
    let answer: (() => void) | undefined;
    const asked: string[] = [];
    const { client, server } = await serve({
      list: () =>
        new Promise((resolve) => {
          asked.push("list");
          answer = () => resolve([]);
        }),
      wait: () => {
        asked.push("wait");
        return new Promise(() => undefined);
      },
    });
    const service = await client();
    const list = service.list();
    const wait = expect(service.wait("run_1")).rejects.toBeInstanceOf(OwnerLost);
    await expect.poll(() => asked).toEqual(["list", "wait"]);
    const closed = server.close(60_000);
    answer?.();
    expect(await list).toEqual([]);
    await wait;
    await closed;
  });
});
