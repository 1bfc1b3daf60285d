/**
 * The tools of real MCP servers, for tests: schemas/<server>.json holds what `tools/list` of an npm package answered (its name,
 * version and licence stand in the file). Names, descriptions and schemas are kept as they were.
 */

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { makeToolSet, type ToolSet } from "@flowcell/codemode";
import { serverSchema, toolSchema } from "../../packages/codemode/src/schema.js";

export interface ListedTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: unknown;
  readonly outputSchema?: unknown;
}

export interface ListedServer {
  readonly package: string;
  readonly version: string;
  readonly licence: string;
  readonly tools: readonly ListedTool[];
}

const folder = fileURLToPath(new URL("./schemas/", import.meta.url));

export const serverNames: readonly string[] = readdirSync(folder)
  .filter((name) => name.endsWith(".json"))
  .map((name) => name.slice(0, -5))
  .sort();

export function listedServer(name: string): ListedServer {
  // Written by a person from the server's answer; the tests of the servers say what must be in it.
  return JSON.parse(readFileSync(`${folder}${name}.json`, "utf8")) as ListedServer;
}

/** The servers' tools as one set, and what of their schemas is not checked. */
export function setOfServers(names: readonly string[]): { set: ToolSet; warnings: readonly string[] } {
  const warnings: string[] = [];
  const given: Record<string, Record<string, object>> = {};
  for (const name of names) {
    const namespace: Record<string, object> = {};
    for (const { name: tool, description, inputSchema, outputSchema } of listedServer(name).tools) {
      const input = serverSchema(inputSchema, "input");
      const output = outputSchema === undefined ? undefined : serverSchema(outputSchema, "output");
      for (const warning of [...input.warnings, ...(output?.warnings ?? [])])
        warnings.push(`${name}.${tool}: ${warning}`);
      namespace[tool] = {
        ...(description === undefined ? {} : { description }),
        inputSchema: input.schema,
        ...(output === undefined ? {} : { outputSchema: output.schema }),
        execute: (value: unknown) => value,
      };
    }
    given[name] = namespace;
  }
  return { set: makeToolSet(given, toolSchema), warnings };
}
