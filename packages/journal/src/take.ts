/**
 * Small checks that copy what they check, from which the shapes of rows and operations are put together. Used for units that
 * callers commit and for recordings that are read; each throws Refused with the place and what must stand there.
 *
 * Kept true: unknown and missing fields are refused; numbers are finite and zero has no sign; names are well-formed Unicode
 * (a store that keeps UTF-8 would change them); free text is made well-formed; texts and lists have a bound, far above what
 * the limits of runs let through.
 */

import { didYouMean } from "@flowcell/protocol";
import { Refused } from "./rules.js";

/** Checks a value and answers its copy; `where` is for the text of the refusal. */
export type Take<T = unknown> = (value: unknown, where: string) => T;
export type Shape = { readonly [field: string]: Take };

const MiB = 1024 * 1024;
/** A bundle or a text of a value; a manifest's limits are a megabyte. */
const longChars = 64 * MiB;
const freeChars = MiB;
const nameChars = 1024;
const partsMax = 65_536;

const loneSurrogate = /\p{Cs}/u;

export function isWellFormed(text: string): boolean {
  return !loneSurrogate.test(text);
}

export function fail(where: string, what: string): never {
  throw new Refused("conflict", `${where} must be ${what}`);
}

export const boolean: Take<boolean> = (value, where) =>
  typeof value === "boolean" ? value : fail(where, "true or false");

export const time: Take<number> = (value, where) =>
  // + 0: a store cannot be relied on to keep the sign of zero.
  typeof value === "number" && Number.isFinite(value) ? value + 0 : fail(where, "a finite number");

export const count: Take<number> = (value, where) =>
  Number.isSafeInteger(value) && Number(value) >= 0
    ? Number(value) + 0
    : fail(where, "a whole number from 0");

export const positive: Take<number> = (value, where) =>
  Number.isSafeInteger(value) && Number(value) >= 1 ? Number(value) : fail(where, "a whole number from 1");

function exact(charsMax: number): Take<string> {
  return (value, where) => {
    if (typeof value !== "string" || value.length > charsMax)
      fail(where, `text of at most ${charsMax} characters`);
    return isWellFormed(value) ? value : fail(where, "well-formed Unicode");
  };
}

export const long = exact(longChars);
export const name = exact(nameChars);

export const id: Take<string> = (value, where) =>
  value === "" ? fail(where, "text that is not empty") : name(value, where);

/** Text that people read: a lone half of a character in it, for example from cutting, is replaced. */
export const free: Take<string> = (value, where) => {
  if (typeof value !== "string" || value.length > freeChars)
    fail(where, `text of at most ${freeChars} characters`);
  return isWellFormed(value) ? value : value.replace(/\p{Cs}/gu, "\ufffd");
};

/** A key of a script: `carryOut` answers the script if it is not well-formed. */
export const scriptKey: Take<string> = (value, where) =>
  typeof value === "string" && value.length <= longChars ? value : fail(where, "text");

export function nullable<T>(take: Take<T>): Take<T | null> {
  return (value, where) => (value === null ? null : take(value, where));
}

export function oneOf<T extends string>(...names: readonly T[]): Take<T> {
  return (value, where) => names.find((one) => one === value) ?? fail(where, names.join(", "));
}

export function list<T>(take: Take<T>): Take<T[]> {
  return (value, where) => {
    if (!Array.isArray(value) || value.length > partsMax) fail(where, "a list");
    return value.map((one, at) => take(one, `${where}[${at}]`));
  };
}

export function isObject(value: unknown): value is { readonly [field: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function fields(
  shape: Shape,
  value: unknown,
  where: string,
  partial: boolean,
): Record<string, unknown> {
  if (!isObject(value)) fail(where, "an object");
  const copy: Record<string, unknown> = {};
  for (const field of Object.keys(value)) {
    const take = Object.hasOwn(shape, field) ? shape[field] : undefined;
    if (take === undefined) {
      const near = didYouMean(field, Object.keys(shape));
      const hint = near === undefined ? "" : `; did you mean ${near}?`;
      throw new Refused("conflict", `${where} has an unknown field ${field}${hint}`);
    }
    copy[field] = take(value[field], `${where}.${field}`);
  }
  if (!partial) {
    for (const field of Object.keys(shape)) {
      if (!Object.hasOwn(copy, field)) throw new Refused("conflict", `${where} lacks ${field}`);
    }
  }
  return copy;
}

export function object<T>(shape: Shape): Take<T> {
  return (value, where) => fields(shape, value, where, false) as T; // each shape stands beside the type it is made for
}

export function variants<T>(shapes: { readonly [kind: string]: Shape }): Take<T> {
  const kind = oneOf(...Object.keys(shapes));
  const takers = new Map(
    Object.entries(shapes).map(([key, shape]) => [key, object<T>({ kind: name, ...shape })] as const),
  );
  return (value, where) => {
    const take = takers.get(kind(isObject(value) ? value["kind"] : undefined, `${where}.kind`));
    return take === undefined ? fail(where, "of a known kind") : take(value, where);
  };
}
