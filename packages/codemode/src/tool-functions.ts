/**
 * Tools as host functions: the rows that a worker's calls are dispatched to. codemode.ts makes them once for its tools.
 *
 * TRUST: arguments were decoded within the run's bounds; here they are checked by the tool's own schema. A tool sees nothing
 * that its schema did not let through, and what it answers is sent only if its output schema, when there is one, agrees.
 */

import {
  type CallContext,
  defineHostFunction,
  HostError,
  type HostFunction,
  LazySignal,
  type Schema,
  type SchemaResult,
} from "@flowcell/host";
import { callName } from "./tool-set.js";
import type { SchemaVerdict, Tool, ToolContext, ToolSchema } from "./tools.js";

export function toolFunction(tool: Tool): HostFunction {
  const name = callName(tool);
  return defineHostFunction({
    name,
    doc: docLine(tool),
    effect: tool.effect,
    grant: null,
    input: argumentsOf(tool, name),
    handler: (args, context) => callTool(tool, name, args, context),
  });
}

export function callTool(tool: Tool, name: string, args: readonly unknown[], context: CallContext): unknown {
  const answer = tool.call(args, new CallOfTool(context));
  return tool.output === null ? answer : checkedOutput(tool.output, answer, name);
}

class CallOfTool extends LazySignal implements ToolContext {
  readonly idempotencyKey: string;
  readonly position: number;
  readonly runId: string;

  constructor(context: CallContext) {
    super(context);
    this.idempotencyKey = context.idempotencyKey;
    this.position = context.position;
    this.runId = context.runId ?? "";
  }
}

export function docLine({ description, originalName }: Tool): string {
  const line = description.trim().split(/\s*[\n\r\u2028\u2029]\s*/, 1)[0] ?? "";
  return line === "" ? originalName.replaceAll(/\s+/g, " ") : line;
}

export function argumentsOf({ input }: Tool, name: string): Schema<readonly unknown[]> {
  const validate = input === null ? everything : (value: unknown) => checkedInput(input, asList(value), name);
  return { "~standard": { version: 1, vendor: "flowcell", validate } };
}

function everything(value: unknown): SchemaResult<readonly unknown[]> {
  return { value: asList(value) };
}

/** The dispatcher has made sure that it is one. */
function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

type Checked = SchemaResult<readonly unknown[]>;

function checkedInput(
  schema: ToolSchema,
  args: readonly unknown[],
  name: string,
): Checked | Promise<Checked> {
  if (args.length > 1) {
    const message = `${name}: takes one object with all its inputs, not ${args.length} arguments`;
    throw new HostError("invalid_arguments", message);
  }
  const verdict = schema.validate(args[0]);
  return verdict instanceof Promise
    ? verdict.then((settled) => inputOf(settled, name))
    : inputOf(verdict, name);
}

function inputOf(verdict: SchemaVerdict, name: string): Checked {
  if (verdict.ok) return { value: [verdict.value] };
  const message = `${name}: ${verdict.message}`;
  throw new HostError("invalid_arguments", message, { detail: { path: verdict.path } });
}

async function checkedOutput(schema: ToolSchema, answer: unknown, name: string): Promise<unknown> {
  const value = await answer;
  const verdict = await schema.validate(value);
  // Sent as it is: what a schema leaves out or fills in is for the program that wrote it.
  if (verdict.ok) return value;
  const message = `${name}: the tool answered what its outputSchema does not allow: ${verdict.message}`;
  throw new HostError("internal", message, { detail: { path: verdict.path } });
}
