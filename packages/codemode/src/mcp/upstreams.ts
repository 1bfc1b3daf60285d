/**
 * The MCP servers of a configuration, as tools of codemode: a namespace for each server, a tool for each of its tools.
 * server.ts opens them; embedding programs may, to pass `tools` to createCodemode.
 *
 * Kept true: servers start side by side; one that fails is reported and takes no other away unless it is required; a name of
 * `needsApproval` that fits no tool fails its server, so that a mistyped name approves nothing; what cannot be a tool is left
 * out and reported. With `onChange`, a server that did not start is tried again, and one whose tools change is asked anew.
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
  /** A script calls a tool, named as the script does. Must not throw. */
  readonly onCall?: (runId: string, name: string) => void;
  /**
   * `tools` or `failed` are others than before: a server came up late, or its tools changed. Without it a server that does not
   * start is not tried again, and tools stay what they were. Must not throw.
   */
  readonly onChange?: () => void;
  /** Ends the start of servers; it rejects then. */
  readonly signal?: AbortSignal;
}

export interface Upstreams {
  /** For createCodemode: those of the servers that run, or have run. */
  readonly tools: ToolsGiven;
  /** Servers without their tools, and why. */
  readonly failed: ReadonlyMap<string, string>;
  close(): Promise<void>;
}

const descriptionCharsMost = 16_000;

/** Rejects when a required server fails; the others are ended then. */
export async function openUpstreams(config: McpConfig, parts: UpstreamsParts): Promise<Upstreams> {
  const servers = new Servers(config, parts);
  const stop = (): void => void servers.close();
  parts.signal?.addEventListener("abort", stop, { once: true });
  try {
    await servers.start();
  } finally {
    parts.signal?.removeEventListener("abort", stop);
  }
  if (parts.signal?.aborted === true) {
    await servers.close();
    throw new Error("closed while the servers started");
  }
  return servers;
}

class Servers implements Upstreams {
  readonly #servers: readonly Server[];
  readonly #parts: UpstreamsParts;
  readonly #tools = new Map<string, ToolNamespace>();
  readonly #failed = new Map<string, string>();
  /** What servers have listed, to know what is new. */
  readonly #listed = new Map<string, string>();

  constructor(config: McpConfig, parts: UpstreamsParts) {
    this.#parts = parts;
    const { version, onNote } = parts;
    this.#servers = [...config.servers].map(([name, one]) => {
      const upstream = new Upstream({
        name,
        config: one,
        version,
        onNote,
        onTools: (listed) => this.#relisted({ name, config: one, upstream }, listed),
        onFailed: (reason) => this.#failed.set(name, reason),
      });
      return { name, config: one, upstream };
    });
  }

  get tools(): ToolsGiven {
    // In the order of the configuration, whatever started first.
    return Object.fromEntries(
      this.#servers.flatMap(({ name }) => {
        const tools = this.#tools.get(name);
        return tools === undefined || Object.keys(tools).length === 0 ? [] : [[name, tools]];
      }),
    );
  }

  get failed(): ReadonlyMap<string, string> {
    return this.#failed;
  }

  async start(): Promise<void> {
    await Promise.all(this.#servers.map((server) => this.#start(server)));
    for (const { name, config } of this.#servers) {
      const reason = this.#failed.get(name);
      if (reason === undefined || !config.required) continue;
      await this.close();
      throw new Error(`the server ${name} is required and failed to start: ${reason}`);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map(({ upstream }) => upstream.close()));
  }

  async #start(server: Server): Promise<void> {
    const { name, config, upstream } = server;
    const { onNote, onChange } = this.#parts;
    let listed: readonly Tool[];
    try {
      listed = await upstream.start();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#failed.set(name, reason);
      onNote(`the server ${name} failed to start: ${reason}`);
      // Nobody can be told of tools that come later.
      if (config.required || onChange === undefined) await upstream.close();
      else upstream.startLater(reason);
      return;
    }
    await this.#take(server, listed);
    const unfit = this.#failed.get(name);
    if (unfit !== undefined) onNote(`the server ${name} failed to start: ${unfit}`);
  }

  /** Whether its tools are others now. */
  async #take(server: Server, listed: readonly Tool[]): Promise<boolean> {
    const { name, upstream } = server;
    const text = JSON.stringify(listed);
    const wasThere = !this.#failed.has(name);
    if (wasThere && this.#listed.get(name) === text) return false;
    this.#listed.set(name, text);
    try {
      const tools = toolsOf(listed, server, this.#parts);
      if (Object.keys(tools).length === 0) this.#parts.onNote(`the server ${name} has no tools`);
      this.#tools.set(name, tools);
      this.#failed.delete(name);
    } catch (error) {
      // Its tools cannot be told apart; nothing may call it, and no other start would help.
      this.#tools.delete(name);
      this.#failed.set(name, error instanceof Error ? error.message : String(error));
      await upstream.close();
    }
    return true;
  }

  #relisted(server: Server, listed: readonly Tool[]): void {
    const { onChange, onNote } = this.#parts;
    if (onChange === undefined) return;
    void this.#take(server, listed).then((changed) => {
      if (!changed) return;
      const reason = this.#failed.get(server.name);
      if (reason !== undefined) onNote(`the server ${server.name} is not used any more: ${reason}`);
      onChange();
    });
  }
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
    const scriptName = `${called}.${name.name}`;
    tools[tool.name] = definitionOf(tool, scriptName, asks(tool.name), server, parts);
  }
  return tools;
}

function definitionOf(
  tool: Tool,
  scriptName: string,
  needsApproval: boolean,
  { name, upstream }: Server,
  { onNote, onContent, onCall }: UpstreamsParts,
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
      onCall?.(runId, scriptName);
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
