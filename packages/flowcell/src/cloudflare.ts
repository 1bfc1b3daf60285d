/** `flowcell/cloudflare`: an executor for @cloudflare/codemode on Node. `flowcell/cloudflare-node` lets Node load that package. */

export {
  type CloudflareCallOptions,
  type CloudflareConnector,
  type CloudflareExecutor,
  type CloudflareFunctions,
  type CloudflareProvider,
  type CloudflareResult,
  CodemodeOptionsError,
  type ExecuteResult,
  FlowcellExecutor,
  type FlowcellExecutorOptions,
  reportOf,
} from "@flowcell/codemode";
