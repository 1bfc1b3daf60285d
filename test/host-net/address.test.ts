// Where a request may go: rules, every spelling of a private address, answers of resolvers that change or mix.
import { createFetchFunction } from "@flowcell/host";
import type { NetRule } from "@flowcell/manifest";
import { describe, expect, test } from "vitest";
import { callFunction, fetched, httpServer, refusal, testOptions, text } from "./support.js";

const closed = { privateHosts: [] };

/** A server, to see that nothing comes to it. */
async function witness() {
  return await httpServer((_, response) => response.end("reached"));
}

describe("a URL that leads to this machine or its network is denied", () => {
  test.each([
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "0x7f.1",
    "127.255.255.254",
    "①②⑦.0.0.1",
    "１２７.0.0.1",
    "127%2e0%2e0%2e1",
    "0.0.0.0",
    "0",
    "0x0",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1::127.0.0.1]",
    "[2002:7f00:1::1]",
    "[2001:0:808:808::80ff:fffe]",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "[::ffff:169.254.169.254]",
    "[fe80::a9fe:a9fe]",
    "[fd00:ec2::254]",
    "168.63.129.16",
    "100.100.100.200",
    "224.0.0.1",
    "255.255.255.255",
    "240.0.0.1",
    "192.0.2.1",
    "198.51.100.1",
    "203.0.113.1",
    "198.18.0.1",
    "[2001:db8::1]",
    "[fc00::1]",
    "[fec0::1]",
    "[ff02::1]",
  ])("http://%s", async (host) => {
    const { port, connections } = await witness();
    const error = await refusal({ url: `http://${host}:${port}/` }, closed);
    expect(error.code).toBe("denied");
    expect(error.detail).toMatchObject({ port, method: "GET" });
    expect(connections).toHaveLength(0);
  });

  test.each(["[fe80::1%25eth0]", "[fe80::1%eth0]", "[::1%lo]", "127.0.0.1%00", "256.0.0.1", "0x.0.0.1.x y"])(
    "http://%s is no URL",
    async (host) => {
      const error = await refusal({ url: `http://${host}/` }, closed);
      expect(error.code).toBe("invalid_arguments");
    },
  );

  test.each(["localhost", "LOCALHOST", "localhost.", "foo.localhost", "ip6-localhost"])(
    "http://%s, by its address",
    async (host) => {
      const { port, connections } = await witness();
      const resolve = async (name: string): Promise<readonly string[]> =>
        name.startsWith("ip6") ? ["::1"] : ["127.0.0.1"];
      const error = await refusal({ url: `http://${host}:${port}/` }, { ...closed, resolve });
      expect(error.code).toBe("denied");
      expect(error.message).toContain("operator");
      expect(connections).toHaveLength(0);
    },
  );
});

describe("a name", () => {
  const resolvesTo = (...addresses: string[]) => ({ ...closed, resolve: async () => addresses });

  test.each([
    ["only to a private address", ["10.0.0.1"]],
    ["to a private address among public ones", ["8.8.8.8", "8.8.4.4", "127.0.0.1"]],
    ["to a public address of this family and a private one of the other", ["8.8.8.8", "::1"]],
    ["to a metadata service", ["169.254.169.254"]],
    ["to what is no address", ["8.8.8.8", "127.1"]],
    ["to another name", ["localhost"]],
    ["to an address with a zone", ["fe80::1%eth0"]],
  ])("that resolves %s is denied without saying to what", async (_, addresses) => {
    const error = await refusal({ url: "http://rebind.test/" }, resolvesTo(...addresses));
    expect(error.code).toBe("denied");
    for (const address of addresses) expect(JSON.stringify(error)).not.toContain(address);
  });

  test("that resolves to nothing is unavailable", async () => {
    const error = await refusal({ url: "http://rebind.test/" }, resolvesTo());
    expect(error).toMatchObject({ code: "unavailable", retryable: true });
  });

  test("that cannot be resolved is unavailable, with the name of the error only", async () => {
    const error = await refusal({ url: "http://nowhere.test/" });
    expect(error).toMatchObject({ code: "unavailable", retryable: true });
    expect(error.message).toBe("fetch GET nowhere.test:80: the name cannot be resolved (ENOTFOUND)");
  });

  test("is resolved once, and the connection goes to what was checked", async () => {
    const server = await witness();
    let asked = 0;
    // What would be a private answer to a second question. The first is loopback too, since tests have no other network.
    const resolve = async (): Promise<readonly string[]> => (++asked === 1 ? ["127.0.0.1"] : ["127.0.0.2"]);
    const options = { privateHosts: ["rebind.test"], resolve };
    expect(text(await fetched({ url: `http://rebind.test:${server.port}/` }, options))).toBe("reached");
    expect(asked).toBe(1);
    expect(server.reachedAt).toEqual(["127.0.0.1"]);
    expect(server.requests[0]?.headers.host).toBe(`rebind.test:${server.port}`);
  });

  test("that resolves to public addresses first and private ones later is denied later", async () => {
    let asked = 0;
    // 127.0.0.1 stands for a public address: the operator opened the name. The second answer is none that a name may have.
    const resolve = async (): Promise<readonly string[]> =>
      ++asked === 1 ? ["127.0.0.1"] : ["169.254.169.254"];
    const server = await witness();
    const row = createFetchFunction(testOptions({ privateHosts: ["rebind.test"], resolve }));
    const asking = { url: `http://rebind.test:${server.port}/` };
    expect(await callFunction(row, asking)).toMatchObject({ ok: true });
    expect(await callFunction(row, asking)).toMatchObject({ ok: false, error: { code: "denied" } });
    expect(server.connections).toHaveLength(1);
  });

  test("is reached at any of its addresses", async () => {
    const server = await witness();
    // Nothing listens at the first: the server is bound to 127.0.0.1 only.
    const options = { privateHosts: ["both.test"], resolve: async () => ["127.0.0.2", "127.0.0.1"] };
    expect(text(await fetched({ url: `http://both.test:${server.port}/` }, options))).toBe("reached");
  });

  test("is not waited for longer than the limit", async () => {
    const options = { resolve: () => new Promise<never>(() => {}), limits: { connectMs: 50 } };
    const error = await refusal({ url: "http://slow.test/", method: "POST" }, options);
    expect(error).toMatchObject({ code: "timeout", retryable: true });
  });
});

describe("a private host that the operator opened", () => {
  test("is open on its port only, when it has one", async () => {
    const server = await witness();
    const other = await witness();
    const options = { privateHosts: [`127.0.0.1:${server.port}`] };
    expect(text(await fetched({ url: `http://127.0.0.1:${server.port}/` }, options))).toBe("reached");
    expect((await refusal({ url: `http://127.0.0.1:${other.port}/` }, options)).code).toBe("denied");
    expect(other.connections).toHaveLength(0);
  });

  test("is open as the address that it is, and opens no neighbour and no name", async () => {
    const server = await witness();
    const options = { privateHosts: ["127.0.0.1"] };
    const at = (host: string): { url: string } => ({ url: `http://${host}:${server.port}/` });
    expect(text(await fetched(at("[::ffff:127.0.0.1]"), options))).toBe("reached");
    expect((await refusal(at("127.0.0.2"), options)).code).toBe("denied");
    expect((await refusal(at("[::1]"), options)).code).toBe("denied");
    expect((await refusal(at("api.test"), options)).code).toBe("denied");
  });

  test("by its name is not open at a metadata service's address", async () => {
    const options = { privateHosts: ["api.test"], resolve: async () => ["169.254.169.254"] };
    expect((await refusal({ url: "http://api.test/" }, options)).code).toBe("denied");
  });

  test("still needs a grant", async () => {
    const server = await witness();
    const error = await refusal({ url: `http://127.0.0.1:${server.port}/` }, { rules: [] });
    expect(error.code).toBe("denied");
    expect(server.connections).toHaveLength(0);
  });
});

describe("the manifest's rules", () => {
  test("decide before a name is resolved, and the error names the grant to add", async () => {
    const resolve = async (): Promise<readonly string[]> => {
      throw new Error("asked");
    };
    const rules: NetRule[] = [{ host: "api.test" }];
    const error = await refusal({ url: "https://other.test/", method: "POST" }, { rules, resolve });
    expect(error.code).toBe("denied");
    expect(error.message).toContain('add {"host":"other.test","methods":["POST"]} to grants.net');
    expect(error.detail).toEqual({ host: "other.test", port: 443, method: "POST" });
  });

  test("may say why", async () => {
    const rules: NetRule[] = [{ host: "api.test", action: "deny", reason: "Use the mirror." }, { host: "*" }];
    const error = await refusal({ url: "http://api.test:81/" }, { rules });
    expect(error).toMatchObject({ code: "denied", message: "fetch: Use the mirror." });
    expect(error.detail).toEqual({ host: "api.test", port: 81, method: "GET" });
  });

  test("let GET through where they name no method, and nothing that changes something", async () => {
    const server = await witness();
    const rules: NetRule[] = [{ host: "127.0.0.1", port: server.port }];
    const url = `http://127.0.0.1:${server.port}/`;
    expect(text(await fetched({ url }, { rules }))).toBe("reached");
    expect((await refusal({ url, method: "DELETE" }, { rules })).code).toBe("denied");
    expect(server.requests).toHaveLength(1);
  });
});
