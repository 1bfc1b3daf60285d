// The configuration of `flowcell mcp`: what is refused, with which words, and what the rest means.
import { describe, expect, test } from "vitest";
import { type McpConfig, parseMcpConfig } from "./config.js";

const parts = {
  folder: "/etc/flowcell",
  environment: { PATH: "/bin", HOME: "/home/ada", TOKEN: "t", SECRET: "s" },
};

function problemsOf(content: unknown): readonly string[] {
  const result = parseMcpConfig(typeof content === "string" ? content : JSON.stringify(content), parts);
  return result.ok ? [] : result.problems;
}

function configOf(content: unknown): McpConfig {
  const result = parseMcpConfig(JSON.stringify(content), parts);
  if (!result.ok) throw new Error(result.problems.join("\n"));
  return result.config;
}

const command = "node";

describe("mistakes", () => {
  test.each<[content: unknown, message: RegExp]>([
    ["{", /^is not JSON: /],
    ["[]", /^must be an object$/],
    [{ servers: {} }, /^unknown key "servers": did you mean mcpServers\?$/],
    [{ mcpServers: [] }, /^mcpServers: must be an object of servers$/],
    [{ mcpServers: { a: {} } }, /^mcpServers\.a\.command: must be a text$/],
    [{ mcpServers: { a: { command: "" } } }, /^mcpServers\.a\.command: must not be empty$/],
    [
      { mcpServers: { a: { comand: "x" } } },
      /^mcpServers\.a: unknown key "comand": did you mean command\?$/m,
    ],
    [{ mcpServers: { a: { command, timeout: 5 } } }, /unknown key "timeout": did you mean callMs\?/],
    [{ mcpServers: { a: { command, needsAproval: ["x"] } } }, /did you mean needsApproval\?/],
    [
      { mcpServers: { a: { command, disabled: true } } },
      /unknown key "disabled": the keys are type, command/,
    ],
    [{ mcpServers: { a: { command, url: "x" } } }, /unknown key "url": .*give command and args/],
    [{ mcpServers: { a: { command, type: "http" } } }, /a\.type: must be "stdio"/],
    [{ mcpServers: { a: { command, args: "x" } } }, /a\.args: must be a list of texts/],
    [{ mcpServers: { a: { command, args: [1] } } }, /a\.args\[0\]: must be a text/],
    [{ mcpServers: { a: { command, args: ["a\0"] } } }, /a"?\.args\[0\]: holds a character/],
    [{ mcpServers: { a: { command, env: { N: 1 } } } }, /a\.env\.N: must be a text/],
    [{ mcpServers: { a: { command, env: { "A=B": "" } } } }, /"A=B" cannot be a variable/],
    [{ mcpServers: { a: { command, inheritEnv: ["NONE"] } } }, /there is no "NONE" in the environment/],
    [{ mcpServers: { a: { command, startMs: 0 } } }, /a\.startMs: must be at least 1/],
    [{ mcpServers: { a: { command, needsApproval: "x" } } }, /needsApproval: must be true or a list/],
    [{ mcpServers: { console: { command } } }, /"console": the name is a name that scripts have already/],
    [
      { mcpServers: { "a-b": { command }, "a.b": { command } } },
      /"a\.b": "a-b" would be a_b in a script too/,
    ],
    [{ limits: { timeoutMs: 5 } }, /^limits: .*wallMs/],
    [{ limits: { wallMs: -1 } }, /^limits: .*wallMs/],
    [{ promptTokens: 10 }, /^promptTokens: must be at least 2000$/],
    [{ store: 1 }, /^store: must be a text$/],
    [{ approval: "model" }, /^approval: must be "client" .* or "elicit" /],
    [
      { mcpServers: { a: { command, approval: "elicit" } } },
      /unknown key "approval": did you mean needsApproval/,
    ],
  ])("%j", (content, message) => {
    expect(problemsOf(content).join("\n")).toMatch(message);
  });

  test("are told together", () => {
    expect(problemsOf({ a: 1, mcpServers: { x: { command: 1 } } })).toHaveLength(2);
  });
});

describe("a configuration", () => {
  test("gives a server PATH, HOME, what it says and what it names, and nothing else of the environment", () => {
    const { servers } = configOf({
      mcpServers: { a: { command, env: { HOME: "/srv" }, inheritEnv: ["TOKEN"] } },
    });
    expect(servers.get("a")?.env).toEqual({ PATH: "/bin", HOME: "/srv", TOKEN: "t" });
  });

  test("has paths that start from the file's folder, and commands that do not", () => {
    const { servers, store } = configOf({
      mcpServers: { a: { command }, b: { command: "./server", cwd: "data" } },
      store: "state/runs.sqlite",
    });
    expect(store).toBe("/etc/flowcell/state/runs.sqlite");
    expect(servers.get("a")).toMatchObject({ command: "node", cwd: "/etc/flowcell" });
    expect(servers.get("b")).toMatchObject({ command: "/etc/flowcell/server", cwd: "/etc/flowcell/data" });
  });

  test("without anything in it has no servers, and limits that end a script before a client gives up", () => {
    const { servers, store, limits, approval } = configOf({});
    expect([servers.size, store, approval]).toEqual([0, undefined, undefined]);
    expect(limits.wallMs).toBe(50_000);
    expect(configOf({ limits: { wallMs: 90_000 } }).limits.wallMs).toBe(90_000);
    expect(configOf({ approval: "elicit" }).approval).toBe("elicit");
  });
});
