/**
 * One host call from a worker to its handler and back. What a run without a journal needs is `dispatch`; a journaled run
 * takes the steps one by one, since it writes down what is about to happen in between: `readCall`, `noteCall`, `runCall`,
 * and after a crash `recoverCall`. Each always answers and never throws, whatever the script sent and whatever a handler
 * does.
 *
 * TRUST: the name and the arguments are a script's, perhaps a subverted engine's. Arguments are decoded within the run's
 * bounds, then checked by the row's schema; a handler sees nothing else.
 * What goes back holds no stack and no path of the host (`thrown.ts`).
 */

import {
  applyLocal,
  type CallNote,
  type CallOutcome,
  decodeValue,
  type Effect,
  type EncodedValue,
  encodeValue,
  HostError,
  hostErrorData,
  type Limits,
  type LocalOperation,
  type LocalTx,
  type Recovery,
  ValueError,
  valueBounds,
  type WaitCondition,
} from "@flowcell/protocol";
import type { HostFunction, Registry } from "./registry.js";
import { HandlerFailure, isThenable, runHandler } from "./run-handler.js";
import { argumentProblem, type SchemaResult } from "./schema.js";
import { thrownData } from "./thrown.js";

export interface IncomingCall {
  readonly position: number;
  readonly name: string;
  readonly args: EncodedValue;
  readonly signal: AbortSignal;
  readonly idempotencyKey: string;
  /** The run of a flow that makes the call; `DispatchOptions.runId` by default. */
  readonly runId?: string;
  /**
   * What `signal` says without a signal, of callers that make theirs on demand: one costs more than the rest of a call. Both
   * or neither.
   */
  readonly aborted?: boolean;
  /** Calls `listener` when the call is aborted, in place of the one before; null: nobody any more. */
  whenAborted?(listener: (() => void) | null): void;
}

export interface DispatchOptions {
  readonly limits: Pick<Limits, "valueBytes" | "bodyBytes">;
  readonly clock: "real" | "virtual";
  /** Where local effects go in a run without a journal. */
  readonly local?: { readonly tx: LocalTx; readonly bytesMax: number };
  /** The execution whose calls these are. */
  readonly runId?: string;
}

/** A call whose arguments are what its row wants. */
export interface ReadCall {
  readonly row: HostFunction;
  readonly args: readonly unknown[];
  readonly effect: Effect;
  /** For effect `local`. */
  readonly local: LocalOperation | undefined;
  /** For effect `wait`, when the row says what it waits for. */
  readonly wait: WaitCondition | undefined;
}

export type ReadResult =
  | { readonly ok: true; readonly call: ReadCall }
  | { readonly ok: false; readonly outcome: CallOutcome };

/** As JSON text; a note is for a size or a digest. */
const noteCharsMax = 4096;

/** Answers at once when nothing has to be waited for: a promise costs more than most calls. */
export function dispatch(
  registry: Registry,
  call: IncomingCall,
  options: DispatchOptions,
): CallOutcome | Promise<CallOutcome> {
  const read = readNow(registry, call, options);
  return read instanceof Promise
    ? read.then((settled) => carryOut(settled, call, options))
    : carryOut(read, call, options);
}

function carryOut(
  read: ReadResult,
  call: IncomingCall,
  options: DispatchOptions,
): CallOutcome | Promise<CallOutcome> {
  return read.ok ? runNow(read.call, call, options) : read.outcome;
}

/** Finds the row and checks the arguments. */
export async function readCall(
  registry: Registry,
  call: IncomingCall,
  options: DispatchOptions,
): Promise<ReadResult> {
  return await readNow(registry, call, options);
}

function readNow(
  registry: Registry,
  call: IncomingCall,
  options: DispatchOptions,
): ReadResult | Promise<ReadResult> {
  try {
    const row = registry.get(call.name);
    if (row === undefined) throw new HostError("not_found", `there is no host function ${call.name}`);
    const checked = row.input["~standard"].validate(readArguments(row, call, options));
    return isThenable(checked)
      ? Promise.resolve(checked).then((settled) => decided(row, settled), unread)
      : decided(row, checked);
  } catch (error) {
    return unread(error);
  }
}

function unread(error: unknown): ReadResult {
  return { ok: false, outcome: failure(error) };
}

function decided(row: HostFunction, checked: SchemaResult<readonly unknown[]>): ReadResult {
  try {
    const args = acceptedArguments(row, checked);
    const { effect, local, wait } = decide(row, args);
    return { ok: true, call: { row, args, effect, local, wait } };
  } catch (error) {
    return unread(error);
  }
}

function decide(row: HostFunction, args: readonly unknown[]): Pick<ReadCall, "effect" | "local" | "wait"> {
  try {
    return { effect: row.effectOf(args), local: row.local?.(args), wait: row.wait?.(args) };
  } catch (error) {
    throw new HandlerFailure(error);
  }
}

export type NoteResult =
  | { readonly ok: true; readonly note: CallNote | null }
  | { readonly ok: false; readonly outcome: CallOutcome };

/** What is to be written down with the intent. A failure here is the call's outcome: nothing has happened yet. */
export async function noteCall(
  { row, args }: ReadCall,
  call: IncomingCall,
  options: DispatchOptions,
): Promise<NoteResult> {
  const { prepare } = row;
  if (prepare === undefined) return { ok: true, note: null };
  try {
    const answer = await runHandler(row, call, options, (context) => prepare(args, context));
    const note = answer as CallNote; // what `prepare` is declared to return; JSON below bounds it
    if (JSON.stringify(note).length > noteCharsMax) {
      throw new HostError("internal", `${row.name}: its note is longer than ${noteCharsMax} characters`);
    }
    return { ok: true, note };
  } catch (error) {
    return { ok: false, outcome: failure(error) };
  }
}

/**
 * Carries the call out. One of effect `keyed` or `once` that is aborted or late answers `outcome_unknown`, unless its handler
 * says in time how it ended: whether it took effect is nothing to guess.
 */
export async function runCall(
  read: ReadCall,
  call: IncomingCall,
  options: DispatchOptions,
): Promise<CallOutcome> {
  return await runNow(read, call, options);
}

function runNow(
  { row, args, effect, local }: ReadCall,
  call: IncomingCall,
  options: DispatchOptions,
): CallOutcome | Promise<CallOutcome> {
  try {
    if (local !== undefined) {
      if (options.local === undefined)
        throw new HostError("unavailable", `${row.name}: this run has no store`);
      return applyLocal(options.local.tx, local, options.local.bytesMax);
    }
    const handler = row.call;
    if (handler === undefined) {
      throw new HostError("unavailable", `${row.name}: only the run of a flow can wait for this`);
    }
    const changes = effect === "keyed" || effect === "once";
    const answer = runHandler(row, call, options, (context) => handler(args, context), changes);
    return answer instanceof Promise
      ? answer.then((result) => outcomeOf(row, result, options, changes), failure)
      : outcomeOf(row, answer, options, changes);
  } catch (error) {
    return failure(error);
  }
}

/** After a crash: what can be proven of a call that was started and has no outcome. A failure to find out proves nothing. */
export async function recoverCall(
  { row, args }: ReadCall,
  note: CallNote | null,
  call: IncomingCall,
  options: DispatchOptions,
): Promise<Recovery> {
  const { recover } = row;
  if (recover === undefined) return { state: "unknown" };
  try {
    const answer = await runHandler(row, call, options, (context) => recover(args, note, context));
    const recovered = answer as Awaited<ReturnType<typeof recover>>; // what `recover` is declared to return
    if (recovered.state !== "applied") return { state: recovered.state };
    return {
      state: "applied",
      outcome: { ok: true, value: await writeResult(row, recovered.value, options) },
    };
  } catch {
    return { state: "unknown" };
  }
}

function failure(error: unknown): CallOutcome {
  return {
    ok: false,
    error: error instanceof HandlerFailure ? thrownData(error.thrown) : hostErrorData(error),
  };
}

function readArguments(row: HostFunction, call: IncomingCall, { limits }: DispatchOptions): unknown[] {
  const textBytes = Math.min(row.limits.inputBytes ?? limits.valueBytes, limits.valueBytes);
  if (call.args.text.length > textBytes) {
    throw new HostError("too_large", `${row.name}: the arguments exceed ${textBytes} bytes`);
  }
  const value = decodeArguments(row, call.args, textBytes, limits.bodyBytes);
  if (!Array.isArray(value))
    throw new HostError("invalid_arguments", `${row.name}: the arguments are no list`);
  return value;
}

function acceptedArguments(row: HostFunction, checked: SchemaResult<readonly unknown[]>): readonly unknown[] {
  if (checked.issues === undefined) return checked.value;
  const { where, what, path } = argumentProblem(checked.issues);
  const message = where === "" ? `${row.name}: ${what}` : `${row.name}: ${where}: ${what}`;
  throw new HostError("invalid_arguments", message, { detail: { path } });
}

function decodeArguments(
  row: HostFunction,
  args: EncodedValue,
  textBytes: number,
  attachmentBytes: number,
): unknown {
  try {
    return decodeValue(args, {
      textBytes,
      attachmentBytes,
      nodes: Math.max(valueBounds.nodes, textBytes),
      regExps: row.acceptsRegExps ? "revive" : "refuse",
    });
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    const code = error.code === "too_large" ? "too_large" : "invalid_arguments";
    throw new HostError(code, `${row.name}: ${error.message}`, { cause: error });
  }
}

/** What a handler's answer is sent as; never throws or rejects. `changes`: the handler has changed something outside. */
function outcomeOf(
  row: HostFunction,
  result: unknown,
  options: DispatchOptions,
  changes: boolean,
): CallOutcome | Promise<CallOutcome> {
  const unsent = (error: unknown): CallOutcome => failure(changes ? afterChange(error) : error);
  try {
    const value = writeResult(row, result, options);
    return value instanceof Promise
      ? value.then((settled) => ({ ok: true, value: settled }), unsent)
      : { ok: true, value };
  } catch (error) {
    return unsent(error);
  }
}

/**
 * An answer that breaks the row's own rules does not say what the handler did: a script must not take it for a call that
 * failed and make it again. One that is only too large says so.
 */
function afterChange(error: unknown): unknown {
  if (error instanceof HostError && error.code === "result_too_large") return error;
  const text = error instanceof HostError ? error.message : "the result cannot be sent";
  return new HostError("outcome_unknown", `${text}; it may have taken effect`, {
    detail: { cause: "internal" },
    cause: error,
  });
}

function writeResult(
  row: HostFunction,
  result: unknown,
  options: DispatchOptions,
): EncodedValue | Promise<EncodedValue> {
  if (row.output === undefined) return encodeResult(row, result, options);
  const checked = row.output["~standard"].validate(result);
  return isThenable(checked)
    ? Promise.resolve(checked).then((settled) => encodeChecked(row, settled, options))
    : encodeChecked(row, checked, options);
}

function encodeChecked(
  row: HostFunction,
  checked: SchemaResult<unknown>,
  options: DispatchOptions,
): EncodedValue {
  if (checked.issues === undefined) return encodeResult(row, checked.value, options);
  const { path } = argumentProblem(checked.issues);
  const at = path.length === 0 ? "" : ` at ${path.join(".")}`;
  throw new HostError("internal", `${row.name}: the host function returned what its row does not allow${at}`);
}

function encodeResult(row: HostFunction, value: unknown, { limits }: DispatchOptions): EncodedValue {
  const textBytes = Math.min(row.limits.outputBytes ?? limits.valueBytes, limits.valueBytes);
  try {
    return encodeValue(value, {
      textBytes,
      attachmentBytes: limits.bodyBytes,
      nodes: Math.max(valueBounds.nodes, textBytes),
    });
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    const code = error.code === "too_large" ? "result_too_large" : "internal";
    throw new HostError(code, `${row.name}: the result cannot be sent: ${error.message}`, { cause: error });
  }
}
