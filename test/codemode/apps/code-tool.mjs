// An application of @cloudflare/codemode as its users write it: createCodeTool in the AI SDK, a mock model, flowcell as executor.
// Prints as JSON what the program and the model got. Run with the loader, by cloudflare-package.test.ts.
import { aiTools, createCodeTool } from "@cloudflare/codemode/ai";
import { FlowcellExecutor } from "@flowcell/flowcell/cloudflare";
import { generateText, stepCountIs, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { z } from "zod";

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const say = (content, unified) => ({
  content,
  finishReason: { unified, raw: undefined },
  usage,
  warnings: [],
});
const calls = (code, n) =>
  say(
    [{ type: "tool-call", toolCallId: `c${n}`, toolName: "codemode", input: JSON.stringify({ code }) }],
    "tool-calls",
  );

const tools = {
  "get-weather": tool({
    description: "Weather of a city",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => ({ city, celsius: city.length }),
  }),
  dangerous: tool({ inputSchema: z.object({}), needsApproval: true, execute: async () => "done" }),
};
const db = { name: "db", tools: { rows: { description: "Rows", execute: async () => [1, 2, 3] } } };

const model = new MockLanguageModelV3({
  doGenerate: [
    calls(
      `async () => {
        console.log("asking");
        const all = await Promise.all(["Rome", "Oslo!"].map((city) => codemode.get_weather({ city })));
        return { warmest: all.at(-1).city, rows: await db.rows({}) };
      }`,
      0,
    ),
    calls("async () => { console.warn('soon'); await codemode.get_weather({ city: 5 }); }", 1),
    calls("const typed: number = 2; enum E { A = 40 }; return typed + E.A;", 2),
    calls("async () => await codemode.dangerous({})", 3),
    say([{ type: "text", text: "done" }], "stop"),
  ],
});
const executor = new FlowcellExecutor();
const codemode = createCodeTool({ tools: [aiTools(tools), db], executor });
const result = await generateText({
  model,
  tools: { codemode },
  stopWhen: stepCountIs(9),
  prompt: "go",
});
const outcomes = result.steps.flatMap(({ content }) =>
  content.flatMap((part) =>
    part.type === "tool-result" ? [part.output] : part.type === "tool-error" ? [String(part.error)] : [],
  ),
);
console.log(JSON.stringify({ text: result.text, outcomes, description: codemode.description }));
// Nothing is closed here: an idle executor must not keep the program alive.
