// Configurations and servers that are wrong, and servers that hang, flood or die while scripts call them.
import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import {
  bin,
  Folder,
  filesystem,
  isAlive,
  McpProcess,
  oddServer,
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

/** The fixture, with a file of notes in the folder. */
function odd(folder: Folder, more: object = {}, mode = ""): object {
  return {
    command: process.execPath,
    args: [oddServer],
    env: { NOTES: folder.file("notes"), MODE: mode },
    ...more,
  };
}

async function start(folder: Folder, config: object): Promise<McpProcess> {
  const mcp = new McpProcess(folder.write("mcp.json", config));
  open.push(mcp);
  return await mcp.open();
}

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Until it ends by itself; its input stays open. */
function end(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [bin, "mcp", ...args], (error, out, err) => {
      resolve({ code: typeof error?.code === "number" ? error.code : 0, out, err });
    });
  });
}

describe("a configuration", () => {
  test("that is wrong is told in lines, before the protocol, with exit code 78", async () => {
    const folder = newFolder();
    const path = folder.write("wrong.json", { mcpServers: { a: { comand: "x" }, b: { command: 1 } } });
    const { code, out, err } = await end("--config", path);
    expect([code, out]).toEqual([78, ""]);
    expect(err).toContain(`${path}: mcpServers.a: unknown key "comand": did you mean command?`);
    expect(err).toContain(`${path}: mcpServers.b.command: must be a text`);
    expect(err).not.toMatch(/^\s+at /m);
    const missing = await end("--config", folder.file("missing.json"));
    expect([missing.code, missing.err]).toEqual([78, expect.stringContaining("no such file")]);
    expect(await end("--confg", "x")).toMatchObject({ code: 2, err: expect.stringContaining("--config") });
  });

  test("without a server lets scripts compute", async () => {
    const mcp = await start(newFolder(), {});
    expect(await mcp.valueOf("[1, 2, 3].map((n) => n * 2)")).toEqual([2, 4, 6]);
  });
});

describe("a server that does not start", () => {
  test("is reported with what it said, and takes no other away", async () => {
    const folder = newFolder();
    const mcp = await start(folder, {
      mcpServers: {
        dead: odd(folder, {}, "dead"),
        mute: odd(folder, { startMs: 700 }, "mute"),
        absent: { command: "no-such-command-anywhere" },
        mistyped: odd(folder, { needsApproval: ["writ"] }),
        files: filesystem(folder.path),
      },
    });
    const { tools } = await mcp.client.listTools();
    expect(tools[0]?.description).toContain("declare namespace files");
    expect(tools[0]?.description).not.toMatch(/namespace (?:dead|mute|absent|mistyped)/);
    expect(mcp.err).toMatch(
      /dead failed to start: it ended with exit code 9\n {6}no licence found\n {6}setup failed/,
    );
    expect(mcp.err).toContain("mute failed to start: it did not answer within 700 ms");
    expect(mcp.err).toContain('absent failed to start: there is no command "no-such-command-anywhere"');
    expect(mcp.err).toContain('needsApproval names "writ", and it has no such tool; did you mean write?');
    const { value } = await mcp.execute("return (await files.list_allowed_directories()).content");
    expect(value).toContain(folder.path);
    // They are tried again; what was started before is gone.
    const before = pids(folder);
    await until("they are tried again", () => pids(folder).length > before.length);
    await until("none of the first is left", () => before.every((pid) => !isAlive(pid)));
  });

  test("ends everything when it is required", async () => {
    const folder = newFolder();
    const config = folder.write("mcp.json", {
      mcpServers: { odd: odd(folder), needed: odd(folder, { required: true }, "dead") },
    });
    const { code, out, err } = await end("--config", config);
    expect([code, out]).toEqual([78, ""]);
    expect(err).toContain("the server needed is required and failed to start: it ended with exit code 9");
    expect(pids(folder).some(isAlive)).toBe(false);
  });
});

/** Of every server that has started with the folder's notes. */
function pids(folder: Folder): number[] {
  return folder.lines("notes").flatMap((line) => {
    const pid = /^start (\d+)$/.exec(line)?.[1];
    return pid === undefined ? [] : [Number(pid)];
  });
}

const caught = (call: string): string =>
  `try { await ${call} } catch (e) { return e.code + ': ' + e.message }`;

describe("a server that dies", () => {
  test("fails its calls, then answers again; other servers go on", async () => {
    const folder = newFolder();
    const mcp = await start(folder, { mcpServers: { odd: odd(folder), files: filesystem(folder.path) } });
    const first = pids(folder).length;
    expect(await mcp.valueOf(caught("odd.die()"))).toBe(
      "outcome_unknown: the server odd ended during the call; the call may have taken effect",
    );
    expect(await mcp.valueOf("return (await files.list_allowed_directories()).content")).toContain(
      folder.path,
    );
    await until("it runs again", () => mcp.err.includes("the server odd runs again"));
    expect(pids(folder).length).toBe(first + 1);
    expect(await mcp.valueOf("await odd.add({ a: 1, b: 1 })")).toEqual({ sum: 2 });
    expect(mcp.err).toContain("the server odd is gone: it ended with exit code 3");
  });

  test("is unavailable until then, and after a call that only reads", async () => {
    const folder = newFolder();
    const ready = folder.write("notes.ready", "");
    const mcp = await start(folder, { mcpServers: { odd: odd(folder, {}, "late") } });
    // It cannot start again, however slow the script is.
    rmSync(ready);
    expect(
      await mcp.valueOf(`const first = await odd.die_reading().catch((e) => [e.code, e.retryable]);
        const second = await odd.add({ a: 1, b: 1 }).catch((e) => [e.code, e.retryable]);
        return [first, second]`),
    ).toEqual([
      ["unavailable", true],
      ["unavailable", true],
    ]);
  });

  test("is ended when a message has no end, and starts again", async () => {
    const folder = newFolder();
    const mcp = await start(folder, { mcpServers: { odd: odd(folder) } });
    expect(await mcp.valueOf(caught("odd.flood()"))).toMatch(/^outcome_unknown: /);
    await until("it runs again", () => mcp.err.includes("the server odd runs again"));
    expect(mcp.err).toContain("it sent a message of more than 32 MiB");
    expect(await mcp.valueOf("await odd.add({ a: 1, b: 1 })")).toEqual({ sum: 2 });
  });
});

describe("a call that does not end", () => {
  test("is late after callMs, and cancelled at the server", async () => {
    const folder = newFolder();
    const mcp = await start(folder, { mcpServers: { odd: odd(folder, { callMs: 300 }) } });
    expect(await mcp.valueOf(caught("odd.hang()"))).toBe(
      "timeout: the server odd did not answer within 300 ms",
    );
    await until("the server knows", () => folder.lines("notes").includes("cancelled"));
  });

  test("ends when the client cancels the script, and the server knows", async () => {
    const folder = newFolder();
    const mcp = await start(folder, { mcpServers: { odd: odd(folder) } });
    const stop = new AbortController();
    const call = mcp
      .call("execute", { code: "await odd.hang()" }, stop.signal)
      .catch((error: unknown) => error);
    await until("the call is under way", () => folder.lines("notes").includes("hangs"));
    stop.abort("no longer needed");
    expect(await call).toBeInstanceOf(Error);
    await until("the server knows", () => folder.lines("notes").includes("cancelled"));
    expect(await mcp.valueOf("await odd.add({ a: 1, b: 1 })")).toEqual({ sum: 2 });
  });

  test("ends with the script's time", async () => {
    const folder = newFolder();
    const mcp = await start(folder, { mcpServers: { odd: odd(folder) }, limits: { wallMs: 5_000 } });
    const result = await mcp.call("execute", { code: "await odd.hang()" });
    expect(structuredOf(result)).toMatchObject({ status: "budget_exceeded", error: { code: "wall" } });
    expect(textOf(result)).toContain("odd.hang");
    await until("the server knows", () => folder.lines("notes").includes("cancelled"));
  });
});
