/** `flowcell/ai`: one tool of the AI SDK (`ai` 6) in place of many, and stores for its approvals. Loads without the SDK. */

export {
  type CodemodeInput,
  CodemodeOptionsError,
  type CodemodeOutput,
  type CodemodeTool,
  type CodemodeToolOptions,
  codemodeTool,
  type JsonView,
  type PendingView,
  type PromptOptions,
} from "@flowcell/codemode";
export { MemoryStore, openSqliteStore, type SqliteStoreOptions, type Store } from "@flowcell/journal";
