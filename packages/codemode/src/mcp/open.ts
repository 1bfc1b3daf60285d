/**
 * The ways into this folder, each loading it when it is called: the SDK and its schemas take longer to load than everything
 * else here, and most programs with codemode have no MCP servers.
 */

import type { McpConfig, McpConfigParts, McpConfigResult } from "./config.js";
import type { McpServer, McpServerParts } from "./server.js";
import type { Upstreams, UpstreamsParts } from "./upstreams.js";

/** Reads a configuration, such as the text of `mcp.json`. Never rejects for what is in it. */
export async function parseMcpConfig(json: string, parts: McpConfigParts): Promise<McpConfigResult> {
  const config = await import("./config.js");
  return config.parseMcpConfig(json, parts);
}

/** The tools of the servers of a configuration, for createCodemode. Close it after the codemode. */
export async function openMcpTools(config: McpConfig, parts: UpstreamsParts): Promise<Upstreams> {
  const { openUpstreams } = await import("./upstreams.js");
  return await openUpstreams(config, parts);
}

/** An MCP server that is still to be connected; its upstream servers are being started. */
export async function openMcpServer(parts: McpServerParts): Promise<McpServer> {
  const server = await import("./server.js");
  return new server.McpServer(parts);
}
