/**
 * The TypeScript of one tool: its parameters, its result and the types that they refer to. Called by declarations.ts and
 * compact.ts.
 *
 * TRUST: names are identifiers (tool-names.ts); schemas and descriptions may be a server's, so that they are printed as
 * types, literals and comments only, within bounds.
 */

import {
  type CompiledSchema,
  compileSchema,
  docComment,
  type JsonSchema,
  type SchemaTypeParts,
  schemaTypeParts,
} from "@flowcell/manifest";
import type { Tool, ToolSchema } from "../tools.js";
import { adoptSchema, isPlain, SchemaProblem } from "./adopt-schema.js";

/** Of one tool's types; what is longer is told as unknown. A model has no use for more. */
const typeCharsMax = 24_000;
const descriptionCharsMax = 4_000;

export interface ToolType {
  /** With the parentheses: `(input: { a: string })`. */
  readonly parameters: string;
  /** Inside the promise. */
  readonly result: string;
  /** Of the types that these refer to. */
  readonly declarations: readonly string[];
}

/** `taken` holds the names of types of the tool's namespace; those declared are added. */
export function toolType(tool: Tool, taken: Set<string>): ToolType {
  const name = pascalCase(tool.name);
  const input = tool.input === null ? nothingKnown : typeOf(tool.input, `${name}Input`, taken);
  const output = tool.output === null ? nothingKnown : typeOf(tool.output, `${name}Output`, taken);
  return {
    parameters: tool.input === null ? "(...args: unknown[])" : inputParameters(tool.input, input.type),
    result: output.type,
    declarations: [input.declarations, output.declarations].filter((each) => each !== ""),
  };
}

/** What a model is told of a tool before its signature, as a comment. */
export function toolComment(tool: Tool): string {
  const { description, needsApproval } = tool;
  const whole = description.trim();
  const told = whole.length <= descriptionCharsMax ? whole : `${whole.slice(0, descriptionCharsMax)}…`;
  const approval = approvalText(needsApproval);
  return docComment([told, unknownInputText(tool), approval].filter((each) => each !== "").join("\n"));
}

/** A schema of a library that has no JSON Schema for it, such as one of zod 3. */
function unknownInputText({ input }: Tool): string {
  if (input === null || input.json !== null) return "";
  return "@remarks Takes one object; its schema cannot be shown here, and an error says what it lacks.";
}

function approvalText(needsApproval: Tool["needsApproval"]): string {
  if (needsApproval === false) return "";
  return `@remarks Runs only when a person has approved the call${needsApproval === true ? "" : ", for some inputs"}.`;
}

const nothingKnown: SchemaTypeParts = { type: "unknown", declarations: "" };

function typeOf(schema: ToolSchema, name: string, taken: Set<string>): SchemaTypeParts {
  const json = jsonOf(schema);
  if (json === undefined) return nothingKnown;
  const names = new Set(taken);
  const parts = schemaTypeParts(json, name, names);
  if (parts.type.length + parts.declarations.length > typeCharsMax) return nothingKnown;
  for (const each of names) taken.add(each);
  return parts;
}

interface Printable {
  readonly json: JsonSchema;
  /** The same question that the check of an input asks when there is none. */
  readonly acceptsNothing: boolean;
}

/** Types, lines and the search's index all ask for the same schema. */
const printables = new WeakMap<ToolSchema, { readonly known: Printable | undefined }>();

/** A schema that can be printed; undefined when there is nothing to print. */
export function jsonOf(schema: ToolSchema): JsonSchema | undefined {
  return printable(schema)?.json;
}

function printable(schema: ToolSchema): Printable | undefined {
  const found = printables.get(schema);
  if (found !== undefined) return found.known;
  const known = schema.json === null ? undefined : readJson(schema.json);
  printables.set(schema, { known });
  return known;
}

function readJson(given: unknown): Printable | undefined {
  // Schemas of schema.ts are adopted already; others come from programs.
  const first = compileSchema(given);
  if (first.ok) return printableOf(first.compiled);
  try {
    const adopted = compileSchema(adoptSchema(given, "server").schema);
    return adopted.ok ? printableOf(adopted.compiled) : undefined;
  } catch (error) {
    if (error instanceof SchemaProblem) return undefined;
    throw error;
  }
}

function printableOf({ schema, check }: CompiledSchema): Printable {
  return { json: schema, acceptsNothing: check({}).ok };
}

function inputParameters(schema: ToolSchema, type: string): string {
  const known = printable(schema);
  if (known === undefined || !known.acceptsNothing) return `(input: ${type})`;
  return hasNoMembers(known.json) ? "()" : `(input?: ${type})`;
}

function hasNoMembers(json: JsonSchema): boolean {
  if (typeof json === "boolean") return false;
  const { type, properties, additionalProperties, ...rest } = json;
  const others = Object.keys(rest).filter(
    (key) => !["description", "title", "$defs", "required"].includes(key),
  );
  const isEmpty = properties === undefined || (isPlain(properties) && Object.keys(properties).length === 0);
  const isClosed =
    additionalProperties === false || (additionalProperties === undefined && properties !== undefined);
  return type === "object" && isEmpty && isClosed && others.length === 0;
}

/** `list_issues` and `listIssues` become `ListIssues`. */
function pascalCase(name: string): string {
  const words = name.match(/[A-Za-z0-9]+/g) ?? [];
  const joined = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
  return /^[A-Za-z]/.test(joined) ? joined : `Tool${joined}`;
}
