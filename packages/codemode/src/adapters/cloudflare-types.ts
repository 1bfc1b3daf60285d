/**
 * The shapes of `Executor` in @cloudflare/codemode, which users of that package pass objects of. Written out here, so that
 * neither the package nor its types need be there; a test holds them to the package's own declarations.
 */

export interface ExecuteResult {
  result: unknown;
  /** Present means that the script failed, whatever its text. */
  error?: string;
  logs?: string[];
}

export type ProviderFunctions = Record<string, (...args: unknown[]) => Promise<unknown>>;

/** What a script can call as `name.function(…)`. */
export interface ResolvedProvider {
  name: string;
  fns: ProviderFunctions;
  /** Statements that run inside the worker before the script and see the namespaces; what they put on one wins over `fns`. */
  prelude?: string;
}

/** A namespace whose functions are not listed: each call is `callTool(name, first argument)`. */
export interface ConnectorBinding {
  name: string;
  binding: { callTool(method: string, args: unknown): Promise<unknown> };
}

export interface ExecutorCallOptions {
  connectors?: ConnectorBinding[];
}

export interface Executor {
  execute(
    code: string,
    providersOrFns: ResolvedProvider[] | ProviderFunctions,
    options?: ExecutorCallOptions,
  ): Promise<ExecuteResult>;
}
