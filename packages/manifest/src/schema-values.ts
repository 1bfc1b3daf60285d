/** Comparing values the way JSON Schema does, and counting what it costs. Called by json-schema.ts only. */

import type { JsonValue } from "./json-document.js";
import { isPlainObject } from "./schema-check.js";

/**
 * Units of work for one value: a subschema costs 8, an object 16 more, a step of a pattern 2. At a few tens of nanoseconds
 * a unit this is about a second of the parent's only thread, and enough for two million numbers or half a million objects.
 */
const workMax = 20_000_000;
const visitWork = 8;
/** Subschemas inside each other while evaluating. A level takes up to ten frames of the parent's stack of 1 MB. */
const depthMax = 500;

class TooMuch extends Error {}

export class Work {
  #left = workMax;
  #names = 0;

  spend(units: number): void {
    this.#left -= units;
    if (this.#left < 0) throw new TooMuch();
  }

  /** A step into a subschema or a nested value. */
  enter(depth: number): void {
    if (depth > depthMax) throw new TooMuch();
    this.spend(visitWork);
  }

  /** A text that no other value has. */
  freshName(): string {
    return `!${this.#names++}`;
  }

  static isTooMuch(error: unknown): boolean {
    return error instanceof TooMuch;
  }
}

/** The JSON type of a value, or the name of what it is instead. */
export function valueKind(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value !== "object") return typeof value;
  if (isPlainObject(value)) return "object";
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  return tag === "Object" ? "class instance" : tag;
}

/** Whether a value is the one of the schema. As deep as the schema's value, so that the other's depth does not matter. */
export function equalsJson(expected: JsonValue, value: unknown, work: Work): boolean {
  work.spend(2);
  if (Array.isArray(expected)) {
    if (!Array.isArray(value) || value.length !== expected.length) return false;
    return expected.every((each: JsonValue, index) => equalsJson(each, value[index], work));
  }
  if (isPlainObject(expected)) {
    if (!isPlainObject(value)) return false;
    const keys = Object.keys(expected);
    const own = Object.keys(value).filter((key) => value[key] !== undefined);
    if (own.length !== keys.length) return false;
    return keys.every((key) => {
      // Members of JSON are JSON.
      return Object.hasOwn(value, key) && equalsJson(expected[key] as JsonValue, value[key], work);
    });
  }
  return expected === value;
}

/** The index of the first item that is equal to one before it, as JSON values are: whatever the order of their keys. */
export function firstRepeated(items: readonly unknown[], work: Work): number | undefined {
  const scalars = new Set<unknown>();
  const texts = new Set<string>();
  for (const [index, item] of items.entries()) {
    work.spend(16);
    const isText = typeof item === "object" && item !== null;
    const key = isText ? canonicalText(item, work, 0) : item;
    const seen: Set<unknown> = isText ? texts : scalars;
    if (seen.has(key)) return index;
    seen.add(key);
  }
  return undefined;
}

/** Equal texts for equal JSON values; what JSON has not is equal to nothing. */
function canonicalText(value: unknown, work: Work, depth: number): string {
  work.enter(depth);
  if (typeof value === "string") {
    work.spend(value.length / 16);
    return JSON.stringify(value);
  }
  if (value === null || typeof value === "boolean") return String(value);
  // 0 and -0 are one number.
  if (typeof value === "number") return String(value === 0 ? 0 : value);
  if (Array.isArray(value)) {
    return `[${value.map((each: unknown) => canonicalText(each, work, depth + 1)).join(",")}]`;
  }
  if (isPlainObject(value)) {
    const keys = Object.keys(value)
      .filter((key) => value[key] !== undefined)
      .sort();
    work.spend(keys.length * 16);
    return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalText(value[key], work, depth + 1)}`).join(",")}}`;
  }
  return work.freshName();
}

/** Exact for decimal fractions as they are written: 0.3 is a multiple of 0.1. */
export function isMultipleOf(value: number, divisor: number, work: Work): boolean {
  if (!Number.isFinite(value)) return false;
  const [valueDigits, valueExponent] = decimal(value);
  const [divisorDigits, divisorExponent] = decimal(divisor);
  const shift = valueExponent - divisorExponent;
  // Up to 632 digits.
  work.spend(16 + Math.abs(shift) / 2);
  if (shift >= 0) return (valueDigits * 10n ** BigInt(shift)) % divisorDigits === 0n;
  return valueDigits % (divisorDigits * 10n ** BigInt(-shift)) === 0n;
}

/** Whole digits and the power of ten that they are multiplied by. */
function decimal(number: number): [bigint, number] {
  const [coefficient = "0", exponent = "0"] = Math.abs(number).toExponential().split("e");
  const [whole = "0", fraction = ""] = coefficient.split(".");
  return [BigInt(whole + fraction), Number(exponent) - fraction.length];
}
