/**
 * The registry of host functions: one row each, everything else derived (the guest's `host` object, argument checks,
 * documentation, types). To add a function write one file with one row (`sleep.ts` is the shortest) and put the row into
 * `builtIns`; embedders add theirs with `defineHostFunction` and pass them to a runtime.
 *
 * Kept true: names are unique and usable as `host.<name>`; a row is whole; nothing of a row changes after it is registered.
 */

import {
  type CallNote,
  type Effect,
  effects,
  type LocalOperation,
  type WaitCondition,
} from "@flowcell/protocol";
import { enclosingNames, nameProblem } from "./names.js";
import { isSchema, type Schema } from "./schema.js";

export interface CallContext {
  readonly name: string;
  readonly position: number;
  /** Aborted when the script cancels the call, the run ends, or the row's `wallMs` passes. */
  readonly signal: AbortSignal;
  /** The same when the same call is made again after a crash. */
  readonly idempotencyKey: string;
  /** Whether time passes for this run; in virtual time nobody waits. */
  readonly clock: "real" | "virtual";
  /** The run of a flow that makes the call; none for a script on its own. */
  readonly runId?: string;
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
  /** One effect, or what decides it from the checked arguments; it must answer the same for the same arguments. */
  readonly effect: Effect | ((args: Arguments) => Effect);
  /** The grant that a script needs to be given the function; null when it needs none. */
  readonly grant: string | null;
  /** For generated types: what stands after the name, for example `(ms: number): Promise<void>`. */
  readonly signature?: string;
  /** A schema of the list of arguments: `z.tuple([z.string(), z.number()])`. */
  readonly input: Schema<Arguments>;
  /** A schema of the result; what it returns is sent. */
  readonly output?: Schema<unknown>;
  readonly limits?: HostFunctionLimits;
  /** Whether regular expressions are let in. One from a script can be made to run for ever: never execute it. */
  readonly acceptsRegExps?: boolean;
  /**
   * Does the call. Throw `HostError` for a failure that the script should tell apart. The name and message of any other
   * error reach the script as `upstream`, its stack does not. For `keyed` and `once`, throw `outcome_unknown` when the effect
   * may have happened; when the signal aborts, answer soon, with `cancelled` only if nothing happened. Rows with `local` or
   * `wait` need none.
   */
  readonly handler?: (args: Arguments, context: CallContext) => Result | Promise<Result>;
  /** For `local`: the operation, carried out in the transaction that records the call. */
  readonly local?: (args: Arguments) => LocalOperation;
  /** For `wait`: what a journaled run waits for without a worker. The run ends the wait, no handler is called. */
  readonly wait?: (args: Arguments) => WaitCondition;
  /** For `keyed` and `once`: what `recover` will need to know of the world as it was before; kept with the intent. */
  readonly prepare?: (args: Arguments, context: CallContext) => CallNote | Promise<CallNote>;
  /** For `keyed` and `once`: after a crash, whether the effect of a call without a recorded outcome can be proven. */
  readonly recover?: (
    args: Arguments,
    note: CallNote | null,
    context: CallContext,
  ) => RecoveredResult | Promise<RecoveredResult>;
}

/** `applied` has the value that the handler would have returned. */
export type RecoveredResult =
  | { readonly state: "applied"; readonly value: unknown }
  | { readonly state: "not_applied" }
  | { readonly state: "unknown" };

/** A row whose argument and result types are checked by its schemas only. */
export interface HostFunction {
  readonly name: string;
  readonly doc: string;
  readonly grant: string | null;
  readonly signature: string | undefined;
  readonly input: Schema<readonly unknown[]>;
  readonly output: Schema<unknown> | undefined;
  readonly limits: HostFunctionLimits;
  readonly acceptsRegExps: boolean;
  /** The one effect of the row; undefined when the arguments decide it. */
  readonly effect: Effect | undefined;
  // The members below take what `input` returned.
  effectOf(args: readonly unknown[]): Effect;
  readonly call: ((args: readonly unknown[], context: CallContext) => unknown) | undefined;
  readonly local: ((args: readonly unknown[]) => LocalOperation) | undefined;
  readonly wait: ((args: readonly unknown[]) => WaitCondition) | undefined;
  readonly prepare:
    | ((args: readonly unknown[], context: CallContext) => CallNote | Promise<CallNote>)
    | undefined;
  readonly recover:
    | ((
        args: readonly unknown[],
        note: CallNote | null,
        context: CallContext,
      ) => RecoveredResult | Promise<RecoveredResult>)
    | undefined;
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
  "signature",
  "input",
  "output",
  "limits",
  "acceptsRegExps",
  "handler",
  "local",
  "wait",
  "prepare",
  "recover",
]);
const limitKeys: ReadonlySet<string> = new Set(["inputBytes", "outputBytes", "wallMs"]);

/** Checks a definition and closes it over its types. Throws HostFunctionError. */
export function defineHostFunction<Arguments extends readonly unknown[], Result>(
  definition: HostFunctionDefinition<Arguments, Result>,
): HostFunction {
  checkDefinition(definition);
  const { name, doc, effect, grant, signature, input, output, handler, local, wait, prepare, recover } =
    definition;
  // `input`, a schema of Arguments, makes what every member below is given.
  const typed = (args: readonly unknown[]): Arguments => args as Arguments;
  return Object.freeze({
    name,
    doc,
    grant,
    signature,
    input,
    output,
    limits: Object.freeze({ ...definition.limits }),
    acceptsRegExps: definition.acceptsRegExps ?? false,
    effect: typeof effect === "function" ? undefined : effect,
    effectOf: (args: readonly unknown[]): Effect =>
      typeof effect === "function" ? effect(typed(args)) : effect,
    call: handler && ((args: readonly unknown[], context: CallContext) => handler(typed(args), context)),
    local: local && ((args: readonly unknown[]) => local(typed(args))),
    wait: wait && ((args: readonly unknown[]) => wait(typed(args))),
    prepare: prepare && ((args: readonly unknown[], context: CallContext) => prepare(typed(args), context)),
    recover:
      recover &&
      ((args: readonly unknown[], note: CallNote | null, context: CallContext) =>
        recover(typed(args), note, context)),
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
  if (typeof effect !== "function" && !effects.includes(effect)) {
    refuse(`has effect "${effect}"; the effects are ${effects.join(", ")}, or a function that answers one`);
  }
  if (grant !== null && (typeof grant !== "string" || grant === "")) refuse("needs a grant: a name, or null");
  if (!isSchema(definition.input))
    refuse("needs an input schema of its arguments, for example z.tuple([z.string()])");
  if (definition.output !== undefined && !isSchema(definition.output))
    refuse("has an output that is no schema");
  checkWays(definition, refuse);
  for (const [key, value] of Object.entries(definition.limits ?? {})) {
    if (!limitKeys.has(key))
      refuse(`has an unknown limit "${key}"; its limits are ${[...limitKeys].join(", ")}`);
    if (!Number.isSafeInteger(value) || value < 1)
      refuse(`has a limit ${key} that is no positive whole number`);
  }
}

/** How a call is carried out: by a handler, by the store, or by waiting. */
function checkWays<Arguments extends readonly unknown[], Result>(
  definition: HostFunctionDefinition<Arguments, Result>,
  refuse: (what: string) => never,
): void {
  const { effect, handler, local, wait, prepare, recover } = definition;
  for (const [key, member] of Object.entries({ handler, local, wait, prepare, recover })) {
    if (member !== undefined && typeof member !== "function") refuse(`has a ${key} that is no function`);
  }
  if ((local !== undefined) !== (effect === "local"))
    refuse('needs local exactly when its effect is "local"');
  if (local !== undefined && handler !== undefined)
    refuse("has a handler beside local, which nothing would call");
  if (wait !== undefined && effect !== "wait") refuse('has wait although its effect is not "wait"');
  if (handler === undefined && local === undefined && wait === undefined) refuse("needs a handler");
  const repeatable = effect === "local" || effect === "wait" || effect === "read";
  if (repeatable && (prepare !== undefined || recover !== undefined))
    refuse('has prepare or recover, which are for the effects "keyed" and "once"');
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
