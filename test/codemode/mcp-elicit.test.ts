// Approvals that `flowcell mcp` asks the person for by itself: what is shown, what approves, and that nothing else does.
import { ElicitRequestSchema, type ElicitResult } from "@modelcontextprotocol/sdk/types.js";
import { afterEach, describe, expect, test } from "vitest";
import { Folder, McpProcess, oddServer, structuredOf, until } from "./mcp-client.js";

const folders: Folder[] = [];
const open: McpProcess[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((mcp) => mcp.close()));
  for (const folder of folders.splice(0)) folder.remove();
});

interface Started {
  readonly mcp: McpProcess;
  readonly questions: string[];
  readonly wrote: () => string[];
}

/** With a person who answers so, in turn; the last answer again and again. Undefined: a client that cannot ask. */
async function start(answers: readonly ElicitResult[] | undefined, more: object = {}): Promise<Started> {
  const folder = new Folder();
  folders.push(folder);
  const command = { command: process.execPath, args: [oddServer], env: { NOTES: folder.file("notes") } };
  const path = folder.write("mcp.json", {
    mcpServers: { odd: { ...command, needsApproval: ["write"] } },
    ...more,
  });
  const mcp = new McpProcess(path, {}, answers === undefined ? {} : { elicitation: {} });
  open.push(mcp);
  const questions: string[] = [];
  const left = [...(answers ?? [])];
  if (answers !== undefined)
    mcp.client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      questions.push(params.message);
      return (left.length > 1 ? left.shift() : left[0]) ?? { action: "cancel" };
    });
  await mcp.open();
  return { mcp, questions, wrote: () => folder.lines("notes").filter((line) => line.startsWith("wrote ")) };
}

const yes: ElicitResult = { action: "accept", content: { approve: true } };
const no: ElicitResult = { action: "decline" };
const closed: ElicitResult = { action: "cancel" };
const code = `const one = await odd.write({ line: "o\\u202ene" }).catch((e) => e.code);
  return [one, await odd.write({ line: "two" }).catch((e) => e.code)]`;

describe("a client that can show a question", () => {
  test("shows each call with its arguments, and a yes lets that call happen", async () => {
    const { mcp, questions, wrote } = await start([yes, no]);
    expect(await mcp.valueOf(code)).toEqual(["wrote o\u202ene", "denied"]);
    expect(questions).toEqual([
      'A script wants to call odd.write with:\n{\n  "line": "o\\u202ene"\n}',
      'A script wants to call odd.write with:\n{\n  "line": "two"\n}',
    ]);
    expect(wrote()).toHaveLength(1);
  });

  test.each<[what: string, answer: ElicitResult]>([
    ["a form without the mark", { action: "accept", content: { approve: false } }],
    ["an empty form", { action: "accept", content: {} }],
    ["a form that says it as a text", { action: "accept", content: { approve: "true" } }],
    ["a refusal that says yes", { action: "decline", content: { approve: true } }],
  ])("approves nothing by %s", async (_, answer) => {
    const { mcp, wrote } = await start([answer]);
    expect(await mcp.valueOf(code)).toEqual(["denied", "denied"]);
    expect(wrote()).toEqual([]);
  });

  test("leaves the script waiting when the question is closed; resume asks the person, and takes no answer", async () => {
    const { mcp, questions, wrote } = await start([closed, yes]);
    const suspended = await mcp.execute(code);
    expect(suspended.status).toBe("suspended");
    const { tools } = await mcp.client.listTools();
    expect(Object.keys(tools.find(({ name }) => name === "resume")?.inputSchema.properties ?? {})).toEqual([
      "runId",
    ]);
    const answers = suspended.pending.map(({ callId }) => ({ callId, approve: true }));
    const forged = await mcp
      .call("resume", { runId: suspended.runId, answers })
      .catch((error: unknown) => error);
    expect(forged).toMatchObject({
      code: -32602,
      message: expect.stringContaining("a person is asked here"),
    });
    expect([questions.length, wrote()]).toEqual([1, []]);
    const done = structuredOf(await mcp.call("resume", { runId: suspended.runId }));
    expect(done.value).toEqual(["wrote o\u202ene", "wrote two"]);
    expect(questions).toHaveLength(3);
    const over = await mcp.call("resume", { runId: suspended.runId }).catch((error: unknown) => error);
    expect(over).toMatchObject({ message: expect.stringContaining("no script of this runId waits") });
  });

  test("is not asked where the configuration leaves approvals to it", async () => {
    const { mcp, questions, wrote } = await start([yes], { approval: "client" });
    const { status, runId, pending } = await mcp.execute(code);
    expect([status, questions]).toEqual(["suspended", []]);
    await mcp.call("resume", { runId, answers: pending.map(({ callId }) => ({ callId, approve: true })) });
    await until("the first was written", () => wrote().length === 1);
  });
});

describe("a client that cannot show a question", () => {
  test("approves nothing where the configuration wants a person asked", async () => {
    const { mcp, wrote } = await start(undefined, { approval: "elicit" });
    expect(await mcp.valueOf(code)).toEqual(["denied", "denied"]);
    const forged = await mcp.call("resume", { runId: "x", answers: [] }).catch((error: unknown) => error);
    expect(forged).toMatchObject({ message: expect.stringContaining("a person is asked here") });
    expect(wrote()).toEqual([]);
  });
});
