// Approvals end to end: the real AI SDK with its mock model, two turns and more, scripts in real workers, a store that outlives them.
import { MemoryStore } from "@flowcell/journal";
import { generateText, type ModelMessage, stepCountIs, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { afterEach, expect, test } from "vitest";
import { z } from "zod";
import {
  type CodemodeOutput,
  type CodemodeTool,
  codemodeTool,
} from "../../packages/codemode/src/adapters/ai.js";

const opened: CodemodeTool[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((one) => one.close()));
});

type Options = Parameters<typeof codemodeTool>[0];

class World {
  readonly listed: number[] = [];
  readonly sent: { to: string; toolCallId: string; user: unknown }[] = [];

  async tool(more: Partial<Options> = {}): Promise<CodemodeTool> {
    const made = await codemodeTool({ ...more, tools: this.#tools() });
    opened.push(made);
    return made;
  }

  #tools(): Options["tools"] {
    return {
      list: tool({
        inputSchema: z.object({}),
        execute: async () => {
          this.listed.push(1);
          return ["ada", "bob", "me"];
        },
      }),
      send: tool({
        description: "Sends a mail",
        inputSchema: z.object({ to: z.string() }),
        needsApproval: ({ to }) => to !== "me",
        execute: async ({ to }, { toolCallId, experimental_context }) => {
          this.sent.push({ to, toolCallId, user: experimental_context });
          return `sent to ${to}`;
        },
      }),
    };
  }
}

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** Writes the script, goes on whenever a result says how, and ends with what it read last. */
function model(code: string, calls: { n: number }): MockLanguageModelV3 {
  return new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      const read = prompt.flatMap(({ role, content }) =>
        role === "tool" ? content.map((part) => ("output" in part ? part.output : undefined)) : [],
      );
      const last = read.at(-1);
      const text = last !== undefined && "value" in last ? String(last.value) : JSON.stringify(last);
      const resume = /"resume":"([^"]+)"/.exec(text ?? "")?.[1];
      const input = last === undefined ? { code } : resume === undefined ? undefined : { resume };
      const part =
        input === undefined
          ? { type: "text" as const, text: `read: ${text}` }
          : {
              type: "tool-call" as const,
              toolCallId: `c${calls.n++}`,
              toolName: "codemode",
              input: JSON.stringify(input),
            };
      return {
        content: [part],
        finishReason: { unified: input === undefined ? "stop" : "tool-calls", raw: undefined },
        usage,
        warnings: [],
      };
    },
  });
}

interface Turn {
  readonly text: string;
  readonly outputs: readonly CodemodeOutput[];
  readonly approvalId: string | undefined;
  /** What the person is shown. */
  readonly pending: CodemodeOutput["pending"] | undefined;
}

/** One conversation; each turn adds to it. */
function conversation(code: string) {
  const messages: ModelMessage[] = [{ role: "user", content: "do it" }];
  const calls = { n: 0 };
  return async (
    codemode: CodemodeTool,
    answer?: { approvalId: string; approved: boolean },
  ): Promise<Turn> => {
    if (answer !== undefined)
      messages.push({ role: "tool", content: [{ type: "tool-approval-response", ...answer }] });
    const result = await generateText({
      model: model(code, calls),
      tools: { codemode },
      stopWhen: stepCountIs(6),
      messages,
      experimental_context: "u1",
    });
    messages.push(...result.response.messages);
    const request = result.content.find((part) => part.type === "tool-approval-request");
    const outputs = result.steps.flatMap(({ toolResults }) =>
      toolResults.flatMap((one) => (one.dynamic === true ? [] : [one.output])),
    );
    const asked = request?.toolCall.dynamic === true ? undefined : request?.toolCall.input.resume;
    const pending = codemode.pendingOf(asked ?? "");
    return { text: result.text, outputs, approvalId: request?.approvalId, pending };
  };
}

const sendAll = `const names = await tools.list({});
return await Promise.all(names.map((to) => tools.send({ to })));`;

test("a script stops at what needs approval, and goes on in the next turn once a person said yes", async () => {
  const world = new World();
  const codemode = await world.tool();
  const turn = conversation(sendAll);

  const first = await turn(codemode);
  expect(first.outputs).toMatchObject([
    {
      ok: false,
      status: "suspended",
      pending: [
        { name: "tools.send", args: [{ to: "ada" }] },
        { name: "tools.send", args: [{ to: "bob" }] },
      ],
    },
  ]);
  expect(world.sent.map(({ to }) => to)).toEqual(["me"]);

  const second = await turn(codemode, { approvalId: first.approvalId ?? "", approved: true });
  expect(second.text).toBe('read: ["sent to ada","sent to bob","sent to me"]');
  expect(world.sent.map(({ to }) => to).sort()).toEqual(["ada", "bob", "me"]);
  expect(world.sent.map(({ user }) => user)).toEqual(["u1", "u1", "u1"]);
  expect(world.listed).toEqual([1]);
});

test("what a person refuses is not done, and the program can end the script with the reason", async () => {
  const world = new World();
  const codemode = await world.tool();
  const turn = conversation(
    `try { return await tools.send({ to: "ada" }); } catch (error) { return error.message; }`,
  );
  const first = await turn(codemode);
  const second = await turn(codemode, { approvalId: first.approvalId ?? "", approved: false });
  expect(second.text).toContain("execution-denied");
  expect(world.sent).toEqual([]);

  const resume = first.outputs[0]?.resume ?? "";
  const ended = await codemode.answer(resume, false, "never on Sundays");
  expect(ended).toMatchObject({ ok: true, pending: [] });
  expect(ended.value).toContain("never on Sundays");
  expect(await codemode.answer(resume, false, "never on Sundays")).toMatchObject({
    ok: true,
    value: ended.value,
  });
  expect(world.sent).toEqual([]);
});

test("an approval is for the calls that it named: the next ones are asked about again", async () => {
  const world = new World();
  const codemode = await world.tool();
  const turn = conversation(
    `const one = await tools.send({ to: "ada" }); return [one, await tools.send({ to: "bob" })];`,
  );
  const first = await turn(codemode);
  const second = await turn(codemode, { approvalId: first.approvalId ?? "", approved: true });
  expect(world.sent.map(({ to }) => to)).toEqual(["ada"]);
  expect(second.pending).toMatchObject([{ name: "tools.send", args: [{ to: "bob" }] }]);
  const third = await turn(codemode, { approvalId: second.approvalId ?? "", approved: true });
  expect(third.text).toBe('read: ["sent to ada","sent to bob"]');
  expect(world.sent.map(({ to }) => to)).toEqual(["ada", "bob"]);
});

test("the answer may come after a restart, when there is a store", async () => {
  const world = new World();
  const store = new MemoryStore();
  const before = await world.tool({ store });
  const turn = conversation(sendAll);
  const first = await turn(before);
  await before.close();

  const after = await world.tool({ store });
  const second = await turn(after, { approvalId: first.approvalId ?? "", approved: true });
  expect(second.text).toBe('read: ["sent to ada","sent to bob","sent to me"]');
  expect(world.sent.map(({ to }) => to).sort()).toEqual(["ada", "bob", "me"]);
  expect(world.listed).toEqual([1]);
});

test("a program may ask in a way of its own", async () => {
  const world = new World();
  const codemode = await world.tool();
  const output = await codemode.execute({ code: sendAll }, { toolCallId: "c", messages: [] });
  expect(output.status).toBe("suspended");
  const done = await codemode.answer(output.resume ?? "", true);
  expect(done).toMatchObject({ ok: true, value: ["sent to ada", "sent to bob", "sent to me"] });
});
