/**
 * Options of the libraries, checked by name and type from one table before anything happens: an option that is not known is a
 * mistake to report, never one to ignore.
 */

import { didYouMean } from "./suggest.js";

type Check = (value: unknown) => boolean;

export interface OptionRow {
  readonly check: Check;
  /** Stands after "must be". */
  readonly wanted: string;
}

export type OptionTable<Options> = { readonly [name in keyof Options]-?: OptionRow };

export const optionChecks = {
  isText: (value: unknown) => typeof value === "string",
  isFlag: (value: unknown) => typeof value === "boolean",
  isObject: (value: unknown) => typeof value === "object" && value !== null,
  isWhole: (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0,
  isPositive: (value: unknown) => Number.isSafeInteger(value) && Number(value) > 0,
  isFunction: (value: unknown) => typeof value === "function",
  isOneOf:
    (...allowed: readonly string[]): Check =>
    (value: unknown) =>
      typeof value === "string" && allowed.includes(value),
} as const satisfies Record<string, Check | ((...allowed: readonly string[]) => Check)>;

/** What is wrong with options, or undefined. `foreign`: names that others use for the same thing; suggested, never accepted. */
export function optionProblem(
  options: object,
  table: Readonly<Record<string, OptionRow>>,
  foreign: ReadonlyMap<string, string> = new Map(),
): string | undefined {
  for (const [name, value] of Object.entries(options)) {
    const row = Object.hasOwn(table, name) ? table[name] : undefined;
    if (row === undefined) return unknownOption(name, Object.keys(table), foreign);
    if (value !== undefined && !row.check(value)) return `option ${name} must be ${row.wanted}`;
  }
  return undefined;
}

function unknownOption(name: string, known: readonly string[], foreign: ReadonlyMap<string, string>): string {
  const shown = JSON.stringify(name.slice(0, 40));
  const near = foreign.get(name) ?? didYouMean(name, known);
  if (near !== undefined) return `unknown option ${shown}: did you mean ${near}?`;
  return `unknown option ${shown}: the options are ${known.join(", ")}`;
}
