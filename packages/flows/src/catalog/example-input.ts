/**
 * An input that a schema suggests, for the dry run of a flow that is given none: its own default or example, else the
 * simplest value of each type. It need not satisfy the schema: what the script does with it is information.
 */

import type { JsonSchemaObject } from "@flowcell/manifest";

const depthMost = 8;
const propertiesMost = 100;

export function exampleInput(schema: JsonSchemaObject | undefined): unknown {
  return schema === undefined ? undefined : exampleOf(schema, 0);
}

function exampleOf(schema: unknown, depth: number): unknown {
  if (typeof schema !== "object" || schema === null || depth > depthMost) return null;
  const keywords = new Map<string, unknown>(Object.entries(schema));
  for (const keyword of ["const", "default"]) if (keywords.has(keyword)) return keywords.get(keyword);
  for (const keyword of ["examples", "enum"]) {
    const list = keywords.get(keyword);
    if (Array.isArray(list) && list.length > 0) return list[0];
  }
  const type = keywords.get("type");
  switch (Array.isArray(type) ? type[0] : (type ?? (keywords.has("properties") ? "object" : undefined))) {
    case "object":
      return objectOf(keywords.get("properties"), depth);
    case "array":
      return [];
    case "string":
      return "";
    case "number":
    case "integer":
      return numberOf(keywords.get("minimum"));
    case "boolean":
      return false;
    default:
      return null;
  }
}

function objectOf(properties: unknown, depth: number): unknown {
  if (typeof properties !== "object" || properties === null) return {};
  const entries = Object.entries(properties).slice(0, propertiesMost);
  return Object.fromEntries(entries.map(([key, schema]) => [key, exampleOf(schema, depth + 1)]));
}

function numberOf(minimum: unknown): number {
  return typeof minimum === "number" && minimum > 0 ? Math.ceil(minimum) : 0;
}
