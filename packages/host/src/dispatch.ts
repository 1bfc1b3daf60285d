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
import type { CallContext, HostFunction, Registry } from "./registry.js";
import { argumentProblem } from "./schema.js";
import { thrownData } from "./thrown.js";

export interface IncomingCall {
  readonly position: number;
  readonly name: string;
  readonly args: EncodedValue;
  readonly signal: AbortSignal;
  readonly idempotencyKey: string;
  /** The run of a flow that makes the call. */
  readonly runId?: string;
}

export interface DispatchOptions {
  readonly limits: Pick<Limits, "valueBytes" | "bodyBytes">;
  readonly clock: "real" | "virtual";
  /** Where local effects go in a run without a journal. */
  readonly local?: { readonly tx: LocalTx; readonly bytesMax: number };
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
/** How long a handler that changes something outside may take to say how far it got, once it was told to stop. */
const settleMs = 1000;

export async function dispatch(
  registry: Registry,
  call: IncomingCall,
  options: DispatchOptions,
): Promise<CallOutcome> {
  const read = await readCall(registry, call, options);
  return read.ok ? await runCall(read.call, call, options) : read.outcome;
}

/** Finds the row and checks the arguments. */
export async function readCall(
  registry: Registry,
  call: IncomingCall,
  options: DispatchOptions,
): Promise<ReadResult> {
  try {
    const row = registry.get(call.name);
    if (row === undefined) throw new HostError("not_found", `there is no host function ${call.name}`);
    const args = await readArguments(row, call, options);
    const { effect, local, wait } = decide(row, args);
    return { ok: true, call: { row, args, effect, local, wait } };
  } catch (error) {
    return { ok: false, outcome: failure(error) };
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
  { row, args, effect, local }: ReadCall,
  call: IncomingCall,
  options: DispatchOptions,
): Promise<CallOutcome> {
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
    const result = await runHandler(row, call, options, (context) => handler(args, context), changes);
    return { ok: true, value: await writeResult(row, result, options) };
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

async function readArguments(
  row: HostFunction,
  call: IncomingCall,
  { limits }: DispatchOptions,
): Promise<readonly unknown[]> {
  const textBytes = Math.min(row.limits.inputBytes ?? limits.valueBytes, limits.valueBytes);
  if (call.args.text.length > textBytes) {
    throw new HostError("too_large", `${row.name}: the arguments exceed ${textBytes} bytes`);
  }
  const value = decodeArguments(row, call.args, textBytes, limits.bodyBytes);
  if (!Array.isArray(value))
    throw new HostError("invalid_arguments", `${row.name}: the arguments are no list`);
  const checked = await row.input["~standard"].validate(value);
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

/** The handler's answer, its deadline, or the end of the call, whichever is first. `changes`: it changes something outside. */
async function runHandler(
  row: HostFunction,
  call: IncomingCall,
  { clock }: DispatchOptions,
  handler: (context: CallContext) => unknown,
  changes = false,
): Promise<unknown> {
  if (call.signal.aborted) throw cancelled(row);
  const { wallMs } = row.limits;
  // Without a deadline of its own the call's signal says everything.
  const controller = wallMs === undefined ? undefined : new AbortController();
  const { name, position, idempotencyKey, runId } = call;
  const signal = controller?.signal ?? call.signal;
  const context = { name, position, idempotencyKey, signal, clock };
  const answer = invoke(handler, runId === undefined ? context : { ...context, runId });
  if (!(answer instanceof Promise)) return answer;
  return await raceWithEnd(row, answer, call.signal, controller, changes);
}

async function raceWithEnd(
  row: HostFunction,
  answer: Promise<unknown>,
  signal: AbortSignal,
  controller: AbortController | undefined,
  changes: boolean,
): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  let onAbort: (() => void) | undefined;
  let stopped: HostError | undefined;
  const end = new Promise<never>((_, reject) => {
    const stop = (error: HostError): void => {
      if (stopped !== undefined) return;
      stopped = error;
      clearTimeout(timer);
      if (changes) timer = setTimeout(() => reject(unknown(error)), settleMs);
      else reject(error);
      controller?.abort(error);
    };
    onAbort = () => stop(cancelled(row));
    signal.addEventListener("abort", onAbort, { once: true });
    const { wallMs } = row.limits;
    if (wallMs === undefined) return;
    const late = new HostError("timeout", `${row.name}: no answer within ${wallMs} ms`);
    timer = setTimeout(() => stop(late), wallMs);
  });
  try {
    // The loser is watched by the race; its rejection is nobody's unhandled one.
    return await Promise.race([answer, end]);
  } catch (error) {
    // A handler that only passes on that it was interrupted does not say how far it got.
    const vague = error instanceof HandlerFailure && !(error.thrown instanceof HostError);
    throw changes && stopped !== undefined && vague ? unknown(stopped) : error;
  } finally {
    clearTimeout(timer);
    if (onAbort !== undefined) signal.removeEventListener("abort", onAbort);
  }
}

function unknown(end: HostError): HostError {
  return new HostError("outcome_unknown", `${end.message}; it may have taken effect`, { cause: end });
}

function cancelled(row: HostFunction): HostError {
  return new HostError("cancelled", `${row.name}: the call was cancelled`);
}

/** Tells what a handler threw from what this file throws: only the first may be shown as the function's own error. */
function invoke(handler: (context: CallContext) => unknown, context: CallContext): unknown {
  const failure = (thrown: unknown): never => {
    throw new HandlerFailure(thrown);
  };
  try {
    const answer = handler(context);
    // Promise.resolve: a handler may return any thenable.
    return isThenable(answer) ? Promise.resolve(answer).catch(failure) : answer;
  } catch (error) {
    return failure(error);
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

class HandlerFailure extends Error {
  readonly thrown: unknown;

  constructor(thrown: unknown) {
    super("the handler failed");
    this.thrown = thrown;
  }
}

async function writeResult(
  row: HostFunction,
  result: unknown,
  { limits }: DispatchOptions,
): Promise<EncodedValue> {
  let value = result;
  if (row.output !== undefined) {
    const checked = await row.output["~standard"].validate(result);
    if (checked.issues !== undefined) {
      const { path } = argumentProblem(checked.issues);
      const at = path.length === 0 ? "" : ` at ${path.join(".")}`;
      throw new HostError(
        "internal",
        `${row.name}: the host function returned what its row does not allow${at}`,
      );
    }
    value = checked.value;
  }
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
