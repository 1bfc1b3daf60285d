// Tools that come and change while `flowcell mcp` serves: a server that starts late, one whose list changes; and what a client is
// told while a script runs.
import { rmSync, writeFileSync } from "node:fs";
import {
  CallToolResultSchema,
  type Progress,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { afterEach, describe, expect, test } from "vitest";
import { Folder, filesystem, McpProcess, oddServer, structuredOf, textOf, until } from "./mcp-client.js";

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

function odd(folder: Folder, more: object = {}, mode = ""): object {
  return {
    command: process.execPath,
    args: [oddServer],
    env: { NOTES: folder.file("notes"), MODE: mode },
    ...more,
  };
}

interface Started {
  readonly mcp: McpProcess;
  /** How often the client was told that tools changed. */
  readonly changes: () => number;
}

async function start(folder: Folder, config: object): Promise<Started> {
  const mcp = new McpProcess(folder.write("mcp.json", config));
  open.push(mcp);
  let changes = 0;
  mcp.client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    changes += 1;
  });
  await mcp.open();
  return { mcp, changes: () => changes };
}

async function description(mcp: McpProcess): Promise<string> {
  const { tools } = await mcp.client.listTools();
  return tools[0]?.description ?? "";
}

/** A store of the configuration, or none. */
const stores = [
  ["in memory", {}],
  ["in a store", { store: "state/runs.sqlite" }],
] as const;

describe("a server that does not start at first", () => {
  test.each(stores)("is named to the model, tried again, and listed when it runs, %s", async (_, kept) => {
    const folder = newFolder();
    const { mcp, changes } = await start(folder, {
      mcpServers: { late: odd(folder, { needsApproval: ["write"] }, "late"), files: filesystem(folder.path) },
      ...kept,
    });
    const before = await description(mcp);
    expect(before).toContain("the server late is not running: it ended with exit code 9");
    expect(before).not.toContain("namespace late");
    const none = await mcp.call("search", { query: "zzzzqqq" });
    expect(textOf(none)).toContain("the server late is not running: it ended with exit code 9");
    await until("it was tried twice more", () => folder.lines("notes").length >= 3);
    writeFileSync(folder.file("notes.ready"), "");
    await until("the client is told", () => changes() > 0);
    const after = await description(mcp);
    expect(after).toContain("declare namespace late");
    expect(after).not.toContain("is not running");
    expect(mcp.err).toContain("the server late runs now");
    expect(await mcp.valueOf("await late.add({ a: 1, b: 1 })")).toEqual({ sum: 2 });
    expect((await mcp.execute("await late.write({ line: 'one' })")).status).toBe("suspended");
    // Attempts that fail alike are told once.
    expect(mcp.err.match(/late (?:failed to|did not) start/g)).toHaveLength(1);
    rmSync(folder.file("notes.ready"));
  });
});

describe("a server whose tools change", () => {
  test.each(stores)("has the new ones called, and scripts that waited go on, %s", async (_, kept) => {
    const folder = newFolder();
    const { mcp, changes } = await start(folder, {
      mcpServers: { odd: odd(folder, { needsApproval: ["write"] }) },
      ...kept,
    });
    const waiting = await mcp.execute("return [await odd.write({ line: 'one' }), typeof odd.grown]");
    expect(waiting.status).toBe("suspended");
    expect(await description(mcp)).not.toContain("function grown(");
    expect(await mcp.valueOf("await odd.grow()")).toBe("grew");
    await until("the client is told", () => changes() > 0);
    expect(await description(mcp)).toContain("function grown(");
    expect(await mcp.valueOf("await odd.grown()")).toBe("grown up");
    const answers = waiting.pending.map(({ callId }) => ({ callId, approve: true }));
    const done = structuredOf(await mcp.call("resume", { runId: waiting.runId, answers }));
    expect(done.value).toEqual(["wrote one", expect.any(String)]);
    expect(folder.lines("notes").filter((line) => line.startsWith("wrote"))).toEqual(["wrote one"]);
    const again = structuredOf(await mcp.call("resume", { runId: waiting.runId, answers }));
    expect(again.value).toEqual(done.value);
  });

  test("changes nothing for a script that runs", async () => {
    const folder = newFolder();
    const { mcp, changes } = await start(folder, { mcpServers: { odd: odd(folder) } });
    const code =
      "await odd.grow(); for (let i = 0; i < 20; i++) { await odd.add({ a: 1, b: i }) } return 'end'";
    expect(await Promise.all([mcp.valueOf(code), mcp.valueOf(code)])).toEqual(["end", "end"]);
    await until("the client is told", () => changes() > 0);
  });
});

describe("progress", () => {
  test("is sent for lines and calls of a script whose request asks for it, and grows", async () => {
    const folder = newFolder();
    const { mcp } = await start(folder, { mcpServers: { odd: odd(folder) } });
    const told: Progress[] = [];
    const code = `console.log("first line");
      await new Promise((r) => setTimeout(r, 500));
      await odd.add({ a: 1, b: 1 });
      await new Promise((r) => setTimeout(r, 6000));
      for (let i = 0; i < 500; i++) console.log("line " + i);
      return 1`;
    const result = await mcp.client.callTool({ name: "execute", arguments: { code } }, CallToolResultSchema, {
      onprogress: (progress) => void told.push(progress),
    });
    expect(CallToolResultSchema.parse(result).isError).not.toBe(true);
    const messages = told.map(({ message }) => message ?? "");
    expect(messages[0]).toBe("first line");
    expect(messages).toContain("calls odd.add");
    expect(messages.some((message) => /^running for \d+ s, 1 call so far$/.test(message))).toBe(true);
    const steps = told.map(({ progress }) => progress);
    expect(steps).toEqual([...new Set(steps)].sort((a, b) => a - b));
    // Not one for each line.
    expect(told.length).toBeLessThan(100);
  });
});
