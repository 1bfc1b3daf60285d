/** Model-written code against tools, in a cell. */
export type { SchemaVerdict, Tool, ToolContext, ToolSchema, ToolSet } from "./tools.js";
