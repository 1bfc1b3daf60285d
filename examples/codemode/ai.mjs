// One tool of the AI SDK in place of many: the model writes a script that calls them, and a person approves one of its calls.
//   node examples/codemode/ai.mjs
// No network and no key: the SDK's own mock says what a model would. Put a real one in its place.
import { codemodeTool } from "@flowcell/flowcell/ai";
import { generateText, stepCountIs, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { z } from "zod";

const invoices = { 7: { customer: "Ada", cents: 4200 }, 8: { customer: "Bob", cents: 100 } };
const tools = {
  findInvoices: tool({
    description: "Numbers of unpaid invoices",
    inputSchema: z.object({}),
    execute: async () => Object.keys(invoices).map(Number),
  }),
  getInvoice: tool({
    description: "One invoice",
    inputSchema: z.object({ number: z.number() }),
    execute: async ({ number }) => invoices[number],
  }),
  sendReminder: tool({
    description: "Sends a customer a mail",
    inputSchema: z.object({ customer: z.string(), text: z.string() }),
    needsApproval: true,
    execute: async ({ customer }) => `sent to ${customer}`,
  }),
};

const codemode = await codemodeTool({ tools });
const options = { tools: { codemode }, stopWhen: stepCountIs(5) };
const messages = [{ role: "user", content: "Remind whoever owes more than 10 euros." }];

// The first turn: the script stops at the call that needs approval, and the SDK asks the program.
const first = await generateText({ ...options, model: firstModel(), messages });
const request = first.content.find(({ type }) => type === "tool-approval-request");
for (const { name, args } of codemode.pendingOf(request.toolCall.input.resume))
  console.log("approve?", name, JSON.stringify(args));

// The second turn: the person said yes, and the script goes on where it stopped.
messages.push(...first.response.messages, {
  role: "tool",
  content: [{ type: "tool-approval-response", approvalId: request.approvalId, approved: true }],
});
const second = await generateText({ ...options, model: secondModel(), messages });
console.log(second.response.messages.find(({ role }) => role === "tool")?.content[0].output.value);
console.log(second.text);
await codemode.close();

// ------------------------------------------------------------------------------------------------ what a model would say

function firstModel() {
  const code = `
    const numbers = await tools.findInvoices({});
    const invoices = await Promise.all(numbers.map((number) => tools.getInvoice({ number })));
    const due = invoices.filter(({ cents }) => cents > 1000);
    return Promise.all(due.map(({ customer }) => tools.sendReminder({ customer, text: "Please pay" })));`;
  return new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      const [result] = prompt.flatMap(({ role, content }) => (role === "tool" ? content : []));
      const resume = /"resume":"([^"]+)"/.exec(result?.output.value ?? "")?.[1];
      return calls(resume === undefined ? { code } : { resume });
    },
  });
}

function secondModel() {
  return new MockLanguageModelV3({ doGenerate: [says("Ada was reminded.")] });
}

function calls(input) {
  const call = { type: "tool-call", toolCallId: crypto.randomUUID(), toolName: "codemode" };
  return answer({ ...call, input: JSON.stringify(input) }, "tool-calls");
}

function says(text) {
  return answer({ type: "text", text }, "stop");
}

function answer(part, unified) {
  const tokens = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0, text: 1, reasoning: 0 };
  const usage = { inputTokens: tokens, outputTokens: tokens };
  return { content: [part], finishReason: { unified, raw: undefined }, usage, warnings: [] };
}
