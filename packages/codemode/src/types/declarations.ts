/**
 * TypeScript declarations of a tool set: what a model reads before it writes a script, and what an editor or a compiler reads
 * beside one. Called by createCodemode for `types`, by the adapters, and by the search for its hits.
 *
 *     declare namespace github {
 *       // Lists issues.
 *       function list_issues(input: { owner: string; repo: string }): Promise<unknown>;
 *     }
 *
 * Kept true: the text type-checks; the same tools give the same text, byte by byte, whatever the order they came in; nothing
 * in a description, name or schema leaves its place.
 */

import { indented } from "@flowcell/manifest";
import type { Tool, ToolSet } from "../tools.js";
import { toolComment, toolType } from "./tool-type.js";

export interface DeclarationOptions {
  /** Whether to declare, in a few lines, the globals that scripts need most. Default true. */
  readonly globals?: boolean;
}

/** Of all tools, by namespace and name. */
export function toolDeclarations(set: ToolSet, options: DeclarationOptions = {}): string {
  const parts = byNamespace(set.tools).map(([namespace, tools]) => namespaceDeclaration(namespace, tools));
  if (set.tools.some((tool) => tool.namespace === "tools")) parts.push(codemodeAlias);
  if (options.globals ?? true) parts.push(scriptGlobals);
  return parts.join("\n");
}

/** Of one tool, inside its namespace. */
export function toolDeclaration(tool: Tool): string {
  return namespaceDeclaration(tool.namespace, [tool]);
}

/** Namespaces and tools, each sorted by their names. */
export function byNamespace(tools: readonly Tool[]): readonly (readonly [string, readonly Tool[]])[] {
  const namespaces = new Map<string, Tool[]>();
  for (const tool of tools) {
    const others = namespaces.get(tool.namespace);
    if (others === undefined) namespaces.set(tool.namespace, [tool]);
    else others.push(tool);
  }
  return [...namespaces]
    .sort(([a], [b]) => compare(a, b))
    .map(([namespace, members]) => [namespace, members.sort((a, b) => compare(a.name, b.name))]);
}

/** By code units, which is the same everywhere. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function namespaceDeclaration(namespace: string, tools: readonly Tool[]): string {
  const taken = new Set<string>();
  const members = tools.map((tool) => {
    const { parameters, result, declarations } = toolType(tool, taken);
    const signature = `function ${tool.name}${parameters}: Promise<${result}>;\n`;
    return [...declarations, toolComment(tool) + signature].join("");
  });
  return `declare namespace ${namespace} {\n${indented(members.join(""))}}\n`;
}

const codemodeAlias = `/** The same tools by another name. */
declare const codemode: typeof tools;
`;

/** Beside these there is the rest of the guest's globals; a model knows them from elsewhere. */
const scriptGlobals = `/** Each call is a line of the result's log. */
declare const console: Record<"debug" | "log" | "info" | "warn" | "error", (...data: unknown[]) => void>;
declare function setTimeout(callback: () => void, ms?: number): number;
declare function clearTimeout(id: number): void;
declare function structuredClone<T>(value: T): T;
`;
