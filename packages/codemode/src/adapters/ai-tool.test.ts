// Approvals in the AI SDK: its own loop with its mock model, two turns, over scripts that only say that they suspend. The same with
// real scripts is in test/codemode/ai-approval.test.ts.
import { notStarted } from "@flowcell/bundle";
import { generateText, type ModelMessage, stepCountIs } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { describe, expect, test } from "vitest";
import type { ExecuteResult } from "../result.js";
import { parseResume, resumeText } from "./ai-resume.js";
import { type Approval, type ScriptTool, scriptTool } from "./ai-tool.js";

const pending = [
  { callId: "call_one", name: "tools.sendMail", args: [{ to: "ada@example.org", at: new Date(0) }] },
  { callId: "call_two", name: "tools.sendMail", args: [{ to: "bob@example.org" }] },
];
const suspended: ExecuteResult = {
  ...notStarted("run_1", "suspended", { code: "waiting", message: "waits for approvals" }),
  pending,
};
const { error: _none, ...report } = notStarted("run_1", "suspended", { code: "waiting", message: "" });
const completed: ExecuteResult = { ...report, ok: true, status: "completed", value: "both sent" };

interface Watched {
  readonly tool: ScriptTool;
  readonly resumed: { runId: string; answers: readonly Approval[] }[];
}

function watched(): Watched {
  const resumed: Watched["resumed"] = [];
  const tool = scriptTool({
    description: "Runs a script",
    modelCharsMax: 2000,
    execute: async () => suspended,
    resume: async (runId, answers) => {
      resumed.push({ runId, answers });
      return completed;
    },
    outerCalls: new Map(),
  });
  return { tool, resumed };
}

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

function model(...steps: readonly (object | string)[]): MockLanguageModelV3 {
  return new MockLanguageModelV3({
    doGenerate: steps.map((step, n) => ({
      content:
        typeof step === "string"
          ? [{ type: "text", text: step }]
          : [{ type: "tool-call", toolCallId: `c${n}`, toolName: "codemode", input: JSON.stringify(step) }],
      finishReason: { unified: typeof step === "string" ? "stop" : "tool-calls", raw: undefined },
      usage,
      warnings: [],
    })),
  });
}

function read(mock: MockLanguageModelV3): unknown[] {
  const prompt = mock.doGenerateCalls.at(-1)?.prompt ?? [];
  return prompt.flatMap((message) =>
    message.role === "tool" ? message.content.map((part) => ("output" in part ? part.output : part)) : [],
  );
}

const resume = "run_1 call_one call_two";

/** The first turn: the script suspends, the model asks to go on, the SDK asks the program. */
async function firstTurn(tool: ScriptTool): Promise<{ messages: ModelMessage[]; approvalId: string }> {
  const mock = model({ code: "send both" }, { resume });
  const question: ModelMessage = { role: "user", content: "send them" };
  const result = await generateText({
    model: mock,
    tools: { codemode: tool },
    stopWhen: stepCountIs(5),
    messages: [question],
  });
  const [first] = read(mock);
  expect(first).toMatchObject({ type: "text" });
  expect(JSON.stringify(first)).toContain(resume);
  expect(JSON.stringify(first)).toContain("ada@example.org");
  const [request] = result.content.filter((part) => part.type === "tool-approval-request");
  expect(request?.toolCall).toMatchObject({ toolName: "codemode", input: { resume } });
  // What the program shows to the person: the host's own record of the calls, found by the same text.
  expect(result.steps[0]?.toolResults[0]?.output).toMatchObject({
    status: "suspended",
    resume,
    pending: [
      { name: "tools.sendMail", args: [{ to: "ada@example.org", at: "1970-01-01T00:00:00.000Z" }] },
      { name: "tools.sendMail" },
    ],
  });
  return { messages: [question, ...result.response.messages], approvalId: request?.approvalId ?? "" };
}

describe("a script that needs approval", () => {
  test("goes on in the next turn with exactly the calls that were shown", async () => {
    const { tool, resumed } = watched();
    const { messages, approvalId } = await firstTurn(tool);
    expect(resumed).toEqual([]);
    const mock = model("sent");
    const result = await generateText({
      model: mock,
      tools: { codemode: tool },
      stopWhen: stepCountIs(5),
      messages: [
        ...messages,
        { role: "tool", content: [{ type: "tool-approval-response", approvalId, approved: true }] },
      ],
    });
    expect(result.text).toBe("sent");
    expect(resumed).toEqual([
      {
        runId: "run_1",
        answers: [
          { callId: "call_one", approve: true },
          { callId: "call_two", approve: true },
        ],
      },
    ]);
    expect(read(mock).at(-1)).toEqual({ type: "text", value: "both sent" });
  });

  test("does not go on when the person says no, and the model is told", async () => {
    const { tool, resumed } = watched();
    const { messages, approvalId } = await firstTurn(tool);
    const mock = model("understood");
    await generateText({
      model: mock,
      tools: { codemode: tool },
      stopWhen: stepCountIs(5),
      messages: [
        ...messages,
        {
          role: "tool",
          content: [{ type: "tool-approval-response", approvalId, approved: false, reason: "not now" }],
        },
      ],
    });
    expect(resumed).toEqual([]);
    expect(read(mock).at(-1)).toMatchObject({ type: "execution-denied" });
  });

  test("is never asked about for code", async () => {
    const { tool } = watched();
    expect(tool.needsApproval?.({ code: "anything" })).toBe(false);
    expect(tool.needsApproval?.({ resume })).toBe(true);
  });
});

describe("the text to go on with", () => {
  test("is read back as it was written", () => {
    expect(parseResume(resumeText("run_1", pending))).toEqual({
      runId: "run_1",
      callIds: ["call_one", "call_two"],
    });
  });

  test.each(["", "run_1", "run_1 ../../x", `run_1 ${"x".repeat(300)}`, "run_1 {}"])("%j is none", (text) => {
    expect(parseResume(text)).toBeUndefined();
  });

  test("is refused by the schema when no result gave it, or beside code", () => {
    const { tool } = watched();
    const check = tool.inputSchema["~standard"].validate;
    expect(check({ resume: "go on!" })).toMatchObject({
      issues: [{ message: expect.stringContaining("unchanged") }],
    });
    expect(check({ resume, code: "1" })).toMatchObject({
      issues: [{ message: expect.stringContaining("not both") }],
    });
    expect(check({ resume, code: "" })).toEqual({ value: { resume } });
    expect(check({ code: "1", resume: "" })).toEqual({ value: { code: "1" } });
  });
});
