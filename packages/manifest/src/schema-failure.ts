/**
 * The first thing that is wrong with a value, told so that its author can mend it. Texts are made when they are told:
 * inside unions most failures never are, and a value can hold a million of them. Called by schema-evaluate.ts.
 */

import { didYouMean } from "@flowcell/protocol";
import type { JsonValue } from "./json-document.js";
import { type Path, quote } from "./problem.js";
import { valueKind } from "./schema-values.js";

/** Where in the value; undefined for the value itself. */
export interface Place {
  readonly parent: Place | undefined;
  readonly step: string | number;
  readonly depth: number;
}

export interface Failure {
  readonly at: Place | undefined;
  readonly text: () => string;
  /** Decides which failure of a union is told; see closest. */
  readonly kind: "type" | "value" | "other";
  /** For kind "type" and "value": what would have been right, to be joined over branches. */
  readonly expected: () => readonly string[];
}

const shownMax = 12;
/** Names compared for a suggestion. */
const comparedMax = 200;

export function below(parent: Place | undefined, step: string | number): Place {
  return { parent, step, depth: (parent?.depth ?? 0) + 1 };
}

export function stepsTo(place: Place | undefined): Path {
  const steps: (string | number)[] = [];
  for (let at = place; at !== undefined; at = at.parent) steps.push(at.step);
  return steps.reverse();
}

export function failure(at: Place | undefined, text: () => string): Failure {
  return { at, text, kind: "other", expected: () => [] };
}

export function typeFailure(types: readonly string[], value: unknown, at: Place | undefined): Failure {
  const expected = (): readonly string[] => types.map(withArticle);
  return { at, text: () => typeText(expected(), value), kind: "type", expected };
}

function typeText(expected: readonly string[], value: unknown): string {
  const kind = valueKind(value);
  // 1.5 where an integer is wanted is not helped by "not a number".
  const is = typeof value === "number" && expected.includes("an integer") ? "a fraction" : withArticle(kind);
  return `must be ${expected.join(" or ")}, not ${is}`;
}

function withArticle(type: string): string {
  if (type === "null" || type === "undefined") return type;
  return /^[aeiou]/i.test(type) ? `an ${type}` : `a ${type}`;
}

/** For `const` and `enum`. */
export function valueFailure(values: readonly JsonValue[], value: unknown, at: Place | undefined): Failure {
  const expected = (): readonly string[] => values.slice(0, shownMax + 1).map(shown);
  const text = (): string => {
    const names = expected();
    const rest = names.length > shownMax ? `, … (${values.length})` : "";
    const texts = values.filter((each): each is string => typeof each === "string");
    const near = typeof value === "string" ? nearName(value, texts) : undefined;
    const hint = near === undefined ? "" : `; did you mean ${quote(near)}?`;
    const one = names.length === 1 ? "" : "one of ";
    return `must be ${one}${names.slice(0, shownMax).join(", ")}${rest}${hint}`;
  };
  return { at, text, kind: "value", expected };
}

export function missingProperty(
  key: string,
  value: { readonly [key: string]: unknown },
  at: Place | undefined,
): Failure {
  return failure(at, () => {
    const there = Object.keys(value).slice(0, comparedMax);
    const near = nearName(
      key,
      there.filter((name) => value[name] !== undefined),
    );
    const hint = near === undefined ? "" : ` (there is ${quote(near)})`;
    return `must have the property ${quote(key)}${hint}`;
  });
}

export function unknownProperty(key: string, known: object, at: Place | undefined): Failure {
  return failure(at, () => {
    const near = nearName(key, Object.keys(known));
    const hint = near === undefined ? "" : `; did you mean ${quote(near)}?`;
    return `must not have the property ${quote(key)}${hint}`;
  });
}

/**
 * Which failure of a union to tell, when every branch failed. The deepest, because its branch agreed with most of the
 * value; but a wrong type or constant counts as one step less deep, because that is how a branch says that another one was
 * meant (`{kind: "circle"}`). What all branches say in the same way is said together.
 */
export function closest(failures: readonly Failure[], value: unknown, at: Place | undefined): Failure {
  const [first] = failures;
  if (first === undefined) return failure(at, () => "must be of a form that exists");
  const together = first.kind !== "other" && failures.every((each) => each.kind === first.kind);
  if (together && failures.every((each) => samePlace(each.at, first.at))) {
    const expected = (): readonly string[] => [...new Set(failures.flatMap((each) => each.expected()))];
    const isType = first.kind === "type" && samePlace(first.at, at);
    const text = (): string =>
      isType ? typeText(expected(), value) : `must be ${expected().slice(0, shownMax).join(" or ")}`;
    return { at: first.at, text, kind: first.kind, expected };
  }
  let best = first;
  for (const each of failures) if (depthRank(each) > depthRank(best)) best = each;
  return best;
}

function depthRank(each: Failure): number {
  const depth = each.at?.depth ?? 0;
  switch (each.kind) {
    case "other":
      return depth * 2 + 1;
    case "type":
      return depth * 2 - 1;
    case "value":
      return depth * 2 - 2;
  }
}

/** Of words of one or two letters every other one is near; they count when only the case differs. */
function nearName(word: string, names: readonly string[]): string | undefined {
  const compared = names.slice(0, comparedMax);
  if (word.length >= 3) return didYouMean(word, compared);
  return compared.find((name) => name.toLowerCase() === word.toLowerCase());
}

/** Branches of one union share the places above it. */
function samePlace(a: Place | undefined, b: Place | undefined): boolean {
  let left = a;
  let right = b;
  while (left !== right) {
    if (left === undefined || right === undefined || left.step !== right.step) return false;
    left = left.parent;
    right = right.parent;
  }
  return true;
}

/** A value of the schema. */
function shown(value: JsonValue): string {
  if (typeof value === "string") return quote(value);
  const text = JSON.stringify(value);
  return text.length <= 60 ? text : `${text.slice(0, 57)}...`;
}

export function count(number: number, what: string): string {
  if (number === 1) return `1 ${what}`;
  return `${number} ${what.endsWith("y") ? `${what.slice(0, -1)}ies` : `${what}s`}`;
}
