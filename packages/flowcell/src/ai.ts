/** `flowcell/ai`: one tool of the AI SDK (`ai` 6 or 7) in place of many. Loads without it. */

export {
  type CodemodeInput,
  CodemodeOptionsError,
  type CodemodeOutput,
  type CodemodeTool,
  type CodemodeToolOptions,
  codemodeTool,
  type JsonView,
  type PendingView,
} from "@flowcell/codemode";
