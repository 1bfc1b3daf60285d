/**
 * Checks a JSON Schema before it is used: every keyword known and well formed, every `$ref` inside the document, nothing
 * unbounded. Called by json-schema.ts and, for `input` and `output`, by the manifest's schema.
 *
 * TRUST: the schema is a manifest's. After this check the evaluator and the type printer take its shape as given: they
 * look up keywords and find what keywordShapes says, or nothing.
 */

import { didYouMean } from "@flowcell/protocol";
import type { JsonValue } from "./json-document.js";
import { compilePattern, type LinearPattern } from "./linear-pattern.js";
import { type Finding, type Path, quote } from "./problem.js";
import { formatNames } from "./schema-formats.js";
import {
  foreignKeywords,
  inPlaceKeywords,
  type KeywordShape,
  keywordNames,
  keywordShapes,
  typeNames,
} from "./schema-keywords.js";

export type JsonSchemaObject = { readonly [keyword: string]: JsonValue };
export type JsonSchema = boolean | JsonSchemaObject;

/** What the evaluator needs beside the schema itself. */
export interface CheckedSchema {
  readonly root: JsonSchema;
  /** By the text of the `$ref`. */
  readonly refs: ReadonlyMap<string, JsonSchema>;
  /** By the text of the pattern. */
  readonly patterns: ReadonlyMap<string, LinearPattern>;
}

export type SchemaCheck =
  | { readonly ok: true; readonly checked: CheckedSchema }
  | { readonly ok: false; readonly findings: readonly Finding[] };

const depthMax = 48;
const subschemasMax = 2_000;
const findingsMax = 20;
const dialects: ReadonlySet<string> = new Set([
  "https://json-schema.org/draft/2020-12/schema",
  "https://json-schema.org/draft/2019-09/schema",
  "http://json-schema.org/draft-07/schema#",
  "http://json-schema.org/draft-07/schema",
]);

export function isPlainObject(value: unknown): value is { readonly [key: string]: unknown } {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** `schema` is JSON (no cycles); paths of the findings begin at it. */
export function checkSchema(schema: unknown): SchemaCheck {
  const check = new Check();
  check.schema(schema, []);
  // The walk found that it is a schema, unless it also found what is wrong.
  if (check.findings.length === 0) check.resolve(schema as JsonSchema);
  if (check.findings.length > 0) return { ok: false, findings: check.findings };
  return {
    ok: true,
    // The same: no findings.
    checked: { root: schema as JsonSchema, refs: check.refs, patterns: check.patterns },
  };
}

class Check {
  readonly findings: Finding[] = [];
  readonly refs = new Map<string, JsonSchema>();
  readonly patterns = new Map<string, LinearPattern>();
  /** Where subschemas stand, to resolve references: an object that is a value of `const` is none. */
  readonly #schemas = new Map<unknown, Path>();
  #count = 0;

  schema(schema: unknown, path: Path): void {
    if (this.findings.length >= findingsMax) return;
    if (typeof schema === "boolean") return;
    if (!isPlainObject(schema)) {
      this.#find(path, `must be a schema: an object, true or false, not ${kindOf(schema)}`);
      return;
    }
    this.#count++;
    if (this.#count === subschemasMax + 1) this.#find(path, `there are more than ${subschemasMax} schemas`);
    if (path.length > depthMax) this.#find(path, `is more than ${depthMax} levels deep; use $defs and $ref`);
    if (this.#count > subschemasMax || path.length > depthMax) return;
    this.#schemas.set(schema, path);
    for (const [keyword, value] of Object.entries(schema)) this.#keyword(keyword, value, [...path, keyword]);
    this.#combinations(schema, path);
  }

  #find(path: Path, message: string, suggestion?: string): void {
    if (this.findings.length < findingsMax) this.findings.push({ path, message, suggestion });
  }

  #keyword(keyword: string, value: unknown, path: Path): void {
    if (keyword.startsWith("x-")) return;
    const shape = keywordShapes.get(keyword);
    if (shape !== undefined) {
      this.#value(shape, value, path);
      return;
    }
    const instead = foreignKeywords.get(keyword);
    const message =
      instead === undefined
        ? `unknown keyword ${quote(keyword)} of JSON Schema; an annotation of your own begins with x-`
        : `the keyword ${quote(keyword)} is not supported: ${instead}`;
    const suggestion = instead === undefined ? didYouMean(keyword, keywordNames) : undefined;
    if (this.findings.length < findingsMax) this.findings.push({ path, atKey: true, message, suggestion });
  }

  #value(shape: KeywordShape, value: unknown, path: Path): void {
    switch (shape) {
      case "any":
        return;
      case "schema":
        if (path.at(-1) === "items" && Array.isArray(value)) {
          this.#find(path, "is a list of schemas in older drafts; use prefixItems");
        } else this.schema(value, path);
        return;
      case "schemas":
        this.#list(value, path, "a list of at least one schema", (each, at) => this.schema(each, at));
        return;
      case "schemaMap":
        this.#map(value, path, "an object of schemas", (each, at) => this.schema(each, at));
        return;
      case "patternMap":
        this.#map(value, path, "an object of patterns and schemas", (each, at) => {
          this.#pattern(String(at.at(-1)), at);
          this.schema(each, at);
        });
        return;
      case "namesMap":
        this.#map(value, path, "an object of lists of names", (each, at) => this.#names(each, at));
        return;
      case "names":
        this.#names(value, path);
        return;
      case "type":
        this.#types(value, path);
        return;
      case "values":
        this.#list(value, path, "a list of at least one value", () => {});
        return;
      case "pattern":
        if (typeof value === "string") this.#pattern(value, path);
        else this.#find(path, `must be a regular expression as text, not ${kindOf(value)}`);
        return;
      case "format":
        this.#format(value, path);
        return;
      case "ref":
        this.#ref(value, path);
        return;
      case "boolean":
      case "text":
      case "number":
      case "positive":
      case "count":
        this.#scalar(shape, value, path);
        return;
    }
  }

  #scalar(shape: "boolean" | "text" | "number" | "positive" | "count", value: unknown, path: Path): void {
    switch (shape) {
      case "boolean":
        if (typeof value !== "boolean") this.#find(path, `must be true or false, not ${kindOf(value)}`);
        return;
      case "text":
        if (typeof value !== "string") this.#find(path, `must be a text, not ${kindOf(value)}`);
        else if (path.at(-1) === "$schema" && !dialects.has(value)) {
          this.#find(path, `is no dialect that is read here: ${[...dialects][0]}`);
        }
        return;
      case "number":
        if (typeof value !== "number" || !Number.isFinite(value)) {
          this.#find(path, `must be a number, not ${kindOf(value)}`);
        }
        return;
      case "positive":
        if (typeof value !== "number" || !Number.isFinite(value) || value <= 0) {
          this.#find(path, "must be a number above 0");
        }
        return;
      case "count":
        if (!Number.isSafeInteger(value) || Number(value) < 0) {
          this.#find(path, "must be a whole number of at least 0");
        }
        return;
    }
  }

  #list(value: unknown, path: Path, what: string, each: (value: unknown, path: Path) => void): void {
    if (!Array.isArray(value) || value.length === 0) this.#find(path, `must be ${what}`);
    else
      value.forEach((item: unknown, index) => {
        each(item, [...path, index]);
      });
  }

  #map(value: unknown, path: Path, what: string, each: (value: unknown, path: Path) => void): void {
    if (!isPlainObject(value)) this.#find(path, `must be ${what}, not ${kindOf(value)}`);
    else for (const [key, item] of Object.entries(value)) each(item, [...path, key]);
  }

  #names(value: unknown, path: Path): void {
    if (!Array.isArray(value) || !value.every((name) => typeof name === "string")) {
      this.#find(path, "must be a list of names of properties");
    } else if (new Set(value).size !== value.length) {
      this.#find(path, "names a property twice");
    }
  }

  #types(value: unknown, path: Path): void {
    const list: readonly unknown[] = Array.isArray(value) ? value : [value];
    for (const type of list) {
      if (typeof type === "string" && typeNames.includes(type)) continue;
      const near = typeof type === "string" ? didYouMean(type, typeNames) : undefined;
      this.#find(path, `${describe(type)} is no type; the types are ${typeNames.join(", ")}`, near);
    }
    if (list.length === 0) this.#find(path, "names no type");
  }

  #pattern(source: string, path: Path): void {
    if (this.patterns.has(source)) return;
    const compiled = compilePattern(source);
    if (compiled.ok) this.patterns.set(source, compiled.pattern);
    else this.#find(path, compiled.message);
  }

  #format(value: unknown, path: Path): void {
    if (typeof value === "string" && formatNames.includes(value)) return;
    const near = typeof value === "string" ? didYouMean(value, formatNames) : undefined;
    this.#find(path, `${describe(value)} is no format; the formats are ${formatNames.join(", ")}`, near);
  }

  #ref(value: unknown, path: Path): void {
    if (typeof value !== "string" || !/^#(?:\/.*)?$/s.test(value)) {
      this.#find(path, `must point into this schema, for example #/$defs/name, not ${describe(value)}`);
    }
  }

  #combinations(schema: { readonly [key: string]: unknown }, path: Path): void {
    for (const keyword of ["then", "else"]) {
      if (Object.hasOwn(schema, keyword) && !Object.hasOwn(schema, "if")) {
        this.#find([...path, keyword], `needs "if" beside it`);
      }
    }
    for (const keyword of ["minContains", "maxContains"]) {
      if (Object.hasOwn(schema, keyword) && !Object.hasOwn(schema, "contains")) {
        this.#find([...path, keyword], `needs "contains" beside it`);
      }
    }
  }

  /** Every reference leads to a schema, and following schemas without going into the value comes to an end. */
  resolve(root: JsonSchema): void {
    for (const [schema, path] of this.#schemas) {
      const ref = keywordOf(schema, "$ref");
      if (typeof ref !== "string" || this.refs.has(ref)) continue;
      const target = pointerTarget(root, ref);
      // Booleans are schemas too; whether they stand where a schema may stand cannot be told, nor does it matter.
      if (typeof target === "boolean") this.refs.set(ref, target);
      else if (this.#schemas.has(target))
        this.refs.set(ref, target as JsonSchema); // it was walked as one
      else this.#find([...path, "$ref"], `${quote(ref)} leads to no schema in this document`);
    }
    if (this.findings.length === 0) this.#refuseCycles();
  }

  #refuseCycles(): void {
    const state = new Map<unknown, "open" | "done">();
    for (const [start, path] of this.#schemas) {
      const stack: { schema: unknown; leaving: boolean }[] = [{ schema: start, leaving: false }];
      for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
        if (top.leaving) {
          state.set(top.schema, "done");
          continue;
        }
        if (state.get(top.schema) === "done") continue;
        if (state.get(top.schema) === "open") {
          this.#find(path, "refers back to itself without going into a property or an item");
          return;
        }
        state.set(top.schema, "open");
        stack.push({ schema: top.schema, leaving: true });
        for (const next of this.#inPlace(top.schema)) stack.push({ schema: next, leaving: false });
      }
    }
  }

  #inPlace(schema: unknown): unknown[] {
    const ref = keywordOf(schema, "$ref");
    const target = typeof ref === "string" ? this.refs.get(ref) : undefined;
    const below = inPlaceKeywords.flatMap((keyword): unknown[] => {
      const value = keywordOf(schema, keyword);
      if (Array.isArray(value)) return value;
      if (!isPlainObject(value)) return [];
      return keyword === "dependentSchemas" ? Object.values(value) : [value];
    });
    return [...new Set([target, ...below])].filter((next) => isPlainObject(next));
  }
}

function keywordOf(schema: unknown, keyword: string): unknown {
  return isPlainObject(schema) && Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
}

/** What a JSON pointer in a URI fragment leads to. */
function pointerTarget(root: JsonSchema, ref: string): unknown {
  let pointer: string;
  try {
    pointer = decodeURIComponent(ref.slice(1));
  } catch {
    return undefined;
  }
  let current: unknown = root;
  for (const step of pointer.split("/").slice(1)) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(current)) current = /^(?:0|[1-9]\d*)$/.test(key) ? current[Number(key)] : undefined;
    else if (isPlainObject(current) && Object.hasOwn(current, key)) current = current[key];
    else return undefined;
  }
  return current;
}

export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  switch (typeof value) {
    case "object":
      return "an object";
    case "undefined":
      return "nothing";
    case "string":
      return "a text";
    case "number":
      return "a number";
    case "boolean":
      return "true or false";
    default:
      return `a ${typeof value}`;
  }
}

/** Scalars as they are, the rest by kind. */
export function describe(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return kindOf(value);
}
