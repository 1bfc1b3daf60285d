/**
 * From the `tools` that a program passes to the tools that scripts call. createCodemode and the adapters call it.
 *
 *   { add: (a, b) => a + b }                                   tools.add(1, 2): positional arguments, not checked
 *   { find: { description, inputSchema, execute } }            tools.find({ … }): one input, checked before `execute`
 *   { github: { list: …, get: { inputSchema, execute } } }     github.list(…): an object of these is a namespace
 *
 * Kept true: only own properties are read, each once; every tool has a name of its own that a script can write; what is no
 * tool is refused with its path and a remedy, never ignored.
 */

import { didYouMean } from "@flowcell/protocol";
import { namespaceName, toolName } from "./tool-names.js";
import type { Tool, ToolContext, ToolEffect, ToolSchema, ToolSet } from "./tools.js";

/** `tools` or another option of `createCodemode` is wrong: a mistake of the embedding program. */
export class CodemodeOptionsError extends TypeError {
  override readonly name = "CodemodeOptionsError";
}

/** Reads a schema of any kind that is known; throws CodemodeOptionsError's message as an Error for what is none. */
export type ReadSchema = (schema: unknown, where: string) => ToolSchema;

/** A tool with one input. AI SDK tools have this shape too; what else they carry for the SDK is not used. */
export interface ToolDefinition {
  readonly description?: string;
  /** Standard Schema (zod and others) or JSON Schema. */
  readonly inputSchema?: unknown;
  readonly outputSchema?: unknown;
  // A method, so that a function of a narrower input fits: the schema is what makes the input narrow.
  execute(input: never, context: ToolContext): unknown;
  readonly needsApproval?: boolean | ((input: never) => boolean | Promise<boolean>);
  /** Default once: never repeated unless it is known not to have begun. */
  readonly effect?: ToolEffect;
}

export type ToolFunction = (...args: never[]) => unknown;
export type ToolNamespace = { readonly [name: string]: ToolFunction | ToolDefinition };
export type ToolsGiven = { readonly [name: string]: ToolFunction | ToolDefinition | ToolNamespace };

export const rootNamespace = "tools";
/** How a script writes the call; also the name on the wire. */
export function callName({ namespace, name }: Pick<Tool, "namespace" | "name">): string {
  return `${namespace}.${name}`;
}

/** Whether calls of the tool may have to be approved. */
export function mayAsk({ needsApproval }: Tool): boolean {
  return needsApproval !== false;
}

/** What one activation can be told. */
const toolsMost = 4096;
const descriptionCharsMost = 64 * 1024;

const toolKeys = [
  "description",
  "inputSchema",
  "outputSchema",
  "execute",
  "needsApproval",
  "effect",
] as const;
/** What tools of the AI SDK and of MCP have beside these, for their own programs. */
const foreignKeys: ReadonlySet<string> = new Set([
  "type",
  "id",
  "name",
  "title",
  "annotations",
  "args",
  "icons",
  "inputExamples",
  "isProviderExecuted",
  "metadata",
  "onInputAvailable",
  "onInputDelta",
  "onInputStart",
  "providerOptions",
  "strict",
  "supportsDeferredResults",
  "toModelOutput",
  "_meta",
]);
const effects: readonly string[] = ["read", "keyed", "once"];

interface Found {
  readonly namespace: string;
  readonly name: string;
  /** As the program wrote it. */
  readonly path: string;
}

export function makeToolSet(given: unknown, readSchema: ReadSchema): ToolSet {
  const entries = ownEntries(given, "tools");
  const builder = new Builder(readSchema);
  for (const [original, value] of entries) builder.addTop(original, value);
  return builder.finish();
}

class Builder {
  readonly #readSchema: ReadSchema;
  readonly #tools: Tool[] = [];
  readonly #byName = new Map<string, Tool>();
  /** What is taken at the top: tools without a namespace, and namespaces. */
  readonly #top = new Map<string, string>();
  readonly #found = new Map<string, Found>();

  constructor(readSchema: ReadSchema) {
    this.#readSchema = readSchema;
  }

  addTop(original: string, value: unknown): void {
    if (typeof value === "function" || isTool(value)) {
      const name = this.#nameOf(original, `tool ${quote(original)}`, toolName);
      this.#take(name, original, "tool");
      this.#add(rootNamespace, name, original, value, original, undefined);
      return;
    }
    const entries = namespaceEntries(original, value);
    const namespace = this.#nameOf(original, `namespace ${quote(original)}`, namespaceName);
    this.#take(namespace, original, "namespace");
    for (const [inner, member] of entries) {
      const path = `${original}.${inner}`;
      const name = this.#nameOf(inner, `tool ${quote(path)}`, toolName);
      if (typeof member !== "function" && !isTool(member)) throw noTool(path, member);
      this.#add(namespace, name, inner, member, path, value);
    }
  }

  #nameOf(original: string, what: string, rule: typeof toolName): string {
    const result = rule(original);
    if (result.ok) return result.name;
    throw new CodemodeOptionsError(`${what} ${result.problem}`);
  }

  #take(name: string, original: string, kind: string): void {
    const other = this.#top.get(name);
    if (other !== undefined) {
      throw new CodemodeOptionsError(
        `${kind} ${quote(original)} and ${other} would both be ${quote(name)} in a script; rename one`,
      );
    }
    this.#top.set(name, `${kind} ${quote(original)}`);
  }

  #add(
    namespace: string,
    name: string,
    original: string,
    value: unknown,
    path: string,
    owner: unknown,
  ): void {
    const key = `${namespace}.${name}`;
    const other = this.#found.get(key);
    if (other !== undefined) {
      throw new CodemodeOptionsError(
        `tools ${quote(other.path)} and ${quote(path)} would both be ${key} in a script; rename one`,
      );
    }
    if (this.#tools.length >= toolsMost)
      throw new CodemodeOptionsError(`more than ${toolsMost} tools; pass fewer`);
    const identity = { namespace, name, originalName: original };
    const tool = Object.freeze(
      isFunction(value) ? positionalTool(identity, value, owner) : this.#definedTool(identity, value, path),
    );
    this.#found.set(key, { namespace, name, path });
    this.#tools.push(tool);
    this.#byName.set(key, tool);
  }

  #definedTool(identity: Identity, value: unknown, path: string): Tool {
    const fields = new Map(ownEntries(value, `tool ${quote(path)}`));
    checkKeys(fields, path);
    const execute = fields.get("execute");
    if (!isFunction(execute)) throw wrong(path, "needs execute, a function");
    const needsApproval = fields.get("needsApproval") ?? false;
    if (typeof needsApproval !== "boolean" && !isFunction(needsApproval))
      throw wrong(path, "has a needsApproval that is neither true or false nor a function of the input");
    const input = this.#schemaOf(fields.get("inputSchema"), path, "inputSchema");
    return {
      ...identity,
      description: descriptionOf(fields.get("description"), path),
      input: input ?? anything,
      output: this.#schemaOf(fields.get("outputSchema"), path, "outputSchema"),
      effect: effectOf(fields.get("effect"), path),
      needsApproval:
        typeof needsApproval === "boolean"
          ? needsApproval
          : async (checked) => (await needsApproval.call(value, checked)) === true,
      call: (args, context) => execute.call(value, args[0], context),
    };
  }

  #schemaOf(schema: unknown, path: string, key: string): ToolSchema | null {
    if (schema === undefined) return null;
    try {
      return this.#readSchema(schema, key);
    } catch (error) {
      throw wrong(path, `has an ${key} that cannot be used: ${error instanceof Error ? error.message : ""}`);
    }
  }

  finish(): ToolSet {
    const byName = this.#byName;
    return Object.freeze({
      tools: Object.freeze(this.#tools),
      get: (namespace: string, name: string) => byName.get(`${namespace}.${name}`),
    });
  }
}

type Identity = Pick<Tool, "namespace" | "name" | "originalName">;
// biome-ignore lint/complexity/noBannedTypes: what a program passes as a function is only ever called
type AnyFunction = Function;

function isFunction(value: unknown): value is AnyFunction {
  return typeof value === "function";
}

function positionalTool(identity: Identity, execute: AnyFunction, owner: unknown): Tool {
  return {
    ...identity,
    description: "",
    input: null,
    output: null,
    effect: "once",
    needsApproval: false,
    call: (args) => execute.apply(owner, args),
  };
}

/** For a tool that says nothing of its input. */
const anything: ToolSchema = Object.freeze({
  json: Object.freeze({}),
  validate: (value: unknown) => ({ ok: true, value }) as const,
});

/** What has a function `execute` and a schema or a description; a namespace may well have a function of that name. */
function isTool(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const has = (key: string): boolean => Object.hasOwn(value, key);
  if (has("inputSchema") || has("parameters") || has("outputSchema")) return true;
  const description: unknown = Object.getOwnPropertyDescriptor(value, "description")?.value;
  return has("execute") && typeof description === "string";
}

function namespaceEntries(original: string, value: unknown): [string, unknown][] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw noTool(original, value);
  const entries = ownEntries(value, `namespace ${quote(original)}`);
  if (entries.length === 0) throw wrong(original, "is an empty object; a namespace holds functions or tools");
  return entries;
}

function noTool(path: string, value: unknown): CodemodeOptionsError {
  const kind = value === null ? "null" : Array.isArray(value) ? "an array" : `of type ${typeof value}`;
  return wrong(
    path,
    `is ${kind}; a tool is a function or { description, inputSchema, execute }, and an object of tools is a namespace`,
  );
}

function wrong(path: string, problem: string): CodemodeOptionsError {
  return new CodemodeOptionsError(`tool ${quote(path)} ${problem}`);
}

function ownEntries(value: unknown, what: string): [string, unknown][] {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new CodemodeOptionsError(`${what} must be an object of named tools`);
  return Object.entries(value);
}

function checkKeys(fields: ReadonlyMap<string, unknown>, path: string): void {
  for (const key of fields.keys()) {
    if (toolKeys.some((known) => known === key) || foreignKeys.has(key)) continue;
    const near = key === "parameters" || key === "schema" ? "inputSchema" : didYouMean(key, toolKeys);
    const hint = near === undefined ? `its keys are ${toolKeys.join(", ")}` : `did you mean ${near}?`;
    throw wrong(path, `has an unknown key ${quote(key)}: ${hint}`);
  }
}

function descriptionOf(value: unknown, path: string): string {
  if (value === undefined) return "";
  if (typeof value !== "string") throw wrong(path, "has a description that is no text");
  if (value.length > descriptionCharsMost)
    throw wrong(path, `has a description of more than ${descriptionCharsMost} characters`);
  return value;
}

function effectOf(value: unknown, path: string): ToolEffect {
  if (value === undefined) return "once";
  if (typeof value === "string" && effects.includes(value)) return value as ToolEffect; // one of the three, just looked up
  throw wrong(path, `has an effect that is none of ${effects.join(", ")}`);
}

function quote(name: string): string {
  return JSON.stringify(name.length > 80 ? `${name.slice(0, 77)}...` : name);
}
