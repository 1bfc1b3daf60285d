/**
 * One MCP server that scripts call: started, asked for its tools, called, started again when it ends by itself or did not
 * start at all, asked again when it says that its tools changed. upstreams.ts makes one for each server of the configuration.
 *
 * TRUST: what a server answers is data, bounded by its transport and read by the SDK's schemas; its tools were chosen by the
 * operator. A server sees the input of calls to its own tools and nothing else.
 * Kept true: a call of a server that is not there fails at once with `unavailable`; one that was under way when the server
 * ended may have taken effect, and says so unless the tool only reads; an aborted call is cancelled at the server; no child is
 * left after close.
 */

import { HostError } from "@flowcell/protocol";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  type CallToolResult,
  CallToolResultSchema,
  ListToolsResultSchema,
  McpError,
  type Tool,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { ChildTransport } from "./child-transport.js";
import type { McpServerConfig } from "./config.js";
import { toolFailed } from "./unwrap.js";

export interface UpstreamParts {
  readonly name: string;
  readonly config: McpServerConfig;
  /** What servers are told of their client. */
  readonly version: string;
  /** For the operator: one line. Must not throw. */
  readonly onNote: (text: string) => void;
  /** Its tools, whenever it was asked for them after `start`. Must not throw. */
  readonly onTools: (tools: readonly Tool[]) => void;
  /** Why it is not there, when `startLater` has tried again in vain. Must not throw. */
  readonly onFailed: (reason: string) => void;
}

export interface UpstreamCall {
  readonly signal: AbortSignal;
  /** Whether the tool says that it changes nothing. */
  readonly readOnly: boolean;
}

interface Connection {
  readonly client: Client;
  readonly transport: ChildTransport;
}

const toolsMost = 2_048;
const pagesMost = 256;
const backOffLeastMs = 250;
const backOffMostMs = 30_000;
/** Between two lists, however often a server says that its tools changed. */
const listPauseMs = 250;
/** A server that ran this long starts again without delay. */
const soundMs = 60_000;
/** The SDK's own timers are not used: the longest that there is. */
const never = 0x7fffffff;

export class Upstream {
  readonly #parts: UpstreamParts;
  #connection: Connection | undefined;
  #restart: NodeJS.Timeout | undefined;
  #restarting: Promise<void> = Promise.resolve();
  #failures = 0;
  /** Said of its last failed start, to be said once. */
  #told = "";
  #ranBefore = false;
  #closed = false;
  readonly #closing = new AbortController();

  constructor(parts: UpstreamParts) {
    this.#parts = parts;
  }

  /** The server's tools. Rejects when it cannot be started or does not answer in time; it is ended then. */
  async start(): Promise<readonly Tool[]> {
    return await this.#connect();
  }

  /** After `start` was in vain, which was told: tries again, each time later, until it is closed. */
  startLater(reason: string): void {
    if (this.#closed) return;
    this.#told = reason;
    this.#failures += 1;
    this.#startLater();
  }

  async call(tool: string, input: unknown, { signal, readOnly }: UpstreamCall): Promise<CallToolResult> {
    const { name, config } = this.#parts;
    const connection = this.#connection;
    if (connection === undefined)
      throw new HostError("unavailable", `the server ${name} is not running; it is being started again`);
    const stop = new AbortController();
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      stop.abort("the call took too long");
    }, config.callMs);
    const abort = (): void => stop.abort("the call was cancelled");
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    const args = typeof input === "object" && input !== null ? { arguments: { ...input } } : {};
    try {
      return await connection.client.request(
        { method: "tools/call", params: { name: tool, ...args } },
        CallToolResultSchema,
        { signal: stop.signal, timeout: never },
      );
    } catch (error) {
      const maybe = (code: "timeout" | "unavailable", text: string): HostError =>
        readOnly
          ? new HostError(code, text)
          : new HostError("outcome_unknown", `${text}; the call may have taken effect`);
      if (signal.aborted) throw new HostError("cancelled", "the call was cancelled");
      if (late) throw maybe("timeout", `the server ${name} did not answer within ${config.callMs} ms`);
      if (connection.transport.ended !== undefined)
        throw maybe("unavailable", `the server ${name} ended during the call`);
      if (error instanceof McpError) throw toolFailed(error.message.replace(/^(?:MCP error -?\d+: )+/, ""));
      throw new HostError("upstream", `the server ${name} answered what is no result of a tool`);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#restart);
    this.#closing.abort();
    const connection = this.#connection;
    this.#connection = undefined;
    await Promise.all([connection?.transport.close(), this.#restarting]);
  }

  async #connect(): Promise<readonly Tool[]> {
    const { config, version } = this.#parts;
    const transport = new ChildTransport(config);
    const client = new Client({ name: "flowcell", version }, { jsonSchemaValidator: noValidator });
    const connection: Connection = { client, transport };
    const began = Date.now();
    let serves = false;
    let changed = false;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      if (serves) void lists.again();
      else changed = true;
    });
    const lists = new Relister(async () => {
      if (this.#connection !== connection) return;
      const tools = await listTools(client, config.startMs);
      if (this.#connection === connection) this.#parts.onTools(tools);
    }, this.#parts);
    client.onclose = () => {
      if (serves) this.#ended(connection, Date.now() - began);
    };
    const deadline = deadlineOf(config.startMs, this.#closing.signal);
    try {
      const tools = await Promise.race([
        client.connect(transport, { timeout: never }).then(() => listTools(client, never)),
        deadline.passed,
      ]);
      if (transport.ended !== undefined) throw new Error(transport.ended);
      serves = true;
      this.#connection = connection;
      this.#ranBefore = true;
      this.#told = "";
      // It said so while it was asked.
      if (changed) void lists.again();
      return tools;
    } catch (error) {
      const why = transport.ended ?? (error instanceof Error ? error.message : String(error));
      const { diagnostics } = transport;
      await transport.close();
      throw new Error(withDiagnostics(why, diagnostics));
    } finally {
      deadline.clear();
    }
  }

  #ended(connection: Connection, ranMs: number): void {
    if (this.#closed || this.#connection !== connection) return;
    this.#connection = undefined;
    this.#failures = ranMs >= soundMs ? 0 : this.#failures + 1;
    const { ended, diagnostics } = connection.transport;
    this.#parts.onNote(
      withDiagnostics(`the server ${this.#parts.name} is gone: ${ended ?? "closed"}`, diagnostics),
    );
    // What it left in its process group.
    this.#restarting = connection.transport.close();
    this.#startLater();
  }

  #startLater(): void {
    const waitMs = Math.min(backOffMostMs, backOffLeastMs * 2 ** Math.min(this.#failures, 12));
    this.#restart = setTimeout(() => {
      this.#restarting = this.#again();
    }, waitMs);
    this.#restart.unref();
  }

  async #again(): Promise<void> {
    const { name, onNote, onTools, onFailed } = this.#parts;
    const again = this.#ranBefore ? " again" : "";
    try {
      const tools = await this.#connect();
      onNote(`the server ${name} runs${again === "" ? " now" : again}`);
      onTools(tools);
    } catch (error) {
      if (this.#closed) return;
      this.#failures += 1;
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== this.#told) onNote(`the server ${name} did not start${again}: ${reason}`);
      this.#told = reason;
      onFailed(reason);
      this.#startLater();
    }
  }
}

/** Asks for a list once for all that was said of it meanwhile, and not too often. */
class Relister {
  readonly #list: () => Promise<void>;
  readonly #parts: UpstreamParts;
  #asked = false;
  #listing = false;

  constructor(list: () => Promise<void>, parts: UpstreamParts) {
    this.#list = list;
    this.#parts = parts;
  }

  async again(): Promise<void> {
    this.#asked = true;
    if (this.#listing) return;
    this.#listing = true;
    while (this.#asked) {
      await new Promise((resolve) => setTimeout(resolve, listPauseMs).unref());
      this.#asked = false;
      try {
        await this.#list();
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        this.#parts.onNote(`the tools of ${this.#parts.name} changed and were not listed: ${reason}`);
      }
    }
    this.#listing = false;
  }
}

async function listTools(client: Client, timeout: number): Promise<readonly Tool[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const tools: Tool[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < pagesMost; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const answer = await client.request({ method: "tools/list", params }, ListToolsResultSchema, { timeout });
    tools.push(...answer.tools);
    if (tools.length > toolsMost) throw new Error(`it has more than ${toolsMost} tools`);
    if (answer.nextCursor === undefined || answer.nextCursor === "") return tools;
    cursor = answer.nextCursor;
  }
  throw new Error(`its list of tools has more than ${pagesMost} pages`);
}

function deadlineOf(startMs: number, closing: AbortSignal): { passed: Promise<never>; clear: () => void } {
  let clear = (): void => {};
  const passed = new Promise<never>((_, reject) => {
    const stop = (): void => reject(new Error("it was closed while it started"));
    const timer = setTimeout(() => reject(new Error(`it did not answer within ${startMs} ms`)), startMs);
    closing.addEventListener("abort", stop, { once: true });
    if (closing.aborted) stop();
    clear = () => {
      clearTimeout(timer);
      closing.removeEventListener("abort", stop);
    };
  });
  return { passed, clear };
}

function withDiagnostics(text: string, lines: readonly string[]): string {
  return lines.length === 0 ? text : `${text}\n${lines.map((line) => `    ${line}`).join("\n")}`;
}

/**
 * The SDK would compile servers' schemas to code. Answers are checked against the tools' own schemas by codemode; here nothing
 * asks for a validator.
 */
const noValidator = {
  getValidator: () => () => {
    throw new Error("nothing is validated here");
  },
};
