/**
 * JSON Schema as TypeScript: what an author's editor says about `input` and the result, and what a model reads about a
 * tool. Called for `flowcell types` and by codemode.
 *
 * Takes only schemas that checkSchema accepted and refuses others. The same schema gives the same text, byte by byte.
 *
 * A type says at most what the schema says: everything that passes the schema should be of the type. Where TypeScript has
 * no words for a rule (lengths, patterns, formats, `not`, `if`) the type is the wider one. Two liberties are taken, because
 * the literal truth would help nobody: a schema that speaks of properties or items and names no type is read as the type
 * that it speaks of, and an object type does not say that further properties may be there.
 *
 * Bounds: nesting and the number of printed types; beyond them stands `unknown`. Parts that are referred to become types
 * with names, so that cycles end and nothing is printed twice.
 */

import { docComment, indented, quotedText } from "./doc-comment.js";
import type { JsonValue } from "./json-document.js";
import { checkSchema, isPlainObject, type JsonSchema } from "./schema-check.js";

type Keywords = { readonly [keyword: string]: JsonValue };

interface Printed {
  readonly text: string;
  /** What must be put into parentheses inside something that binds tighter. */
  readonly kind: "single" | "intersection" | "union";
}

const depthMax = 24;
const typesMax = 4_000;
const unknown: Printed = { text: "unknown", kind: "single" };
const never: Printed = { text: "never", kind: "single" };
/** What an annotation `x-type` may name: values that cross as they are and that JSON Schema has no word for. */
const runtimeTypes: ReadonlySet<string> = new Set([
  "Date",
  "Map<unknown, unknown>",
  "Set<unknown>",
  "bigint",
  "undefined",
]);
const tagCharsMax = 80;
const identifier = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

/** One type as an expression. Parts that are referred to are put in place; what refers to itself becomes `unknown`. */
export function schemaType(schema: JsonSchema): string {
  return new Printer(schema, undefined, new Set()).root().text;
}

/**
 * Declarations of a type `name` and of those that it refers to, each after a line of documentation if it has any.
 * `taken` holds the names that are in use in the file; those declared here are added.
 */
export function schemaDeclarations(schema: JsonSchema, name: string, taken: Set<string> = new Set()): string {
  taken.add(name);
  return new Printer(schema, name, taken).declarations();
}

/** A type as an expression, with what has to be declared beside it. */
export interface SchemaTypeParts {
  readonly type: string;
  /** Of what the type refers to; empty when it refers to nothing. */
  readonly declarations: string;
}

/**
 * One type as an expression for a place of its own, such as a parameter. What it refers to gets names that begin with
 * `name`; the type is `name` itself only when it refers to itself.
 */
export function schemaTypeParts(
  schema: JsonSchema,
  name: string,
  taken: Set<string> = new Set(),
): SchemaTypeParts {
  return new Printer(schema, name, taken).parts();
}

class Printer {
  readonly #root: JsonSchema;
  readonly #refs: ReadonlyMap<string, JsonSchema>;
  /** The name of the root; undefined when references are put in place. */
  readonly #name: string | undefined;
  readonly #taken: Set<string>;
  readonly #names = new Map<JsonSchema, string>();
  readonly #waiting: JsonSchema[] = [];
  readonly #open = new Set<JsonSchema>();
  #types = 0;

  constructor(schema: JsonSchema, name: string | undefined, taken: Set<string>) {
    const result = checkSchema(schema);
    if (!result.ok) throw new TypeError("a schema that compileSchema refuses has no type");
    this.#root = result.checked.root;
    this.#refs = result.checked.refs;
    this.#name = name;
    this.#taken = taken;
  }

  root(): Printed {
    return this.#type(this.#root, 0);
  }

  declarations(): string {
    const name = this.#name ?? "";
    if (isPlainObject(this.#root)) this.#names.set(this.#root, name);
    return [declaration(name, this.#root, this.root()), ...this.#referred()].join("\n");
  }

  parts(): SchemaTypeParts {
    const printed = this.root();
    const declarations = this.#referred().join("\n");
    return { type: this.#names.get(this.#root) ?? printed.text, declarations };
  }

  #referred(): string[] {
    const texts: string[] = [];
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      texts.push(declaration(this.#names.get(next) ?? "", next, this.#type(next, 0)));
    }
    return texts;
  }

  #type(schema: JsonSchema, depth: number): Printed {
    if (schema === true) return unknown;
    if (schema === false) return never;
    this.#types++;
    if (depth > depthMax || this.#types > typesMax) return unknown;
    const parts: Printed[] = [];
    const { $ref } = schema;
    if (typeof $ref === "string") parts.push(this.#reference($ref, depth));
    parts.push(this.#own(schema, depth));
    for (const each of list(schema["allOf"])) parts.push(this.#type(subschema(each), depth + 1));
    for (const keyword of ["anyOf", "oneOf"]) {
      if (schema[keyword] === undefined) continue;
      parts.push(union(list(schema[keyword]).map((each) => this.#type(subschema(each), depth + 1))));
    }
    return intersection(parts);
  }

  #reference(ref: string, depth: number): Printed {
    const target = this.#refs.get(ref);
    if (target === undefined) throw new RangeError("a reference that was not checked");
    if (typeof target === "boolean") return this.#type(target, depth);
    if (this.#name === undefined) {
      if (this.#open.has(target) || target === this.#root) return unknown;
      this.#open.add(target);
      const printed = this.#type(target, depth + 1);
      this.#open.delete(target);
      return printed;
    }
    let name = this.#names.get(target);
    if (name === undefined) {
      const wanted = target === this.#root ? "" : pascalCase(ref.split("/").at(-1) ?? "");
      name = freeName(this.#name + wanted, this.#taken);
      this.#names.set(target, name);
      this.#waiting.push(target);
    }
    return { text: name, kind: "single" };
  }

  /** The type that the schema's own keywords describe, without what it combines. */
  #own(schema: Keywords, depth: number): Printed {
    const named = schema["x-type"];
    if (typeof named === "string" && runtimeTypes.has(named)) return { text: named, kind: "single" };
    const constant = schema["const"];
    if (constant !== undefined) return literal(constant, depth);
    const values = schema["enum"];
    if (values !== undefined) return union(list(values).map((each) => literal(each, depth)));
    return union(typesOf(schema).map((type) => this.#oneType(type, schema, depth)));
  }

  #oneType(type: string, schema: Keywords, depth: number): Printed {
    switch (type) {
      case "string":
      case "boolean":
      case "null":
      case "number":
        return { text: type, kind: "single" };
      case "integer":
        return { text: "number", kind: "single" };
      case "array":
        return this.#array(schema, depth);
      case "object":
        return this.#object(schema, depth);
      default:
        return unknown;
    }
  }

  #array(schema: Keywords, depth: number): Printed {
    const { prefixItems, items, minItems } = schema;
    const inner = items === undefined ? unknown : this.#type(subschema(items), depth + 1);
    if (prefixItems === undefined) {
      return { text: `${enclosed(inner, "array")}[]`, kind: "single" };
    }
    const least = typeof minItems === "number" ? minItems : 0;
    const first = list(prefixItems).map((each, index) => {
      const printed = this.#type(subschema(each), depth + 1);
      return index < least ? printed.text : `${enclosed(printed, "array")}?`;
    });
    const rest = items === false ? [] : [`...${enclosed(inner, "array")}[]`];
    return { text: `[${[...first, ...rest].join(", ")}]`, kind: "single" };
  }

  #object(schema: Keywords, depth: number): Printed {
    const properties = isPlainObject(schema["properties"]) ? (schema["properties"] as Keywords) : {}; // checked
    const required = new Set(list(schema["required"]).filter((each) => typeof each === "string"));
    const members: string[] = [];
    for (const [key, each] of Object.entries(properties)) {
      const inner = subschema(each);
      const mark = required.has(key) ? "" : "?";
      const printed = this.#type(inner, depth + 1);
      members.push(`${documentation(inner)}${propertyName(key)}${mark}: ${printed.text};`);
    }
    for (const key of required) {
      if (!Object.hasOwn(properties, key)) members.push(`${propertyName(key)}: unknown;`);
    }
    const index = this.#index(schema, members.length > 0, depth);
    if (index !== undefined) members.push(`[key: string]: ${index.text};`);
    return { text: `{\n${indented(members.join("\n"))}\n}`, kind: "single" };
  }

  /** What other keys hold; undefined when nothing is to be said of them. */
  #index(schema: Keywords, hasMembers: boolean, depth: number): Printed | undefined {
    const { additionalProperties, patternProperties } = schema;
    const patterns = isPlainObject(patternProperties) ? Object.values(patternProperties as Keywords) : []; // checked
    if (hasMembers) {
      // An index signature would have to hold for the named properties too.
      const more =
        patterns.length > 0 || (additionalProperties !== undefined && additionalProperties !== false);
      return more ? unknown : undefined;
    }
    const rest = additionalProperties === undefined ? [true] : [additionalProperties];
    return union([...patterns, ...rest].map((each) => this.#type(subschema(each), depth + 1)));
  }
}

/** The description, and in tags what the type has no words for. An annotation `x-format` is a format that is not checked. */
function documentation(schema: JsonSchema): string {
  if (typeof schema === "boolean") return "";
  const { description, deprecated } = schema;
  const lines = typeof description === "string" && description.trim() !== "" ? [description] : [];
  for (const keyword of ["format", "x-format"]) {
    const format = schema[keyword];
    if (typeof format === "string") lines.push(`@format ${format}`);
  }
  for (const keyword of ["minimum", "maximum", "default"]) {
    const text = tagValue(schema[keyword]);
    if (text !== undefined) lines.push(`@${keyword} ${text}`);
  }
  if (deprecated === true) lines.push("@deprecated");
  return docComment(lines.join("\n"));
}

/** Undefined for what is not worth telling: too long, or a bound that every whole number has. */
function tagValue(value: JsonValue | undefined): string | undefined {
  if (value === undefined || Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER) return undefined;
  const text = JSON.stringify(value);
  return text.length <= tagCharsMax ? text : undefined;
}

function declaration(name: string, schema: JsonSchema, printed: Printed): string {
  return `${documentation(schema)}type ${name} = ${printed.text};\n`;
}

/** The types that a schema speaks of; none known is one type, `unknown`. */
function typesOf(schema: Keywords): readonly string[] {
  const { type } = schema;
  if (typeof type === "string") return [type];
  if (Array.isArray(type)) return type.map(String);
  const has = (...names: string[]): boolean => names.some((name) => schema[name] !== undefined);
  if (has("properties", "required", "additionalProperties", "patternProperties")) return ["object"];
  if (has("items", "prefixItems")) return ["array"];
  return ["unknown"];
}

function literal(value: JsonValue, depth: number): Printed {
  if (depth > depthMax) return unknown;
  if (Array.isArray(value)) {
    return {
      text: `[${value.map((each: JsonValue) => literal(each, depth + 1).text).join(", ")}]`,
      kind: "single",
    };
  }
  if (isPlainObject(value)) {
    // Members of JSON are JSON.
    const members = Object.entries(value as Keywords).map(([key, each]) => {
      return `${propertyName(key)}: ${literal(each, depth + 1).text}`;
    });
    return {
      text: members.length === 0 ? "Record<string, never>" : `{ ${members.join("; ")} }`,
      kind: "single",
    };
  }
  return { text: typeof value === "string" ? quotedText(value) : String(value), kind: "single" };
}

function union(types: readonly Printed[]): Printed {
  const texts = new Map(types.map((each) => [each.text, each]));
  if (texts.has("unknown")) return unknown;
  texts.delete("never");
  const kept = [...texts.values()];
  const [only] = kept;
  if (only === undefined) return never;
  if (kept.length === 1) return only;
  return { text: kept.map((each) => each.text).join(" | "), kind: "union" };
}

function intersection(types: readonly Printed[]): Printed {
  const texts = new Map(types.map((each) => [each.text, each]));
  texts.delete("unknown");
  const kept = [...texts.values()];
  const [only] = kept;
  if (only === undefined) return unknown;
  if (kept.length === 1) return only;
  return { text: kept.map((each) => enclosed(each, "intersection")).join(" & "), kind: "intersection" };
}

function enclosed(printed: Printed, within: "intersection" | "array"): string {
  const tight = printed.kind === "single" || (printed.kind === "intersection" && within === "intersection");
  return tight ? printed.text : `(${printed.text})`;
}

function propertyName(key: string): string {
  // A key __proto__ cannot reach this; quoted names are never special in types.
  return identifier.test(key) ? key : quotedText(key);
}

function pascalCase(text: string): string {
  const words = text.match(/[A-Za-z0-9]+/g) ?? [];
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("") || "Part";
}

function freeName(wanted: string, taken: Set<string>): string {
  let name = wanted;
  for (let number = 2; taken.has(name); number++) name = `${wanted}${number}`;
  taken.add(name);
  return name;
}

// What follows reads keywords whose shape checkSchema has made sure of.

function subschema(value: JsonValue): JsonSchema {
  if (typeof value === "boolean") return value;
  if (isPlainObject(value)) return value as Keywords; // members of JSON are JSON
  throw new RangeError("a schema that was not checked");
}

function list(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}
