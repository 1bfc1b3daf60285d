// Approvals over MCP, also after a restart of the process; and the end of the process, which leaves nothing.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { afterEach, describe, expect, test } from "vitest";
import {
  bin,
  everything,
  Folder,
  isAlive,
  McpProcess,
  oddServer,
  type Structured,
  structuredOf,
  textOf,
  until,
} from "./mcp-client.js";

const folders: Folder[] = [];
const open: McpProcess[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((mcp) => mcp.close()));
  for (const folder of folders.splice(0)) folder.remove();
});

function newFolder(): Folder {
  const folder = new Folder();
  folders.push(folder);
  return folder;
}

function config(folder: Folder, more: object = {}): object {
  return {
    mcpServers: {
      odd: {
        command: process.execPath,
        args: [oddServer],
        env: { NOTES: folder.file("notes") },
        needsApproval: ["wri*", "odd-name"],
      },
    },
    ...more,
  };
}

async function start(folder: Folder, given: object): Promise<McpProcess> {
  const mcp = new McpProcess(folder.write("mcp.json", given));
  open.push(mcp);
  return await mcp.open();
}

function wrote(folder: Folder): string[] {
  return folder.lines("notes").filter((line) => line.startsWith("wrote "));
}

const script = `const { sum } = await odd.add({ a: 1, b: 2 });
const answers = await Promise.all([odd.write({ line: "one" }), odd.write({ line: "two" })].map((p) => p.catch((e) => e.code)));
return { sum, answers }`;

function answers(suspended: Structured, approve: boolean): Record<string, unknown> {
  return {
    runId: suspended.runId,
    answers: suspended.pending.map(({ callId }) => ({ callId, approve })),
  };
}

describe("approvals", () => {
  test("suspend the script before the call, which happens once when it is approved", async () => {
    const folder = newFolder();
    const mcp = await start(folder, config(folder));
    const result = await mcp.call("execute", { code: script });
    const suspended = structuredOf(result);
    expect(suspended).toMatchObject({
      ok: false,
      status: "suspended",
      pending: [
        { name: "odd.write", args: [{ line: "one" }] },
        { name: "odd.write", args: [{ line: "two" }] },
      ],
    });
    expect(result.isError).toBeUndefined();
    expect(JSON.parse(textOf(result))).toMatchObject({
      runId: suspended.runId,
      pending: suspended.pending,
      next: expect.stringContaining("resume"),
    });
    expect(wrote(folder)).toEqual([]);
    const done = structuredOf(await mcp.call("resume", answers(suspended, true)));
    expect(done.value).toEqual({ sum: 3, answers: ["wrote one", "wrote two"] });
    expect(wrote(folder).sort()).toEqual(["wrote one", "wrote two"]);
    const again = structuredOf(await mcp.call("resume", answers(suspended, true)));
    expect(again.value).toEqual(done.value);
    expect(wrote(folder)).toHaveLength(2);
    const other = structuredOf(await mcp.call("resume", answers(suspended, false)));
    expect(other.error?.message).toContain("answered differently");
  });

  test("that are refused reach the script as an error, and nothing happens", async () => {
    const folder = newFolder();
    const mcp = await start(folder, config(folder));
    const suspended = await mcp.execute(script);
    const refused = structuredOf(await mcp.call("resume", answers(suspended, false)));
    expect(refused.value).toEqual({ sum: 3, answers: ["denied", "denied"] });
    expect(wrote(folder)).toEqual([]);
  });

  test("of what nobody asked are results with isError", async () => {
    const folder = newFolder();
    const mcp = await start(folder, config(folder));
    const none = { runId: "run_none", answers: [{ callId: "call_none", approve: true }] };
    const unknown = await mcp.call("resume", none);
    expect(unknown.isError).toBe(true);
    expect(structuredOf(unknown).error?.message).toContain("there is no execution");
    const suspended = await mcp.execute(script);
    const guess = { runId: suspended.runId, answers: [{ callId: "call_guessed", approve: true }] };
    expect((await mcp.call("resume", guess)).isError).toBe(true);
    expect(wrote(folder)).toEqual([]);
  });

  test("go on with a script that the client can still cancel", async () => {
    const folder = newFolder();
    const mcp = await start(folder, config(folder));
    const suspended = await mcp.execute("await odd.write({ line: 'one' }); await odd.hang()");
    const stop = new AbortController();
    const call = mcp.call("resume", answers(suspended, true), stop.signal).catch((error: unknown) => error);
    await until("the script hangs", () => folder.lines("notes").includes("hangs"));
    stop.abort("no longer needed");
    expect(await call).toBeInstanceOf(Error);
    await until("the server knows", () => folder.lines("notes").includes("cancelled"));
    const ended = structuredOf(await mcp.call("resume", answers(suspended, true)));
    expect(ended.status).toBe("cancelled");
    expect(wrote(folder)).toEqual(["wrote one"]);
  });

  test("are shown in types and in hits, and named by the tool's own name", async () => {
    const folder = newFolder();
    const mcp = await start(folder, config(folder));
    const { tools } = await mcp.client.listTools();
    expect(tools[0]?.description).toContain("need a person's approval");
    const { structuredContent } = await mcp.call("search", { query: "writes a note", limit: 1 });
    expect(structuredContent).toMatchObject({ hits: [{ name: "odd.write", needsApproval: true }] });
    expect((await mcp.execute("await odd.odd_name()")).status).toBe("suspended");
  });

  test("outlive the process when the configuration names a store", async () => {
    const folder = newFolder();
    // As folders of projects are; the store's own is made.
    chmodSync(folder.path, 0o755);
    const kept = config(folder, { store: "state/runs.sqlite" });
    const first = await start(folder, kept);
    const suspended = await first.execute(script);
    expect(suspended.status).toBe("suspended");
    expect(readdirSync(folder.file("state"))).toContain("runs.sqlite");
    await first.close();
    const second = await start(folder, kept);
    const done = structuredOf(await second.call("resume", answers(suspended, true)));
    expect(done.value).toEqual({ sum: 3, answers: ["wrote one", "wrote two"] });
    expect(wrote(folder).sort()).toEqual(["wrote one", "wrote two"]);
    await second.close();
    const third = await start(folder, kept);
    expect(structuredOf(await third.call("resume", answers(suspended, true))).value).toEqual(done.value);
    expect(wrote(folder)).toHaveLength(2);
  });

  test("outlive a process that is killed", async () => {
    const folder = newFolder();
    const kept = config(folder, { store: "runs.sqlite" });
    const first = await start(folder, kept);
    const suspended = await first.execute(script);
    const { pid } = first;
    process.kill(pid, "SIGKILL");
    await until("it is gone", () => !isAlive(pid));
    const second = await start(folder, kept);
    const done = structuredOf(await second.call("resume", answers(suspended, true)));
    expect(done.value).toEqual({ sum: 3, answers: ["wrote one", "wrote two"] });
  });
});

/** Processes below one, itself not among them. */
function below(pid: number): number[] {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  } catch {
    return [];
  }
  const children = text.trim().split(/\s+/).filter(Boolean).map(Number);
  return [...children, ...children.flatMap(below)];
}

describe("the end", () => {
  test.each([
    ["a closed input", (child: ReturnType<typeof spawn>) => child.stdin?.end()],
    ["SIGTERM", (child: ReturnType<typeof spawn>) => child.kill("SIGTERM")],
    ["SIGINT", (child: ReturnType<typeof spawn>) => child.kill("SIGINT")],
  ])("by %s is exit code 0 and leaves no process, also while a script runs", async (_, stop) => {
    const folder = newFolder();
    const given = config(folder, { store: "runs.sqlite" }) as { mcpServers: object }; // made above
    const path = folder.write("mcp.json", { ...given, mcpServers: { ...given.mcpServers, everything } });
    const child = spawn(process.execPath, [bin, "mcp", "--config", path], {
      stdio: ["pipe", "pipe", "ignore"],
    });
    const lines: string[] = [];
    createInterface(child.stdout).on("line", (line) => lines.push(line));
    const send = (message: object): void =>
      void child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    const clientInfo = { name: "bare", version: "1" };
    send({
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo },
    });
    send({ method: "notifications/initialized" });
    send({
      id: 2,
      method: "tools/call",
      params: { name: "execute", arguments: { code: "await odd.hang()" } },
    });
    await until("the call is under way", () => folder.lines("notes").includes("hangs"));
    const family = below(child.pid ?? 0);
    expect(family.length).toBeGreaterThanOrEqual(3);
    stop(child);
    const [code] = await once(child, "exit");
    expect(code).toBe(0);
    await until("nothing is left", () => !family.some(isAlive));
    // Nothing but the protocol was written.
    for (const line of lines) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
    expect(lines.length).toBeGreaterThanOrEqual(1);
  });
});
