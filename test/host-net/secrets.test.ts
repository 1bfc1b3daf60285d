// Secrets: where a reference takes its value, where it is refused, and that a value comes back to a script nowhere.
import { gzipSync } from "node:zlib";
import { createFetchFunction } from "@flowcell/host";
import type { SecretGrant } from "@flowcell/manifest";
import { describe, expect, test } from "vitest";
import {
  type Answer,
  type Asked,
  call,
  callFunction,
  fetched,
  headerValues,
  httpServer,
  httpsServer,
  refusal,
  tcpServer,
  testOptions,
  text,
} from "./support.js";

const value = "s3cr3t-Value/+=0123456789";
const grant: SecretGrant = { name: "api", hosts: ["api.test"], header: "Authorization", scheme: "Bearer" };
const bare: SecretGrant = { name: "key", hosts: ["**.test", "127.0.0.1"], header: "x-api-key" };
const values: ReadonlyMap<string, string> = new Map([
  ["api", value],
  ["key", "another-value-entirely"],
]);

const withSecrets = {
  secrets: [grant, bare],
  secretValue: (name: string): string | undefined => values.get(name),
};

const fine: Answer = (_, response) => response.end("fine");

function using(url: string, header: string, text: string, more: Partial<Asked> = {}): Asked {
  return { url, headers: [[header, text]], ...more };
}

describe("a reference", () => {
  test.each([
    ["authorization", "{{secret:api}}", `Bearer ${value}`],
    ["Authorization", "Bearer {{secret:api}}", `Bearer ${value}`],
    ["AUTHORIZATION", "bearer {{secret:api}}", `Bearer ${value}`],
    ["X-API-Key", "{{secret:key}}", "another-value-entirely"],
  ])("as %s: %s takes its value on the way", async (header, reference, sent) => {
    const server = await httpsServer(fine);
    const asked = using(`https://api.test:${server.port}/`, header, reference);
    expect(text(await fetched(asked, withSecrets))).toBe("fine");
    expect(server.requests[0]?.headers[header.toLowerCase()]).toBe(sent);
    expect(asked.headers).toEqual([[header, reference]]);
  });

  test("takes the value of the time of the call", async () => {
    const server = await httpsServer(fine);
    let current = "the-first-value";
    const row = createFetchFunction(testOptions({ ...withSecrets, secretValue: () => current }));
    const asked = using(`https://api.test:${server.port}/`, "authorization", "{{secret:api}}");
    await callFunction(row, asked);
    current = "the-second-value";
    await callFunction(row, asked);
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
      "Bearer the-first-value",
      "Bearer the-second-value",
    ]);
  });

  test.each<[string, (port: number) => Asked, string]>([
    [
      "in another header",
      (port) => using(`https://api.test:${port}/`, "x-token", "{{secret:api}}"),
      "for the header Authorization only",
    ],
    [
      "for another host",
      (port) => using(`https://other.test:${port}/`, "authorization", "{{secret:api}}"),
      "not granted for the host other.test",
    ],
    [
      "for the granted host by its address",
      (port) => using(`https://127.0.0.1:${port}/`, "authorization", "{{secret:api}}"),
      "not granted for the host 127.0.0.1",
    ],
    [
      "over http, also to a host that the operator opened",
      (port) => using(`http://127.0.0.1:${port}/`, "x-api-key", "{{secret:key}}"),
      "only sent over https:",
    ],
    [
      "with another scheme",
      (port) => using(`https://api.test:${port}/`, "authorization", "Basic {{secret:api}}"),
      "the scheme Bearer, not Basic",
    ],
    [
      "with a scheme that the grant does not have",
      (port) => using(`https://api.test:${port}/`, "x-api-key", "Key {{secret:key}}"),
      "no scheme, not Key",
    ],
    [
      "with text after it",
      (port) => using(`https://api.test:${port}/`, "x-api-key", "{{secret:key}}x"),
      "the whole value",
    ],
    [
      "with text before it",
      (port) => using(`https://api.test:${port}/`, "x-api-key", "x{{secret:key}}"),
      "the whole value",
    ],
    [
      "twice",
      (port) => using(`https://api.test:${port}/`, "x-api-key", "{{secret:key}} {{secret:key}}"),
      "the whole value",
    ],
    [
      "in the path",
      (port) => ({ url: `https://api.test:${port}/{{secret:api}}` }),
      "can only stand in the header",
    ],
    [
      "in the query",
      (port) => ({ url: `https://api.test:${port}/?key={{secret:key}}` }),
      "can only stand in the header",
    ],
    [
      "in the query, encoded",
      (port) => ({ url: `https://api.test:${port}/?key=%7B%7bsecret%3Akey%7D%7D` }),
      "can only stand in the header",
    ],
    [
      "in the body",
      (port) => ({ url: `https://api.test:${port}/`, method: "POST", body: '{"key":"{{secret:key}}"}' }),
      "can only stand in the header",
    ],
    [
      "in a form",
      (port) => ({ url: `https://api.test:${port}/`, method: "POST", body: "key=%7B%7Bsecret%3Akey%7D%7D" }),
      "can only stand in the header",
    ],
    [
      "as the idempotency key",
      (port) => ({ url: `https://api.test:${port}/`, method: "POST", idempotencyKey: "{{secret:key}}" }),
      "can only stand in the header",
    ],
  ])("%s is refused before anything is sent", async (_, asked, words) => {
    const server = await httpsServer(fine);
    const error = await refusal(asked(server.port), withSecrets);
    expect(error.code).toBe("invalid_arguments");
    expect(error.message).toContain(words);
    expect(server.connections).toHaveLength(0);
  });

  test("that is granted to nobody is denied, with the grant to add", async () => {
    const server = await httpsServer(fine);
    const asked = using(`https://api.test:${server.port}/`, "x-token", "{{secret:none}}");
    const error = await refusal(asked, withSecrets);
    expect(error).toMatchObject({ code: "denied", detail: { secret: "none", host: "api.test" } });
    expect(error.message).toContain('{"name":"none","hosts":["api.test"],"header":"x-token"}');
    expect(server.requests).toHaveLength(0);
  });

  test("of one name with two grants goes where either lets it", async () => {
    const server = await httpsServer(fine);
    const secrets = [grant, { name: "api", hosts: ["other.test"], header: "x-token" }];
    const options = { ...withSecrets, secrets };
    await fetched(using(`https://api.test:${server.port}/`, "authorization", "{{secret:api}}"), options);
    await fetched(using(`https://other.test:${server.port}/`, "x-token", "{{secret:api}}"), options);
    const crossed = using(`https://other.test:${server.port}/`, "authorization", "{{secret:api}}");
    expect((await refusal(crossed, options)).code).toBe("invalid_arguments");
    expect(server.requests.map(({ headers }) => headers.authorization ?? headers["x-token"])).toEqual([
      `Bearer ${value}`,
      value,
    ]);
  });

  test.each<[string, () => string | undefined, boolean]>([
    ["has no value", () => undefined, true],
    ["has an empty value", () => "", true],
    ["has a line end", () => `${value}\n`, false],
    ["has a letter beyond ASCII", () => `${value}ä`, false],
    ["has a space at its end", () => `${value} `, false],
    [
      "cannot be read",
      () => {
        throw new Error(`/home/operator/secrets: ${value}`);
      },
      true,
    ],
  ])("to a secret that %s is unavailable, and the value is not told", async (_, secretValue, retryable) => {
    const server = await httpsServer(fine);
    const asked = using(`https://api.test:${server.port}/`, "authorization", "{{secret:api}}");
    const error = await refusal(asked, { ...withSecrets, secretValue });
    expect(error).toMatchObject({ code: "unavailable", retryable });
    expect(JSON.stringify(error)).not.toContain(value);
    expect(JSON.stringify(error)).not.toContain("/home");
    expect(server.requests).toHaveLength(0);
  });
});

describe("a redirect", () => {
  const asked = (port: number): Asked => ({
    url: `https://api.test:${port}/a`,
    headers: [
      ["authorization", "{{secret:api}}"],
      ["x-api-key", "{{secret:key}}"],
    ],
  });

  test("within the origin takes the secrets along", async () => {
    const server = await httpsServer(({ url }, response) =>
      url === "/a" ? response.writeHead(302, { location: "/b" }).end() : response.end("fine"),
    );
    await fetched(asked(server.port), withSecrets);
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${value}`,
      `Bearer ${value}`,
    ]);
  });

  test("to another origin leaves them behind, for good, although a grant names that host too", async () => {
    let home = "";
    const other = await httpsServer((_, response) => response.writeHead(307, { location: home }).end());
    const server = await httpsServer(({ url }, response) =>
      url === "/a"
        ? response.writeHead(307, { location: `https://other.test:${other.port}/` }).end()
        : response.end("fine"),
    );
    home = `https://api.test:${server.port}/b`;
    expect(text(await fetched(asked(server.port), withSecrets))).toBe("fine");
    const seen = [...server.requests, ...other.requests].map(({ headers }) => [
      headers.authorization,
      headers["x-api-key"],
    ]);
    expect(seen).toEqual([
      [`Bearer ${value}`, "another-value-entirely"],
      [undefined, undefined],
      [undefined, undefined],
    ]);
    expect(JSON.stringify(other.requests)).not.toContain("secret:");
  });
});

describe("a value that comes back", () => {
  const asked = (port: number, path = "/"): Asked =>
    using(`https://api.test:${port}${path}`, "authorization", "{{secret:api}}");

  test("is masked in headers, status text, URL and body", async () => {
    const server = await httpsServer(({ url }, response) => {
      if (url === "/") response.writeHead(302, { location: `/?echo=${value}` }).end();
      else response.writeHead(200, `OK ${value}`, { "x-echo": `Bearer ${value}` }).end(`you sent ${value}.`);
    });
    const result = await fetched(asked(server.port), withSecrets);
    expect(text(result)).toBe("you sent ***.");
    expect(headerValues(result, "x-echo")).toEqual(["Bearer ***"]);
    expect(result).toMatchObject({
      statusText: "OK ***",
      url: `https://api.test:${server.port}/?echo=***`,
      redirected: true,
    });
    expect(JSON.stringify(result)).not.toContain(value);
  });

  test("is masked in a location that is handed over", async () => {
    const server = await httpsServer((_, response) =>
      response.writeHead(302, { location: `https://other.test/?${value}` }).end(value),
    );
    const result = await fetched({ ...asked(server.port), redirect: "manual" }, withSecrets);
    expect(headerValues(result, "location")).toEqual(["https://other.test/?***"]);
    expect(text(result)).toBe("***");
  });

  test("is masked wherever chunks begin and end", async () => {
    const server = await httpsServer((_, response) => {
      const parts = [...`(${value})`];
      const next = (): void => {
        const part = parts.shift();
        if (part === undefined) response.end();
        else response.write(part, () => setImmediate(next));
      };
      next();
    });
    expect(text(await fetched(asked(server.port), withSecrets))).toBe("(***)");
  });

  test("is masked in a body that came encoded", async () => {
    const server = await httpsServer((_, response) => {
      response.setHeader("content-encoding", "gzip");
      response.end(gzipSync(`<${value}>`));
    });
    expect(text(await fetched(asked(server.port), withSecrets))).toBe("<***>");
  });

  test("is masked although another request sent it, and over http", async () => {
    const server = await httpServer((_, response) => response.end(`remembered: ${value}`));
    const result = await fetched({ url: `http://127.0.0.1:${server.port}/` }, withSecrets);
    expect(text(result)).toBe("remembered: ***");
  });

  test("is in no error", async () => {
    const hostname = "s3cr3t-value-0123456789";
    const options = { ...withSecrets, secretValue: () => hostname };
    const locations = [`https://${hostname}.test/`, `http://api.test/${hostname}`, `nonsense://${hostname}/`];
    for (const location of locations) {
      const server = await httpsServer((_, response) => response.writeHead(302, { location }).end());
      const outcome = await call(asked(server.port), { ...options, rules: [{ host: "api.test" }] });
      expect(outcome.ok).toBe(false);
      expect(JSON.stringify(outcome)).not.toContain(hostname);
      expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${hostname}`);
    }
  });

  test("is in no error of a response that breaks HTTP", async () => {
    const { port } = await tcpServer((socket) => {
      socket.once("data", () => socket.write(`HTTP/1.1 200 OK\r\n${value}\r\n\r\n`));
    });
    const row = createFetchFunction(testOptions(withSecrets));
    const context = { name: "fetch", position: 0, idempotencyKey: "k", clock: "real" } as const;
    const args = [{ url: `http://127.0.0.1:${port}/`, method: "GET", headers: [], redirect: "follow" }];
    const { signal } = new AbortController();
    const error: unknown = await Promise.resolve(row.call?.(args, { ...context, signal })).catch(
      (thrown: unknown) => thrown,
    );
    const { inspect } = await import("node:util");
    expect(error).toMatchObject({ code: "upstream" });
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(value);
  });
});

describe("text that is no reference", () => {
  test.each([
    "secret:api",
    "{secret:api}",
    "{{ secret:api }}",
    "{{secret:}}",
    "{{secrets:api}}",
    "{{other}}",
  ])("%s is sent as it is", async (plain) => {
    const server = await httpsServer(fine);
    const asked = { url: `https://api.test:${server.port}/`, method: "POST", body: plain };
    await fetched({ ...asked, headers: [["x-api-key", plain]] }, withSecrets);
    expect(server.requests[0]?.headers["x-api-key"]).toBe(plain);
    expect(server.requests[0]?.body).toBe(plain);
  });
});
