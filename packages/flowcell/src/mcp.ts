/**
 * `flowcell/mcp`: the tools of MCP servers for a codemode of one's own. It has its own createCodemode, since tools that one
 * bundle reads are nothing to another; the SDK's code is run when servers are opened.
 */

export {
  type Codemode,
  type CodemodeOptions,
  CodemodeOptionsError,
  createCodemode,
  type ExecuteOptions,
  type ExecuteResult,
  type McpConfig,
  type McpConfigParts,
  type McpConfigResult,
  type McpServerConfig,
  type McpTools,
  type McpToolsParts,
  openMcpTools,
  parseMcpConfig,
  type ToolsGiven,
} from "@flowcell/codemode";
export { MemoryStore, openSqliteStore, type SqliteStoreOptions, type Store } from "@flowcell/journal";
