// Whether a request that changes something may have been carried out: unknown once a byte may have left, else plainly not.
import { createFetchFunction } from "@flowcell/host";
import { describe, expect, test } from "vitest";
import { call, fetched, httpServer, httpsServer, refusal, tcpServer, testOptions, until } from "./support.js";

const changing = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const at = (port: number, method = "POST") => ({ url: `http://127.0.0.1:${port}/`, method });

describe("after the request was sent", () => {
  test.each(changing)("a %s that gets no answer has an unknown outcome", async (method) => {
    const { port } = await tcpServer((socket) => socket.once("data", () => socket.end()));
    const error = await refusal(at(port, method));
    expect(error).toMatchObject({ code: "outcome_unknown", retryable: false });
    expect(error.detail).toEqual({ cause: "unavailable" });
  });

  test.each(["GET", "HEAD"])("a %s is unavailable, to be repeated", async (method) => {
    const { port } = await tcpServer((socket) => socket.once("data", () => socket.end()));
    expect(await refusal(at(port, method))).toMatchObject({ code: "unavailable", retryable: true });
  });

  test("a reset, a late head and a broken one leave it unknown too", async () => {
    const reset = await tcpServer((socket) => socket.once("data", () => socket.resetAndDestroy()));
    expect(await refusal(at(reset.port))).toMatchObject({ code: "outcome_unknown" });
    const late = await tcpServer(() => {});
    expect(await refusal(at(late.port), { limits: { headersMs: 50 } })).toMatchObject({
      code: "outcome_unknown",
      detail: { cause: "timeout" },
    });
    const broken = await tcpServer((socket) => socket.once("data", () => socket.write("nonsense\r\n\r\n")));
    expect(await refusal(at(broken.port))).toMatchObject({
      code: "outcome_unknown",
      detail: { cause: "upstream" },
    });
    const big = await tcpServer((socket) => {
      socket.once("data", () => socket.write(`HTTP/1.1 200 OK\r\nx: ${"x".repeat(100_000)}`));
    });
    expect(await refusal(at(big.port))).toMatchObject({
      code: "outcome_unknown",
      detail: { cause: "result_too_large" },
    });
  });

  test("a key says that it may be sent again", async () => {
    const { port } = await tcpServer((socket) => socket.once("data", () => socket.end()));
    const error = await refusal({ ...at(port), idempotencyKey: "k" });
    expect(error).toMatchObject({ code: "outcome_unknown", retryable: true });
  });

  test("a body that is cut leaves it unknown, with the status that came", async () => {
    const { port } = await tcpServer((socket) => {
      socket.once("data", () => socket.end("HTTP/1.1 201 Created\r\ncontent-length: 10\r\n\r\nhalf"));
    });
    const error = await refusal(at(port));
    expect(error).toMatchObject({ code: "outcome_unknown", detail: { cause: "unavailable", status: 201 } });
  });

  test("a body that is too large does not: the status says what happened", async () => {
    const server = await httpServer((_, response) => response.writeHead(201).end("x".repeat(100)));
    const error = await refusal(at(server.port), { limits: { bodyBytes: 10 } });
    expect(error).toMatchObject({ code: "result_too_large", retryable: false, detail: { status: 201 } });
  });

  test("an answer of any status is an answer", async () => {
    const server = await httpServer((_, response) => response.writeHead(500).end());
    expect(await fetched(at(server.port))).toMatchObject({ status: 500 });
  });

  test("cancelling leaves it unknown", async () => {
    const server = await tcpServer(() => {});
    const row = createFetchFunction(testOptions());
    const controller = new AbortController();
    // Straight to the handler: on the way through dispatch a cancelled call is answered before the handler has ended.
    const context = { name: "fetch", position: 0, idempotencyKey: "k", clock: "real" } as const;
    const args = [{ ...at(server.port), headers: [], redirect: "follow" }];
    const outcome = Promise.resolve(row.call?.(args, { ...context, signal: controller.signal }));
    outcome.catch(() => {});
    await until(() => (server.connections[0]?.bytesRead ?? 0) > 0, "the request came");
    controller.abort();
    await expect(outcome).rejects.toMatchObject({ code: "outcome_unknown", detail: { cause: "cancelled" } });
  });
});

describe("before anything was sent", () => {
  test.each([
    ["a name that does not resolve", { url: "http://nowhere.test/" }, "unavailable", true],
    ["a port where nothing listens", { url: "http://127.0.0.1:1/" }, "unavailable", true],
    ["a host that is not granted", { url: "http://10.0.0.1/" }, "denied", false],
  ])("%s is plainly a failure", async (_, asked, code, retryable) => {
    expect(await refusal({ ...asked, method: "POST", body: "x" })).toMatchObject({ code, retryable });
  });

  test("a TLS connection that fails is plainly a failure", async () => {
    const { port } = await tcpServer((socket) => socket.once("data", () => socket.end("not TLS")));
    const error = await refusal({ url: `https://api.test:${port}/`, method: "POST", body: "x" });
    expect(error.code).toBe("unavailable");
  });

  test("cancelling is plainly cancelling", async () => {
    const outcome = await call({ ...at(1) }, {}, { signal: AbortSignal.abort() });
    expect(outcome).toMatchObject({ ok: false, error: { code: "cancelled" } });
  });
});

describe("behind a redirect", () => {
  test("a failure of the GET that follows a POST leaves the POST's outcome unknown", async () => {
    const server = await httpServer((_, response) => {
      response.writeHead(303, { location: "http://127.0.0.1:1/" }).end();
    });
    const error = await refusal(at(server.port));
    expect(error).toMatchObject({ code: "outcome_unknown", retryable: false });
    expect(error.detail).toEqual({ cause: "unavailable" });
  });

  test("a failure of the GET that follows a GET is unavailable", async () => {
    const server = await httpServer((_, response) => {
      response.writeHead(303, { location: "http://127.0.0.1:1/" }).end();
    });
    expect(await refusal(at(server.port, "GET"))).toMatchObject({ code: "unavailable", retryable: true });
  });

  test("what is refused there says so, and that the POST may have been carried out", async () => {
    const server = await httpServer((_, response) => {
      response.writeHead(303, { location: "http://10.0.0.1/" }).end();
    });
    const error = await refusal(at(server.port));
    expect(error).toMatchObject({ code: "outcome_unknown", retryable: false });
    expect(error.detail).toEqual({ cause: "denied", host: "10.0.0.1", port: 80, method: "GET" });
    expect(error.message).toContain("10.0.0.1 is no public address");
    expect(await refusal({ ...at(server.port), idempotencyKey: "k" })).toMatchObject({
      code: "outcome_unknown",
      retryable: true,
    });
    // Nothing was changed by what only reads.
    expect(await refusal(at(server.port, "GET"))).toMatchObject({ code: "denied" });
  });

  test.each([
    ["the request says error", {}, "/next", { redirect: "error" }, 303],
    ["there are too many", { redirects: 0 }, "/next", {}, 303],
    ["it names no URL", {}, "http://", {}, 303],
    ["it would send a body again", {}, "/next", { method: "PUT", body: "x" }, 301],
  ] as const)(
    "a redirect that is refused because %s leaves the outcome unknown",
    async (_, limits, to, asked, status) => {
      const server = await httpServer((_, response) => {
        response.writeHead(status, { location: to }).end();
      });
      const error = await refusal({ ...at(server.port), ...asked }, { limits });
      expect(error).toMatchObject({ code: "outcome_unknown", retryable: false });
      expect(error.detail).toEqual({ cause: "upstream", status });
      expect(server.requests).toHaveLength(1);
    },
  );

  test("a chain of redirects without end leaves it unknown, and one from https to http too", async () => {
    const endless = await httpServer((_, response) => response.writeHead(303, { location: "/again" }).end());
    const unknown = { code: "outcome_unknown", detail: { cause: "upstream", status: 303 } };
    expect(await refusal(at(endless.port))).toMatchObject(unknown);
    expect(endless.requests.map(({ method }) => method)).toEqual(["POST", "GET", "GET", "GET", "GET", "GET"]);
    const secure = await httpsServer((_, response) => {
      response.writeHead(303, { location: `http://api.test:${endless.port}/` }).end();
    });
    expect(await refusal({ url: `https://api.test:${secure.port}/`, method: "POST" })).toMatchObject(unknown);
  });
});
