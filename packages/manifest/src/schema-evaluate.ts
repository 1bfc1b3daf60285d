/**
 * Evaluates a checked schema on a value. Called by json-schema.ts.
 *
 * TRUST: the value is a caller's or a script's; the schema was checked (schema-check.ts) and is still its author's. The work
 * for one value is counted: beyond a bound (schema-values.ts) the value is refused as too much to check, which also ends
 * what branches inside branches would multiply. Patterns run in linear time and are counted too.
 * Kept true: a value passes only if every keyword was evaluated and held.
 *
 * Values are what JSON has, plus what a script's value may hold: a property that is undefined is absent, and a Date, Map or
 * bigint is of no JSON type, so that it passes only where the schema asks for nothing.
 */

import type { JsonValue } from "./json-document.js";
import { quote } from "./problem.js";
import { type CheckedSchema, isPlainObject, type JsonSchema } from "./schema-check.js";
import {
  below,
  closest,
  count,
  type Failure,
  failure,
  missingProperty,
  type Place,
  typeFailure,
  unknownProperty,
  valueFailure,
} from "./schema-failure.js";
import { matchesFormat } from "./schema-formats.js";
import { equalsJson, firstRepeated, isMultipleOf, valueKind, Work } from "./schema-values.js";

type Keywords = { readonly [keyword: string]: JsonValue };
type PlainObject = { readonly [key: string]: unknown };
type Verdict = Failure | undefined;

export class Evaluation {
  readonly #checked: CheckedSchema;
  readonly #work = new Work();
  /** Entries of the objects in the schema, made once. */
  readonly #lists = new Map<object, readonly (readonly [string, JsonValue])[]>();

  constructor(checked: CheckedSchema) {
    this.#checked = checked;
  }

  /** Undefined when the value passes. */
  run(value: unknown): Verdict {
    try {
      return this.#visit(this.#checked.root, value, undefined, 0);
    } catch (error) {
      if (!Work.isTooMuch(error)) throw error;
      return failure(undefined, () => "is too large or too deeply nested to be checked");
    }
  }

  #visit(schema: JsonSchema, value: unknown, at: Place | undefined, depth: number): Verdict {
    this.#work.enter(depth);
    if (schema === true) return undefined;
    if (schema === false) return failure(at, () => "must not be there");
    return (
      this.#anyKind(schema, value, at, depth) ??
      (typeof value === "number" ? this.#number(schema, value, at) : undefined) ??
      (typeof value === "string" ? this.#text(schema, value, at) : undefined) ??
      (Array.isArray(value) ? this.#array(schema, value, at, depth) : undefined) ??
      (isPlainObject(value) ? this.#object(schema, value, at, depth) : undefined) ??
      this.#applicators(schema, value, at, depth)
    );
  }

  #anyKind(schema: Keywords, value: unknown, at: Place | undefined, depth: number): Verdict {
    const { $ref, type, enum: values } = schema;
    if (type !== undefined) {
      const types = strings(type);
      const kind = valueKind(value);
      const fits = types.some((each) => each === kind || (each === "integer" && Number.isInteger(value)));
      if (!fits) return typeFailure(types, value, at);
    }
    const constant = schema["const"];
    if (constant !== undefined && !equalsJson(constant, value, this.#work)) {
      return valueFailure([constant], value, at);
    }
    if (values !== undefined && !list(values).some((each) => equalsJson(each, value, this.#work))) {
      return valueFailure(list(values), value, at);
    }
    if (typeof $ref !== "string") return undefined;
    const target = this.#checked.refs.get($ref);
    if (target === undefined) throw new RangeError("a reference that was not checked");
    return this.#visit(target, value, at, depth + 1);
  }

  #number(schema: Keywords, value: number, at: Place | undefined): Verdict {
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
    // Written as negations, so that NaN fails.
    if (typeof minimum === "number" && !(value >= minimum))
      return failure(at, () => `must be at least ${minimum}`);
    if (typeof maximum === "number" && !(value <= maximum))
      return failure(at, () => `must be at most ${maximum}`);
    if (typeof exclusiveMinimum === "number" && !(value > exclusiveMinimum)) {
      return failure(at, () => `must be above ${exclusiveMinimum}`);
    }
    if (typeof exclusiveMaximum === "number" && !(value < exclusiveMaximum)) {
      return failure(at, () => `must be below ${exclusiveMaximum}`);
    }
    if (typeof multipleOf === "number" && !isMultipleOf(value, multipleOf, this.#work)) {
      return failure(at, () => `must be a multiple of ${multipleOf}`);
    }
    return undefined;
  }

  #text(schema: Keywords, value: string, at: Place | undefined): Verdict {
    const { minLength, maxLength, pattern, format } = schema;
    if (typeof minLength === "number" || typeof maxLength === "number") {
      this.#work.spend(1 + value.length / 16);
      // Characters, not UTF-16 units.
      const length = value.length - (value.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
      if (typeof minLength === "number" && length < minLength) {
        return failure(at, () => `must have at least ${count(minLength, "character")}`);
      }
      if (typeof maxLength === "number" && length > maxLength) {
        return failure(at, () => `must have at most ${count(maxLength, "character")}`);
      }
    }
    if (typeof pattern === "string" && !this.#matches(pattern, value)) {
      return failure(at, () => `must match the pattern ${quote(pattern, 120)}`);
    }
    if (typeof format === "string") {
      this.#work.spend(64);
      if (!matchesFormat(format, value)) return failure(at, () => `must be of the format ${format}`);
    }
    return undefined;
  }

  #matches(pattern: string, text: string): boolean {
    const compiled = this.#checked.patterns.get(pattern);
    if (compiled === undefined) throw new RangeError("a pattern that was not compiled");
    return compiled.test(text, (steps) => this.#work.spend(steps));
  }

  #array(schema: Keywords, value: readonly unknown[], at: Place | undefined, depth: number): Verdict {
    const { prefixItems, items, minItems, maxItems, uniqueItems } = schema;
    if (typeof minItems === "number" && value.length < minItems) {
      return failure(at, () => `must have at least ${count(minItems, "item")}`);
    }
    if (typeof maxItems === "number" && value.length > maxItems) {
      return failure(at, () => `must have at most ${count(maxItems, "item")}`);
    }
    const prefix = list(prefixItems);
    for (let index = 0; index < value.length; index++) {
      const schemaAt = index < prefix.length ? prefix[index] : items;
      if (schemaAt === undefined) break;
      const failed = this.#visit(subschema(schemaAt), value[index], below(at, index), depth + 1);
      if (failed !== undefined) return failed;
    }
    if (uniqueItems === true) {
      const index = firstRepeated(value, this.#work);
      if (index !== undefined) return failure(below(at, index), () => "is the same as an item before it");
    }
    return this.#contains(schema, value, at, depth);
  }

  #contains(schema: Keywords, value: readonly unknown[], at: Place | undefined, depth: number): Verdict {
    const { contains, minContains, maxContains } = schema;
    if (contains === undefined) return undefined;
    let found = 0;
    for (const [index, item] of value.entries()) {
      if (this.#visit(subschema(contains), item, below(at, index), depth + 1) === undefined) found++;
    }
    const least = typeof minContains === "number" ? minContains : 1;
    const asked = 'of the form that "contains" describes';
    if (found < least) return failure(at, () => `must hold at least ${count(least, "item")} ${asked}`);
    if (typeof maxContains === "number" && found > maxContains) {
      return failure(at, () => `must hold at most ${count(maxContains, "item")} ${asked}`);
    }
    return undefined;
  }

  #object(schema: Keywords, value: PlainObject, at: Place | undefined, depth: number): Verdict {
    const { properties, required, dependentRequired } = schema;
    this.#work.spend(16);
    for (const [key, schemaAt] of this.#entries(properties)) {
      if (!has(value, key)) continue;
      const failed = this.#visit(subschema(schemaAt), value[key], below(at, key), depth + 1);
      if (failed !== undefined) return failed;
    }
    const missing = this.#strings(required).find((key) => !has(value, key));
    if (missing !== undefined) return missingProperty(missing, value, at);
    for (const [key, names] of this.#entries(dependentRequired)) {
      const lacking = has(value, key) ? this.#strings(names).find((name) => !has(value, name)) : undefined;
      if (lacking !== undefined) {
        return failure(at, () => `must have the property ${quote(lacking)} because it has ${quote(key)}`);
      }
    }
    return this.#members(schema, value, at, depth);
  }

  /** What is asked of every property, named or not. */
  #members(schema: Keywords, value: PlainObject, at: Place | undefined, depth: number): Verdict {
    const { properties, patternProperties, additionalProperties, propertyNames } = schema;
    const { minProperties, maxProperties } = schema;
    const asked = [patternProperties, additionalProperties, propertyNames, minProperties, maxProperties];
    if (asked.every((keyword) => keyword === undefined)) return undefined;
    const keys = Object.keys(value).filter((key) => value[key] !== undefined);
    this.#work.spend(keys.length * 16);
    const known = isPlainObject(properties) ? properties : {};
    for (const key of keys) {
      if (propertyNames !== undefined) {
        const failed = this.#visit(subschema(propertyNames), key, undefined, depth + 1);
        if (failed !== undefined) {
          return failure(at, () => `has the property ${quote(key)}, whose name ${failed.text()}`);
        }
      }
      let named = Object.hasOwn(known, key);
      for (const [pattern, schemaAt] of this.#entries(patternProperties)) {
        if (!this.#matches(pattern, key)) continue;
        named = true;
        const failed = this.#visit(subschema(schemaAt), value[key], below(at, key), depth + 1);
        if (failed !== undefined) return failed;
      }
      if (named || additionalProperties === undefined) continue;
      if (additionalProperties === false) return unknownProperty(key, known, at);
      const failed = this.#visit(subschema(additionalProperties), value[key], below(at, key), depth + 1);
      if (failed !== undefined) return failed;
    }
    if (typeof minProperties === "number" && keys.length < minProperties) {
      return failure(at, () => `must have at least ${count(minProperties, "property")}`);
    }
    if (typeof maxProperties === "number" && keys.length > maxProperties) {
      return failure(at, () => `must have at most ${count(maxProperties, "property")}`);
    }
    return undefined;
  }

  /** What looks at the same value again. */
  #applicators(schema: Keywords, value: unknown, at: Place | undefined, depth: number): Verdict {
    const { allOf, anyOf, oneOf, not, if: condition, dependentSchemas } = schema;
    const visit = (each: JsonValue): Verdict => this.#visit(subschema(each), value, at, depth + 1);
    for (const each of list(allOf)) {
      const failed = visit(each);
      if (failed !== undefined) return failed;
    }
    if (anyOf !== undefined) {
      const failures: Failure[] = [];
      const fits = list(anyOf).some((each) => {
        const failed = visit(each);
        if (failed !== undefined) failures.push(failed);
        return failed === undefined;
      });
      if (!fits) return closest(failures, value, at);
    }
    if (oneOf !== undefined) {
      const branches = list(oneOf);
      const failures = branches.flatMap((each) => visit(each) ?? []);
      const matches = branches.length - failures.length;
      if (matches === 0) return closest(failures, value, at);
      if (matches > 1) {
        return failure(at, () => `must be of exactly one of ${branches.length} forms, and is of ${matches}`);
      }
    }
    if (not !== undefined && visit(not) === undefined) {
      return failure(at, () => 'must not be of the form that "not" describes');
    }
    if (condition !== undefined) {
      const branch = visit(condition) === undefined ? schema["then"] : schema["else"];
      const failed = branch === undefined ? undefined : visit(branch);
      if (failed !== undefined) return failed;
    }
    for (const [key, each] of this.#entries(dependentSchemas)) {
      const failed = isPlainObject(value) && has(value, key) ? visit(each) : undefined;
      if (failed !== undefined) return failed;
    }
    return undefined;
  }

  /** Long lists of a schema cost anew for every value that they are looked at for. */
  #entries(value: JsonValue | undefined): readonly (readonly [string, JsonValue])[] {
    if (!isPlainObject(value)) return [];
    let all = this.#lists.get(value);
    if (all === undefined) {
      all = Object.entries(value as Keywords); // members of JSON are JSON
      this.#lists.set(value, all);
    }
    this.#work.spend(all.length * 4);
    return all;
  }

  #strings(value: JsonValue | undefined): readonly string[] {
    const all = strings(value);
    this.#work.spend(all.length * 2);
    return all;
  }
}

function has(value: PlainObject, key: string): boolean {
  return Object.hasOwn(value, key) && value[key] !== undefined;
}

// What follows reads keywords whose shape checkSchema has made sure of.

function subschema(value: JsonValue): JsonSchema {
  if (typeof value === "boolean") return value;
  if (isPlainObject(value)) return value as Keywords; // members of JSON are JSON
  throw new RangeError("a schema that was not checked");
}

function strings(value: JsonValue | undefined): readonly string[] {
  if (typeof value === "string") return [value];
  return list(value).filter((each): each is string => typeof each === "string");
}

function list(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}
