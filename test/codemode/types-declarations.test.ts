/** Declarations of tools: every feature of a schema, hostile names and descriptions, and what the two installed servers answer. */

import { fileURLToPath } from "node:url";
import { compactTypes, makeToolSet, toolDeclaration, toolDeclarations, toolSchema } from "@flowcell/codemode";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { serverSchema } from "../../packages/codemode/src/schema.js";
import { typeErrors } from "./types-compiler.js";
import { listedServer } from "./types-servers.js";

const nothing = (): undefined => undefined;

function own(inputSchema: unknown, more: object = {}): object {
  return { inputSchema, execute: nothing, ...more };
}

const features = {
  plain: (a: number, b: number) => a + b,
  bare: { description: "Says nothing of its input.", execute: nothing },
  none: own({ type: "object", properties: {}, additionalProperties: false }),
  optional: own({ type: "object", properties: { a: { type: "string" } } }),
  tree: own(
    {
      type: "object",
      properties: { root: { $ref: "#/definitions/node" }, again: { $ref: "#/definitions/node" } },
      required: ["root"],
      definitions: {
        node: {
          description: "One node.",
          type: "object",
          properties: {
            children: { type: "array", items: { $ref: "#/definitions/node" } },
            up: { $ref: "#/definitions/node" },
          },
          required: ["children"],
        },
      },
    },
    { outputSchema: { type: "object", properties: { next: { $ref: "#" } } } },
  ),
  unions: own({
    type: "object",
    properties: {
      kind: { enum: ["a", "b", null] },
      exact: { const: 5 },
      either: { anyOf: [{ type: "string" }, { type: "array", items: { type: ["number", "null"] } }] },
      both: {
        allOf: [
          { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
          { type: "object", properties: { b: {} } },
        ],
      },
      pair: {
        type: "array",
        items: [{ type: "string" }, { type: "number" }],
        additionalItems: false,
        minItems: 2,
      },
      nullable: { type: "string", nullable: true },
      map: { type: "object", additionalProperties: { type: "number" } },
      when: { type: "string", format: "date-time", description: "When." },
    },
    required: ["kind", "pair"],
  }),
  zod: own(
    z.object({
      at: z.date(),
      tags: z.array(z.enum(["x", "y"])).default([]),
      deep: z.object({ n: z.int().min(1).max(9) }).describe("Deep."),
    }),
    {
      outputSchema: z.object({ id: z.bigint(), seen: z.set(z.string()) }),
      description: "Made with zod.",
      needsApproval: true,
    },
  ),
  "my-tool.v2": own(
    { type: "object", properties: { "odd name": { type: "string" } }, required: ["odd name"] },
    { needsApproval: () => true },
  ),
};

test("every feature of a schema has its type", async () => {
  const set = makeToolSet(features, toolSchema);
  const text = toolDeclarations(set);
  await expect(text).toMatchFileSnapshot(
    fileURLToPath(new URL("./declarations/features.txt", import.meta.url)),
  );
  const script = [
    "async function run(): Promise<void> {",
    "  const sum: unknown = await tools.plain(1, 'two');",
    "  await tools.none();",
    "  await tools.optional();",
    "  await codemode.optional({ a: 'x' });",
    "  const { next } = await tools.tree({ root: { children: [{ children: [] }] } });",
    "  next?.next?.next;",
    "  await tools.unions({ kind: null, pair: ['a', 1], either: [1, null], map: { x: 1 }, nullable: null, both: { a: 'x' } });",
    "  const { id, seen } = await tools.zod({ at: new Date(), deep: { n: 2 } });",
    "  const more: bigint = id + 1n; seen.has('x');",
    "  console.log(sum, more, structuredClone(seen));",
    "  await tools.my_tool_v2({ 'odd name': 'x' });",
    "  // From here on every line is wrong.",
    "  await tools.unions({ kind: 'c', pair: ['a', 1] });",
    "  await tools.unions({ kind: 'a', pair: [1, 'a'] });",
    "  await tools.zod({ at: 'today', deep: { n: 2 } });",
    "  await tools.my_tool_v2({});",
    "  await tools.missing();",
    "}",
    "run();",
  ];
  const errors = await typeErrors({
    "features/types.d.ts": text,
    "features/script.ts": `${script.join("\n")}\nexport {};\n`,
    "each/types.d.ts": set.tools.map((tool) => toolDeclaration(tool)).join(""),
  });
  const lines = errors.map((error) => /script\.ts\((\d+),/.exec(error)?.[1] ?? error);
  expect(lines).toEqual(["14", "15", "15", "16", "17", "18"]);
});

describe("hostile texts", () => {
  const hostileTexts = [
    "*/ } declare const intruder: 1; /*",
    "*\u200b/ declare const intruder: 1; /*",
    "\u2028*/ declare const intruder: 1;",
    "@ts-nocheck",
    "@ts-expect-error",
    '"; declare const intruder: 1; //',
    ["`$", "{intruder}` ```"].join(""),
    "\\u002a/ declare const intruder: 1;",
    "<script>alert(1)</script>",
    "\u202e\u{e0041}hidden\ufe01",
    "\ud800",
    "a\r\nb\u0000c",
    "[key: string]: never; x",
    "x".repeat(100_000),
    "*/".repeat(10_000),
  ];
  const hostileSchema = (text: string) => ({
    type: "object",
    description: text,
    properties: {
      [text]: { type: "string", description: text, format: text, default: text },
      choice: { enum: [text, { [text]: text }] },
      exact: { const: [text] },
      made: { "x-type": text, "x-format": text },
    },
    required: [text],
    $defs: { [text]: { type: "object", description: text, properties: { [text]: { $ref: "#" } } } },
    allOf: [
      {
        properties: {
          deep: {
            $ref: `#/$defs/${encodeURIComponent(
              text
                .replaceAll(/\p{Cs}/gu, "")
                .replaceAll("~", "~0")
                .replaceAll("/", "~1"),
            )}`,
          },
        },
      },
    ],
  });
  const tools = Object.fromEntries(
    hostileTexts.map((text, index) => [
      `t${index}`,
      own(serverSchema(hostileSchema(text), "input").schema, {
        description: text.slice(0, 60_000),
        outputSchema: serverSchema(hostileSchema(text), "output").schema,
      }),
    ]),
  );
  const set = makeToolSet(
    {
      hostile: tools,
      types: Object.fromEntries(contextualNames().map((name) => [name, own({ properties: { a: {} } })])),
    },
    toolSchema,
  );

  test("declare nothing, hide nothing and switch nothing off", async () => {
    const whole = toolDeclarations(set);
    const lines = compactTypes(set, { tokensMax: Math.ceil(whole.length / 4) - 1 });
    expect(lines.form).toBe("lines");
    for (const text of [whole, lines.text, compactTypes(set, { tokensMax: 100 }).text]) {
      expect(text).not.toMatch(/[\p{Cf}\p{Cs}\p{Variation_Selector}\u2028\u2029]|(?!\n)\p{Cc}/u);
    }
    const script = "export const wrong: number = 'text';\nexport const names = [intruder];\n";
    const errors = await typeErrors({
      "whole/types.d.ts": whole,
      "whole/script.ts": script,
      "lines/types.d.ts": lines.text,
      "lines/script.ts": script,
    });
    const codes = errors.map((error) => /error (TS\d+)/.exec(error)?.[1]);
    expect(codes, errors.join("\n")).toEqual(["TS2322", "TS2304", "TS2322", "TS2304"]);
  });

  test("stay within a bound", () => {
    for (const tool of set.tools) expect(toolDeclaration(tool).length).toBeLessThan(60_000);
  });

  test("a schema that asks for a text without end gets a bounded one", () => {
    const $defs: Record<string, object> = { d24: { type: "string" } };
    for (let index = 0; index < 24; index++) {
      const next = { $ref: `#/$defs/d${index + 1}` };
      $defs[`d${index}`] = { type: "object", properties: { a: next, b: next } };
    }
    const { schema } = serverSchema(
      { type: "object", properties: { a: { $ref: "#/$defs/d0" } }, $defs },
      "input",
    );
    const doubling = makeToolSet({ a: own(schema) }, toolSchema);
    expect(toolDeclarations(doubling).length).toBeLessThan(30_000);
    expect(compactTypes(doubling, { tokensMax: 64 }).text.length).toBeLessThanOrEqual(256);
  });
});

/** Words that mean something to TypeScript in some places. */
function contextualNames(): string[] {
  return (
    "any as async bigint boolean declare from get global infer is keyof module namespace never number object of out override " +
    "readonly require set string symbol type undefined_ unique unknown using abstract accessor asserts satisfies Promise Record"
  ).split(" ");
}

describe("the lists of the installed servers", () => {
  const entry = (name: string): string =>
    fileURLToPath(
      new URL(`../../node_modules/@modelcontextprotocol/server-${name}/dist/index.js`, import.meta.url),
    );

  test.each([
    ["filesystem", [fileURLToPath(new URL(".", import.meta.url))]],
    ["everything", ["stdio"]],
  ])("%s: what it answers is what is kept here", async (name, args) => {
    const client = new Client({ name: "test", version: "1" });
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [entry(name), ...args],
      stderr: "ignore",
    });
    try {
      await client.connect(transport, { timeout: 60_000 });
      const { tools } = await client.listTools(undefined, { timeout: 60_000 });
      const answered = tools.map(({ name, description, inputSchema, outputSchema }) => ({
        name,
        description,
        inputSchema,
        outputSchema,
      }));
      const kept = new Map(listedServer(name).tools.map((tool) => [tool.name, tool]));
      expect(answered.length).toBeGreaterThan(10);
      // Some tools are there only for clients that can do more.
      for (const tool of answered) expect(kept.get(tool.name)).toEqual(tool);
    } finally {
      await client.close();
    }
  });
});
