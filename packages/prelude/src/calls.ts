/**
 * Host calls: positions, the in-flight limit, outcomes, cancellation. A position is given when the script makes the call,
 * from 0. At most `inFlight` calls are unanswered at a time; further ones wait here, encoded already, and go out in order as
 * outcomes arrive. A call that is aborted while it waits is never sent: the positions that a parent sees ascend, with gaps.
 *
 * Cancelling: the last argument may be an AbortSignal, or a plain object with one as its own `signal` property. The signal
 * is not sent (nor the object, if nothing else is in it). When it aborts, the call is rejected with the signal's reason at
 * once, and the parent gets CancelCall; the call counts as unanswered until the parent has answered it all the same.
 */

import { newPromise, promiseReject, promiseResolve } from "./guest-code.js";
import { type HostErrorFields, makeHostError } from "./host-error.js";
import { sendCancelCall, sendHostCallDevalue, sendHostCallJson } from "./native.js";
import {
  descriptorOf,
  ObjectGetPrototypeOf,
  ObjectHasOwn,
  ObjectKeys,
  ObjectPrototype,
  ObjectSetPrototypeOf,
  record,
} from "./primordials.js";
import { isProxy } from "./proxies.js";
import { ended, limits } from "./state.js";
import { type Encoded, EncodeFailure, encodeArguments } from "./value-encode.js";
import { warn } from "./warnings.js";
import { addAbortStep, isAbortSignal, removeAbortStep, signalReason } from "./web/abort.js";

interface Call {
  readonly position: number;
  readonly name: string;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
  /** Made at the call, for the stack of an error that comes later. */
  readonly site: Error;
  settled: boolean;
  /** What most calls lack. */
  more: More | undefined;
}

interface More {
  signal: object | undefined;
  abortStep: (() => void) | undefined;
  /** Header and value while the call waits to be sent. */
  text: string | undefined;
  value: Encoded | undefined;
  next: Call | undefined;
}

/** Calls made so far, which is also the next position. */
export let callsMade = 0;
/** Calls that were sent and have no outcome yet. */
export let callsOpen = 0;

const open = record<Call>();
let firstWaiting: Call | undefined;
let lastWaiting: Call | undefined;

/** Ends the activation; never returns to the script. Set by the activation. */
let exhaust: (reason: "host_calls", limit: number, used: number) => void;

export function setExhaust(end: typeof exhaust): void {
  exhaust = end;
}

/**
 * `host.name(…args)`. Never throws: what is wrong with the arguments rejects the promise. `site` is made in the function that
 * the script calls: an error costs by the frames below it.
 */
export function callHost(name: string, quotedName: string, args: unknown[], site: Error): Promise<unknown> {
  const promise = newPromise();
  const resolve = promiseResolve;
  const reject = promiseReject;
  if (ended) return promise;
  const signal = takeSignal(args);
  if (signal !== undefined) {
    const reason = signalReason(signal);
    if (reason !== undefined) {
      reject(reason.value);
      return promise;
    }
  }
  let value: Encoded;
  try {
    value = encodeArguments(args, limits.valueBytes, limits.bodyBytes);
  } catch (failure) {
    reject(failure instanceof EncodeFailure ? argumentError(name, failure, site) : failure);
    return promise;
  }
  if (callsMade >= limits.hostCalls) exhaust("host_calls", limits.hostCalls, callsMade + 1);
  const position = callsMade++;
  const text = `{"position":${position},"name":${quotedName}}\n${value.text}`;
  const call: Call = { position, name, resolve, reject, site, settled: false, more: undefined };
  open[position] = call;
  if (signal !== undefined) {
    const abortStep = (): void => cancel(call);
    moreOf(call).signal = signal;
    moreOf(call).abortStep = abortStep;
    addAbortStep(signal, abortStep);
  }
  if (callsOpen < limits.inFlight) send(text, value);
  else enqueue(call, text, value);
  return promise;
}

function moreOf(call: Call): More {
  call.more ??= {
    signal: undefined,
    abortStep: undefined,
    text: undefined,
    value: undefined,
    next: undefined,
  };
  return call.more;
}

function send(text: string, value: Encoded): void {
  callsOpen++;
  const sender = value.devalue ? sendHostCallDevalue : sendHostCallJson;
  if (value.attachments === undefined) sender(text);
  else sender(text, value.attachments);
}

function enqueue(call: Call, text: string, value: Encoded): void {
  const more = moreOf(call);
  more.text = text;
  more.value = value;
  if (lastWaiting === undefined) firstWaiting = call;
  else moreOf(lastWaiting).next = call;
  lastWaiting = call;
}

function sendWaiting(): void {
  while (firstWaiting !== undefined && callsOpen < limits.inFlight) {
    const more = moreOf(firstWaiting);
    const { text, value } = more;
    firstWaiting = more.next;
    if (firstWaiting === undefined) lastWaiting = undefined;
    more.text = undefined;
    more.value = undefined;
    // A call that was aborted while it waited has nothing left to send.
    if (text !== undefined && value !== undefined) send(text, value);
  }
}

/** Ends the wait for a call: its promise is settled once and its signal let go. */
function settle(call: Call): boolean {
  if (call.settled) return false;
  call.settled = true;
  const { more } = call;
  if (more?.signal !== undefined && more.abortStep !== undefined)
    removeAbortStep(more.signal, more.abortStep);
  return true;
}

function cancel(call: Call): void {
  if (!settle(call)) return;
  const more = moreOf(call);
  if (more.text !== undefined) {
    more.text = undefined;
    more.value = undefined;
    delete open[call.position];
  } else if (!ended) {
    sendCancelCall(`{"position":${call.position}}`);
  }
  call.reject(signalReason(more.signal as object)?.value); // only a call with a signal is cancelled
}

/** Takes a call that was sent off the list of the open ones; undefined if there is none. */
function close(position: number): Call | undefined {
  const call = open[position];
  if (call === undefined || call.more?.text !== undefined) return undefined;
  delete open[position];
  callsOpen--;
  if (firstWaiting !== undefined) sendWaiting();
  return call;
}

export function callSucceeded(position: number, value: unknown): void {
  const call = close(position);
  if (call !== undefined && settle(call)) call.resolve(value);
}

export function callFailed(position: number, error: HostErrorFields): void {
  const call = close(position);
  if (call !== undefined && settle(call)) call.reject(makeHostError(error, call.site.stack));
}

/** Warnings that are spent on calls; the list has others to hold. */
const warnedMost = 16;

/** One warning for each call that the script did not wait for. */
export function warnOfOpenCalls(): void {
  if (callsOpen === 0 && firstWaiting === undefined) return;
  let warned = 0;
  for (let position = 0; position < callsMade && warned < warnedMost; position++) {
    const call = open[position];
    if (call === undefined || call.settled) continue;
    warned++;
    warn(
      "call_not_awaited",
      `the script ended while host.${call.name} (call ${position}) was open: await it, or its outcome is lost`,
    );
  }
}

/** Takes the signal out of the arguments; see the head. */
function takeSignal(args: unknown[]): object | undefined {
  const last = args.length - 1;
  if (last < 0) return undefined;
  const options = args[last];
  if (typeof options !== "object" || options === null) return undefined;
  if (isAbortSignal(options)) {
    args.length = last;
    return options;
  }
  if (isProxy(options) || !ObjectHasOwn(options, "signal")) return undefined;
  const signal = descriptorOf(options, "signal")?.value as unknown; // any value at all
  if (!isAbortSignal(signal)) return undefined;
  const prototype = ObjectGetPrototypeOf(options);
  if (prototype !== ObjectPrototype && prototype !== null) return undefined;
  const rest = withoutSignal(options as { readonly [key: string]: unknown }); // read by its own keys
  if (rest === undefined) args.length = last;
  else args[last] = rest;
  return signal;
}

/** A copy of the options without the signal, undefined if nothing is left. */
function withoutSignal(options: { readonly [key: string]: unknown }): object | undefined {
  const keys = ObjectKeys(options);
  const rest = record<unknown>();
  let count = 0;
  for (let at = 0; at < keys.length; at++) {
    const key = keys[at] as string; // below its length
    if (key === "signal") continue;
    rest[key] = options[key];
    count++;
  }
  if (count === 0) return undefined;
  return ObjectSetPrototypeOf(rest, ObjectPrototype) as object; // the same object
}

function argumentError(name: string, failure: EncodeFailure, site: Error): Error {
  const { code, what, path } = failure;
  const tooLarge = code !== "unsupported" && code !== "unreadable";
  const detail = record<unknown>();
  if (code === "text_bytes") detail["limit"] = "valueBytes";
  if (code === "body_bytes") detail["limit"] = "bodyBytes";
  if (path !== "") detail["path"] = path;
  const place = path === "" ? "" : `: ${path}`;
  const fields = {
    code: tooLarge ? "too_large" : "invalid_arguments",
    message: `host.${name}: ${what}${place}${path === "" ? "" : " of the arguments"}`,
    detail: ObjectSetPrototypeOf(detail, ObjectPrototype) as unknown, // the same object
    retryable: false,
  };
  return makeHostError(fields, site.stack);
}
