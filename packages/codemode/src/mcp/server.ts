/**
 * The MCP server: one tool that runs scripts against the tools of other MCP servers, one that answers what a script waits for,
 * one that finds tools. `flowcell mcp` runs it over standard input and output; programs may connect any transport.
 *
 * Servers start while a client says hello: what needs their tools waits for them. A client that cancels a request cancels the
 * script; closing ends everything, and nothing is left: no worker, no server, no open store.
 * TRUST: requests are a model's; what is wrong with them is an error of the protocol, what a script did is a result.
 */

import type { Readable, Writable } from "node:stream";
import type { Store } from "@flowcell/journal";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CallToolRequestSchema,
  type CallToolResult,
  ListToolsRequestSchema,
  type Tool,
} from "@modelcontextprotocol/sdk/types.js";
import { type Codemode, createCodemode } from "../codemode.js";
import { searchTools } from "../search.js";
import { callName, mayAsk } from "../tool-set.js";
import type { ToolSet } from "../tools.js";
import { Attachments } from "./attachments.js";
import type { McpConfig } from "./config.js";
import { resultView } from "./result-view.js";
import { codeOf, listedTools, resumeOf, searchOf, unknownTool } from "./server-tools.js";
import { openUpstreams, type Upstreams } from "./upstreams.js";

export interface McpServerParts {
  readonly config: McpConfig;
  readonly version: string;
  /** Where suspended scripts are kept; the server closes it. */
  readonly store?: Store;
  /** For the operator, on lines of their own. Must not throw. */
  readonly onNote: (text: string) => void;
}

interface Ready {
  readonly codemode: Codemode;
  readonly upstreams: Upstreams;
  readonly tools: Tool[];
}

/** Of one line: a script, or answers. */
const requestBytesMost = 4 * 1024 * 1024;

const instructions =
  "Call execute with a script that does the whole task: it calls the tools of the connected servers as functions. " +
  "Call search first when the tool that you need is not in the description of execute.";

export class McpServer {
  /** Settled when the servers have started; rejects when a required one has not, or when their tools cannot be offered. */
  readonly ready: Promise<void>;
  /** Settled when the connection is over, whoever ended it. */
  readonly over: Promise<void>;
  readonly #parts: McpServerParts;
  readonly #server: Server;
  readonly #opened: Promise<Ready>;
  readonly #attachments = new Attachments();
  readonly #stop = new AbortController();
  #closing: Promise<void> | undefined;

  constructor(parts: McpServerParts) {
    this.#parts = parts;
    this.#opened = this.#open();
    this.ready = this.#opened.then(() => undefined);
    // Requests are told of it too; nobody need ask.
    this.ready.catch(() => undefined);
    this.#server = new Server(
      { name: "flowcell", title: "flowcell: scripts that call tools", version: parts.version },
      { capabilities: { tools: {} }, instructions, jsonSchemaValidator: noValidator },
    );
    this.#server.onerror = (error) =>
      parts.onNote(`a message was not understood: ${firstLine(error.message)}`);
    this.over = new Promise((resolve) => {
      this.#server.onclose = resolve;
    });
    this.#server.setRequestHandler(ListToolsRequestSchema, async () => ({
      tools: (await this.#opened).tools,
    }));
    this.#server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) =>
      this.#call(params.name, params.arguments ?? {}, signal),
    );
  }

  async connect(transport: Transport): Promise<void> {
    await this.#server.connect(transport);
  }

  /** Messages, one a line. The end of `input` ends the connection. */
  async connectStdio(input: Readable, output: Writable): Promise<void> {
    const transport = new StdioServerTransport(input, output, { maxBufferSize: requestBytesMost });
    const end = (): void => void this.#server.close();
    input.once("end", end);
    input.once("close", end);
    output.once("error", end);
    output.once("close", end);
    await this.#server.connect(transport);
  }

  /** Cancels what runs. Resolves when nothing is left; closing twice is fine. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #open(): Promise<Ready> {
    const { config, version, onNote, store } = this.#parts;
    const upstreams = await openUpstreams(config, {
      version,
      onNote,
      onContent: (runId, content) => this.#attachments.add(runId, content),
      signal: this.#stop.signal,
    });
    try {
      const { limits } = config;
      const { heapBytes, cpuMs } = limits;
      const codemode = await createCodemode({
        tools: upstreams.tools,
        limits,
        ceilings: { heapBytes, cpuMs },
        name: "mcp",
        ...(store === undefined ? {} : { store }),
      });
      return { codemode, upstreams, tools: listedTools(codemode.tools, config) };
    } catch (error) {
      await upstreams.close();
      throw error;
    }
  }

  async #close(): Promise<void> {
    this.#stop.abort();
    // Aborts the requests that are under way.
    await this.#server.close();
    const opened = await this.#opened.catch(() => undefined);
    await opened?.codemode.close();
    await opened?.upstreams.close();
    await this.#parts.store?.close();
  }

  async #call(
    name: string,
    input: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<CallToolResult> {
    switch (name) {
      case "execute":
        return await this.#execute(codeOf(input), signal);
      case "resume": {
        const { runId, answers } = resumeOf(input);
        const { codemode } = await this.#opened;
        this.#attachments.open(runId);
        const result = await codemode.resume(runId, answers, { signal });
        return resultView(result, this.#attachments.take(runId));
      }
      case "search": {
        const { query, limit } = searchOf(input);
        return found((await this.#opened).codemode.tools, query, limit);
      }
      default:
        throw unknownTool(name);
    }
  }

  async #execute(code: string, signal: AbortSignal): Promise<CallToolResult> {
    const { codemode } = await this.#opened;
    const result = await codemode.execute(code, {
      signal,
      onRun: (runId) => this.#attachments.open(runId),
    });
    return resultView(result, this.#attachments.take(result.runId));
  }
}

function found(set: ToolSet, query: string, limit: number): CallToolResult {
  const hits = searchTools(set, query, { limit }).map(({ tool, signature, declaration }) => ({
    name: callName(tool),
    signature,
    declaration,
    needsApproval: mayAsk(tool),
  }));
  const structuredContent = { hits, tools: set.tools.length };
  const text =
    hits.length === 0
      ? `None of the ${set.tools.length} tools has these words; try others.`
      : hits.map(({ declaration }) => declaration).join("\n");
  return { content: [{ type: "text", text }], structuredContent };
}

function firstLine(text: string): string {
  return (text.split("\n", 1)[0] ?? "").slice(0, 400);
}

/** The SDK's own would compile schemas to code; this server asks a client for nothing that needs one. */
const noValidator = {
  getValidator: () => () => {
    throw new Error("nothing is validated here");
  },
};
