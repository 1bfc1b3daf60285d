// What a server receives of a request, and which requests are refused before anything is sent.
import { createFetchFunction, createRegistry, dispatch } from "@flowcell/host";
import { encodeValue, profileLimits } from "@flowcell/protocol";
import { describe, expect, test } from "vitest";
import {
  call,
  callFunction,
  fetched,
  headerValues,
  httpServer,
  httpsServer,
  refusal,
  testOptions,
  text,
} from "./support.js";

const ok = (_: unknown, response: { end: (text: string) => void }): void => response.end("fine");

describe("a request", () => {
  test("arrives with its method, path, headers and body, and the answer comes back whole", async () => {
    const server = await httpServer((_, response) => {
      response.writeHead(201, "Made", { "X-One": "1", "Set-Cookie": ["a=1", "b=2"] });
      response.end("answer");
    });
    const base = `http://127.0.0.1:${server.port}`;
    const result = await fetched({
      url: `${base}/a%20b?q=ä#part`,
      method: "POST",
      headers: [["X-Mine", "héllo"]],
      body: "the body",
    });
    expect(result).toMatchObject({ status: 201, statusText: "Made", redirected: false });
    expect(result.url).toBe(`${base}/a%20b?q=%C3%A4`);
    expect(text(result)).toBe("answer");
    expect(headerValues(result, "x-one")).toEqual(["1"]);
    expect(headerValues(result, "set-cookie")).toEqual(["a=1", "b=2"]);
    const [received] = server.requests;
    expect(received).toMatchObject({ method: "POST", url: "/a%20b?q=%C3%A4", body: "the body" });
    expect(received?.headers).toMatchObject({
      host: `127.0.0.1:${server.port}`,
      "content-length": "8",
      "x-mine": "héllo",
      "accept-encoding": "identity",
      "user-agent": "flowcell",
      connection: "close",
    });
  });

  test("goes over TLS to a host whose certificate a given authority signed", async () => {
    const server = await httpsServer(ok);
    expect(text(await fetched({ url: `https://api.test:${server.port}/` }))).toBe("fine");
    expect(text(await fetched({ url: `https://127.0.0.1:${server.port}/` }))).toBe("fine");
  });

  test.each([
    ["that nobody signed whom this machine trusts", "api.test", { ca: undefined }],
    ["for another name", "wrong.test", {}],
  ])("is not sent to a host with a certificate %s", async (_, host, change) => {
    const server = await httpsServer(ok);
    const { ca, ...options } = { ...testOptions(), ...change };
    const asked = { url: `https://${host}:${server.port}/`, method: "POST", body: "secret text" };
    const row = createFetchFunction(ca === undefined ? options : { ...options, ca });
    const outcome = await callFunction(row, asked);
    expect(outcome).toMatchObject({ ok: false, error: { code: "unavailable", retryable: false } });
    expect(JSON.stringify(outcome)).toContain("certificate");
    expect(server.requests).toEqual([]);
  });

  test("checks certificates although the environment says not to", async () => {
    const server = await httpsServer(ok);
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    try {
      const error = await refusal({ url: `https://wrong.test:${server.port}/` });
      expect(error.code).toBe("unavailable");
    } finally {
      delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    }
  });

  test("goes straight to its host although the environment names a proxy", async () => {
    const proxy = await httpServer(ok);
    const server = await httpServer((_, response) => response.end("direct"));
    const names = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    for (const name of names) process.env[name] = `http://127.0.0.1:${proxy.port}`;
    try {
      expect(text(await fetched({ url: `http://127.0.0.1:${server.port}/` }))).toBe("direct");
    } finally {
      for (const name of names) delete process.env[name];
    }
    expect(proxy.connections).toHaveLength(0);
  });

  test("has a connection of its own, also within one function", async () => {
    const server = await httpServer((_, response) => {
      response.setHeader("connection", "keep-alive");
      response.end("fine");
    });
    const row = createFetchFunction(testOptions());
    for (let n = 0; n < 3; n++) await callFunction(row, { url: `http://127.0.0.1:${server.port}/${n}` });
    expect(server.requests.map(({ url }) => url)).toEqual(["/0", "/1", "/2"]);
    expect(server.connections).toHaveLength(3);
  });

  test("carries the idempotency key as a header", async () => {
    const server = await httpServer(ok);
    await fetched({ url: `http://127.0.0.1:${server.port}/`, method: "POST", idempotencyKey: "order 7" });
    expect(server.requests[0]?.headers["idempotency-key"]).toBe("order 7");
    expect(server.requests[0]?.headers["content-length"]).toBe("0");
  });

  test("of method HEAD has an answer without a body", async () => {
    const server = await httpServer((_, response) => {
      response.setHeader("content-length", "1000");
      response.end();
    });
    const result = await fetched({ url: `http://127.0.0.1:${server.port}/`, method: "HEAD" });
    expect(result.body).toBeNull();
    expect(headerValues(result, "content-length")).toEqual(["1000"]);
  });

  test.each([204, 304])("that is answered %i has no body", async (status) => {
    const server = await httpServer((_, response) => {
      response.writeHead(status, { etag: '"1"', ...(status === 304 ? { "content-length": "5" } : {}) });
      response.end();
    });
    expect(await fetched({ url: `http://127.0.0.1:${server.port}/` })).toMatchObject({ status, body: null });
  });

  test("with an answer of no bytes has an empty body", async () => {
    const server = await httpServer((_, response) => response.end());
    expect((await fetched({ url: `http://127.0.0.1:${server.port}/` })).body).toEqual(new Uint8Array());
  });
});

describe("effects", () => {
  const row = createFetchFunction(testOptions());
  const effect = (asked: object): string => row.effectOf([asked]);

  test("are read for GET and HEAD, keyed with a key, once for all else", () => {
    expect(effect({ method: "GET" })).toBe("read");
    expect(effect({ method: "HEAD", idempotencyKey: "k" })).toBe("read");
    expect(effect({ method: "POST", idempotencyKey: "k" })).toBe("keyed");
    for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get", "PROPFIND"]) {
      expect(effect({ method }), method).toBe("once");
    }
  });
});

describe("refuses, naming it and without a connection,", () => {
  test.each([
    ["Connection", "close"],
    ["keep-alive", "timeout=5"],
    ["TE", "trailers"],
    ["Trailer", "x"],
    ["Transfer-Encoding", "chunked"],
    ["Upgrade", "websocket"],
    ["HTTP2-Settings", "AAMAAABkAAQ"],
    ["Proxy-Authorization", "Basic eA=="],
    ["proxy-connection", "keep-alive"],
    ["Proxy-Anything", "x"],
    ["Host", "other.test"],
    ["Cookie", "a=1"],
    ["Cookie2", "a=1"],
    ["Content-Length", "0"],
    ["Expect", "100-continue"],
    ["Idempotency-Key", "x"],
    ["X-A\r\nX-B", "1"],
    ["X A", "1"],
    ["", "1"],
    ["X-Ä", "1"],
    ["X-A:", "1"],
    ["X-A", "1\r\nX-B: 2"],
    ["X-A", "1\nX-B: 2"],
    ["X-A", "1\rX-B: 2"],
    ["X-A", "1\0"],
    ["X-A", "\u{1f600}"],
    ["X-A", "\x7f"],
  ])("the header %j: %j", async (name, value) => {
    const server = await httpServer(ok);
    const error = await refusal({ url: `http://127.0.0.1:${server.port}/`, headers: [[name, value]] });
    expect(error.code).toBe("invalid_arguments");
    expect(error.message.toLowerCase()).toContain(JSON.stringify(name).toLowerCase());
    expect(error.detail).toEqual({ path: [0, "headers", 0] });
    expect(server.connections).toHaveLength(0);
  });

  test.each([
    ["url", { url: "file:///etc/passwd" }, "http: and https:"],
    ["url", { url: "data:text/plain,x" }, "http: and https:"],
    ["url", { url: "ftp://127.0.0.1/" }, "http: and https:"],
    ["url", { url: "/relative" }, "absolute"],
    ["url", { url: "http://user@127.0.0.1/" }, "user name"],
    ["url", { url: "http://:word@127.0.0.1/" }, "password"],
    ["url", { url: `http://127.0.0.1/${"x".repeat(20_000)}` }, "16384"],
    ["method", { method: "CONNECT" }, "method"],
    ["method", { method: "trace" }, "method"],
    ["method", { method: "GET / HTTP/1.1\r\nX: y\r\n\r\n" }, "method"],
    ["method", { method: "" }, "method"],
    ["body", { body: "x" }, "GET"],
    ["body", { method: "HEAD", body: "x" }, "HEAD"],
    ["idempotencyKey", { method: "POST", idempotencyKey: "a\r\nb" }, "printable"],
    ["idempotencyKey", { method: "POST", idempotencyKey: "" }, "printable"],
    ["idempotencyKey", { method: "POST", idempotencyKey: "x".repeat(256) }, "255"],
    ["redirect", { redirect: "always" }, ""],
    ["headers", { headers: [["X-A", "x".repeat(70_000)] as const] }, "bytes"],
    ["headers", { headers: Array<readonly [string, string]>(300).fill(["X-A", "1"]) }, "256"],
  ])("%s in %j", async (part, change, words) => {
    const server = await httpServer(ok);
    const error = await refusal({ url: `http://127.0.0.1:${server.port}/`, ...change });
    expect(error.code).toBe("invalid_arguments");
    expect(error.message).toContain(words);
    expect(error.detail).toMatchObject({ path: [0, part] });
    expect(server.connections).toHaveLength(0);
  });

  test("a body beyond the limit", async () => {
    const server = await httpServer(ok);
    const asked = { url: `http://127.0.0.1:${server.port}/`, method: "POST", body: "x".repeat(101) };
    const error = await refusal(asked, { limits: { bodyBytes: 100 } });
    expect(error.code).toBe("too_large");
    expect(server.connections).toHaveLength(0);
    const allowed = await call({ ...asked, body: "x".repeat(100) }, { limits: { bodyBytes: 100 } });
    expect(allowed.ok).toBe(true);
  });

  test("what the guest never sends", async () => {
    const registry = createRegistry([createFetchFunction(testOptions())]);
    const good = { url: "http://127.0.0.1:1/", method: "GET", headers: [], redirect: "follow" };
    for (const args of [
      [],
      ["http://127.0.0.1:1/"],
      [good, 1],
      [{ ...good, agent: 1 }],
      [{ ...good, body: "text", method: "POST" }],
      [{ ...good, headers: [["a"]] }],
      [{ ...good, headers: { a: "1" } }],
    ]) {
      const signal = new AbortController().signal;
      const request = { position: 0, name: "fetch", args: encodeValue(args), signal, idempotencyKey: "k" };
      const limits = profileLimits("flow");
      expect(await dispatch(registry, request, { limits, clock: "real" })).toMatchObject({
        ok: false,
        error: { code: "invalid_arguments" },
      });
    }
  });
});

describe("options", () => {
  test.each([
    [{ limits: { bodyByte: 1 } }, 'did you mean "bodyBytes"?'],
    [{ limits: { redirects: 6 } }, "from 0 to 5"],
    [{ limits: { totalMs: 0 } }, "from 1"],
    [{ limits: { totalMs: Number.NaN } }, "from 1"],
    [{ privateHost: [] }, 'did you mean "privateHosts"?'],
    [{ privateHosts: ["http://127.0.0.1"] }, "host:port"],
    [{ privateHosts: ["127.0.0.1:0"] }, "host:port"],
    [{ privateHosts: ["127.0.0.1:65536"] }, "host:port"],
    [{ privateHosts: ["*"] }, "host:port"],
    [{ privateHosts: ["127.1"] }, "host:port"],
    [{ privateHosts: [""] }, "host:port"],
    [{ privateHosts: ["10.0.0.0/8"] }, "host:port"],
  ])("that are none are an error of the operator: %j", (change, words) => {
    const options = Object.assign({}, testOptions(), change);
    expect(() => createFetchFunction(options)).toThrow(words);
  });
});
