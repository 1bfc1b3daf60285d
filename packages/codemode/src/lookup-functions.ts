/**
 * `codemode.search(words)` and `codemode.describe(name)`: how a script sees tools whose types had no room in its prompt.
 * codemode.ts puts them beside the tools; the lines around a script (guest-names.ts) find them.
 *
 * Kept true: a tool of the program's own that has one of these names is called instead; nothing is answered but what the prompt
 * of a larger budget holds.
 */

import { defineHostFunction, HostError, type HostFunction, type Schema } from "@flowcell/host";
import { didYouMean } from "@flowcell/protocol";
import { searchTools } from "./search.js";
import { callName, rootNamespace } from "./tool-set.js";
import type { ToolSet } from "./tools.js";
import { toolDeclaration } from "./types/declarations.js";

/** No tool's namespace is called so. */
export const lookupNamespace = "codemode";

/** What a prompt says where not every tool is declared in it. */
export const lookupText =
  'In a script, `await codemode.search("words")` finds tools and `await codemode.describe("namespace.name")` declares one.';

/** Whether scripts of the set have both: none has use for them without tools. */
export function hasLookup(set: ToolSet): boolean {
  if (set.tools.length === 0) return false;
  return set.get(rootNamespace, "search") === undefined && set.get(rootNamespace, "describe") === undefined;
}

export function lookupFunctions(set: ToolSet): readonly HostFunction[] {
  if (!hasLookup(set)) return [];
  return [
    lookup(
      "search",
      "Finds tools by words.",
      'codemode.search takes words, such as codemode.search("send a mail")',
      (words) =>
        searchTools(set, words).map(({ tool, signature }) => ({
          name: callName(tool),
          signature,
          description: tool.description.slice(0, descriptionCharsMost),
        })),
    ),
    lookup(
      "describe",
      "Declares a tool.",
      'codemode.describe takes the name of a tool, such as codemode.describe("tools.name")',
      (name) => described(set, name),
    ),
  ];
}

const descriptionCharsMost = 500;

function described(set: ToolSet, name: string): string {
  const names = set.tools.map(callName);
  const tool = set.tools[names.indexOf(name)] ?? set.tools[names.indexOf(`${rootNamespace}.${name}`)];
  if (tool !== undefined) return toolDeclaration(tool);
  const near = didYouMean(name, names);
  const hint = near === undefined ? "find it with codemode.search" : `did you mean ${near}?`;
  throw new HostError("invalid_arguments", `there is no tool ${JSON.stringify(name.slice(0, 80))}; ${hint}`);
}

function lookup(name: string, doc: string, usage: string, answer: (text: string) => unknown): HostFunction {
  const input: Schema<readonly [string]> = {
    "~standard": {
      version: 1,
      vendor: "flowcell",
      validate: (value) => {
        const [text, ...more] = Array.isArray(value) ? value : [];
        if (typeof text === "string" && text.trim() !== "" && more.length === 0) return { value: [text] };
        throw new HostError("invalid_arguments", usage);
      },
    },
  };
  return defineHostFunction({
    name: `${lookupNamespace}.${name}`,
    doc,
    effect: "read",
    grant: null,
    input,
    handler: ([text]) => answer(text),
  });
}
