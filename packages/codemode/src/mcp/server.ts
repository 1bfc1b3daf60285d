/**
 * The MCP server: one tool that runs scripts against the tools of other MCP servers, one that answers what a script waits for,
 * one that finds tools. `flowcell mcp` runs it over standard input and output; programs may connect any transport.
 *
 * Servers start while a client says hello: what needs their tools waits for them. A client that cancels a request cancels the
 * script, one that gives a progress token is told what happens; tools that change are listed anew; closing ends everything, and nothing is left: no worker, no server, no open store.
 * TRUST: requests are a model's; what is wrong with them is an error of the protocol, what a script did is a result.
 */

import type { Readable, Writable } from "node:stream";
import type { Store } from "@flowcell/journal";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CallToolRequestSchema,
  type CallToolResult,
  ListToolsRequestSchema,
  type ServerNotification,
  type ServerRequest,
  type Tool,
} from "@modelcontextprotocol/sdk/types.js";
import { type Codemode, createCodemode } from "../codemode.js";
import type { ExecuteResult } from "../result.js";
import { toolSchema } from "../schema.js";
import { indexTools, searchTools } from "../search.js";
import { callName, makeToolSet, mayAsk } from "../tool-set.js";
import type { ToolSet } from "../tools.js";
import { Attachments } from "./attachments.js";
import { Codemodes } from "./codemodes.js";
import type { McpConfig } from "./config.js";
import { askPerson, canElicit, patienceOf } from "./elicitation.js";
import { Progress } from "./progress.js";
import { resultView } from "./result-view.js";
import {
  askedAgainOf,
  codeOf,
  InvalidParams,
  listedTools,
  notRunning,
  resumeOf,
  searchOf,
  unknownTool,
} from "./server-tools.js";
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
  readonly codemodes: Codemodes;
  readonly upstreams: Upstreams;
}

interface Listed {
  readonly set: ToolSet;
  readonly parts: string;
  readonly tools: Tool[];
}

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

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
  /** Of executions whose client wants to know. */
  readonly #progress = new Map<string, Progress>();
  #listed: Listed | undefined;
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
      { capabilities: { tools: { listChanged: true } }, instructions, jsonSchemaValidator: noValidator },
    );
    this.#server.onerror = (error) =>
      parts.onNote(`a message was not understood: ${firstLine(error.message)}`);
    this.over = new Promise((resolve) => {
      this.#server.onclose = resolve;
    });
    this.#server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: await this.#list() }));
    this.#server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) =>
      this.#call(params.name, params.arguments ?? {}, extra),
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
      onCall: (runId, name) => this.#progress.get(runId)?.call(name),
      onChange: () => void this.#opened.then(({ codemodes }) => codemodes.renew()).catch(() => undefined),
      signal: this.#stop.signal,
    });
    const { limits } = config;
    const { heapBytes, cpuMs } = limits;
    try {
      const codemodes = await Codemodes.open({
        make: () =>
          createCodemode({
            tools: upstreams.tools,
            limits,
            ceilings: { heapBytes, cpuMs },
            name: "mcp",
            ...(store === undefined ? {} : { store }),
          }),
        check: () => void makeToolSet(upstreams.tools, toolSchema),
        stored: store !== undefined,
        onTools: (tools) => this.#changed(tools),
        onNote,
      });
      index(await codemodes.tools());
      return { codemodes, upstreams };
    } catch (error) {
      await upstreams.close();
      throw error;
    }
  }

  #changed(tools: ToolSet): void {
    index(tools);
    if (this.#server.getClientCapabilities() === undefined) return;
    this.#server.sendToolListChanged().catch(() => undefined);
  }

  async #list(): Promise<Tool[]> {
    const { codemodes, upstreams } = await this.#opened;
    const set = await codemodes.tools();
    const { failed } = upstreams;
    const asks = this.#asks();
    const parts = JSON.stringify([asks, ...notRunning(failed)]);
    if (this.#listed?.set !== set || this.#listed.parts !== parts)
      this.#listed = { set, parts, tools: listedTools(set, this.#parts.config, { failed, asks }) };
    return this.#listed.tools;
  }

  /** Whether this server asks the person, so that no answer of the client's is taken. */
  #asks(): boolean {
    const { approval } = this.#parts.config;
    return approval === "elicit" || (approval === undefined && canElicit(this.#server));
  }

  async #close(): Promise<void> {
    this.#stop.abort();
    // Aborts the requests that are under way.
    await this.#server.close();
    const opened = await this.#opened.catch(() => undefined);
    await opened?.codemodes.close();
    await opened?.upstreams.close();
    await this.#parts.store?.close();
  }

  async #call(name: string, input: Readonly<Record<string, unknown>>, extra: Extra): Promise<CallToolResult> {
    switch (name) {
      case "execute":
        return await this.#execute(codeOf(input), extra);
      case "resume":
        return await (this.#asks() ? this.#askAgain(askedAgainOf(input), extra) : this.#resume(input, extra));
      case "search": {
        const { query, limit } = searchOf(input);
        const { codemodes, upstreams } = await this.#opened;
        return found(await codemodes.tools(), query, limit, upstreams.failed);
      }
      default:
        throw unknownTool(name);
    }
  }

  async #execute(code: string, extra: Extra): Promise<CallToolResult> {
    const { codemodes } = await this.#opened;
    const { signal } = extra;
    const until = patienceOf(signal);
    const progress = progressOf(extra);
    let id: string | undefined;
    try {
      const result = await codemodes.use(undefined, async (codemode) => {
        const first = await codemode.execute(code, {
          signal,
          onRun: (runId) => {
            id = runId;
            this.#follow(runId, progress);
          },
          onLog: ({ text }) => progress?.line(text),
        });
        if (first.status !== "suspended" || !this.#asks()) return first;
        return (await askPerson(this.#server, { codemode, ...first, signal, until })) ?? first;
      });
      return resultView(result, this.#attachments.take(result.runId), this.#asks());
    } finally {
      progress?.end();
      if (id !== undefined) this.#progress.delete(id);
    }
  }

  async #resume(input: Readonly<Record<string, unknown>>, extra: Extra): Promise<CallToolResult> {
    const { runId, answers } = resumeOf(input);
    return await this.#goOn(runId, extra, (codemode) =>
      codemode.resume(runId, answers, { signal: extra.signal }),
    );
  }

  async #askAgain(runId: string, extra: Extra): Promise<CallToolResult> {
    const { signal } = extra;
    const until = patienceOf(signal);
    return await this.#goOn(runId, extra, async (codemode) => {
      const waiting = (await codemode.pending()).find((one) => one.runId === runId);
      if (waiting?.status !== "suspended")
        throw new InvalidParams("resume: no script of this runId waits for a person");
      const result = await askPerson(this.#server, { codemode, ...waiting, signal, until });
      if (result === undefined)
        throw new InvalidParams("resume: nobody has answered; the script still waits, ask again later");
      return result;
    });
  }

  async #goOn(
    runId: string,
    extra: Extra,
    work: (codemode: Codemode) => Promise<ExecuteResult>,
  ): Promise<CallToolResult> {
    const { codemodes } = await this.#opened;
    const progress = progressOf(extra);
    this.#follow(runId, progress);
    try {
      const result = await codemodes.use(runId, work);
      return resultView(result, this.#attachments.take(runId), this.#asks());
    } finally {
      progress?.end();
      this.#progress.delete(runId);
    }
  }

  #follow(runId: string, progress: Progress | undefined): void {
    this.#attachments.open(runId);
    if (progress !== undefined) this.#progress.set(runId, progress);
  }
}

/** A first search would hold up everything else. */
function index(tools: ToolSet): void {
  indexTools(tools).catch(() => undefined);
}

function progressOf({ _meta, sendNotification }: Extra): Progress | undefined {
  const token = _meta?.progressToken;
  return token === undefined ? undefined : new Progress(token, sendNotification);
}

function found(
  set: ToolSet,
  query: string,
  limit: number,
  failed: ReadonlyMap<string, string>,
): CallToolResult {
  const hits = searchTools(set, query, { limit }).map(({ tool, signature, declaration }) => ({
    name: callName(tool),
    signature,
    declaration,
    needsApproval: mayAsk(tool),
  }));
  const structuredContent = { hits, tools: set.tools.length };
  const text =
    hits.length === 0
      ? [`None of the ${set.tools.length} tools has these words; try others.`, ...notRunning(failed)].join(
          "\n",
        )
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
