// `flowcell mcp` as its clients have it: the built command line as a process, driven by the official SDK's client. Used by the
// tests of the MCP server.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { type CallToolResult, CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));
export const bin = join(root, "packages/flowcell/bin/flowcell.mjs");
const packages = join(root, "node_modules/@modelcontextprotocol");

/** A file of this folder. */
export const oddServer = fileURLToPath(new URL("./mcp-upstream.mjs", import.meta.url));
export const everything = {
  command: process.execPath,
  args: [join(packages, "server-everything/dist/index.js"), "stdio"],
};
export function filesystem(folder: string): { command: string; args: string[] } {
  return { command: process.execPath, args: [join(packages, "server-filesystem/dist/index.js"), folder] };
}

/** What a script's result is, as the tests read it. */
export interface Structured {
  readonly ok: boolean;
  readonly status: string;
  readonly runId: string;
  readonly value?: unknown;
  readonly error?: { readonly code: string; readonly name: string; readonly message: string };
  readonly logs: readonly { readonly text: string }[];
  readonly calls: readonly { readonly name: string; readonly state: string; readonly code?: string }[];
  readonly pending: readonly { readonly callId: string; readonly name: string; readonly args: unknown[] }[];
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
  readonly confinement: { readonly layers: readonly unknown[] } | null;
}

export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), "mcp-"));

  file(name: string): string {
    return join(this.path, name);
  }

  write(name: string, content: unknown): string {
    writeFileSync(this.file(name), typeof content === "string" ? content : JSON.stringify(content));
    return this.file(name);
  }

  lines(name: string): string[] {
    const path = this.file(name);
    return existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

export class McpProcess {
  readonly client: Client;
  readonly #transport: StdioClientTransport;
  #err = "";

  constructor(
    config: string,
    env: Record<string, string> = {},
    capabilities: { readonly elicitation?: Record<string, never> } = {},
  ) {
    this.client = new Client({ name: "test", version: "1.0.0" }, { capabilities });
    this.#transport = new StdioClientTransport({
      command: process.execPath,
      args: [bin, "mcp", "--config", config],
      env,
      stderr: "pipe",
    });
    this.#transport.stderr?.on("data", (some: Buffer) => {
      this.#err += some.toString("utf8");
    });
  }

  async open(): Promise<this> {
    await this.client.connect(this.#transport);
    // The client checks structured content only of tools that it has listed.
    await this.client.listTools();
    return this;
  }

  /** What it wrote to standard error. */
  get err(): string {
    return this.#err;
  }

  get pid(): number {
    return this.#transport.pid ?? 0;
  }

  async call(name: string, args: Record<string, unknown>, signal?: AbortSignal): Promise<CallToolResult> {
    const options = signal === undefined ? {} : { signal };
    return CallToolResultSchema.parse(
      await this.client.callTool({ name, arguments: args }, CallToolResultSchema, options),
    );
  }

  async execute(code: string): Promise<Structured> {
    return structuredOf(await this.call("execute", { code }));
  }

  async valueOf(code: string): Promise<unknown> {
    const { ok, value, error } = await this.execute(code);
    if (!ok) throw new Error(`${error?.code}: ${error?.message}`);
    return value;
  }

  async close(): Promise<void> {
    await this.client.close();
  }
}

/** The text must say the same as the structured content. */
export function structuredOf(result: CallToolResult): Structured {
  const structured = result.structuredContent as unknown as Structured; // the client has checked it against outputSchema
  expect(result.isError ?? false).toBe(!structured.ok && structured.status !== "suspended");
  expect(JSON.parse(textOf(result))).toMatchObject({ ok: structured.ok, status: structured.status });
  return structured;
}

export function textOf(result: CallToolResult): string {
  const [first] = result.content;
  if (first?.type !== "text") throw new Error("the first content is no text");
  return first.text;
}

export async function until(what: string, condition: () => boolean): Promise<void> {
  const end = Date.now() + 30_000;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`not within 30 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
