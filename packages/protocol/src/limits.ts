/**
 * The limits of an activation: one table with unit, smallest and largest value that the machinery can hold. Defaults come
 * from profiles/budgets/*.json, embedded by `scripts/generate.mjs` (generated/budgets.ts), so that a run reads no file for
 * them. Public names everywhere: options, manifests, `--limit name=value`, the API.
 *
 * A caller asks for `Partial<Limits>`; `parseLimits` returns whole, checked limits or one error text that says which name,
 * what it was and what it may be. Nothing is clamped silently.
 */

import { budgetProfiles } from "./generated/budgets.js";
import { didYouMean } from "./suggest.js";

export type LimitUnit = "milliseconds" | "bytes" | "count";

export interface LimitRow {
  readonly unit: LimitUnit;
  readonly least: number;
  /** What C structs, frame lengths and the engine can hold. An operator's ceiling lies at or below it. */
  readonly most: number;
  readonly meaning: string;
}

const KiB = 1024;
const MiB = 1024 * KiB;

export const limitTable = {
  cpuMs: {
    unit: "milliseconds",
    least: 1,
    most: 3_600_000,
    meaning: "JavaScript CPU time of one activation, waits excluded",
  },
  wallMs: {
    unit: "milliseconds",
    least: 1,
    most: 86_400_000,
    meaning: "time of one activation on the parent's clock, waits included",
  },
  heapBytes: {
    unit: "bytes",
    least: 64 * KiB,
    most: 2048 * MiB,
    meaning: "engine memory of one activation, the engine's own included",
  },
  // At a JavaScript stack of 8 MiB some recursion inside the engine overruns the C stack, at 1 MiB none does.
  stackBytes: { unit: "bytes", least: 16 * KiB, most: MiB, meaning: "JavaScript stack" },
  hostCalls: { unit: "count", least: 0, most: 1_000_000, meaning: "host calls of one activation" },
  inFlight: {
    unit: "count",
    least: 1,
    most: 1024,
    meaning: "host calls that may be unanswered at once; further ones wait in the worker",
  },
  outputBytes: {
    unit: "bytes",
    least: 0,
    most: 16 * MiB,
    meaning: "console text of one activation, then one truncation mark",
  },
  resultBytes: { unit: "bytes", least: 16, most: 16 * MiB, meaning: "text of the result" },
  inputBytes: { unit: "bytes", least: 16, most: 64 * MiB, meaning: "text of the input" },
  valueBytes: {
    unit: "bytes",
    least: 16,
    most: 16 * MiB,
    meaning: "text of a value in or out of a host call",
  },
  bodyBytes: {
    unit: "bytes",
    least: 0,
    most: 64 * MiB,
    meaning: "all binary attachments of one value together",
  },
  sourceBytes: { unit: "bytes", least: 16, most: 4 * MiB, meaning: "script as it is sent to the worker" },
} as const satisfies Record<string, LimitRow>;

export type LimitName = keyof typeof limitTable;
export type Limits = { readonly [name in LimitName]: number };
export type ProfileName = keyof typeof budgetProfiles;

export const limitNames: readonly LimitName[] = Object.freeze(
  Object.keys(limitTable) as LimitName[], // Object.keys of a literal table gives exactly its names
);

/** The largest value of each limit. */
export const limitCeilings: Limits = Object.freeze(
  Object.fromEntries(limitNames.map((name) => [name, limitTable[name].most])) as Limits, // built from every name
);

/** The limits of a profile: what an activation gets that asks for nothing. */
export function profileLimits(profile: ProfileName): Limits {
  return budgetProfiles[profile];
}

/** Names that other runtimes use for the same thing: suggested in errors, never accepted. */
const foreignNames: ReadonlyMap<string, LimitName> = new Map<string, LimitName>([
  ["timeout", "wallMs"],
  ["timeoutms", "wallMs"],
  ["executiontimeout", "wallMs"],
  ["cputimelimitms", "cpuMs"],
  ["maxdurationsecs", "cpuMs"],
  ["memory", "heapBytes"],
  ["memorylimit", "heapBytes"],
  ["memorylimitbytes", "heapBytes"],
  ["maxmemory", "heapBytes"],
  ["maxstacksize", "stackBytes"],
  ["maxstacksizebytes", "stackBytes"],
  ["maxrecursiondepth", "stackBytes"],
  ["maxsourcebytes", "sourceBytes"],
  ["maxresultbytes", "resultBytes"],
  ["maxoutputsize", "resultBytes"],
  ["maxconsoleoutputbytes", "outputBytes"],
  ["maxbridgerequests", "hostCalls"],
  ["maxconcurrency", "inFlight"],
]);

export function isLimitName(name: string): name is LimitName {
  return Object.hasOwn(limitTable, name);
}

export type LimitsResult =
  | { readonly ok: true; readonly limits: Limits }
  | { readonly ok: false; readonly message: string };

/**
 * Whole limits from what somebody asked for. `defaults` fills what is not named; nothing may exceed `ceilings`
 * (the operator's; `limitCeilings` when the asker is the operator). A ceiling below a default lowers the default.
 */
export function parseLimits(
  asked: unknown,
  defaults: Limits,
  ceilings: Limits = limitCeilings,
): LimitsResult {
  if (asked === undefined) asked = {};
  if (typeof asked !== "object" || asked === null || Array.isArray(asked)) {
    return { ok: false, message: "limits must be an object of limit names and whole numbers" };
  }
  const limits: Record<LimitName, number> = { ...defaults };
  for (const name of limitNames) limits[name] = Math.min(limits[name], ceilings[name]);
  for (const [name, value] of Object.entries(asked)) {
    if (!isLimitName(name)) return { ok: false, message: unknownLimit(name) };
    if (value === undefined) continue;
    const problem = checkLimit(name, value, ceilings[name]);
    if (problem !== undefined) return { ok: false, message: problem };
    limits[name] = value as number; // checkLimit admits whole numbers only
  }
  return { ok: true, limits };
}

export type LimitOptionResult =
  | { readonly ok: true; readonly name: LimitName; readonly value: number }
  | { readonly ok: false; readonly message: string };

/** One `name=value` as it is typed after `--limit`. */
export function parseLimitOption(text: string): LimitOptionResult {
  const equals = text.indexOf("=");
  if (equals < 1) return { ok: false, message: `limit "${text}" is not name=value, for example cpuMs=500` };
  const name = text.slice(0, equals);
  const digits = text.slice(equals + 1);
  if (!isLimitName(name)) return { ok: false, message: unknownLimit(name) };
  const value = /^[0-9]{1,15}$/.test(digits) ? Number(digits) : digits;
  const problem = checkLimit(name, value, limitCeilings[name]);
  if (problem !== undefined) return { ok: false, message: problem };
  return { ok: true, name, value: Number(digits) };
}

function checkLimit(name: LimitName, value: unknown, ceiling: number): string | undefined {
  const { unit, least } = limitTable[name];
  const range = `a whole number from ${least} to ${ceiling} (${unit})`;
  if (typeof value !== "number") return `limit ${name} must be ${range}, not ${describe(value)}`;
  if (!Number.isInteger(value) || value < least || value > ceiling) {
    return `limit ${name} must be ${range}, not ${value}`;
  }
  return undefined;
}

function describe(value: unknown): string {
  if (typeof value === "string") return `the text ${JSON.stringify(value.slice(0, 40))}`;
  return value === null ? "null" : `a value of type ${typeof value}`;
}

function unknownLimit(name: string): string {
  const shown = JSON.stringify(name.slice(0, 40));
  const near = foreignNames.get(name.toLowerCase().replaceAll("_", "")) ?? didYouMean(name, limitNames);
  if (near !== undefined) return `unknown limit ${shown}: did you mean ${near} (${limitTable[near].unit})?`;
  return `unknown limit ${shown}: the limits are ${limitNames.join(", ")}`;
}
