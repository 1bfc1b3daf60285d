/**
 * What a handler is told of its call. dispatch.ts makes one for each call; codemode makes its tools' context on the same base.
 *
 * An AbortSignal costs more than the rest of a short call, and most handlers never look at theirs: it is made when it is first
 * asked for. Kept true: `signal` is an own and enumerable member all the same, so a context that a handler spreads into options
 * of its own still has it.
 */

import type { DispatchOptions, IncomingCall } from "./dispatch.js";
import type { CallContext } from "./registry.js";

interface SignalSource {
  readonly signal: AbortSignal;
}

export class LazySignal {
  declare readonly signal: AbortSignal;
  readonly #source: SignalSource;

  constructor(source: SignalSource) {
    this.#source = source;
    Object.defineProperty(this, "signal", LazySignal.#member);
  }

  // One getter for all, or each object would get a shape of its own.
  static readonly #member: PropertyDescriptor & ThisType<LazySignal> = {
    enumerable: true,
    get(): AbortSignal {
      return this.#source.signal;
    },
  };
}

export class HandlerContext extends LazySignal implements CallContext {
  readonly name: string;
  readonly position: number;
  readonly idempotencyKey: string;
  readonly clock: "real" | "virtual";
  declare readonly runId?: string;

  constructor(call: IncomingCall, options: DispatchOptions, source: SignalSource) {
    super(source);
    this.name = call.name;
    this.position = call.position;
    this.idempotencyKey = call.idempotencyKey;
    this.clock = options.clock;
    const runId = call.runId ?? options.runId;
    if (runId !== undefined) this.runId = runId;
  }
}
