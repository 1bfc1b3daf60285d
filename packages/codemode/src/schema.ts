/**
 * A schema of any kind that tools come with, as one that a value is checked by and a model is shown. makeToolSet calls
 * toolSchema for schemas of the embedding program, the MCP client serverSchema for those of a server.
 *
 * Kinds: Standard Schema (zod and others), JSON Schema of drafts 4 to 2020-12, schemas of the AI SDK, and what this file made
 * before.
 *
 * TRUST: a Standard Schema is code of the embedding program and is run; a JSON Schema is data, and is neither compiled to code
 * nor able to open anything (types/adopt-schema.ts). Values are a script's.
 * Kept true: a message names places and rules, never what the host's own code threw.
 */

import { type CompiledSchema, compileSchema, type JsonSchema, pathText } from "@flowcell/manifest";
import { type core, toJSONSchema } from "zod/mini";
import type { SchemaVerdict, ToolSchema } from "./tools.js";
import { adoptSchema, isPlain, SchemaProblem } from "./types/adopt-schema.js";

/** The part of Standard Schema (version 1) that is used. */
interface StandardSchema {
  readonly version: 1;
  readonly vendor: unknown;
  readonly validate: (value: unknown) => unknown;
  readonly jsonSchema?: unknown;
}

type Json = Readonly<Record<string, unknown>>;
type Role = "input" | "output";

const aiSdkSchema = Symbol.for("vercel.ai.schema");
const issuesShown = 5;
const messageCharsMax = 2_000;
const made = new WeakSet<object>();

/**
 * A schema of the embedding program. `where` is the key it stands at: the value of `outputSchema` is an output, any other an
 * input. Throws an Error that says what is wrong, for the caller to put the tool's name before.
 */
export function toolSchema(
  given: unknown,
  where: "inputSchema" | "outputSchema" | (string & {}),
): ToolSchema {
  const role = where === "outputSchema" ? "output" : "input";
  if (isMade(given)) return given;
  const standard = standardOf(given);
  if (standard !== undefined) return keep(fromStandard(given, standard, role));
  if (typeof given === "object" && given !== null && aiSdkSchema in given)
    return keep(fromAiSdk(given, role));
  if (typeof given === "function")
    throw new SchemaProblem("is a function; pass the schema that it makes, or a Standard Schema");
  if (!isPlain(given))
    throw new SchemaProblem("is neither a Standard Schema (such as zod's) nor a JSON Schema");
  const loose = Object.keys(given).find((key) => standardOf(given[key]) !== undefined);
  if (loose !== undefined)
    throw new SchemaProblem(
      `is an object of schemas (${JSON.stringify(loose)}, …); put z.object() around it`,
    );
  return keep(fromJson(adoptSchema(given, "own").schema, role));
}

/** A server's schema, and what of it is not checked here. */
export interface ServerSchema {
  readonly schema: ToolSchema;
  readonly warnings: readonly string[];
}

/**
 * The `inputSchema` or `outputSchema` of an MCP tool. Never throws: what cannot be read is left out with a warning, because
 * the server checks its input itself and one bad schema must not take the server's other tools away. Formats are shown and
 * not checked, as JSON Schema has it.
 */
export function serverSchema(given: unknown, role: Role): ServerSchema {
  try {
    const { schema, warnings } = adoptSchema(given, "server");
    return { schema: keep(fromJson(schema, role)), warnings };
  } catch (error) {
    if (!(error instanceof SchemaProblem)) throw error;
    return { schema: keep(fromJson({}, role)), warnings: [`the ${role}Schema ${error.message}`] };
  }
}

function keep(schema: ToolSchema): ToolSchema {
  made.add(schema);
  return Object.freeze(schema);
}

function isMade(given: unknown): given is ToolSchema {
  return typeof given === "object" && given !== null && made.has(given);
}

function fromJson(schema: JsonSchema, role: Role): ToolSchema {
  const compiled = compile(schema);
  const json = typeof schema === "object" ? schema : schema ? {} : { not: {} };
  return { json, validate: (value) => checkJson(compiled, value, role) };
}

function compile(schema: JsonSchema): CompiledSchema {
  const result = compileSchema(schema);
  if (!result.ok) throw new RangeError("a schema that was not adopted");
  return result.compiled;
}

function checkJson(compiled: CompiledSchema, value: unknown, role: Role): SchemaVerdict {
  const verdict = compiled.check(value, role);
  if (verdict.ok) return { ok: true, value };
  if (value === undefined && role === "input" && compiled.check({}, role).ok) return { ok: true, value: {} };
  return { ok: false, message: verdict.message, path: verdict.steps };
}

function standardOf(given: unknown): StandardSchema | undefined {
  if ((typeof given !== "object" && typeof given !== "function") || given === null) return undefined;
  if (!("~standard" in given)) return undefined;
  const standard = given["~standard"];
  if (typeof standard !== "object" || standard === null) return undefined;
  const isOne =
    "version" in standard &&
    standard.version === 1 &&
    "validate" in standard &&
    typeof standard.validate === "function";
  return isOne ? (standard as StandardSchema) : undefined; // version 1 says what the members are
}

function fromStandard(given: unknown, standard: StandardSchema, role: Role): ToolSchema {
  return {
    json: standardJson(given, standard, role),
    validate: (value) => orEmpty(value, role, (each) => checkStandard(standard, each, role)),
  };
}

/** `tools.list()` means `tools.list({})` where that is allowed. */
async function orEmpty(
  value: unknown,
  role: Role,
  check: (value: unknown) => Promise<SchemaVerdict>,
): Promise<SchemaVerdict> {
  const verdict = await check(value);
  if (verdict.ok || value !== undefined || role === "output") return verdict;
  const empty = await check({});
  return empty.ok ? empty : verdict;
}

async function checkStandard(standard: StandardSchema, value: unknown, role: Role): Promise<SchemaVerdict> {
  let result: unknown;
  try {
    result = await standard.validate(value);
  } catch {
    return uncheckable(role);
  }
  if (typeof result !== "object" || result === null) return uncheckable(role);
  const issues = "issues" in result ? result.issues : undefined;
  if (issues !== undefined) return refusal(issues, role);
  return "value" in result ? { ok: true, value: result.value } : uncheckable(role);
}

/** The schema's own code threw or broke its contract. What it said may be of the host and stays here. */
function uncheckable(role: Role): SchemaVerdict {
  return { ok: false, message: `${role} could not be checked: its schema failed`, path: [] };
}

function refusal(issues: unknown, role: Role): SchemaVerdict {
  const list: readonly unknown[] = Array.isArray(issues) ? issues : [];
  const told = list.slice(0, issuesShown).map((issue) => issueText(issue, role));
  const more = list.length > issuesShown ? `; and ${list.length - issuesShown} more` : "";
  const message = told.length === 0 ? `${role} is refused by its schema` : told.join("; ") + more;
  return { ok: false, message: message.slice(0, messageCharsMax), path: issuePath(list[0]) };
}

function issueText(issue: unknown, role: Role): string {
  const message =
    typeof issue === "object" && issue !== null && "message" in issue ? issue.message : undefined;
  return `${pathText([role, ...issuePath(issue)])}: ${typeof message === "string" ? message : "is refused"}`;
}

function issuePath(issue: unknown): (string | number)[] {
  const path = typeof issue === "object" && issue !== null && "path" in issue ? issue.path : undefined;
  if (!Array.isArray(path)) return [];
  return path.map((step: unknown) => {
    const key = typeof step === "object" && step !== null && "key" in step ? step.key : step;
    return typeof key === "number" ? key : String(key);
  });
}

/** What a model is shown of a Standard Schema: null when the library has no words for it. */
function standardJson(given: unknown, standard: StandardSchema, role: Role): Json | null {
  let json: unknown;
  try {
    json = standardAsJson(given, standard, role);
  } catch {
    return null;
  }
  if (!isPlain(json)) return null;
  const { schema } = adoptSchema(json, "server");
  return typeof schema === "object" ? schema : null;
}

interface Converter {
  readonly input: (options: object) => unknown;
  readonly output: (options: object) => unknown;
}

function standardAsJson(given: unknown, standard: StandardSchema, role: Role): unknown {
  const zodOptions = { unrepresentable: "any", override: nameRuntimeType };
  const { jsonSchema, vendor } = standard;
  if (
    typeof jsonSchema === "object" &&
    jsonSchema !== null &&
    "input" in jsonSchema &&
    "output" in jsonSchema
  ) {
    const converter = jsonSchema as Converter; // Standard JSON Schema says what the members are
    const libraryOptions = vendor === "zod" ? { libraryOptions: zodOptions } : {};
    return converter[role]({ target: "draft-2020-12", ...libraryOptions });
  }
  // Zod 4 before it had the converter.
  if (typeof given !== "object" || given === null || !("_zod" in given)) return undefined;
  const schema = given as unknown as core.$ZodType; // `_zod` marks a schema of zod 4
  return toJSONSchema(schema, { io: role, unrepresentable: "any", override: nameRuntimeType });
}

/** Values that cross as they are and that JSON Schema has no word for. */
const runtimeTypes: ReadonlyMap<string, string> = new Map([
  ["date", "Date"],
  ["bigint", "bigint"],
  ["map", "Map<unknown, unknown>"],
  ["set", "Set<unknown>"],
  ["undefined", "undefined"],
  ["void", "undefined"],
]);

interface ZodOverride {
  readonly zodSchema: { readonly _zod: { readonly def: { readonly type: string } } };
  readonly jsonSchema: { [key: string]: unknown };
}

function nameRuntimeType({ zodSchema, jsonSchema }: ZodOverride): void {
  const type = runtimeTypes.get(zodSchema._zod.def.type);
  if (type !== undefined) jsonSchema["x-type"] = type;
}

/** A schema made by the AI SDK's `jsonSchema` or `zodSchema`. */
function fromAiSdk(given: object, role: Role): ToolSchema {
  const json: unknown = "jsonSchema" in given ? given.jsonSchema : undefined;
  const validate: unknown = "validate" in given ? given.validate : undefined;
  const isLate = typeof json === "object" && json !== null && "then" in json;
  if (typeof validate === "function") {
    const shown = isLate || !isPlain(json) ? true : adoptSchema(json, "server").schema;
    return {
      json: typeof shown === "object" ? shown : null,
      validate: (value) =>
        orEmpty(value, role, (each) => checkAiSdk(() => Reflect.apply(validate, given, [each]), role)),
    };
  }
  if (!isLate) return fromJson(adoptSchema(json, "own").schema, role);
  let compiled: Promise<CompiledSchema> | undefined;
  return {
    json: null,
    validate: async (value) => {
      compiled ??= Promise.resolve(json).then((late: unknown) => compile(adoptSchema(late, "own").schema));
      try {
        return checkJson(await compiled, value, role);
      } catch {
        return uncheckable(role);
      }
    },
  };
}

async function checkAiSdk(validate: () => unknown, role: Role): Promise<SchemaVerdict> {
  let result: unknown;
  try {
    result = await validate();
  } catch {
    return uncheckable(role);
  }
  if (typeof result !== "object" || result === null || !("success" in result)) return uncheckable(role);
  if (result.success === true && "value" in result) return { ok: true, value: result.value };
  return refusal(issuesOf("error" in result ? result.error : undefined), role);
}

/** Zod's errors hold issues; the SDK's own hold them as their cause. */
function issuesOf(error: unknown): unknown {
  if (typeof error !== "object" || error === null) return [];
  if ("issues" in error) return error.issues;
  if ("cause" in error && Array.isArray(error.cause)) return error.cause;
  return "message" in error ? [{ message: error.message }] : [];
}
