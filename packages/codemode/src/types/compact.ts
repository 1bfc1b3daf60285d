/**
 * The types of a tool set within a budget of tokens, for prompts: whole declarations while they fit, then one line for each
 * tool, then lines for as many tools as the budget lets and names for the others, then names. Called by prompt.ts, by createCodemode and by the MCP server.
 *
 * A token is counted as four characters: models differ, and this is near enough to plan a prompt by.
 * Kept true: the text is never over the budget, type-checks in every form, and is the same for the same tools.
 */

import { docComment, indented, type JsonSchema, schemaType } from "@flowcell/manifest";
import type { Tool, ToolSet } from "../tools.js";
import { isPlain } from "./adopt-schema.js";
import { byNamespace, compare, toolDeclarations } from "./declarations.js";
import { jsonOf, toolType } from "./tool-type.js";

export interface CompactOptions {
  /** Default 8000; at least 64. */
  readonly tokensMax?: number;
  /** A sentence that tells a model how to see what was left out. */
  readonly more?: string;
}

export interface CompactTypes {
  readonly text: string;
  /** `mixed`: lines for some tools, names for the others. */
  readonly form: "full" | "lines" | "mixed" | "names";
  readonly tokens: number;
}

export const compactTokensDefault = 8_000;
const tokensLeast = 64;
const charsPerToken = 4;
const lineDescriptionCharsMax = 100;
const lineMembersMax = 8;
const lineTypeCharsMax = 48;
const moreCharsMax = 200;

export function tokensOf(text: string): number {
  return Math.ceil(text.length / charsPerToken);
}

export function compactTypes(set: ToolSet, options: CompactOptions = {}): CompactTypes {
  const tokensMax = options.tokensMax ?? compactTokensDefault;
  if (!Number.isSafeInteger(tokensMax) || tokensMax < tokensLeast)
    throw new RangeError(`tokensMax must be a whole number of at least ${tokensLeast}`);
  const more = plainLine(options.more ?? "", moreCharsMax);
  const full = toolDeclarations(set);
  if (tokensOf(full) <= tokensMax) return { text: full, form: "full", tokens: tokensOf(full) };
  const lines = toolLines(set, more);
  if (tokensOf(lines) <= tokensMax) return { text: lines, form: "lines", tokens: tokensOf(lines) };
  const mixed = linesAndNames(set, more, tokensMax * charsPerToken);
  if (mixed !== undefined) return { text: mixed, form: "mixed", tokens: tokensOf(mixed) };
  const names = toolNames(set, more, tokensMax * charsPerToken);
  return { text: names, form: "names", tokens: tokensOf(names) };
}

/** `(input: { owner: string; state?: "open" | "closed" }): Promise<unknown>` on one line. */
export function toolSignature(tool: Tool): string {
  const { parameters, result, declarations } = toolType(tool, new Set());
  const mark = parameters.startsWith("(input?") ? "?" : "";
  const hasShortInput = parameters === "()" || tool.input === null;
  const short = hasShortInput ? parameters : `(input${mark}: ${shortInput(tool)})`;
  // Names of types are declared in the full form only.
  return `${short}: Promise<${declarations.length === 0 && isShort(result) ? result : "unknown"}>`;
}

function toolLines(set: ToolSet, more: string): string {
  const head = `// Each tool on one line; inputs are shortened.${more === "" ? "" : ` ${more}`}\n`;
  const namespaces = byNamespace(set.tools).map(([namespace, tools]) => {
    return `declare namespace ${namespace} {\n${indented(tools.map(toolLine).join(""))}}\n`;
  });
  return head + namespaces.join("");
}

function toolLine(tool: Tool): string {
  const comment = docComment(summary(tool.description)).trim();
  return `${comment === "" ? "" : `${comment} `}function ${tool.name}${toolSignature(tool)};\n`;
}

/** The first sentence, shortened. */
function summary(description: string): string {
  const text = plainLine(description, 1_000);
  const sentence = /^.*?[.!?](?= [A-Z]|$)/.exec(text)?.[0] ?? text;
  return plainLine(sentence, lineDescriptionCharsMax);
}

function plainLine(text: string, charsMax: number): string {
  const line = text
    .slice(0, 4 * charsMax)
    .replaceAll(/[\s\u2028\u2029]+/g, " ")
    .trim();
  return line.length <= charsMax ? line : `${line.slice(0, charsMax - 1).trimEnd()}…`;
}

/** What must be given comes first; what has no room is an index signature. */
function shortInput(tool: Tool): string {
  const json = tool.input === null ? undefined : jsonOf(tool.input);
  const properties = typeof json === "object" && isPlain(json["properties"]) ? json["properties"] : {};
  const names = Object.keys(properties);
  if (typeof json !== "object" || names.length === 0) return "unknown";
  const required: readonly unknown[] = Array.isArray(json["required"]) ? json["required"] : [];
  const sorted = [
    ...names.filter((name) => required.includes(name)),
    ...names.filter((name) => !required.includes(name)),
  ];
  const shown = sorted.filter((name) => name.length <= lineTypeCharsMax).slice(0, lineMembersMax);
  const members = shown.map((name) => {
    const key = /^[A-Za-z_$][A-Za-z0-9_$]*$/.test(name) ? name : schemaType({ const: name });
    return `${key}${required.includes(name) ? "" : "?"}: ${shortType(properties[name], json)}`;
  });
  if (sorted.length > shown.length) members.push("[more: string]: unknown");
  return `{ ${members.join("; ")} }`;
}

function shortType(property: unknown, root: { readonly [keyword: string]: unknown }): string {
  if (!isPlain(property)) return "unknown";
  const $defs = root["$defs"];
  // Parts of a schema that was adopted, so that a reference leads to the definitions or back to where it is.
  const schema = (isPlain($defs) ? { ...property, $defs } : property) as JsonSchema;
  let type: string;
  try {
    type = schemaType(schema);
  } catch {
    return "unknown";
  }
  if (isShort(type)) return type;
  if (type.startsWith("{") && type.endsWith("\n}")) return "object";
  return type.endsWith("}[]") ? "object[]" : "unknown";
}

function isShort(type: string): boolean {
  return type.length <= lineTypeCharsMax && !type.includes("\n");
}

/** Undefined when not even all names fit, or nothing more than these. */
function linesAndNames(set: ToolSet, more: string, charsMax: number): string | undefined {
  const namespaces = byNamespace(set.tools).map(([namespace, tools]) => ({
    namespace,
    lines: tools.map((tool) => ({ name: tool.name, line: `  ${toolLine(tool)}` })),
    typed: 0,
  }));
  const head = `// Tools on one line each, inputs shortened; of the others only names.${more === "" ? "" : ` ${more}`}\n`;
  const textOf = ({ namespace, lines, typed }: (typeof namespaces)[number]): string => {
    const shown = lines.slice(0, typed).map(({ line }) => line);
    const rest = lines.slice(typed).map(({ name }) => name);
    const names =
      rest.length === 0 ? "" : `// ${namespace}, names only (${rest.length}): ${rest.join(", ")}\n`;
    return typed === 0 ? names : `declare namespace ${namespace} {\n${shown.join("")}}\n${names}`;
  };
  let left = charsMax - head.length;
  for (const one of namespaces) left -= textOf(one).length;
  if (left < 0) return undefined;
  // The smallest first: most namespaces are whole then.
  const sized = namespaces
    .map((one) => ({ one, size: one.lines.reduce((sum, { line }) => sum + line.length, 0) }))
    .sort((a, b) => a.size - b.size || compare(a.one.namespace, b.one.namespace));
  let any = false;
  for (const { one } of sized) {
    while (one.typed < one.lines.length) {
      const before = textOf(one).length;
      one.typed += 1;
      const grown = textOf(one).length - before;
      if (grown > left) {
        one.typed -= 1;
        break;
      }
      left -= grown;
      any = true;
    }
  }
  return any ? head + namespaces.map(textOf).join("") : undefined;
}

function toolNames(set: ToolSet, more: string, charsMax: number): string {
  const namespaces = byNamespace(set.tools);
  const count = `// ${set.tools.length} tools in ${namespaces.length} namespaces.`;
  const head = `${`${count}${more === "" ? "" : ` ${more}`}`.slice(0, charsMax - 1)}\n`;
  const lines: string[] = [];
  let left = charsMax - head.length;
  // The shortest first, so that what they leave is there for the longest.
  const sizes = namespaces
    .map(([namespace, tools]) => ({ namespace, names: tools.map((tool) => tool.name) }))
    .sort((a, b) => a.names.join().length - b.names.join().length || compare(a.namespace, b.namespace));
  for (const [index, { namespace, names }] of sizes.entries()) {
    const line = namesLine(namespace, names, Math.floor(left / (sizes.length - index)));
    left -= line.length;
    if (line !== "") lines.push(line);
  }
  return head + lines.sort(compare).join("");
}

function namesLine(namespace: string, names: readonly string[], charsMax: number): string {
  for (let shown = names.length; shown >= 0; shown--) {
    const list = names.slice(0, shown).join(", ");
    const rest = shown === names.length ? "" : `${shown === 0 ? "" : ", "}…`;
    const line = `// ${namespace} (${names.length}): ${list}${rest}\n`;
    if (line.length <= charsMax) return line;
  }
  return "";
}
