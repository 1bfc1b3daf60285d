/**
 * `flowcell mcp`: an MCP server over standard input and output, whose scripts call the tools of the MCP servers of a file.
 * Standard output carries the protocol and nothing else; what an operator should know goes to standard error.
 *
 * Loaded only when it is asked for, as a bundle of its own: the MCP SDK takes longer to load than a run takes.
 * Kept true: mistakes in the file are told before the protocol begins; whatever ends the process, workers, servers and the
 * store are closed first.
 */

import { dirname, resolve } from "node:path";
import { type McpConfig, type McpServer, openMcpServer, parseMcpConfig } from "@flowcell/codemode";
import { openSqliteStore, type Store, StoreFailure, StoreHeld, StoreUnreadable } from "@flowcell/journal";
import { exitCodes } from "@flowcell/protocol";
import { indented } from "./human.js";
import { FileProblem, readBounded } from "./read-file.js";
import type { Streams, Typed } from "./typed.js";

declare const FLOWCELL_VERSION: string;

const configBytesMost = 1024 * 1024;
/** Another process of the same client may be on its way out. */
const heldMs = 5_000;

export async function mcpCommand(typed: Typed, streams: Streams): Promise<number> {
  const tell = (text: string): void => streams.err(`flowcell mcp: ${indented(text, "  ")}\n`);
  const path = typed.text("config");
  const config = await readConfig(path, tell);
  if (config === undefined) return exitCodes.configuration;
  let store: Store | undefined;
  try {
    if (config.store !== undefined) store = await openSqliteStore({ path: config.store, heldMs });
  } catch (error) {
    if (!isStoreError(error)) throw error;
    tell(`store: ${error.message}`);
    return exitCodes.store;
  }
  const server = await openMcpServer({
    config,
    version: FLOWCELL_VERSION,
    onNote: tell,
    ...(store === undefined ? {} : { store }),
  });
  return await serve(server, tell);
}

async function serve(server: McpServer, tell: (text: string) => void): Promise<number> {
  const stop = new Promise<"signal">((done) => {
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.once(signal, () => done("signal"));
  });
  const failed = new Promise<string>((done) => {
    server.ready.catch((error: unknown) => done(error instanceof Error ? error.message : String(error)));
  });
  await server.connectStdio(process.stdin, process.stdout);
  const end = await Promise.race([
    stop,
    server.over.then((): "over" => "over"),
    failed.then((message) => ({ message })),
  ]);
  await server.close();
  if (end === "signal" || end === "over") return 0;
  tell(end.message);
  return exitCodes.configuration;
}

/** Undefined after the mistakes were told. Without a file there are no servers, and scripts only compute. */
async function readConfig(
  path: string | undefined,
  tell: (text: string) => void,
): Promise<McpConfig | undefined> {
  const shown = path ?? "the configuration";
  const folder = path === undefined ? process.cwd() : dirname(resolve(path));
  let json = "{}";
  try {
    if (path !== undefined) {
      const bytes = readBounded(path, { bytesMax: configBytesMost, pipes: true });
      json = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    }
  } catch (error) {
    tell(`${shown}: ${readProblem(error)}`);
    return undefined;
  }
  const parsed = await parseMcpConfig(json, { folder, environment: process.env });
  if (parsed.ok) return parsed.config;
  for (const problem of parsed.problems) tell(`${shown}: ${problem}`);
  return undefined;
}

function readProblem(error: unknown): string {
  if (!(error instanceof FileProblem)) return "not UTF-8 text";
  if (error.kind === "too_large") return "larger than 1 MiB";
  if (error.kind === "missing")
    return "no such file; --config names a file such as examples/codemode/mcp.json";
  return error.message;
}

function isStoreError(error: unknown): error is StoreFailure | StoreHeld | StoreUnreadable {
  return error instanceof StoreFailure || error instanceof StoreHeld || error instanceof StoreUnreadable;
}
