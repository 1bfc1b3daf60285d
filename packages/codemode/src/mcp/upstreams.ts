/**
 * The MCP servers of a configuration, as tools of codemode: a namespace for each server, a tool for each of its tools.
 * server.ts opens them; embedding programs may, to pass `tools` to createCodemode.
 *
 * Kept true: servers start side by side; one that fails is reported and takes no other away unless it is required; a name of
 * `needsApproval` that fits no tool fails its server, so that a mistyped name approves nothing; what cannot be a tool is left
 * out and reported.
 */

import { didYouMean } from "@flowcell/protocol";
import type { ContentBlock, Tool } from "@modelcontextprotocol/sdk/types.js";
import { serverSchema } from "../schema.js";
import { namespaceName, toolName } from "../tool-names.js";
import type { ToolDefinition, ToolNamespace, ToolsGiven } from "../tool-set.js";
import type { ToolContext } from "../tools.js";
import type { McpConfig, McpServerConfig } from "./config.js";
import { unwrapResult } from "./unwrap.js";
import { Upstream } from "./upstream.js";

export interface UpstreamsParts {
  readonly version: string;
  /** For the operator: one line, or several when a server left some. Must not throw. */
  readonly onNote: (text: string) => void;
  /** What a tool answered beside text, by the execution. Must not throw. */
  readonly onContent?: (runId: string, content: readonly ContentBlock[]) => void;
  /** Ends the start of servers; it rejects then. */
  readonly signal?: AbortSignal;
}

export interface Upstreams {
  /** For createCodemode. */
  readonly tools: ToolsGiven;
  /** Servers without their tools, and why. */
  readonly failed: ReadonlyMap<string, string>;
  close(): Promise<void>;
}

const descriptionCharsMost = 16_000;

/** Rejects when a required server fails; the others are ended then. */
export async function openUpstreams(config: McpConfig, parts: UpstreamsParts): Promise<Upstreams> {
  const { version, onNote } = parts;
  const servers = [...config.servers].map(([name, one]) => ({
    name,
    config: one,
    upstream: new Upstream({ name, config: one, version, onNote }),
  }));
  const close = async (): Promise<void> => {
    await Promise.all(servers.map(({ upstream }) => upstream.close()));
  };
  const stop = (): void => void close();
  parts.signal?.addEventListener("abort", stop, { once: true });
  const given: Record<string, ToolNamespace> = {};
  const failed = new Map<string, string>();
  const started = await Promise.all(
    servers.map(async (server) => {
      try {
        return toolsOf(await server.upstream.start(), server, parts);
      } catch (error) {
        // Its tools are unknown or cannot be told apart; nothing may call it.
        await server.upstream.close();
        return error instanceof Error ? error.message : String(error);
      }
    }),
  );
  parts.signal?.removeEventListener("abort", stop);
  if (parts.signal?.aborted === true) {
    await close();
    throw new Error("closed while the servers started");
  }
  for (const [index, { name, config: one }] of servers.entries()) {
    const tools = started[index];
    if (typeof tools === "object") {
      if (Object.keys(tools).length > 0) given[name] = tools;
      else onNote(`the server ${name} has no tools`);
      continue;
    }
    failed.set(name, tools ?? "");
    onNote(`the server ${name} failed to start: ${tools ?? ""}`);
    if (!one.required) continue;
    await close();
    throw new Error(`the server ${name} is required and failed to start: ${tools ?? ""}`);
  }
  return { tools: given, failed, close };
}

interface Server {
  readonly name: string;
  readonly config: McpServerConfig;
  readonly upstream: Upstream;
}

function toolsOf(listed: readonly Tool[], server: Server, parts: UpstreamsParts): ToolNamespace {
  const asks = approvals(server.config.needsApproval, listed);
  const tools: Record<string, ToolDefinition> = {};
  const taken = new Map<string, string>();
  const namespace = namespaceName(server.name);
  const called = namespace.ok ? namespace.name : server.name;
  for (const tool of listed) {
    const name = toolName(tool.name);
    const leftOut = (why: string): void =>
      parts.onNote(
        `the tool ${JSON.stringify(tool.name.slice(0, 80))} of ${server.name} is left out: ${why}`,
      );
    if (!name.ok) {
      leftOut(`its name ${name.problem}`);
      continue;
    }
    const other = taken.get(name.name);
    if (other !== undefined) {
      leftOut(`${JSON.stringify(other)} is ${called}.${name.name} already`);
      continue;
    }
    taken.set(name.name, tool.name);
    tools[tool.name] = definitionOf(tool, asks(tool.name), server, parts);
  }
  return tools;
}

function definitionOf(
  tool: Tool,
  needsApproval: boolean,
  { name, upstream }: Server,
  { onNote, onContent }: UpstreamsParts,
): ToolDefinition {
  const input = serverSchema(tool.inputSchema, "input");
  const output = tool.outputSchema === undefined ? undefined : serverSchema(tool.outputSchema, "output");
  for (const warning of [...input.warnings, ...(output?.warnings ?? [])])
    onNote(`${name}.${tool.name}: ${warning}`);
  const readOnly = tool.annotations?.readOnlyHint === true;
  return {
    description: (tool.description ?? tool.title ?? "").slice(0, descriptionCharsMost),
    inputSchema: input.schema,
    ...(output === undefined ? {} : { outputSchema: output.schema }),
    needsApproval,
    effect: readOnly ? "read" : "once",
    execute: async (given: unknown, { signal, runId }: ToolContext) => {
      const { value, content } = unwrapResult(await upstream.call(tool.name, given, { signal, readOnly }));
      if (content.length > 0) onContent?.(runId, content);
      return value;
    },
  };
}

/** Whether a tool's calls wait for a person, by its name at the server. */
function approvals(needs: true | readonly string[], listed: readonly Tool[]): (name: string) => boolean {
  if (needs === true) return () => true;
  const names = listed.map(({ name }) => name);
  const patterns = needs.map(patternOf);
  for (const [index, pattern] of patterns.entries()) {
    if (names.some((name) => pattern.test(name))) continue;
    const given = needs[index] ?? "";
    const near = didYouMean(given, names);
    const hint = near === undefined ? "" : `; did you mean ${near}?`;
    throw new Error(`needsApproval names ${JSON.stringify(given)}, and it has no such tool${hint}`);
  }
  return (name) => patterns.some((pattern) => pattern.test(name));
}

function patternOf(given: string): RegExp {
  const parts = given.split(/\*+/).map((part) => part.replaceAll(/[\\^$.|?+()[\]{}]/g, "\\$&"));
  return new RegExp(`^${parts.join("[^]*")}$`);
}
