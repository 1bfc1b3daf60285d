// Servers that are slow, endless, wrong or gone: each call ends with its code, and the socket with it.
import { createServer, type Socket } from "node:net";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { createFetchFunction } from "@flowcell/host";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  call,
  callFunction,
  fetched,
  headerValues,
  httpServer,
  refusal,
  tcpServer,
  testOptions,
  text,
  until,
} from "./support.js";

const head = "HTTP/1.1 200 OK\r\n";

/** Answers every connection with the same bytes once something was asked, and then stays as it is or closes. */
function saying(bytes: string | Buffer, then: "stay" | "end" | "reset" = "stay") {
  return tcpServer((socket) => {
    socket.once("data", () => {
      socket.write(bytes, () => {
        if (then === "end") socket.end();
        if (then === "reset") socket.resetAndDestroy();
      });
    });
  });
}

/** Writes until the other side is gone. */
function endlessly(socket: Socket, chunk: string | Buffer): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on("drain", more);
  more();
}

const at = (port: number): { url: string } => ({ url: `http://127.0.0.1:${port}/` });

describe("times", () => {
  test("a server that never answers costs no more than the time for the head", async () => {
    const { port, connections } = await tcpServer(() => {});
    const error = await refusal(at(port), { limits: { headersMs: 50 } });
    expect(error).toMatchObject({ code: "timeout", retryable: true });
    expect(error.message).toContain("within 50 ms");
    await until(() => connections[0]?.destroyed === true, "the socket is closed");
  });

  test("a head that comes byte by byte does not stretch it", async () => {
    const { port } = await tcpServer((socket) => {
      socket.write(head);
      const drip = setInterval(() => socket.write("x"), 5);
      socket.on("close", () => clearInterval(drip));
    });
    expect((await refusal(at(port), { limits: { headersMs: 100 } })).code).toBe("timeout");
  });

  test("a body that comes byte by byte does not stretch the whole", async () => {
    const { port, connections } = await tcpServer((socket) => {
      socket.write(`${head}\r\n`);
      const drip = setInterval(() => socket.write("x"), 5);
      socket.on("close", () => clearInterval(drip));
    });
    // Connecting and the head are within it, on a machine that is busy too.
    const error = await refusal(at(port), { limits: { totalMs: 2000 } });
    expect(error).toMatchObject({ code: "timeout", detail: { status: 200 } });
    await until(() => connections[0]?.destroyed === true, "the socket is closed");
  });

  test("interim responses do not stretch the time for the head, nor come without end", async () => {
    const slow = await tcpServer((socket) => {
      const drip = setInterval(() => socket.write("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"), 50);
      socket.on("close", () => clearInterval(drip));
    });
    expect((await refusal(at(slow.port), { limits: { headersMs: 100 } })).code).toBe("timeout");
    const fast = await tcpServer((socket) => endlessly(socket, "HTTP/1.1 102 Processing\r\n\r\n"));
    expect((await refusal(at(fast.port))).code).toBe("upstream");
  });

  test("a TLS handshake that is never answered costs no more than the time to connect", async () => {
    const { port } = await tcpServer(() => {});
    const asked = { url: `https://api.test:${port}/`, method: "POST", body: "x" };
    // Nothing was sent: the handshake is no part of the request.
    expect(await refusal(asked, { limits: { connectMs: 100 } })).toMatchObject({ code: "timeout" });
  });

  test("redirects share one time", async () => {
    const server = await httpServer((_, response) => {
      setTimeout(() => response.writeHead(302, { location: "/again" }).end(), 60);
    });
    expect((await refusal(at(server.port), { limits: { totalMs: 150 } })).code).toBe("timeout");
  });
});

describe("sizes", () => {
  test("a head beyond the limit is refused", async () => {
    const one = await tcpServer((socket) => endlessly(socket, `${head}x-big: ${"x".repeat(65_536)}`));
    expect((await refusal(at(one.port))).code).toBe("result_too_large");
    const many = await tcpServer((socket) => {
      socket.write(head);
      endlessly(socket, "x-some: header\r\n".repeat(100));
    });
    expect((await refusal(at(many.port))).code).toBe("result_too_large");
  });

  test("a status line without end is refused by time", async () => {
    const { port } = await tcpServer((socket) => {
      socket.write("HTTP/1.1 200 ");
      const drip = setInterval(() => socket.write("x".repeat(1000)), 1);
      socket.on("close", () => clearInterval(drip));
    });
    expect((await refusal(at(port), { limits: { headersMs: 100 } })).code).toBe("timeout");
  });

  test("trailers beyond the limit are refused", async () => {
    const { port } = await tcpServer((socket) => {
      socket.write(`${head}transfer-encoding: chunked\r\n\r\n0\r\n`);
      endlessly(socket, "x-some: trailer\r\n".repeat(100));
    });
    expect((await refusal(at(port))).code).toBe("result_too_large");
  });

  test("a body without end is cut at the limit, and the socket closed", async () => {
    const { port, connections } = await tcpServer((socket) => {
      socket.write(`${head}\r\n`);
      endlessly(socket, Buffer.alloc(65_536));
    });
    const error = await refusal(at(port), { limits: { bodyBytes: 1_000_000 } });
    expect(error).toMatchObject({ code: "result_too_large", retryable: false, detail: { status: 200 } });
    await until(() => connections[0]?.destroyed === true, "the socket is closed");
  });

  test("a body that says it is too large is not read", async () => {
    const { port } = await saying(`${head}content-length: 1001\r\n\r\n`);
    expect((await refusal(at(port), { limits: { bodyBytes: 1000 } })).code).toBe("result_too_large");
  });

  test("a body of exactly the limit is let through", async () => {
    const server = await httpServer((_, response) => response.end("x".repeat(1000)));
    const limits = { bodyBytes: 1000 };
    expect((await fetched(at(server.port), { limits })).body).toHaveLength(1000);
    const chunked = await httpServer((_, response) => {
      response.write("x".repeat(600));
      response.end("x".repeat(401));
    });
    expect((await refusal(at(chunked.port), { limits })).code).toBe("result_too_large");
  });

  test("a body of very many single bytes is refused, a body of some is not", async () => {
    const many = await tcpServer((socket) => {
      socket.write(`${head}transfer-encoding: chunked\r\n\r\n`);
      endlessly(socket, "1\r\nx\r\n".repeat(10_000));
    });
    expect((await refusal(at(many.port))).code).toBe("upstream");
    const some = `${head}transfer-encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(10_000)}0\r\n\r\n`;
    const { port } = await saying(some);
    expect(text(await fetched(at(port)))).toBe("x".repeat(10_000));
  });
});

describe("encoded bodies", () => {
  const plain = "the body ".repeat(100);
  const encodings: readonly (readonly [string, Buffer])[] = [
    ["gzip", gzipSync(plain)],
    ["X-Gzip", gzipSync(plain)],
    ["br", brotliCompressSync(plain)],
    ["deflate", deflateSync(plain)],
    [" deflate ", deflateRawSync(plain)],
  ];

  const encoded = (coding: string, bytes: Uint8Array) =>
    httpServer((_, response) => {
      response.setHeader("content-encoding", coding);
      response.end(bytes);
    });

  test.each(encodings)("in %s are decoded although they were not asked for", async (coding, bytes) => {
    const server = await encoded(coding, bytes);
    const result = await fetched(at(server.port));
    expect(text(result)).toBe(plain);
    expect(headerValues(result, "content-encoding")).toEqual([coding.trim()]);
    expect(server.requests[0]?.headers["accept-encoding"]).toBe("identity");
  });

  test.each([
    ["gzip", gzipSync(Buffer.alloc(50_000_000))],
    ["br", brotliCompressSync(Buffer.alloc(50_000_000))],
    ["deflate", deflateSync(Buffer.alloc(50_000_000))],
  ])("in %s that unfold beyond the limit are refused", async (coding, bytes) => {
    const server = await encoded(coding, bytes);
    const error = await refusal(at(server.port), { limits: { bodyBytes: 1_000_000 } });
    expect(error).toMatchObject({ code: "result_too_large", detail: { status: 200 } });
  });

  test("of many empty parts are bounded before they are decoded", async () => {
    const { port } = await tcpServer((socket) => {
      socket.write(`${head}content-encoding: gzip\r\n\r\n`);
      endlessly(socket, Buffer.concat(Array<Buffer>(1000).fill(gzipSync(""))));
    });
    expect((await refusal(at(port), { limits: { bodyBytes: 1_000_000 } })).code).toBe("result_too_large");
  });

  test.each([
    ["that are cut", gzipSync(plain).subarray(0, 20)],
    ["that are none", Buffer.from(plain)],
    ["with a wrong checksum", new Uint8Array(gzipSync(plain)).fill(0, -8)],
  ])("%s are the server's failure", async (_, bytes) => {
    const server = await encoded("gzip", bytes);
    expect(await refusal(at(server.port))).toMatchObject({ code: "upstream", detail: { status: 200 } });
  });

  test.each(["zstd", "gzip, gzip"])("in %s come as they are", async (coding) => {
    const server = await encoded(coding, Buffer.from("as it is"));
    expect(text(await fetched(at(server.port)))).toBe("as it is");
  });
});

describe("answers against the rules of HTTP", () => {
  test.each([
    ["no HTTP", "SSH-2.0-OpenSSH_9.6\r\n"],
    ["another version", "HTTP/9.9 200 OK\r\n\r\n"],
    ["a status that is no number", "HTTP/1.1 abc OK\r\n\r\n"],
    ["a header without a colon", `${head}no colon\r\n\r\n`],
    ["a header with NUL", `${head}x-a: a\0b\r\n\r\n`],
    ["a space before the colon", `${head}content-length : 5\r\n\r\nhello`],
    ["two different lengths", `${head}content-length: 1\r\ncontent-length: 2\r\n\r\nab`],
    ["a length and chunks", `${head}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["a length that is no number", `${head}content-length: ten\r\n\r\n`],
    ["a chunk size that is none", `${head}transfer-encoding: chunked\r\n\r\nxyz\r\n`],
    ["100 without being asked", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"],
    ["another protocol", "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"],
  ])("%s", async (_, bytes) => {
    const { port } = await saying(bytes);
    const error = await refusal(at(port));
    expect(error).toMatchObject({ code: "upstream", retryable: false });
    expect(error.message).toMatch(/^fetch GET 127\.0\.0\.1:\d+: the response breaks the rules of HTTP/);
  });

  test("header values are Latin-1, as the web has it", async () => {
    const { port } = await saying(
      Buffer.from(`${head}x-a: \xe4\xff \r\ncontent-length: 0\r\n\r\n`, "latin1"),
    );
    expect(headerValues(await fetched(at(port)), "x-a")).toEqual(["äÿ"]);
  });

  test("header names that JavaScript looks up are names like others", async () => {
    const names = ["__proto__", "__proto__", "constructor", "tostring"];
    const lines = names.map((name, at) => `${name}: ${at}\r\n`).join("");
    const { port } = await saying(`${head}${lines}content-length: 0\r\n\r\n`);
    const result = await fetched(at(port));
    expect(result.headers.slice(0, 4)).toEqual(names.map((name, at) => [name, `${at}`]));
  });

  test("a second response after the first is nobody's", async () => {
    const one = `${head}content-length: 3\r\n\r\none`;
    const { port, connections } = await saying(`${one}${one.replace("one", "two")}`);
    expect(text(await fetched(at(port)))).toBe("one");
    await until(() => connections[0]?.destroyed === true, "the socket is closed");
  });
});

describe("any answer", () => {
  const parts = [
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 302 Found\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 204 No\r\n",
    "HTTP/1.0 200\r\n",
    "content-length: 5\r\n",
    "content-length: 0\r\n",
    "transfer-encoding: chunked\r\n",
    "content-encoding: gzip\r\n",
    "connection: close\r\n",
    "connection: keep-alive\r\n",
    "location: /\r\n",
    "upgrade: h2c\r\n",
    "x: y\r\n",
    "\r\n",
    "\r\n",
    "5\r\nhello\r\n",
    "0\r\n\r\n",
    "hello",
    "\0",
  ];
  const codes = ["unavailable", "upstream", "result_too_large", "denied"];
  const bytes = fc.array(fc.oneof(fc.constantFrom(...parts), fc.string({ unit: "binary" })), {
    maxLength: 12,
  });

  test("ends the call with a result or one of its codes, whatever it is and however it ends", async () => {
    let answer: readonly string[] = [];
    let reset = false;
    const { port } = await tcpServer((socket) => {
      socket.once("data", () => {
        for (const part of answer) socket.write(part);
        if (reset) socket.resetAndDestroy();
        else socket.end();
      });
    });
    const row = createFetchFunction(testOptions({ limits: { redirects: 2 } }));
    await fc.assert(
      fc.asyncProperty(bytes, fc.boolean(), async (said, abruptly) => {
        answer = said;
        reset = abruptly;
        const outcome = await callFunction(row, at(port));
        if (!outcome.ok) expect(codes).toContain(outcome.error.code);
      }),
      { numRuns: 300 },
    );
  });
});

describe("connections that end", () => {
  test.each([
    ["before the head", "", "end", undefined],
    ["within the head", "HTTP/1.1 200 OK\r\nx-a", "end", undefined],
    ["within a body of known length", `${head}content-length: 10\r\n\r\nhalf`, "end", 200],
    ["within a body of known length, by reset", `${head}content-length: 10\r\n\r\nhalf`, "reset", 200],
    ["within a chunk", `${head}transfer-encoding: chunked\r\n\r\na\r\nhalf`, "end", 200],
    ["before the last chunk", `${head}transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n`, "end", 200],
    [
      "within a body after connection: close",
      `${head}connection: close\r\ncontent-length: 10\r\n\r\nhalf`,
      "end",
      200,
    ],
  ] as const)("%s make a GET unavailable", async (_, bytes, then, status) => {
    const { port } = await saying(bytes, then);
    const error = await refusal(at(port));
    expect(error).toMatchObject({ code: "unavailable", retryable: true });
    expect(error.detail).toEqual(status === undefined ? undefined : { status });
  });

  test("end a body of unknown length as they should", async () => {
    const { port } = await saying(`${head}\r\nall of it`, "end");
    expect(text(await fetched(at(port)))).toBe("all of it");
  });

  test("right after they were made are unavailable, and not tried again", async () => {
    const { port, connections } = await tcpServer((socket) => socket.resetAndDestroy());
    expect((await refusal(at(port))).code).toBe("unavailable");
    expect(connections.length).toBeLessThanOrEqual(1);
  });

  test("that nobody accepts are unavailable", async () => {
    const gone = createServer();
    await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve));
    const address = gone.address();
    await new Promise((resolve) => gone.close(resolve));
    const closed = typeof address === "object" ? address?.port : undefined;
    expect(closed).toBeGreaterThan(0);
    const error = await refusal({ ...at(closed ?? 0), method: "POST" });
    expect(error).toMatchObject({ code: "unavailable", retryable: true });
    expect(error.message).toContain("refused");
  });

  test("that do not speak TLS are unavailable", async () => {
    const { port } = await saying("HTTP/1.1 400 Bad Request\r\n\r\n", "end");
    const error = await refusal({ url: `https://api.test:${port}/`, method: "POST" });
    expect(error).toMatchObject({ code: "unavailable", retryable: false });
  });
});

describe("cancelling", () => {
  test("closes the socket while the head is awaited", async () => {
    const { port, connections } = await tcpServer(() => {});
    const controller = new AbortController();
    const outcome = call(at(port), {}, { signal: controller.signal });
    await until(() => connections.length === 1, "the server was asked");
    controller.abort();
    expect(await outcome).toMatchObject({ ok: false, error: { code: "cancelled" } });
    await until(() => connections[0]?.destroyed === true, "the socket is closed");
  });

  test("closes the socket while the body comes", async () => {
    const { port, connections } = await tcpServer((socket) => {
      socket.write(`${head}\r\n`);
      const drip = setInterval(() => socket.write("x"), 5);
      socket.on("close", () => clearInterval(drip));
    });
    const controller = new AbortController();
    const outcome = call(at(port), {}, { signal: controller.signal });
    await until(() => connections.length === 1, "the server was asked");
    controller.abort();
    expect(await outcome).toMatchObject({ ok: false });
    await until(() => connections[0]?.destroyed === true, "the socket is closed");
  });

  test("before anything makes no connection", async () => {
    const { port, connections } = await tcpServer(() => {});
    const outcome = await call(at(port), {}, { signal: AbortSignal.abort() });
    expect(outcome).toMatchObject({ ok: false, error: { code: "cancelled" } });
    expect(connections).toHaveLength(0);
  });

  test("while a name is resolved ends the wait", async () => {
    const controller = new AbortController();
    let asked = false;
    const resolve = (): Promise<never> => {
      asked = true;
      return new Promise(() => {});
    };
    const outcome = call({ url: "http://slow.test/" }, { resolve }, { signal: controller.signal });
    await until(() => asked, "the resolver was asked");
    controller.abort();
    expect(await outcome).toMatchObject({ ok: false, error: { code: "cancelled" } });
  });
});
