/**
 * The tools of the MCP server as it lists them, and their inputs as it reads them. server.ts calls both.
 *
 * TRUST: inputs are a model's. What is wrong with one is an error of the protocol that says what to give instead.
 */

import { didYouMean } from "@flowcell/protocol";
import { ErrorCode, type Tool } from "@modelcontextprotocol/sdk/types.js";
import type { ApprovalAnswer } from "../journal-answers.js";
import { codemodePrompt } from "../prompt.js";
import type { ToolSet } from "../tools.js";
import type { McpConfig } from "./config.js";
import { executeOutput } from "./result-view.js";

export const toolNames = ["execute", "resume", "search"] as const;
export type ToolName = (typeof toolNames)[number];

const answersMost = 1_000;
export const hitsMost = 50;

const more = "Find the others, with their types, by the tool `search`.";

export interface ListedParts {
  /** Servers that are not there, and why. */
  readonly failed: ReadonlyMap<string, string>;
  /** Whether the server asks a person itself, so that `resume` approves nothing. */
  readonly asks: boolean;
}

const failedShown = 10;

/** One line for each server that is not there. The reason is partly the server's own. */
export function notRunning(failed: ReadonlyMap<string, string>): readonly string[] {
  return [...failed]
    .slice(0, failedShown)
    .map(([name, reason]) => `the server ${name} is not running: ${firstLine(reason)}`);
}

function firstLine(text: string): string {
  return (text.split("\n", 1)[0] ?? "").replaceAll(/[{}]/g, "").slice(0, 200);
}

export function listedTools(
  set: ToolSet,
  { promptTokens, limits }: McpConfig,
  { failed, asks }: ListedParts,
): Tool[] {
  const head = "Runs one script that calls tools, so that many calls, loops and filters take one turn.";
  const approval = set.tools.some(({ needsApproval }) => needsApproval !== false)
    ? asks
      ? "\n- Some calls need a person's approval: the person is asked, and a refused call fails with `denied`."
      : "\n- Some calls need a person's approval: the result is then `suspended`, says which, and `resume` goes on."
    : "";
  const missing = notRunning(failed).map((line) => `\n- Now ${line}`);
  const template = `${head}\n{{rules}}${approval}${missing.join("")}\n\n{{types}}`;
  return [
    {
      name: "execute",
      title: "Run a script",
      description: codemodePrompt(set, { template, limits, more, tokensMax: promptTokens }),
      inputSchema: {
        type: "object",
        properties: {
          code: {
            type: "string",
            description: "The script: the body of an async function, JavaScript or TypeScript",
          },
        },
        required: ["code"],
        additionalProperties: false,
      },
      outputSchema: executeOutput,
      annotations: { readOnlyHint: set.tools.every(({ effect }) => effect === "read"), openWorldHint: true },
    },
    asks ? resumeByPerson : resumeByAnswers,
    {
      name: "search",
      title: "Find tools for a script",
      description:
        "Finds tools that scripts can call, by words of their names, descriptions and inputs, and shows how each is called, as TypeScript.",
      inputSchema: {
        type: "object",
        properties: {
          query: { type: "string", description: "Words, such as: create an issue" },
          limit: { type: "integer", minimum: 1, maximum: hitsMost, description: "Default 10" },
        },
        required: ["query"],
        additionalProperties: false,
      },
      outputSchema: searchOutput,
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
  ];
}

const resumeByAnswers: Tool = {
  name: "resume",
  title: "Answer a suspended script",
  description:
    "Goes on with a script whose result was `suspended`: give its runId and, for calls of its `pending`, what a person decided. " +
    "Never approve what no person has approved. The same answer again gives the same result.",
  inputSchema: {
    type: "object",
    properties: {
      runId: { type: "string", description: "Of the suspended result" },
      answers: {
        type: "array",
        minItems: 1,
        maxItems: answersMost,
        items: {
          type: "object",
          properties: {
            callId: { type: "string", description: "Of a pending call" },
            approve: { type: "boolean" },
            value: { description: "With a refusal: the reason, which the script is told" },
          },
          required: ["callId", "approve"],
          additionalProperties: false,
        },
      },
    },
    required: ["runId", "answers"],
    additionalProperties: false,
  },
  outputSchema: executeOutput,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
};

const resumeByPerson: Tool = {
  name: "resume",
  title: "Ask again for a suspended script",
  description:
    "Goes on with a script whose result was `suspended`: the person is asked again about the calls that wait.",
  inputSchema: {
    type: "object",
    properties: { runId: { type: "string", description: "Of the suspended result" } },
    required: ["runId"],
    additionalProperties: false,
  },
  outputSchema: executeOutput,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
};

const searchOutput = {
  type: "object" as const,
  properties: {
    hits: {
      type: "array",
      items: {
        type: "object",
        properties: {
          name: { type: "string", description: "As a script calls it" },
          signature: { type: "string" },
          declaration: { type: "string", description: "TypeScript, with its comments" },
          needsApproval: { type: "boolean" },
        },
        required: ["name", "signature", "declaration", "needsApproval"],
      },
    },
    tools: { type: "integer", description: "How many there are" },
  },
  required: ["hits", "tools"],
};

type Input = Readonly<Record<string, unknown>>;

export function codeOf(input: Input): string {
  only(input, ["code"], "execute");
  return textOf(input, "code", "execute");
}

export function searchOf(input: Input): { readonly query: string; readonly limit: number } {
  only(input, ["query", "limit"], "search");
  const { limit = 10 } = input;
  if (typeof limit !== "number" || !Number.isSafeInteger(limit) || limit < 1 || limit > hitsMost)
    throw wrong("search", `limit must be a whole number from 1 to ${hitsMost}`);
  return { query: textOf(input, "query", "search"), limit };
}

/** Where the server asks the person, an answer of the model is a mistake that must not look like one that counts. */
export function askedAgainOf(input: Input): string {
  if ("answers" in input)
    throw wrong("resume", "a person is asked here, so answers are not taken; give runId alone");
  only(input, ["runId"], "resume");
  return textOf(input, "runId", "resume");
}

export function resumeOf(input: Input): {
  readonly runId: string;
  readonly answers: readonly ApprovalAnswer[];
} {
  only(input, ["runId", "answers"], "resume");
  const { answers } = input;
  if (!Array.isArray(answers) || answers.length === 0 || answers.length > answersMost)
    throw wrong("resume", `answers must be a list of 1 to ${answersMost} { callId, approve }`);
  return { runId: textOf(input, "runId", "resume"), answers: answers.map(answerOf) };
}

function answerOf(given: unknown, index: number): ApprovalAnswer {
  const what = `resume: answers[${index}]`;
  if (typeof given !== "object" || given === null) throw wrong(what, "must be { callId, approve }");
  only(given as Input, ["callId", "approve", "value"], what); // an object of JSON
  const { callId, approve, value }: { callId?: unknown; approve?: unknown; value?: unknown } = given;
  if (typeof callId !== "string" || callId === "") throw wrong(what, "callId must be a text");
  if (typeof approve !== "boolean") throw wrong(what, "approve must be true or false");
  return { callId, approve, ...(value === undefined ? {} : { value }) };
}

function textOf(input: Input, key: string, tool: ToolName): string {
  const value = input[key];
  if (typeof value !== "string") throw wrong(tool, `${key} must be a text`);
  return value;
}

function only(input: Input, known: readonly string[], what: string): void {
  for (const key of Object.keys(input)) {
    if (known.includes(key)) continue;
    const near = foreignKeys.get(key) ?? didYouMean(key, known);
    const hint =
      near !== undefined && known.includes(near) ? `did you mean ${near}?` : `it takes ${known.join(", ")}`;
    throw wrong(what, `unknown key ${JSON.stringify(key.slice(0, 80))}: ${hint}`);
  }
}

const foreignKeys: ReadonlyMap<string, string> = new Map([
  ["js", "code"],
  ["script", "code"],
  ["source", "code"],
  ["executionId", "runId"],
  ["approved", "approve"],
  ["id", "callId"],
  ["q", "query"],
]);

/** An error of the protocol. The SDK's own class would say its code in the message, and clients say it again. */
export class InvalidParams extends Error {
  override readonly name = "InvalidParams";
  readonly code = ErrorCode.InvalidParams;
}

function wrong(what: string, problem: string): InvalidParams {
  return new InvalidParams(`${what}: ${problem}`);
}

export function unknownTool(name: string): InvalidParams {
  const near = didYouMean(name, [...toolNames]);
  const hint = near === undefined ? `the tools are ${toolNames.join(", ")}` : `did you mean ${near}?`;
  return new InvalidParams(`unknown tool ${JSON.stringify(name.slice(0, 80))}: ${hint}`);
}
