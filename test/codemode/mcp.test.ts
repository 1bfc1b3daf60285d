// The MCP server between the official client and two servers from npm: what a model sees, and scripts that call both.
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { everything, Folder, filesystem, McpProcess, oddServer, structuredOf, textOf } from "./mcp-client.js";

const folder = new Folder();
let mcp: McpProcess;
beforeAll(async () => {
  mkdirSync(folder.file("data"));
  folder.write("data/a.txt", "first");
  folder.write("data/b.txt", "second");
  const config = folder.write("mcp.json", {
    mcpServers: {
      files: filesystem(folder.file("data")),
      everything,
      odd: { command: process.execPath, args: [oddServer], env: { GIVEN: "yes" } },
    },
    limits: { wallMs: 20_000, cpuMs: 1_000 },
  });
  mcp = await new McpProcess(config, { PATH: process.env["PATH"] ?? "", SECRET: "of the parent" }).open();
});
afterAll(async () => {
  await mcp.close();
  folder.remove();
});

describe("what a client sees", () => {
  test("is three tools with schemas, and the types of all others in a description", async () => {
    const { tools } = await mcp.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["execute", "resume", "search"]);
    for (const { outputSchema, inputSchema } of tools) {
      expect(outputSchema?.type).toBe("object");
      expect(inputSchema["additionalProperties"]).toBe(false);
    }
    const description = tools[0]?.description ?? "";
    expect(description).toContain("declare namespace files");
    expect(description).toContain("function get_sum(");
    expect(description).toContain("20 seconds");
    expect(description.length).toBeLessThanOrEqual(4 * 8_000);
    expect(mcp.client.getInstructions()).toContain("execute");
    expect(mcp.client.getServerVersion()).toMatchObject({ name: "flowcell" });
  });

  test("search finds tools by words, with their types", async () => {
    const result = await mcp.call("search", { query: "read a text file", limit: 3 });
    const { hits, tools } = result.structuredContent as { hits: Record<string, unknown>[]; tools: number }; // the client has checked it
    expect(hits).toHaveLength(3);
    expect(hits[0]).toMatchObject({ name: "files.read_text_file", needsApproval: false });
    expect(String(hits[0]?.["declaration"])).toContain("function read_text_file(input: {");
    expect(tools).toBeGreaterThan(40);
    expect(textOf(result)).toContain("read_text_file");
    expect(textOf(await mcp.call("search", { query: "zzzzqqq" }))).toContain("try others");
  });

  test.each([
    ["excute", {}, /unknown tool "excute": did you mean execute\?/],
    ["execute", {}, /execute: code must be a text/],
    ["execute", { code: 1 }, /execute: code must be a text/],
    ["execute", { script: "1" }, /unknown key "script": did you mean code\?/],
    ["search", { query: "x", limit: 0 }, /limit must be a whole number from 1 to 50/],
    ["resume", { runId: "r" }, /answers must be a list of 1 to 1000/],
    ["resume", { runId: "r", answers: [] }, /answers must be a list of 1 to 1000/],
    ["resume", { runId: "r", answers: [{ callId: "c" }] }, /answers\[0\]: approve must be true or false/],
    ["resume", { runId: "r", answers: [{ callId: "c", approved: true }] }, /did you mean approve\?/],
  ])("%s with %j is an error of the protocol", async (name, args, message) => {
    const failure = await mcp.call(name, args).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: -32602, message: expect.stringMatching(message) });
    expect(await mcp.valueOf("1 + 1")).toBe(2);
  });
});

describe("scripts", () => {
  test("call tools of several servers at once", async () => {
    const result = await mcp.call("execute", {
      code: `const [a, b, sum] = await Promise.all([
        files.read_text_file({ path: ${JSON.stringify(folder.file("data/a.txt"))} }),
        files.read_text_file({ path: ${JSON.stringify(folder.file("data/b.txt"))} }),
        everything.get_sum({ a: 2, b: 3 }),
      ]);
      console.log("read", a.content);
      return { texts: [a.content, b.content], sum };`,
    });
    const { value, logs, calls, confinement } = structuredOf(result);
    expect(value).toEqual({ texts: ["first", "second"], sum: "The sum of 2 and 3 is 5." });
    expect(logs).toMatchObject([{ level: "log", text: "read first" }]);
    expect(calls.map(({ name, state }) => `${name} ${state}`)).toEqual([
      "files.read_text_file done",
      "files.read_text_file done",
      "everything.get_sum done",
    ]);
    expect(confinement?.layers.length).toBeGreaterThan(3);
    expect(JSON.parse(textOf(result))).toEqual({
      ok: true,
      status: "completed",
      value,
      logs: ["read first"],
    });
  });

  test("have effects", async () => {
    const path = folder.file("data/new.txt");
    expect(existsSync(path)).toBe(false);
    await mcp.execute(`await files.write_file({ path: ${JSON.stringify(path)}, content: "made" })`);
    expect(readFileSync(path, "utf8")).toBe("made");
  });

  test("that fail are results with isError, their line and what they called", async () => {
    const result = await mcp.call("execute", {
      code: "await odd.add({ a: 1, b: 1 });\nthrow new RangeError('too far');",
    });
    expect(result.isError).toBe(true);
    expect(structuredOf(result)).toMatchObject({
      ok: false,
      status: "script_error",
      error: { name: "RangeError", message: "too far", place: { line: 2 } },
    });
    expect(JSON.parse(textOf(result))).toMatchObject({ calls: ["odd.add done"] });
    const syntax = await mcp.call("execute", { code: "return (" });
    expect(syntax.isError).toBe(true);
    expect(structuredOf(syntax).calls).toEqual([]);
  });

  test("that reach a limit say which", async () => {
    const { error, status } = await mcp.execute("for (;;);");
    expect([status, error?.code]).toEqual(["budget_exceeded", "cpu"]);
  });

  test("may be TypeScript in a fence", async () => {
    expect(await mcp.valueOf("```ts\nconst n: number = 4;\nn\n```")).toBe(4);
  });
});

describe("results of tools", () => {
  test("are unwrapped: structured content, one JSON text, texts, nothing", async () => {
    expect(await mcp.valueOf("await odd.add({ a: 1, b: 2 })")).toEqual({ sum: 3 });
    expect(await mcp.valueOf("await odd.list()")).toEqual([1, 2]);
    expect(await mcp.valueOf("await odd.number()")).toBe("1.10");
    expect(await mcp.valueOf("await odd.texts()")).toBe("one\ntwo");
    expect(await mcp.valueOf("typeof await odd.nothing()")).toBe("undefined");
    expect(
      await mcp.valueOf("await everything.get_structured_content({ location: 'Chicago' })"),
    ).toMatchObject({ humidity: expect.any(Number) });
  });

  test("that are errors are thrown with their text, and can be caught", async () => {
    for (const [call, message] of [
      ["odd.fails()", "it is /etc/late"],
      ["odd.fails_mutely()", "the tool failed and said nothing"],
      ["odd.refuses()", "no such thing"],
    ] as const)
      expect(await mcp.valueOf(`try { await ${call} } catch (e) { return [e.code, e.message] }`)).toEqual([
        "upstream",
        message,
      ]);
    const outside = folder.file("outside.txt");
    symlinkSync("/etc/passwd", outside);
    const { ok, error } = await mcp.execute(
      `await files.read_text_file({ path: ${JSON.stringify(outside)} })`,
    );
    expect(ok).toBe(false);
    expect(error?.message).toContain("outside allowed directories");
  });

  test("are checked: inputs before a call, structured content after it", async () => {
    const caught = (call: string): string =>
      `try { await ${call} } catch (e) { return e.code + ' ' + e.message }`;
    expect(await mcp.valueOf(caught("odd.add({ a: 1 })"))).toMatch(/^invalid_arguments odd\.add: .*b/);
    expect(await mcp.valueOf(caught("odd.broken()"))).toMatch(/outputSchema does not allow.*n/);
  });

  test("that hold images give them to the script and once to the client", async () => {
    const result = await mcp.call("execute", {
      code: "const shot = await everything.get_tiny_image(); console.log(shot.content[0].data.length > 1000); return shot;",
    });
    const image = result.content.find(({ type }) => type === "image");
    expect(image).toMatchObject({ mimeType: "image/png", data: expect.stringMatching(/^iVBOR/) });
    expect(structuredOf(result)).toMatchObject({
      value: { text: expect.any(String), content: [{ type: "image", data: "[attachment 0]" }] },
      logs: [{ text: "true" }],
      attachments: [{ type: "image", mimeType: "image/png" }],
    });
  });

  test("that hold other content keep it", async () => {
    const result = await mcp.call("execute", { code: "return await odd.link()" });
    expect(structuredOf(result).value).toEqual({
      content: [{ type: "resource_link", uri: "note://1", name: "first" }],
    });
    expect(result.content[1]).toMatchObject({ type: "resource_link", uri: "note://1" });
  });
});

describe("sizes", () => {
  test("a large value is whole in structured content and cut in the text, which says so", async () => {
    const result = await mcp.call("execute", { code: "return (await odd.large({ chars: 200000 }))" });
    expect(String(structuredOf(result).value)).toHaveLength(200_000);
    expect(textOf(result).length).toBeLessThan(26_000);
    expect(String(JSON.parse(textOf(result)).value)).toMatch(
      /^x+… \(cut here, \d+ more characters; return less\)$/,
    );
  });

  test("more logs than a model should read are cut, and say so", async () => {
    const result = await mcp.call("execute", {
      code: "for (let i = 0; i < 400; i++) console.log('x'.repeat(50))",
    });
    expect(structuredOf(result).logs).toHaveLength(400);
    expect(JSON.parse(textOf(result)).logs.at(-1)).toMatch(/more lines; log less/);
  });

  test("a result beyond the limit of values fails its call", async () => {
    const { status, error } = await mcp.execute("await odd.large({ chars: 24 * 1024 * 1024 })");
    expect([status, error?.code]).toEqual(["script_error", "result_too_large"]);
  });

  test("pictures without room are counted", async () => {
    const result = await mcp.call("execute", {
      code: "for (let i = 0; i < 20; i++) await odd.picture(); return 1",
    });
    expect(result.content.filter(({ type }) => type === "image")).toHaveLength(16);
    expect(structuredOf(result).warnings).toMatchObject([{ code: "attachments", message: /^4 attachments/ }]);
  });
});

describe("servers", () => {
  test("get PATH, HOME and what the configuration gives, and start in the file's folder", async () => {
    const env = (await mcp.valueOf("await odd.env()")) as Record<string, string>; // of the fixture
    expect(Object.keys(env).sort()).toEqual(["GIVEN", "HOME", "PATH"]);
    expect(await mcp.valueOf("await odd.cwd()")).toBe(folder.path);
  });

  test("whose tools cannot be told apart lose those, and the operator is told", async () => {
    expect(await mcp.valueOf("await odd.odd_name()")).toBe("odd");
    expect(mcp.err).toContain('the tool "odd.name" of odd is left out: "odd-name" is odd.odd_name already');
    expect(mcp.err).toMatch(/the tool "constructor" of odd is left out/);
    expect(await mcp.valueOf("typeof odd.constructor")).not.toBe("string");
  });

  test("that write what is no message go on", async () => {
    expect(await mcp.valueOf("await odd.noise()")).toBe("quiet again");
  });
});
