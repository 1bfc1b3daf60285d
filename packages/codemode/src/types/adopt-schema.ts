/**
 * A JSON Schema of any draft from 4 to 2020-12, with what OpenAPI and tools add to it, as the dialect of the manifest: the
 * one that is evaluated and printed here. Called by schema.ts for every tool, and by the printers for schemas that came
 * another way.
 *
 * TRUST: the schema is a program's own or a server's that anybody wrote. It is only read: nothing is opened or fetched for a
 * `$ref` (one that leads out of the schema leads nowhere), and its size and depth are bounded.
 *
 * Two readings. A program's own schema (`own`) is refused when a part of it would silently check nothing. A server's
 * (`server`) keeps what can be read, and each part that cannot be is left out with a warning: the server checks its input
 * itself, and one bad schema must not take its other tools away. What is only an annotation is left out in both.
 */

import {
  compileSchema,
  type Finding,
  formatNames,
  type JsonSchema,
  type JsonValue,
  keywordNames,
  pathText,
} from "@flowcell/manifest";
import { didYouMean } from "@flowcell/protocol";
import { SchemaReferences } from "./schema-references.js";

export type Reading = "own" | "server";

export interface AdoptedSchema {
  /** Passes compileSchema; refers to its own parts only. */
  readonly schema: JsonSchema;
  /** What was left out of a server's schema, one line each. */
  readonly warnings: readonly string[];
}

/** A schema that cannot be used; the message says where and why. */
export class SchemaProblem extends Error {}

type Plain = { readonly [key: string]: unknown };
type Built = { [key: string]: JsonValue };
type Path = readonly (string | number)[];

/** Both below what compileSchema takes. */
const depthMax = 46;
const schemasMax = 1_500;
const valueDepthMax = 16;
const warningsMax = 20;
/** Each round mends up to 20 places. */
const mendingRoundsMax = 20;

const oneSchema = ["additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"];
const listsOfSchemas = ["allOf", "anyOf", "oneOf", "prefixItems"];
const mapsOfSchemas = ["properties", "patternProperties", "dependentSchemas"];
/** Read together with another keyword, or by SchemaReferences, or an address that nothing is fetched from. */
const readElsewhere: ReadonlySet<string> = new Set(
  (
    "$schema $id id $anchor $dynamicAnchor $recursiveAnchor $comment $vocabulary $defs definitions $ref $dynamicRef " +
    "$recursiveRef items additionalItems dependencies format nullable minimum maximum exclusiveMinimum exclusiveMaximum " +
    "unevaluatedProperties unevaluatedItems discriminator contentSchema minContains maxContains required"
  ).split(" "),
);
/** Annotations of other programs that look like a slip of the pen. */
const otherAnnotations: ReadonlySet<string> = new Set(
  "example enumNames enumDescriptions optional order xml externalDocs errorMessage markdownDescription label name tsType note comment comments in".split(
    " ",
  ),
);
/** @throws SchemaProblem; for a server's schema only when it is none at all. */
export function adoptSchema(given: unknown, reading: Reading): AdoptedSchema {
  if (typeof given !== "boolean" && !isPlain(given))
    throw new SchemaProblem("is no JSON Schema, which is an object (or true or false)");
  const adoption = new Adoption(given, reading);
  const schema = adoption.whole();
  return {
    schema: reading === "own" ? checked(schema) : mended(schema, adoption),
    warnings: adoption.warnings,
  };
}

class Adoption {
  readonly warnings: string[] = [];
  readonly #root: unknown;
  readonly #reading: Reading;
  readonly #references: SchemaReferences;
  readonly #names = new Map<object, string>();
  readonly #waiting: { readonly name: string; readonly schema: Plain }[] = [];
  readonly #open = new Set<object>();
  #schemas = 0;

  constructor(root: unknown, reading: Reading) {
    this.#root = root;
    this.#reading = reading;
    this.#references = new SchemaReferences(root);
  }

  whole(): JsonSchema {
    const root = this.#schema(this.#root, []);
    if (typeof root === "boolean") return root;
    const $defs: Built = {};
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      $defs[next.name] = this.#schema(next.schema, ["$defs", next.name]);
    }
    return Object.keys($defs).length === 0 ? root : { ...root, $defs };
  }

  /** What cannot be read: refused in a program's own schema, left out of a server's. */
  problem(path: Path, text: string): void {
    const whole = `${path.length === 0 ? "" : `${pathText(path)} `}${text}`;
    if (this.#reading === "own") throw new SchemaProblem(`${path.length === 0 ? "" : "at "}${whole}`);
    if (this.warnings.length < warningsMax) this.warnings.push(whole);
  }

  #schema(value: unknown, path: Path): JsonSchema {
    if (typeof value === "boolean") return value;
    if (!isPlain(value)) {
      this.problem(path, "is no schema");
      return true;
    }
    this.#schemas++;
    if (this.#schemas > schemasMax || path.length > depthMax || this.#open.has(value)) {
      this.problem(
        path,
        this.#open.has(value) ? "holds itself; use $ref" : "is too large or too deep to be read",
      );
      return true;
    }
    this.#open.add(value);
    const built = this.#keywords(value, path);
    this.#open.delete(value);
    return value["nullable"] === true ? orNull(built) : built;
  }

  #keywords(schema: Plain, path: Path): Built {
    const built: Built = {};
    for (const [keyword, value] of Object.entries(schema)) {
      if (value === undefined || readElsewhere.has(keyword)) continue;
      const at = [...path, keyword];
      if (oneSchema.includes(keyword)) built[keyword] = this.#schema(value, at);
      else if (listsOfSchemas.includes(keyword)) this.#list(built, keyword, value, at);
      else if (mapsOfSchemas.includes(keyword)) this.#map(built, keyword, value, at);
      else if (keyword === "x-type" || keyword === "x-format" || keywordNames.includes(keyword)) {
        if (isJson(value, 0)) built[keyword] = value;
        else this.problem(at, "is no value of JSON");
      } else this.#unknown(keyword, at);
    }
    this.#reference(built, schema, path);
    this.#items(built, schema, path);
    this.#members(built, schema, path);
    this.#bounds(built, schema, path);
    if (typeof schema["format"] === "string") {
      const isChecked = this.#reading === "own" && formatNames.includes(schema["format"]);
      built[isChecked ? "format" : "x-format"] = schema["format"];
    }
    if (built["if"] === undefined) for (const keyword of ["then", "else"]) delete built[keyword];
    return built;
  }

  #list(built: Built, keyword: string, value: unknown, path: Path): void {
    if (!Array.isArray(value)) this.problem(path, "is no list of schemas");
    else if (value.length > 0) {
      built[keyword] = value.map((each: unknown, index) => this.#schema(each, [...path, index]));
    }
  }

  #map(built: Built, keyword: string, value: unknown, path: Path): void {
    if (!isPlain(value)) {
      this.problem(path, "is no object of schemas");
      return;
    }
    built[keyword] = Object.fromEntries(
      Object.entries(value).map(([key, each]) => [key, this.#schema(each, [...path, key])]),
    );
  }

  #unknown(keyword: string, path: Path): void {
    if (keyword.startsWith("x-") || otherAnnotations.has(keyword)) return;
    const near = didYouMean(keyword, keywordNames);
    if (near !== undefined) this.problem(path, `is no keyword of JSON Schema; did you mean ${near}?`);
  }

  #reference(built: Built, schema: Plain, path: Path): void {
    for (const keyword of ["$ref", "$dynamicRef", "$recursiveRef"]) {
      const ref = schema[keyword];
      if (ref === undefined) continue;
      const target = typeof ref === "string" ? this.#references.target(ref) : undefined;
      if (target === undefined) {
        const why =
          typeof ref === "string" ? `"${ref.slice(0, 100)}" leads to nothing in this schema` : "is no text";
        this.problem([...path, keyword], `${why}; nothing else is opened for it`);
      } else if (typeof target === "boolean") built["allOf"] = [...listOf(built["allOf"]), target];
      else built["$ref"] = target === this.#root ? "#" : `#/$defs/${this.#nameOf(target, String(ref))}`;
    }
  }

  #nameOf(target: Plain, ref: string): string {
    const known = this.#names.get(target);
    if (known !== undefined) return known;
    const steps = ref.split(/[/#]/).filter((step) => /[A-Za-z]/.test(step) && !keywordNames.includes(step));
    const wanted = (steps.at(-1) ?? "part").replaceAll(/%[0-9A-Fa-f]{2}|[^A-Za-z0-9_-]/g, "") || "part";
    const taken = new Set(this.#names.values());
    let name = wanted;
    for (let number = 2; taken.has(name) || name === "__proto__"; number++) name = `${wanted}${number}`;
    this.#names.set(target, name);
    this.#waiting.push({ name, schema: target });
    return name;
  }

  #items(built: Built, schema: Plain, path: Path): void {
    const { items, additionalItems, unevaluatedItems, contains } = schema;
    if (Array.isArray(items)) {
      this.#list(built, "prefixItems", items, [...path, "items"]);
      if (additionalItems !== undefined)
        built["items"] = this.#schema(additionalItems, [...path, "additionalItems"]);
    } else if (items !== undefined) built["items"] = this.#schema(items, [...path, "items"]);
    if (unevaluatedItems !== undefined)
      this.problem([...path, "unevaluatedItems"], "is not checked; use items beside prefixItems");
    if (contains === undefined) return;
    for (const keyword of ["minContains", "maxContains"]) {
      if (isJson(schema[keyword], 0)) built[keyword] = schema[keyword];
    }
  }

  #members(built: Built, schema: Plain, path: Path): void {
    const { required, dependencies, unevaluatedProperties } = schema;
    if (isJson(required, 0)) built["required"] = Array.isArray(required) ? [...new Set(required)] : required;
    if (isPlain(dependencies)) {
      const names = Object.fromEntries(
        Object.entries(dependencies).filter(([, each]) => Array.isArray(each)),
      );
      const schemas = Object.entries(dependencies).filter(([, each]) => !Array.isArray(each));
      if (isJson(names, 0) && Object.keys(names).length > 0) built["dependentRequired"] ??= names;
      if (schemas.length > 0)
        this.#map(built, "dependentSchemas", Object.fromEntries(schemas), [...path, "dependencies"]);
    }
    if (unevaluatedProperties === undefined || unevaluatedProperties === true) return;
    // Alone it says the same as additionalProperties.
    const combines = ["allOf", "anyOf", "oneOf", "if", "$ref", "dependentSchemas"].some(
      (each) => each in built,
    );
    const at = [...path, "unevaluatedProperties"];
    if (combines) this.problem(at, "is not checked beside what combines schemas; use additionalProperties");
    else built["additionalProperties"] ??= this.#schema(unevaluatedProperties, at);
  }

  /** In draft 4 `exclusiveMinimum: true` says that the minimum itself is out. */
  #bounds(built: Built, schema: Plain, path: Path): void {
    const pairs = [
      ["minimum", "exclusiveMinimum"],
      ["maximum", "exclusiveMaximum"],
    ] as const;
    for (const [inclusive, exclusive] of pairs) {
      const isExclusive = schema[exclusive] === true;
      for (const keyword of [inclusive, exclusive]) {
        const value = schema[keyword];
        if (value === undefined || typeof value === "boolean") continue;
        if (typeof value === "number") built[isExclusive ? exclusive : keyword] = value;
        else this.problem([...path, keyword], "is no number");
      }
    }
  }
}

function orNull(built: Built): Built {
  const { type, enum: values } = built;
  if (Array.isArray(values)) {
    const more = values.includes(null) ? values : [...values, null];
    return { ...built, enum: more, ...(type === undefined ? {} : { type: withNull(type) }) };
  }
  if (type !== undefined) return { ...built, type: withNull(type) };
  const { description, ...rest } = built;
  const anyOf: JsonValue = [rest, { type: "null" }];
  return description === undefined ? { anyOf } : { description, anyOf };
}

function withNull(type: JsonValue): JsonValue {
  const types = listOf(Array.isArray(type) ? type : [type]);
  return types.includes("null") ? type : [...types, "null"];
}

/** Undefined findings mean that the schema can be evaluated. */
function findingsOf(schema: JsonSchema): readonly Finding[] | undefined {
  const result = compileSchema(schema);
  return result.ok ? undefined : result.findings;
}

function checked(schema: JsonSchema): JsonSchema {
  const [first] = findingsOf(schema) ?? [];
  if (first === undefined) return schema;
  const hint = first.suggestion === undefined ? "" : `; did you mean ${first.suggestion}?`;
  throw new SchemaProblem(
    `${first.path.length === 0 ? "" : `at ${pathText(first.path)}: `}${first.message}${hint}`,
  );
}

/** Takes away what cannot be evaluated, place by place. */
function mended(schema: JsonSchema, adoption: Adoption): JsonSchema {
  let current = schema;
  for (let round = 0; round < mendingRoundsMax; round++) {
    const findings = findingsOf(current);
    if (findings === undefined) return current;
    for (const { path, message } of findings) {
      adoption.problem(path, message);
      if (path.length === 0) return true;
      current = without(current, path) as JsonSchema; // the same with a part less
    }
  }
  adoption.problem([], "has too many parts that cannot be read; its input is not checked here");
  return true;
}

/** A copy without what stands at the path; an item of a list becomes the schema that accepts anything. */
function without(value: JsonValue, path: Path): JsonValue {
  const [step, ...rest] = path;
  if (step === undefined) return true;
  if (Array.isArray(value)) {
    return value.map((each: JsonValue, index) => (index === step ? without(each, rest) : each));
  }
  if (!isPlain(value) || !Object.hasOwn(value, step)) return value;
  const entries = Object.entries(value as { readonly [key: string]: JsonValue }); // members of JSON are JSON
  return Object.fromEntries(
    entries.flatMap(([key, each]) => {
      if (key !== String(step)) return [[key, each]];
      return rest.length === 0 ? [] : [[key, without(each, rest)]];
    }),
  );
}

export function isPlain(value: unknown): value is Plain {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function isJson(value: unknown, depth: number): value is JsonValue {
  if (depth > valueDepthMax) return false;
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (Array.isArray(value)) return value.every((each) => isJson(each, depth + 1));
  return isPlain(value) && Object.values(value).every((each) => isJson(each, depth + 1));
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}
