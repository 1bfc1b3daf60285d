/**
 * The TypeScript of one tool: its parameters, its result and the types that they refer to. Called by declarations.ts and
 * compact.ts.
 *
 * TRUST: names are identifiers (tool-names.ts); schemas and descriptions may be a server's, so that they are printed as
 * types, literals and comments only, within bounds.
 */

import {
  compileSchema,
  docComment,
  type JsonSchema,
  type SchemaTypeParts,
  schemaTypeParts,
} from "@flowcell/manifest";
import type { Tool, ToolSchema } from "../tools.js";
import { adoptSchema, isPlain } from "./adopt-schema.js";

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
  const input = tool.input === null ? undefined : typeOf(tool.input, `${name}Input`, taken);
  const output = tool.output === null ? nothingKnown : typeOf(tool.output, `${name}Output`, taken);
  return {
    parameters: input === undefined ? "(...args: unknown[])" : inputParameters(tool.input, input.type),
    result: output.type,
    declarations: [input?.declarations ?? "", output.declarations].filter((each) => each !== ""),
  };
}

/** What a model is told of a tool before its signature, as a comment. */
export function toolComment(tool: Tool): string {
  const { description, needsApproval } = tool;
  const whole = description.trim();
  const told = whole.length <= descriptionCharsMax ? whole : `${whole.slice(0, descriptionCharsMax)}…`;
  const approval = approvalText(needsApproval);
  return docComment([told, approval].filter((each) => each !== "").join("\n"));
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

/** A schema that can be printed; undefined when there is nothing to print. */
export function jsonOf(schema: ToolSchema): JsonSchema | undefined {
  const { json } = schema;
  if (json === null) return undefined;
  // Schemas of schema.ts are adopted already; others come from programs.
  if (compileSchema(json).ok) return json as JsonSchema; // just compiled as one
  try {
    return adoptSchema(json, "server").schema;
  } catch {
    return undefined;
  }
}

function inputParameters(schema: ToolSchema | null, type: string): string {
  const json = schema === null ? undefined : jsonOf(schema);
  if (json === undefined || !acceptsNothing(json)) return `(input: ${type})`;
  return hasNoMembers(json) ? "()" : `(input?: ${type})`;
}

/** The same question that the check of an input asks when there is none. */
function acceptsNothing(json: JsonSchema): boolean {
  const result = compileSchema(json);
  return result.ok && result.compiled.check({}).ok;
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
