/** Model-written code against tools, in a cell. */

export { type Codemode, createCodemode } from "./codemode.js";
export type { CodemodeOptions, ExecuteOptions } from "./options.js";
export type { ExecuteFailed, ExecuteResult } from "./result.js";
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
