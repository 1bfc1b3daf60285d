/**
 * Runs the handler of one call, against its deadline and the end of the call. dispatch.ts calls it once arguments are checked.
 *
 * Kept true: a handler runs only for a call that is not aborted; the first of answer, deadline and end counts, and nothing that
 * a handler does later disturbs anybody; after that no timer and no listener is left.
 */

import { HostError } from "@flowcell/protocol";
import { HandlerContext } from "./call-context.js";
import type { DispatchOptions, IncomingCall } from "./dispatch.js";
import type { CallContext, HostFunction } from "./registry.js";

/** How long a handler that changes something outside may take to say how far it got, once it was told to stop. */
const settleMs = 1000;

/** The handler's answer, its deadline, or the end of the call, whichever is first. `changes`: it changes something outside. */
export function runHandler(
  row: HostFunction,
  call: IncomingCall,
  options: DispatchOptions,
  handler: (context: CallContext) => unknown,
  changes = false,
): unknown {
  if (call.aborted ?? call.signal.aborted) throw cancelled(row);
  // Without a deadline of its own the call's signal says everything.
  const controller = row.limits.wallMs === undefined ? undefined : new AbortController();
  const context = new HandlerContext(call, options, controller ?? call);
  const answer = invoke(handler, context);
  return answer instanceof Promise ? raceWithEnd(row, answer, call, controller, changes) : answer;
}

function raceWithEnd(
  row: HostFunction,
  answer: Promise<unknown>,
  call: IncomingCall,
  controller: AbortController | undefined,
  changes: boolean,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    let stopped: HostError | undefined;
    let over = false;
    // The first of them ends the others; a handler that answers later answers nobody.
    const end = (): boolean => {
      if (over) return false;
      over = true;
      clearTimeout(timer);
      unwatch();
      return true;
    };
    const stop = (error: HostError): void => {
      if (stopped !== undefined || over) return;
      stopped = error;
      clearTimeout(timer);
      if (!changes) {
        end();
        reject(error);
      } else {
        timer = setTimeout(() => {
          if (end()) reject(unknown(error));
        }, settleMs);
      }
      controller?.abort(error);
    };
    const unwatch = watchEnd(call, () => stop(cancelled(row)));
    const { wallMs } = row.limits;
    if (wallMs !== undefined) {
      const late = (): HostError => new HostError("timeout", `${row.name}: no answer within ${wallMs} ms`);
      timer = setTimeout(() => stop(late()), wallMs);
    }
    answer.then(
      (value) => {
        if (end()) resolve(value);
      },
      (thrown: unknown) => {
        if (!end()) return;
        // A handler that only passes on that it was interrupted does not say how far it got.
        const vague = changes && stopped !== undefined && !(thrown instanceof HostError);
        reject(vague && stopped !== undefined ? unknown(stopped) : new HandlerFailure(thrown));
      },
    );
  });
}

/** Returns what ends the watch. */
function watchEnd(call: IncomingCall, listener: () => void): () => void {
  if (call.whenAborted !== undefined) {
    call.whenAborted(listener);
    return () => call.whenAborted?.(null);
  }
  const { signal } = call;
  signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}

function unknown(end: HostError): HostError {
  return new HostError("outcome_unknown", `${end.message}; it may have taken effect`, { cause: end });
}

function cancelled(row: HostFunction): HostError {
  return new HostError("cancelled", `${row.name}: the call was cancelled`);
}

/** Tells what a handler threw from what this file throws: only the first may be shown as the function's own error. */
function invoke(handler: (context: CallContext) => unknown, context: CallContext): unknown {
  try {
    const answer = handler(context);
    // Promise.resolve: a handler may return any thenable.
    return isThenable(answer) ? Promise.resolve(answer) : answer;
  } catch (error) {
    throw new HandlerFailure(error);
  }
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

export class HandlerFailure extends Error {
  readonly thrown: unknown;

  constructor(thrown: unknown) {
    super("the handler failed");
    this.thrown = thrown;
  }
}
