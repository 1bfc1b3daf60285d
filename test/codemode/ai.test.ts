// One tool of the AI SDK in place of many: the real package with its mock model, scripts in real workers.
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { convertArrayToReadableStream, MockLanguageModelV3 } from "ai/test";
import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import {
  type CodemodeOutput,
  type CodemodeTool,
  codemodeTool,
} from "../../packages/codemode/src/adapters/ai.js";

const opened: CodemodeTool[] = [];
afterAll(() => Promise.all(opened.map((one) => one.close())));

async function make(...args: Parameters<typeof codemodeTool>): Promise<CodemodeTool> {
  const made = await codemodeTool(...args);
  opened.push(made);
  return made;
}

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

type Step = { readonly input: unknown } | { readonly text: string };

/** A model that says these things one after the other. */
function model(...steps: readonly Step[]): MockLanguageModelV3 {
  return new MockLanguageModelV3({
    doGenerate: steps.map((step, n) => ({
      content:
        "text" in step
          ? [{ type: "text", text: step.text }]
          : [
              {
                type: "tool-call",
                toolCallId: `call_${n}`,
                toolName: "codemode",
                input: JSON.stringify(step.input),
              },
            ],
      finishReason: { unified: "text" in step ? "stop" : "tool-calls", raw: undefined },
      usage,
      warnings: [],
    })),
  });
}

/** What the model read of its calls, the last one first in time. */
function seen(mock: MockLanguageModelV3): unknown[] {
  const prompt = mock.doGenerateCalls.at(-1)?.prompt ?? [];
  return prompt.flatMap((message) =>
    message.role === "tool"
      ? message.content.map((part) => (part.type === "tool-result" ? part.output : part))
      : [],
  );
}

const weather = tool({
  description: "The weather of a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ city, celsius: city.length }),
});
const lookUp = tool({
  inputSchema: jsonSchema<{ key: string }>({
    type: "object",
    properties: { key: { type: "string" } },
    required: ["key"],
  }),
  execute: ({ key }) => `value of ${key}`,
});

describe("with generateText", () => {
  test("a script calls tools and the model reads its value and its console", async () => {
    const codemode = await make({ tools: { weather, lookUp, add: (a: number, b: number) => a + b } });
    const code = `const cities = await Promise.all(["Rome", "Oslo!"].map((city) => tools.weather({ city })));
      console.log("cities", cities.length);
      const sum: number = await tools.add(1, 2);
      return { warmest: cities[1].city, sum, looked: await tools.lookUp({ key: "k" }) };`;
    const mock = model({ input: { code } }, { text: "done" });
    const result = await generateText({
      model: mock,
      tools: { codemode },
      stopWhen: stepCountIs(4),
      prompt: "go",
    });
    expect(result.text).toBe("done");
    expect(seen(mock)).toEqual([
      {
        type: "text",
        value: '{"warmest":"Oslo!","sum":3,"looked":"value of k"}\n\nConsole:\ncities 2',
      },
    ]);
    const output = result.steps[0]?.toolResults[0]?.output as CodemodeOutput; // the one tool there is
    expect(output).toMatchObject({
      ok: true,
      status: "completed",
      value: { sum: 3 },
      calls: [
        { name: "tools.weather" },
        { name: "tools.weather" },
        { name: "tools.add" },
        { name: "tools.lookUp" },
      ],
    });
    expect(output.confinement).not.toBeNull();
    // What the SDK stores and sends.
    expect(JSON.parse(JSON.stringify(output))).toEqual(output);
  });

  test("the model is given the types, and an input schema without resume", async () => {
    const codemode = await make({ tools: { weather, mail: { send: lookUp } } });
    const mock = model({ text: "nothing" });
    await generateText({ model: mock, tools: { codemode }, prompt: "go" });
    const [given] = mock.doGenerateCalls[0]?.tools ?? [];
    expect(given).toMatchObject({
      type: "function",
      name: "codemode",
      inputSchema: {
        properties: { code: { type: "string" } },
        required: ["code"],
        additionalProperties: false,
      },
    });
    const description = given?.type === "function" ? (given.description ?? "") : "";
    expect(description).toContain("The weather of a city.");
    expect(description).toMatch(/city: string/);
    expect(description).toMatch(/mail/);
    expect(JSON.stringify(given)).not.toContain("resume");
  });

  test("the types keep to their budget", async () => {
    const tools = Object.fromEntries(
      Array.from({ length: 300 }, (_, n) => [`tool${n}`, { ...weather, description: "x".repeat(200) }]),
    );
    const codemode = await make({ tools, prompt: { tokensMax: 1000, template: "Short. {{types}}" } });
    expect(codemode.description.startsWith("Short.")).toBe(true);
    expect(codemode.description.length).toBeLessThan(4100);
  });

  test("an error is read with the script's lines and the calls that were made", async () => {
    const codemode = await make({ tools: { weather } });
    const code = `await tools.weather({ city: "Rome" });\nconst rows = null;\nreturn rows.length;`;
    const mock = model({ input: { code } }, { text: "ok" });
    const result = await generateText({
      model: mock,
      tools: { codemode },
      stopWhen: stepCountIs(3),
      prompt: "go",
    });
    const [output] = seen(mock) as [{ type: string; value: string }]; // one call was made
    expect(output.type).toBe("error-text");
    expect(output.value).toContain("TypeError");
    expect(output.value).toContain("script.js:3:");
    expect(output.value).toContain("return rows.length;");
    expect(output.value).toContain("tools.weather done");
    expect(result.steps[0]?.toolResults[0]?.output).toMatchObject({ ok: false, status: "script_error" });
  });

  test("an input that the tool's schema refuses fails in the script, and never reaches the tool", async () => {
    let calls = 0;
    const counted = tool({ inputSchema: z.object({ n: z.int() }), execute: async () => ++calls });
    const codemode = await make({ tools: { counted } });
    const code = `try { await tools.counted({ n: "one" }); } catch (error) { return error.message; }`;
    const mock = model({ input: { code } }, { text: "ok" });
    await generateText({ model: mock, tools: { codemode }, stopWhen: stepCountIs(3), prompt: "go" });
    expect(JSON.stringify(seen(mock))).toContain("input.n");
    expect(calls).toBe(0);
  });

  test("a tool is told what the SDK would tell it", async () => {
    const told: unknown[] = [];
    const inner = tool({
      inputSchema: z.object({}),
      execute: async (_input, options) => {
        told.push({ ...options, abortSignal: options.abortSignal?.aborted });
        return 1;
      },
    });
    const codemode = await make({ tools: { inner } });
    await generateText({
      model: model({ input: { code: "await tools.inner({}); return tools.inner({});" } }, { text: "ok" }),
      tools: { codemode },
      stopWhen: stepCountIs(3),
      prompt: "who asks",
      experimental_context: { user: "u1" },
    });
    expect(told).toMatchObject([
      { toolCallId: "call_0:0", experimental_context: { user: "u1" }, abortSignal: false },
      { toolCallId: "call_0:1", messages: [{ role: "user" }] },
    ]);
  });

  test("the last result of a tool that yields several counts", async () => {
    const streaming = tool({
      inputSchema: z.object({}),
      async *execute() {
        yield "first";
        yield "last";
      },
    });
    const codemode = await make({ tools: { streaming } });
    const mock = model({ input: { code: "return tools.streaming({})" } }, { text: "ok" });
    await generateText({ model: mock, tools: { codemode }, stopWhen: stepCountIs(3), prompt: "go" });
    expect(seen(mock)).toEqual([{ type: "text", value: "last" }]);
  });

  test("aborting ends the script and aborts its calls", async () => {
    const aborter = new AbortController();
    let innerAborted: (value: unknown) => void = () => {};
    const aborted = new Promise((resolve) => {
      innerAborted = resolve;
    });
    const slow = tool({
      inputSchema: z.object({}),
      execute: (_input, { abortSignal }) =>
        new Promise((_resolve, reject) => {
          abortSignal?.addEventListener("abort", () => {
            innerAborted("aborted");
            reject(new Error("stopped"));
          });
          aborter.abort();
        }),
    });
    const codemode = await make({ tools: { slow } });
    const output = await codemode.execute(
      { code: "return tools.slow({})" },
      { toolCallId: "c", messages: [], abortSignal: aborter.signal },
    );
    expect(output).toMatchObject({ ok: false, status: "cancelled" });
    expect(await aborted).toBe("aborted");
  });

  test("an input that is neither is refused in words for the model", async () => {
    const codemode = await make({ tools: { weather } });
    const mock = model({ input: { js: "return 1" } }, { text: "ok" });
    await generateText({ model: mock, tools: { codemode }, stopWhen: stepCountIs(3), prompt: "go" });
    expect(JSON.stringify(seen(mock))).toContain("unknown key");
  });
});

type StreamOf<T> = T extends { readonly stream: ReadableStream<infer Part> } ? Part : never;
type StreamPart = StreamOf<Awaited<ReturnType<MockLanguageModelV3["doStream"]>>>;

test("works with streamText", async () => {
  const codemode = await make({ tools: { weather } });
  const code = "return (await tools.weather({ city: 'Rome' })).celsius";
  let turn = 0;
  const mock = new MockLanguageModelV3({
    doStream: async () => ({
      stream: convertArrayToReadableStream<StreamPart>(
        turn++ === 0
          ? [
              { type: "tool-call", toolCallId: "s", toolName: "codemode", input: JSON.stringify({ code }) },
              { type: "finish", finishReason: { unified: "tool-calls", raw: undefined }, usage },
            ]
          : [
              { type: "text-start", id: "1" },
              { type: "text-delta", id: "1", delta: "it is 4" },
              { type: "text-end", id: "1" },
              { type: "finish", finishReason: { unified: "stop", raw: undefined }, usage },
            ],
      ),
    }),
  });
  const result = streamText({ model: mock, tools: { codemode }, stopWhen: stepCountIs(3), prompt: "go" });
  expect(await result.text).toBe("it is 4");
  expect((await result.steps)[0]?.toolResults[0]?.output).toMatchObject({ ok: true, value: 4 });
});

describe("what a model reads", () => {
  test.each([
    ["return 'a text'", "a text"],
    ["return new Map([['a', 1n]])", '{"a":"1"}'],
    ["return [new Date(0), new Set([1]), /x/g, NaN]", '["1970-01-01T00:00:00.000Z",[1],"/x/g",null]'],
    ["return new Uint8Array([1, 2])", '{"bytes":2,"base64":"AQI="}'],
    ["const a = {}; a.a = a; return a", '{"a":"[circular]"}'],
    ["", "The script returned nothing. Return what you want to see."],
  ])("%s", async (code, text) => {
    const codemode = await make({ tools: {} });
    const output = await codemode.execute(
      { code: code === "" ? "const x = 1;" : code },
      { toolCallId: "c", messages: [] },
    );
    expect(codemode.toModelOutput({ output })).toEqual({ type: "text", value: text });
  });

  test("is bounded, and says how much there was", async () => {
    const codemode = await make({ tools: {}, modelCharsMax: 1000 });
    const code = "console.log('y'.repeat(5000)); return 'x'.repeat(5000)";
    const output = await codemode.execute({ code }, { toolCallId: "c", messages: [] });
    const { value } = codemode.toModelOutput({ output });
    expect(value.length).toBeLessThan(1200);
    expect(value).toMatch(/x… \(\d+ more characters; return less of it\)/);
    expect(value).toMatch(/y… \(\d+ more characters; log less\)/);
  });
});

describe("options", () => {
  test.each([
    [{ tools: 1 }, "tools must be an object"],
    [{ tools: { a: { description: "d", inputSchema: z.object({}) } } }, '"a" has no execute'],
    [{ tools: { a: { type: "provider", id: "x.y", args: {} } } }, '"a" has no execute'],
    [{ tools: {}, timeout: 1 }, "did you mean limits.wallMs?"],
    [{ tools: {}, modelCharsMax: 1 }, "modelCharsMax"],
    [{ tools: { a: { parameters: {}, execute: () => 1 } } }, "did you mean inputSchema?"],
  ])("%j is refused with what to write instead", async (options, text) => {
    // What a program without types may pass.
    await expect(codemodeTool(options as Parameters<typeof codemodeTool>[0])).rejects.toThrow(text);
  });
});
