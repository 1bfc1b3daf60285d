/**
 * The manifest's fields as rows of a table, derived from the schema. Called by `scripts/generate-manifest.mjs`, which writes
 * them into docs/MANIFEST.md.
 */

import * as z from "zod/mini";
import { manifestSchema } from "./schema.js";
import { isPlainObject } from "./schema-check.js";

export interface FieldRow {
  /** Such as `grants.net[].host`; for a trigger with the kind it belongs to, `trigger.expression (cron)`. */
  readonly path: string;
  readonly type: string;
  /** JSON text of the default, "required", or "" when the field may be absent. */
  readonly initial: string;
  readonly meaning: string;
}

type Schema = { readonly [keyword: string]: unknown };

export function manifestFields(): readonly FieldRow[] {
  const root: unknown = z.toJSONSchema(manifestSchema, { io: "input", unrepresentable: "any" });
  return isPlainObject(root) ? rowsBelow(root, "") : [];
}

function rowsBelow(schema: Schema, path: string): FieldRow[] {
  const branches = schema["oneOf"];
  if (Array.isArray(branches)) return branches.flatMap((branch: unknown) => branchRows(branch, path));
  const { properties, items, anyOf } = schema;
  if (isPlainObject(items)) return rowsBelow(items, `${path}[]`);
  if (Array.isArray(anyOf)) {
    return anyOf.flatMap((each: unknown) => (isPlainObject(each) ? rowsBelow(each, path) : []));
  }
  if (!isPlainObject(properties)) return [];
  const required: readonly unknown[] = Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.entries(properties).flatMap(([key, each]): FieldRow[] => {
    if (!isPlainObject(each)) return [];
    const inner = path === "" ? key : `${path}.${key}`;
    const row = { path: inner, type: typeText(each), initial: initialText(each, required.includes(key)) };
    return [{ ...row, meaning: String(each["description"] ?? "") }, ...rowsBelow(each, inner)];
  });
}

/** One kind of a tagged union; the tag itself has its row above. */
function branchRows(branch: unknown, path: string): FieldRow[] {
  if (!isPlainObject(branch)) return [];
  const properties = isPlainObject(branch["properties"]) ? branch["properties"] : {};
  const kind = isPlainObject(properties["kind"]) ? String(properties["kind"]["const"]) : "";
  return rowsBelow(branch, path)
    .filter((row) => row.path !== `${path}.kind`)
    .map((row) => ({ ...row, path: `${row.path} (${kind})` }));
}

function initialText(schema: Schema, required: boolean): string {
  if (required) return "required";
  return Object.hasOwn(schema, "default") ? JSON.stringify(schema["default"]) : "";
}

function typeText(schema: Schema): string {
  const { type, enum: values, items, anyOf, oneOf } = schema;
  if (Object.hasOwn(schema, "const")) return JSON.stringify(schema["const"]);
  if (Array.isArray(values)) return values.map((each) => JSON.stringify(each)).join(", ");
  if (Array.isArray(oneOf)) {
    const kinds = oneOf.flatMap((each: unknown) => {
      const properties = isPlainObject(each) && isPlainObject(each["properties"]) ? each["properties"] : {};
      return isPlainObject(properties["kind"]) ? [JSON.stringify(properties["kind"]["const"])] : [];
    });
    return `object of kind ${kinds.join(", ")}`;
  }
  if (Array.isArray(anyOf)) {
    return anyOf.map((each: unknown) => (isPlainObject(each) ? typeText(each) : "")).join(" or ");
  }
  switch (type) {
    case "string":
      return "text";
    case "integer":
      return `whole number, ${String(schema["minimum"])} to ${String(schema["maximum"])}`;
    case "array":
      return isPlainObject(items) && items["type"] === "string" ? "list of texts" : "list of objects";
    default:
      return String(type ?? "");
  }
}
