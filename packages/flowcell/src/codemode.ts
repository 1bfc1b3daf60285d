/**
 * `flowcell/codemode`: scripts that a model wrote, against tools, in confined workers; and the stores in which they can wait for
 * an approval.
 */

export {
  type ApprovalAnswer,
  type Codemode,
  type CodemodeOptions,
  CodemodeOptionsError,
  type CompactOptions,
  type CompactTypes,
  codemodePrompt,
  compactTypes,
  createCodemode,
  type DeclarationOptions,
  type ExecuteFailed,
  type ExecuteOptions,
  type ExecuteResult,
  type PromptOptions,
  type SearchOptions,
  searchTools,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolEffect,
  type ToolFunction,
  type ToolHit,
  type ToolNamespace,
  type ToolSchema,
  type ToolSet,
  type ToolsGiven,
  toolDeclarations,
} from "@flowcell/codemode";
export { MemoryStore, openSqliteStore, type SqliteStoreOptions, type Store } from "@flowcell/journal";
