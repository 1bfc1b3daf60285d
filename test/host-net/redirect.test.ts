// Redirects against real servers: each target is checked like the first, and there is an end.
import type { NetRule } from "@flowcell/manifest";
import { describe, expect, test } from "vitest";
import {
  type Answer,
  everything,
  fetched,
  headerValues,
  httpServer,
  httpsServer,
  refusal,
  text,
} from "./support.js";

const to =
  (status: number, location: (url: string) => string | undefined): Answer =>
  ({ url }, response) => {
    const target = location(url);
    if (target === undefined) response.end("arrived");
    else response.writeHead(status, { location: target }).end("moved");
  };

describe("a redirect", () => {
  test("is followed, and the result says where it came from", async () => {
    const server = await httpServer(
      to(302, (url) => (url === "/a" ? "/b" : url === "/b" ? "c?d" : undefined)),
    );
    const base = `http://127.0.0.1:${server.port}`;
    const result = await fetched({ url: `${base}/a#part` });
    expect(result).toMatchObject({ status: 200, redirected: true, url: `${base}/c?d` });
    expect(text(result)).toBe("arrived");
    expect(server.requests.map(({ url }) => url)).toEqual(["/a", "/b", "/c?d"]);
    expect(server.connections).toHaveLength(3);
  });

  test("is handed over with manual, with its location", async () => {
    const server = await httpServer(to(307, () => "http://10.0.0.1/"));
    const result = await fetched({ url: `http://127.0.0.1:${server.port}/`, redirect: "manual" });
    expect(result).toMatchObject({ status: 307, redirected: false });
    expect(headerValues(result, "location")).toEqual(["http://10.0.0.1/"]);
    expect(text(result)).toBe("moved");
  });

  test("is a failure with error", async () => {
    const server = await httpServer(to(302, () => "/next"));
    const asked = { url: `http://127.0.0.1:${server.port}/`, redirect: "error" };
    const error = await refusal(asked);
    expect(error).toMatchObject({ code: "upstream", retryable: false, detail: { status: 302 } });
    expect(server.requests).toHaveLength(1);
  });

  test("without a location is an answer like others", async () => {
    const server = await httpServer((_, response) => response.writeHead(302).end("nowhere"));
    const result = await fetched({ url: `http://127.0.0.1:${server.port}/` });
    expect(result).toMatchObject({ status: 302, redirected: false });
  });

  test("that leads on for ever ends after the limit", async () => {
    const server = await httpServer(to(302, () => "/again"));
    const error = await refusal({ url: `http://127.0.0.1:${server.port}/` });
    expect(error).toMatchObject({ code: "upstream", retryable: false, detail: { status: 302 } });
    expect(error.message).toContain("more than 5 redirects");
    expect(server.requests).toHaveLength(6);
  });

  test("may be the fifth and not the sixth", async () => {
    const server = await httpServer(
      to(302, (url) => (url === "/0" ? undefined : `/${Number(url.slice(1)) - 1}`)),
    );
    const base = `http://127.0.0.1:${server.port}`;
    expect(text(await fetched({ url: `${base}/5` }))).toBe("arrived");
    expect((await refusal({ url: `${base}/6` })).code).toBe("upstream");
    expect((await refusal({ url: `${base}/1` }, { limits: { redirects: 0 } })).code).toBe("upstream");
  });

  test.each([
    "http://127.0.0.1:1/",
    "http://10.0.0.1/",
    "http://[::1]/",
    "http://2130706433/",
    "http://[::ffff:169.254.169.254]/latest/meta-data",
    "//169.254.169.254/latest/meta-data",
  ])("to %s is denied when only the first host is opened", async (location) => {
    const server = await httpServer(to(302, () => location));
    const options = { privateHosts: [`api.test:${server.port}`] };
    const error = await refusal({ url: `http://api.test:${server.port}/` }, options);
    expect(error.code).toBe("denied");
    expect(server.requests).toHaveLength(1);
  });

  test("to a host that the rules deny is denied", async () => {
    const target = await httpServer((_, response) => response.end("arrived"));
    const server = await httpServer(to(302, () => `http://other.test:${target.port}/`));
    const rules: NetRule[] = [{ host: "api.test" }];
    const error = await refusal({ url: `http://api.test:${server.port}/` }, { rules });
    expect(error).toMatchObject({ code: "denied", detail: { host: "other.test", method: "GET" } });
    expect(target.connections).toHaveLength(0);
  });

  test("is judged with the method that it has there", async () => {
    const target = await httpServer((_, response) => response.end("arrived"));
    const rules: NetRule[] = [{ host: "api.test", methods: ["POST"] }, { host: "other.test" }];
    for (const [status, allowed] of [
      [303, true],
      [302, true],
      [307, false],
      [308, false],
    ] as const) {
      const server = await httpServer(to(status, () => `http://other.test:${target.port}/`));
      const asked = { url: `http://api.test:${server.port}/`, method: "POST", body: "x" };
      if (allowed) expect(text(await fetched(asked, { rules })), `${status}`).toBe("arrived");
      else expect((await refusal(asked, { rules })).detail, `${status}`).toMatchObject({ cause: "denied" });
    }
    expect(target.requests.map(({ method }) => method)).toEqual(["GET", "GET"]);
  });

  test("sends a body again for 307 and 308 only", async () => {
    const target = await httpServer((_, response) => response.end("arrived"));
    for (const status of [302, 303, 307, 308]) {
      const server = await httpServer(to(status, () => `http://other.test:${target.port}/${status}`));
      await fetched({
        url: `http://api.test:${server.port}/`,
        method: "POST",
        body: "the body",
        idempotencyKey: "k",
      });
    }
    expect(
      target.requests.map(({ method, url, body, headers }) => [
        method,
        url,
        body,
        headers["idempotency-key"],
      ]),
    ).toEqual([
      ["GET", "/302", "", undefined],
      ["GET", "/303", "", undefined],
      ["POST", "/307", "the body", "k"],
      ["POST", "/308", "the body", "k"],
    ]);
  });

  test("from https to http is refused", async () => {
    const target = await httpServer((_, response) => response.end("arrived"));
    const server = await httpsServer(to(302, () => `http://api.test:${target.port}/`));
    const error = await refusal({ url: `https://api.test:${server.port}/` });
    expect(error).toMatchObject({ code: "upstream", detail: { status: 302 } });
    expect(target.connections).toHaveLength(0);
  });

  test("from http to https is followed", async () => {
    const target = await httpsServer((_, response) => response.end("arrived"));
    const server = await httpServer(to(301, () => `https://api.test:${target.port}/`));
    expect(text(await fetched({ url: `http://api.test:${server.port}/` }))).toBe("arrived");
  });

  test("takes authorization along within an origin, and not to another", async () => {
    const target = await httpServer((_, response) => response.end("arrived"));
    const server = await httpServer(
      to(307, (url) => (url === "/a" ? "/b" : `http://other.test:${target.port}/`)),
    );
    const headers = [
      ["Authorization", "Bearer mine"],
      ["x-mine", "1"],
    ] as const;
    await fetched({ url: `http://api.test:${server.port}/a`, headers }, { rules: everything });
    expect(server.requests.map((request) => request.headers.authorization)).toEqual([
      "Bearer mine",
      "Bearer mine",
    ]);
    expect(target.requests[0]?.headers).toMatchObject({ "x-mine": "1" });
    expect(target.requests[0]?.headers.authorization).toBeUndefined();
  });

  test("resolves each name for itself", async () => {
    const target = await httpServer((_, response) => response.end("arrived"));
    const server = await httpServer(to(302, () => `http://other.test:${target.port}/`));
    const resolve = async (host: string): Promise<readonly string[]> =>
      host === "api.test" ? ["127.0.0.1"] : ["127.0.0.1", "10.0.0.1"];
    const options = { privateHosts: ["api.test"], resolve };
    expect((await refusal({ url: `http://api.test:${server.port}/` }, options)).code).toBe("denied");
    expect(target.connections).toHaveLength(0);
  });
});
