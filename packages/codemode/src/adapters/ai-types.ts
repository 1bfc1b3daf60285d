/**
 * The shapes of the AI SDK (`ai` 6 and 7) that its tools are given and give. Written out here, so that neither the SDK nor its
 * types need be there; a test passes what this package makes to the SDK's own functions.
 */

/** What the SDK tells a tool beside its input. Version 7 calls the context `context`. */
export interface AiCallOptions {
  readonly toolCallId: string;
  readonly messages: readonly unknown[];
  readonly abortSignal?: AbortSignal | undefined;
  readonly experimental_context?: unknown;
  readonly context?: unknown;
}

/** A tool of the SDK, as far as a script's calls need it. Methods, so that tools of narrower inputs fit. */
export interface AiTool {
  readonly description?: unknown;
  readonly inputSchema?: unknown;
  readonly outputSchema?: unknown;
  readonly needsApproval?: unknown;
  readonly type?: unknown;
  execute?(input: never, options: never): unknown;
}

/** A result as the model reads it: the SDK's `ToolResultOutput`, the two kinds of it that are used. */
export type AiModelOutput = { type: "text"; value: string } | { type: "error-text"; value: string };

/** Standard Schema with a JSON Schema beside it, as the SDK takes it for `inputSchema`. */
export interface AiInputSchema<Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (
      value: unknown,
    ) => { readonly value: Input } | { readonly issues: readonly { readonly message: string }[] };
    readonly types?: { readonly input: unknown; readonly output: Input };
    readonly jsonSchema: {
      readonly input: () => Record<string, unknown>;
      readonly output: () => Record<string, unknown>;
    };
  };
}
