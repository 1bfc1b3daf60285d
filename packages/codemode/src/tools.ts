/**
 * What a tool is to codemode, whatever it was to the program that brought it: a name that a script can write, a schema of its
 * input when it has one, and a way to call it. Types only; tool-set.ts makes them, everything else reads them.
 */

import type { Effect } from "@flowcell/protocol";

/** What one value is checked by, and what it looks like to a model. */
export interface ToolSchema {
  /** JSON Schema; null when the schema cannot be shown as one. */
  readonly json: Readonly<Record<string, unknown>> | null;
  validate(value: unknown): Promise<SchemaVerdict> | SchemaVerdict;
}

export type SchemaVerdict =
  /** The value as the tool gets it: defaults filled in, transformed. */
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string; readonly path: readonly (string | number)[] };

/** What a tool is told of the call beside its arguments. */
export interface ToolContext {
  /** Aborted when the script cancels the call and when the execution ends before it. */
  readonly signal: AbortSignal;
  /** The same when the same call is made again after a crash; unguessable otherwise. */
  readonly idempotencyKey: string;
  /** Counts the script's calls from 0. */
  readonly position: number;
  readonly runId: string;
}

/** What a call does to the world: read changes nothing, keyed may be repeated under its idempotency key, once may not. */
export type ToolEffect = Extract<Effect, "read" | "keyed" | "once">;

export interface Tool {
  /** A script calls `<namespace>.<name>`; `tools` for those without a namespace of their own. */
  readonly namespace: string;
  /** An identifier. */
  readonly name: string;
  readonly originalName: string;
  readonly description: string;
  /** Null: positional arguments, not checked. */
  readonly input: ToolSchema | null;
  readonly output: ToolSchema | null;
  readonly effect: ToolEffect;
  readonly needsApproval: boolean | ((input: unknown) => boolean | Promise<boolean>);
  /** Checked arguments: one input when there is a schema of it. */
  call(args: readonly unknown[], context: ToolContext): unknown;
}

export interface ToolSet {
  /** In the order in which they were given. */
  readonly tools: readonly Tool[];
  get(namespace: string, name: string): Tool | undefined;
}
