/** Model-written code against tools, in a cell. */

export {
  type AiCallOptions,
  type AiInputSchema,
  type AiModelOutput,
  type AiTool,
  type CodemodeInput,
  type CodemodeOutput,
  type CodemodeTool,
  type CodemodeToolOptions,
  codemodeTool,
  type JsonView,
  type PendingView,
} from "./adapters/ai.js";
export {
  type ConnectorBinding as CloudflareConnector,
  type ExecuteResult as CloudflareResult,
  type Executor as CloudflareExecutor,
  type ExecutorCallOptions as CloudflareCallOptions,
  FlowcellExecutor,
  type FlowcellExecutorOptions,
  type ProviderFunctions as CloudflareFunctions,
  type ResolvedProvider as CloudflareProvider,
  reportOf,
} from "./adapters/cloudflare.js";
export { type Codemode, createCodemode } from "./codemode.js";
export type { ApprovalAnswer, CallFinding } from "./journal-answers.js";
export type { PendingExecution } from "./journal-requests.js";
export type { UnknownCall } from "./journal-result.js";
export type { McpConfig, McpConfigParts, McpConfigResult, McpServerConfig } from "./mcp/config.js";
export { openMcpServer, openMcpTools, parseMcpConfig } from "./mcp/open.js";
export type { McpServer, McpServerParts } from "./mcp/server.js";
export type { Upstreams as McpTools, UpstreamsParts as McpToolsParts } from "./mcp/upstreams.js";
export type { CodemodeOptions, ExecuteOptions, ResumeOptions } from "./options.js";
export { codemodePrompt, type PromptOptions, promptRules } from "./prompt.js";
export type { ExecuteFailed, ExecuteResult } from "./result.js";
export { type ServerSchema, serverSchema, toolSchema } from "./schema.js";
export { type SearchOptions, searchTools, type ToolHit } from "./search.js";
export { type NameResult, namespaceName, toolName } from "./tool-names.js";
export {
  CodemodeOptionsError,
  makeToolSet,
  type ToolDefinition,
  type ToolFunction,
  type ToolNamespace,
  type ToolsGiven,
} from "./tool-set.js";
export type { SchemaVerdict, Tool, ToolContext, ToolEffect, ToolSchema, ToolSet } from "./tools.js";
export { type CompactOptions, type CompactTypes, compactTypes } from "./types/compact.js";
export { type DeclarationOptions, toolDeclaration, toolDeclarations } from "./types/declarations.js";
