/** `flowcell/codemode`: scripts that a model wrote, against tools, in confined workers. */

export {
  type Codemode,
  type CodemodeOptions,
  CodemodeOptionsError,
  createCodemode,
  type ExecuteFailed,
  type ExecuteOptions,
  type ExecuteResult,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolEffect,
  type ToolFunction,
  type ToolNamespace,
  type ToolSchema,
  type ToolSet,
  type ToolsGiven,
} from "@flowcell/codemode";
