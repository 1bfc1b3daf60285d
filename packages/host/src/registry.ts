/**
 * The registry of host functions: one row each, everything else derived (the guest's `host` object, argument checks,
 * documentation, types). To add a function write one file with one row (`sleep.ts` is the shortest) and put the row into
 * `builtIns`; embedders add theirs with `defineHostFunction` and pass them to a runtime.
 *
 * Kept true: names are unique and usable as `host.<name>`; a row is whole; nothing of a row changes after it is registered.
 */

import { enclosingNames, nameProblem } from "./names.js";
import { isSchema, type Schema } from "./schema.js";

/**
 * What a call does to the world, hence what may happen after a crash: `local` changes only flowcell's own store, `wait`
 * waits, `read` may be repeated, `keyed` may be repeated with the same idempotency key, `once` may not be repeated.
 */
export const effects = ["local", "wait", "read", "keyed", "once"] as const;
export type Effect = (typeof effects)[number];

export interface CallContext {
  readonly name: string;
  readonly position: number;
  /** Aborted when the script cancels the call, the run ends, or the row's `wallMs` passes. */
  readonly signal: AbortSignal;
  /** The same when the same call is made again after a crash. */
  readonly idempotencyKey: string;
  /** Whether time passes for this run; in virtual time nobody waits. */
  readonly clock: "real" | "virtual";
}

export interface HostFunctionLimits {
  /** Text bytes of the arguments and of the result; at most the run's valueBytes, which is the default. */
  readonly inputBytes?: number;
  readonly outputBytes?: number;
  /** Time until the call fails with `timeout`; the run's own limits by default. */
  readonly wallMs?: number;
}

export interface HostFunctionDefinition<Arguments extends readonly unknown[], Result> {
  /** `kv.get` becomes `host.kv.get(…)`. */
  readonly name: string;
  /** One line for documentation and types. */
  readonly doc: string;
  readonly effect: Effect;
  /** The grant that a script needs to be given the function; null when it needs none. */
  readonly grant: string | null;
  /** A schema of the list of arguments: `z.tuple([z.string(), z.number()])`. */
  readonly input: Schema<Arguments>;
  /** A schema of the result; what it returns is sent. */
  readonly output?: Schema<unknown>;
  readonly limits?: HostFunctionLimits;
  /** Whether regular expressions are let in. One from a script can be made to run for ever: never execute it. */
  readonly acceptsRegExps?: boolean;
  /**
   * Does the call. Throw `HostError` for a failure that the script should tell apart. The name and message of any other
   * error reach the script as `upstream`, its stack does not.
   */
  readonly handler: (args: Arguments, context: CallContext) => Result | Promise<Result>;
}

/** A row whose argument and result types are checked by its schemas only. */
export interface HostFunction {
  readonly name: string;
  readonly doc: string;
  readonly effect: Effect;
  readonly grant: string | null;
  readonly input: Schema<readonly unknown[]>;
  readonly output: Schema<unknown> | undefined;
  readonly limits: HostFunctionLimits;
  readonly acceptsRegExps: boolean;
  /** `args` must be what `input` returned. */
  call(args: readonly unknown[], context: CallContext): unknown;
}

/** A definition that nobody can work with: a bug of the embedder, not of a script. */
export class HostFunctionError extends Error {
  override readonly name = "HostFunctionError";
}

const definitionKeys: ReadonlySet<string> = new Set([
  "name",
  "doc",
  "effect",
  "grant",
  "input",
  "output",
  "limits",
  "acceptsRegExps",
  "handler",
]);
const limitKeys: ReadonlySet<string> = new Set(["inputBytes", "outputBytes", "wallMs"]);

/** Checks a definition and closes it over its types. Throws HostFunctionError. */
export function defineHostFunction<Arguments extends readonly unknown[], Result>(
  definition: HostFunctionDefinition<Arguments, Result>,
): HostFunction {
  checkDefinition(definition);
  const { name, doc, effect, grant, input, handler } = definition;
  return Object.freeze({
    name,
    doc,
    effect,
    grant,
    input,
    output: definition.output,
    limits: Object.freeze({ ...definition.limits }),
    acceptsRegExps: definition.acceptsRegExps ?? false,
    call: (args: readonly unknown[], context: CallContext): unknown => handler(args as Arguments, context), // `input`, a schema of Arguments, made them
  });
}

function checkDefinition<Arguments extends readonly unknown[], Result>(
  definition: HostFunctionDefinition<Arguments, Result>,
): void {
  const { name, doc, effect, grant } = definition;
  const refuse = (what: string): never => {
    throw new HostFunctionError(`host function ${JSON.stringify(name)} ${what}`);
  };
  if (typeof name !== "string") refuse("needs a name");
  const problem = nameProblem(name);
  if (problem !== undefined) refuse(problem);
  for (const key of Object.keys(definition))
    if (!definitionKeys.has(key)) refuse(`has an unknown key "${key}"`);
  if (typeof doc !== "string" || doc === "" || doc.includes("\n")) refuse("needs a doc of one line");
  if (!effects.includes(effect)) refuse(`has effect "${effect}"; the effects are ${effects.join(", ")}`);
  if (grant !== null && (typeof grant !== "string" || grant === "")) refuse("needs a grant: a name, or null");
  if (!isSchema(definition.input))
    refuse("needs an input schema of its arguments, for example z.tuple([z.string()])");
  if (definition.output !== undefined && !isSchema(definition.output))
    refuse("has an output that is no schema");
  if (typeof definition.handler !== "function") refuse("needs a handler");
  for (const [key, value] of Object.entries(definition.limits ?? {})) {
    if (!limitKeys.has(key))
      refuse(`has an unknown limit "${key}"; its limits are ${[...limitKeys].join(", ")}`);
    if (!Number.isSafeInteger(value) || value < 1)
      refuse(`has a limit ${key} that is no positive whole number`);
  }
}

export interface Registry {
  /** Every name, sorted. The same array each time. */
  readonly names: readonly string[];
  get(name: string): HostFunction | undefined;
}

/** Throws HostFunctionError when two rows cannot stand beside each other. */
export function createRegistry(rows: readonly HostFunction[]): Registry {
  const byName = new Map<string, HostFunction>();
  for (const row of rows) {
    if (byName.has(row.name)) {
      throw new HostFunctionError(`host function "${row.name}" is defined twice; rename one`);
    }
    byName.set(row.name, row);
  }
  for (const name of byName.keys()) {
    const outer = enclosingNames(name).find((candidate) => byName.has(candidate));
    if (outer !== undefined) {
      throw new HostFunctionError(
        `host function "${name}" cannot be inside "${outer}", which is a function; rename one`,
      );
    }
  }
  const names = Object.freeze([...byName.keys()].sort());
  return { names, get: (name) => byName.get(name) };
}
