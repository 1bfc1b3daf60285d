/** The fenced bundler: an author's file becomes the script a worker evaluates, and the worker's positions the author's. */

export {
  type BundleOptions,
  type BundleResult,
  bundleFile,
  bundleSource,
  type Script,
} from "./bundle.js";
export type { BundleCode, BundleFailure } from "./failure.js";
export {
  bundleFlow,
  type FlowBundle,
  type FlowBundleOptions,
  type FlowBundleResult,
  type FlowFileResult,
  type FlowInput,
  flowEntryNames,
  readFlowFile,
  restoreScriptMap,
} from "./flow-folder.js";
export { foreignKind } from "./foreign-text.js";
export {
  type AssembledActivation,
  assembleResult,
  bundleFailed,
  logLine,
  notStarted,
  type ResultContext,
} from "./run-result.js";
export { type Edit, EditedText, type ScriptMap } from "./script-map.js";
export {
  LineIndex,
  type Place,
  printable,
  renderFrame,
  renderPlace,
  spelledOut,
  visibleJson,
} from "./source-text.js";
export { type MappedStack, mapConsoleText, mapStack, scriptFileName } from "./stack.js";
export { bundleFlowTest, type TestBundleOptions } from "./test-bundle.js";
