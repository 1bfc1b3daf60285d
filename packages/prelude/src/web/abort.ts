/**
 * AbortController and AbortSignal, on event-target-shim's EventTarget. Inside the runtime a signal's state is read and
 * followed through the functions exported here, which look nothing up: a host call is cancelled although a script has
 * replaced every method of its signal.
 */

import { Event, EventTarget, getEventAttributeValue, setEventAttributeValue } from "event-target-shim";
import { defineClasses, defineMethods } from "../define.js";
import { NativeSet, SetPrototypeAdd, SetPrototypeDelete, SetPrototypeForEach } from "../primordials.js";
import { setTimeout } from "../timers.js";
import { DOMException } from "./dom-exception.js";

interface State {
  aborted: boolean;
  reason: unknown;
  /** What the runtime does on abort, before listeners hear of it. */
  readonly steps: Set<() => void>;
}

const token = {};

let stateOf: (signal: object) => State | undefined;

class AbortSignal extends EventTarget {
  readonly #state: State = { aborted: false, reason: undefined, steps: new NativeSet() };

  static {
    stateOf = (signal) => (#state in signal ? signal.#state : undefined);
  }

  constructor(given?: unknown) {
    if (given !== token) throw new TypeError("Illegal constructor");
    super();
  }

  get aborted(): boolean {
    return this.#state.aborted;
  }

  get reason(): unknown {
    return this.#state.reason;
  }

  throwIfAborted(): void {
    if (this.#state.aborted) throw this.#state.reason;
  }

  get onabort(): unknown {
    return getEventAttributeValue(this, "abort");
  }

  set onabort(handler: unknown) {
    setEventAttributeValue(this, "abort", typeof handler === "function" ? handler : null);
  }

  static abort(reason?: unknown): AbortSignal {
    const signal = new AbortSignal(token);
    abort(signal, reason, "This operation was aborted", "AbortError");
    return signal;
  }

  static timeout(ms: number): AbortSignal {
    const delay = +ms;
    if (!(delay >= 0)) throw new TypeError("AbortSignal.timeout: the time must be a number of milliseconds");
    const signal = new AbortSignal(token);
    setTimeout(
      () => abort(signal, undefined, "The operation was aborted due to timeout", "TimeoutError"),
      delay,
    );
    return signal;
  }

  static any(signals: Iterable<AbortSignal>): AbortSignal {
    const sources = [...signals];
    for (const source of sources) {
      if (!isAbortSignal(source)) throw new TypeError("AbortSignal.any: every item must be an AbortSignal");
    }
    const signal = new AbortSignal(token);
    const already = sources.find((source) => source.#state.aborted);
    if (already !== undefined) {
      abort(signal, already.#state.reason, "", "AbortError");
      return signal;
    }
    for (const source of sources) {
      addAbortStep(source, () => abort(signal, source.#state.reason, "", "AbortError"));
    }
    return signal;
  }
}

/** An undefined reason becomes a DOMException of the given name. Only the first abort counts. */
function abort(signal: AbortSignal, reason: unknown, message: string, name: string): void {
  const state = stateOf(signal);
  if (state === undefined || state.aborted) return;
  state.aborted = true;
  state.reason = reason === undefined ? new DOMException(message, name) : reason;
  const { steps } = state;
  SetPrototypeForEach(steps, (step) => (step as () => void)()); // only `addAbortStep` adds
  try {
    signal.dispatchEvent(new Event("abort"));
  } catch {
    // The script has replaced what dispatching rests on; its own listeners are all that miss the event.
  }
}

class AbortController {
  readonly #signal = new AbortSignal(token);

  get signal(): AbortSignal {
    return this.#signal;
  }

  abort(reason?: unknown): void {
    abort(this.#signal, reason, "This operation was aborted", "AbortError");
  }
}

export function isAbortSignal(value: unknown): value is AbortSignal {
  return typeof value === "object" && value !== null && stateOf(value) !== undefined;
}

/** The reason if the signal has aborted, else undefined. */
export function signalReason(signal: object): { readonly value: unknown } | undefined {
  const state = stateOf(signal);
  return state?.aborted === true ? { value: state.reason } : undefined;
}

export function addAbortStep(signal: object, step: () => void): void {
  const state = stateOf(signal);
  if (state !== undefined) SetPrototypeAdd(state.steps, step);
}

export function removeAbortStep(signal: object, step: () => void): void {
  const state = stateOf(signal);
  if (state !== undefined) SetPrototypeDelete(state.steps, step);
}

export function installAbort(): void {
  defineClasses({ AbortController, AbortSignal });
  defineMethods(AbortSignal, {
    abort: AbortSignal.abort,
    timeout: AbortSignal.timeout,
    any: AbortSignal.any,
  });
}
