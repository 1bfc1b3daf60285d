/**
 * Which keywords of JSON Schema (2020-12) flowcell knows, and what their values must look like. One table; the check of a
 * schema (schema-check.ts), the evaluator (json-schema.ts) and the types (schema-types.ts) agree on it.
 *
 * An unknown keyword is an error and not an annotation: `requred` would otherwise check nothing without a word. What needs
 * a network, a second document or memory of other branches is refused with the keyword to use in its place. Names that
 * begin with `x-` are for annotations of anybody's own.
 */

/** What a keyword's value is. `schema`, `schemas` and `schemaMap` hold subschemas. */
export type KeywordShape =
  | "schema"
  | "schemas"
  | "schemaMap"
  | "type"
  | "values"
  | "any"
  | "number"
  | "positive"
  | "count"
  | "boolean"
  | "text"
  | "pattern"
  | "patternMap"
  | "format"
  | "names"
  | "namesMap"
  | "ref";

export const keywordShapes: ReadonlyMap<string, KeywordShape> = new Map<string, KeywordShape>([
  ["$ref", "ref"],
  ["$defs", "schemaMap"],
  ["definitions", "schemaMap"],
  ["type", "type"],
  ["enum", "values"],
  ["const", "any"],
  ["allOf", "schemas"],
  ["anyOf", "schemas"],
  ["oneOf", "schemas"],
  ["not", "schema"],
  ["if", "schema"],
  ["then", "schema"],
  ["else", "schema"],
  ["properties", "schemaMap"],
  ["patternProperties", "patternMap"],
  ["additionalProperties", "schema"],
  ["propertyNames", "schema"],
  ["required", "names"],
  ["dependentRequired", "namesMap"],
  ["dependentSchemas", "schemaMap"],
  ["minProperties", "count"],
  ["maxProperties", "count"],
  ["items", "schema"],
  ["prefixItems", "schemas"],
  ["contains", "schema"],
  ["minContains", "count"],
  ["maxContains", "count"],
  ["minItems", "count"],
  ["maxItems", "count"],
  ["uniqueItems", "boolean"],
  ["minimum", "number"],
  ["maximum", "number"],
  ["exclusiveMinimum", "number"],
  ["exclusiveMaximum", "number"],
  ["multipleOf", "positive"],
  ["minLength", "count"],
  ["maxLength", "count"],
  ["pattern", "pattern"],
  ["format", "format"],
  // Annotations: they check nothing.
  ["$schema", "text"],
  ["$comment", "text"],
  ["title", "text"],
  ["description", "text"],
  ["default", "any"],
  ["examples", "any"],
  ["deprecated", "boolean"],
  ["readOnly", "boolean"],
  ["writeOnly", "boolean"],
  ["contentEncoding", "text"],
  ["contentMediaType", "text"],
]);

export const keywordNames: readonly string[] = Object.freeze([...keywordShapes.keys()]);

/** Keywords of other drafts and dialects, with what to write here. */
export const foreignKeywords: ReadonlyMap<string, string> = new Map([
  ["$id", "a schema here has no address; refer to its parts by #/$defs/name"],
  ["id", "a schema here has no address; refer to its parts by #/$defs/name"],
  ["$anchor", "refer by #/$defs/name"],
  ["$dynamicRef", "use $ref"],
  ["$dynamicAnchor", "refer by #/$defs/name"],
  ["$recursiveRef", 'use {"$ref": "#"}'],
  ["$recursiveAnchor", 'use {"$ref": "#"}'],
  ["$vocabulary", "the vocabulary is fixed"],
  ["unevaluatedProperties", "use additionalProperties beside properties"],
  ["unevaluatedItems", "use items beside prefixItems"],
  ["additionalItems", "use prefixItems for the first items and items for the rest"],
  ["dependencies", "use dependentRequired or dependentSchemas"],
  ["nullable", 'use "type": ["string", "null"], or anyOf with {"type": "null"}'],
  ["discriminator", "use oneOf with a const in each branch"],
  ["contentSchema", "the content of a text is not checked"],
]);

/** The types of JSON, with `integer`. */
export const typeNames: readonly string[] = Object.freeze([
  "null",
  "boolean",
  "integer",
  "number",
  "string",
  "array",
  "object",
]);

/** Subschemas at the same place of the value as the schema they stand in; the others are one step further in. */
export const inPlaceKeywords: readonly string[] = Object.freeze([
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "dependentSchemas",
]);
