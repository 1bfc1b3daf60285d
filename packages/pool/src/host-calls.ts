/**
 * The host calls of one activation: from HostCall to the outcome, and what the result says about each.
 *
 * Made by the activation with its first call. Handlers are the host's code: they may answer at once or later, throw, answer
 * nonsense, or never answer; nothing of that disturbs the activation, and a script learns nothing from an exception.
 *
 * TRUST: positions, names and sizes of a worker are judged here against what was granted and seen.
 * Kept true: positions ascend; every call that was handed to a handler is in the records; a call is settled once, and an
 * outcome that comes after `abandon` is dropped; no more calls are open than inFlight, nor seen than hostCalls.
 */
import { randomUUID } from "node:crypto";
import {
  type CallOutcome,
  type EncodedValue,
  type Frame,
  HostError,
  type HostErrorData,
  headerBounds,
  hostErrorData,
  hostErrorMessageChars,
  isHostErrorCode,
  type Limits,
  parseCancelCall,
  parseHostCall,
  valueAttachmentsMost,
} from "@flowcell/protocol";
import type { Clock } from "./clock.js";
import type { ActivationRequest, CallRecord, CallState, HostCall } from "./types.js";
import { isLongerThan, milliseconds, ownedValue, sizeOfValue, sumOfBytes } from "./values.js";
import { Violation } from "./violation.js";

/** A call from HostCall to its outcome. */
export class Call {
  readonly position: number;
  readonly name: string;
  readonly startedAt: number;
  readonly inputBytes: number;
  endedAt = Number.NaN;
  outputBytes = 0;
  state: CallState | "open" = "open";
  code: string | undefined;
  /** The script sent CancelCall. */
  cancelled = false;
  #abort: AbortController | undefined;
  #aborted: HostError | undefined;
  #listener: (() => void) | null = null;

  constructor(position: number, name: string, startedAt: number, inputBytes: number) {
    this.position = position;
    this.name = name;
    this.startedAt = startedAt;
    this.inputBytes = inputBytes;
  }

  /** Made when a handler first asks: most never do. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#aborted !== undefined) this.#abort.abort(this.#aborted);
    }
    return this.#abort.signal;
  }

  get aborted(): boolean {
    return this.#aborted !== undefined;
  }

  whenAborted(listener: (() => void) | null): void {
    this.#listener = listener;
  }

  abort(message: string): void {
    if (this.#aborted !== undefined) return;
    this.#aborted = new HostError("cancelled", message);
    this.#abort?.abort(this.#aborted);
    this.#listener?.();
  }
}

/** What a handler holds. It keeps the arguments; the record of the call does not. */
class HandlerCall implements HostCall {
  readonly position: number;
  readonly name: string;
  readonly args: EncodedValue;
  readonly #call: Call;
  readonly #calls: HostCalls;

  constructor(call: Call, args: EncodedValue, calls: HostCalls) {
    this.position = call.position;
    this.name = call.name;
    this.args = args;
    this.#call = call;
    this.#calls = calls;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  get aborted(): boolean {
    return this.#call.aborted;
  }

  whenAborted(listener: (() => void) | null): void {
    this.#call.whenAborted(listener);
  }

  get idempotencyKey(): string {
    return this.#calls.key(this.position);
  }
}

/** A larger explanation is left out: with the message it must fit into a header. */
const detailCharsMax = 8192;

/** Where a settled call goes. */
export type DeliverOutcome = (call: Call, outcome: CallOutcome) => void;

/** The set is the same for every activation that is granted the same names. */
const grantedNames = new WeakMap<readonly string[], ReadonlySet<string>>();

export class HostCalls {
  readonly #request: ActivationRequest;
  readonly #clock: Clock;
  readonly #deliver: DeliverOutcome;
  readonly #granted: ReadonlySet<string>;
  readonly #calls = new Map<number, Call>();
  #nextPosition = 0;
  #open = 0;
  #abandoned = false;
  #keyPrefix: string | undefined;

  constructor(request: ActivationRequest, clock: Clock, deliver: DeliverOutcome) {
    this.#request = request;
    this.#clock = clock;
    this.#deliver = deliver;
    let granted = grantedNames.get(request.names);
    if (granted === undefined) {
      granted = new Set(request.names);
      grantedNames.set(request.names, granted);
    }
    this.#granted = granted;
  }

  get size(): number {
    return this.#calls.size;
  }

  /** Calls without an outcome; the worker, too, counts a cancelled one until it is answered. */
  get open(): number {
    return this.#open;
  }

  /** The idempotency key of a position. */
  key(position: number): string {
    this.#keyPrefix ??= this.#request.callKeyPrefix ?? randomUUID();
    return `${this.#keyPrefix}.${position}`;
  }

  /** Takes HostCall and calls the handler, which may answer before this returns. */
  take(frame: Frame): void {
    const { position, name } = parseHostCall(frame.header);
    this.#judge(position, name);
    const args = ownedValue(frame.value());
    const call = new Call(position, name, this.#clock.monotonicMs(), sizeOfValue(args));
    this.#calls.set(position, call);
    this.#nextPosition = position + 1;
    this.#open += 1;
    const { driver } = this.#request;
    if (driver !== undefined) {
      driver.called({ position, name, args });
      return;
    }
    let answer: Promise<CallOutcome> | CallOutcome;
    try {
      answer = this.#request.onHostCall?.(new HandlerCall(call, args, this)) ?? failed(undefined);
    } catch (thrown) {
      this.#settle(call, failed(thrown));
      return;
    }
    if (isPromise(answer)) {
      answer.then(
        (outcome) => this.#settle(call, outcome),
        (thrown: unknown) => this.#settle(call, failed(thrown)),
      );
    } else {
      this.#settle(call, answer);
    }
  }

  /** Takes CancelCall. The call stays open until its handler answers. */
  cancel(frame: Frame): void {
    const { position } = parseCancelCall(frame.text);
    const call = this.#calls.get(position);
    if (call === undefined || call.cancelled) {
      throw new Violation("bad_position", `a cancellation of call ${position}, which is not open`);
    }
    call.cancelled = true;
    // An outcome may be on its way already.
    if (call.state !== "open") return;
    if (this.#request.driver === undefined) call.abort("the script cancelled the call");
    else this.#request.driver.callCancelled(position);
  }

  /** The driver's outcome of an open call. */
  answer(position: number, outcome: CallOutcome): void {
    const call = this.#calls.get(position);
    if (call?.state !== "open") throw new Error(`the driver answered call ${position}, which is not open`);
    this.#settle(call, outcome);
  }

  /** The activation has ended: what is open may or may not have happened. */
  abandon(why: string, at: number): void {
    this.#abandoned = true;
    if (this.#open === 0) return;
    for (const call of this.#calls.values()) {
      if (call.state !== "open") continue;
      call.state = "unknown";
      call.endedAt = at;
      call.abort(why);
    }
  }

  /** After `abandon`. */
  records(): CallRecord[] {
    return Array.from(this.#calls.values(), (call) => ({
      position: call.position,
      name: call.name,
      state: call.state === "open" ? "unknown" : call.state,
      ...(call.code === undefined ? {} : { code: call.code }),
      durationMs: milliseconds(call.endedAt - call.startedAt),
      inputBytes: call.inputBytes,
      outputBytes: call.outputBytes,
      idempotencyKey: this.key(call.position),
    }));
  }

  #judge(position: number, name: string): void {
    const { hostCalls, inFlight } = this.#request.limits;
    // Ascending, with a gap for every call that the script cancelled before the worker could send it.
    if (position < this.#nextPosition) {
      throw new Violation("bad_position", `host call ${position} came after call ${this.#nextPosition - 1}`);
    }
    if (!this.#granted.has(name)) {
      throw new Violation("not_granted", "a host call by a name that was not granted");
    }
    if (position >= hostCalls) {
      throw new Violation("too_many_calls", `more host calls than hostCalls (${hostCalls})`);
    }
    if (this.#open >= inFlight) {
      throw new Violation("too_many_calls", `more unanswered host calls than inFlight (${inFlight})`);
    }
  }

  #settle(call: Call, given: CallOutcome): void {
    // Late: the record of the call says so already.
    if (this.#abandoned || call.state !== "open") return;
    const outcome = checkedOutcome(given, this.#request.limits);
    call.endedAt = this.#clock.monotonicMs();
    this.#open -= 1;
    if (outcome.ok) {
      call.state = "done";
      call.outputBytes = sizeOfValue(outcome.value);
    } else {
      call.state = outcome.error.code === "cancelled" ? "cancelled" : "failed";
      call.code = outcome.error.code;
    }
    this.#deliver(call, outcome);
  }
}

/** What a handler answered, bounded. Nonsense is a bug of the host, like an exception. */
function checkedOutcome(given: CallOutcome, limits: Limits): CallOutcome {
  try {
    if (given.ok === true) {
      const { text, attachments, devalue } = given.value;
      if (typeof text !== "string" || typeof devalue !== "boolean") return failed(undefined);
      if (isLongerThan(text, limits.valueBytes)) {
        return tooLarge(`the result of the call is larger than valueBytes (${limits.valueBytes} bytes)`);
      }
      if (attachments.length === 0) return given;
      if (attachments.length > valueAttachmentsMost) {
        return tooLarge(
          `the result has ${attachments.length} binary parts; at most ${valueAttachmentsMost} can travel`,
        );
      }
      if (sumOfBytes(attachments) > limits.bodyBytes) {
        return tooLarge(
          `the binary parts of the result are larger than bodyBytes (${limits.bodyBytes} bytes)`,
        );
      }
      return given;
    }
    return { ok: false, error: boundedError(given.error) };
  } catch (thrown) {
    return failed(thrown);
  }
}

/** The error as it fits into the header of Deliver. Throws for what is no error. */
function boundedError(error: HostErrorData): HostErrorData {
  const { code, message, detail, retryable, name } = error;
  if (!isHostErrorCode(code)) throw new TypeError("a host function answered with an unknown error code");
  const bounded = { code, message: message.slice(0, hostErrorMessageChars), retryable: retryable === true };
  const detailJson = detail === undefined ? undefined : JSON.stringify(detail);
  return {
    ...bounded,
    ...(detailJson === undefined || detailJson.length > detailCharsMax ? {} : { detail }),
    ...(name === undefined ? {} : { name: name.slice(0, headerBounds.errorNameChars) }),
  };
}

function failed(thrown: unknown): CallOutcome {
  return { ok: false, error: hostErrorData(thrown) };
}

function tooLarge(message: string): CallOutcome {
  return { ok: false, error: { code: "result_too_large", message, retryable: false } };
}

function isPromise(answer: Promise<CallOutcome> | CallOutcome): answer is Promise<CallOutcome> {
  return (
    typeof answer === "object" && answer !== null && "then" in answer && typeof answer.then === "function"
  );
}
