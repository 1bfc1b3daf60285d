/**
 * One activation from the guest's side, as C drives it: `activate`, `start` (or `refuse`), then `deliver` and `idle` in turn
 * until Finished or Refused is out. Between two of these calls C drains the engine's jobs; `idle` is what it calls when there
 * are none left.
 *
 * The entry's outcome is the first thing that settles: its promise, an exception while the script loads, or an exception of
 * a timer or microtask. Calls and timers that are left then are dropped with a warning; nothing is sent after the end.
 */

import { callFailed, callSucceeded, callsMade, callsOpen, setExhaust, warnOfOpenCalls } from "./calls.js";
import { forbidCodeGeneration } from "./code-generation.js";
import { errorJson, errorLine, ownErrorJson, syntaxErrorJson } from "./error-report.js";
import { failureReason } from "./failures.js";
import { bindEntry, makeEntrance, whenSettled } from "./guest-code.js";
import { type HostErrorFields, wireCode } from "./host-error.js";
import { grantNames, host } from "./host-object.js";
import { sendBlocked, sendFinishedDevalue, sendFinishedJson, sendRefused } from "./native.js";
import {
  JSONParse,
  ObjectHasOwn,
  ObjectPrototypeIsPrototypeOf,
  PromisePrototype,
  PromisePrototypeThen,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
} from "./primordials.js";
import { measureResult } from "./result-size.js";
import {
  type ActivationFacts,
  activation,
  beginActivation,
  endActivation,
  ended,
  limits,
  moveClock,
} from "./state.js";
import { fireDueTimer, nextTimerAt, setTimerEntrance } from "./timers.js";
import { decodeValue } from "./value-decode.js";
import { type Encoded, EncodeFailure, encodeValue } from "./value-encode.js";
import { warn, warningsJson } from "./warnings.js";

type Outcome = "pending" | "returned" | "threw" | "no_entry";

let outcome: Outcome = "pending";
let result: unknown;
let failure: "memory" | "stack" | undefined;
let input: unknown;
/** Deliver messages applied. */
let delivered = 0;

interface ActivateHeader extends ActivationFacts {
  readonly names: readonly string[];
  readonly codeGeneration: boolean;
}

/** From C, before anything of the guest: the whole text of Activate, and the attachments of the input value alone. */
export function activate(text: string, attachments: ArrayBuffer | undefined, devalue: boolean): void {
  const end = StringPrototypeIndexOf(text, "\n");
  // TRUST: the parent's; its fields are what the protocol says.
  const header = JSONParse(StringPrototypeSlice(text, 0, end)) as ActivateHeader;
  beginActivation(header);
  grantNames(header.names);
  if (!header.codeGeneration) forbidCodeGeneration();
  input = decodeValue(StringPrototypeSlice(text, end + 1), devalue, attachments);
}

// ---------------------------------------------------------------------------------------------------------------- running

/** From C: the function whose call runs the script and returns its exports. */
export function start(script: () => unknown): void {
  PromisePrototypeThen(loading, script);
}

/** The script's exports are there: call the default one. */
function loaded(exports: unknown): void {
  let entry: unknown;
  try {
    entry = defaultExport(exports);
  } catch (error) {
    threw(error);
    return;
  }
  if (typeof entry === "function") PromisePrototypeThen(entering, bindEntry(entry, input, host));
  else settle("no_entry", entry);
}

function defaultExport(exports: unknown): unknown {
  if ((typeof exports !== "object" && typeof exports !== "function") || exports === null) return undefined;
  // Bundles have getters here, which run guest code.
  return ObjectHasOwn(exports, "default") ? (exports as { default: unknown }).default : undefined;
}

function entered(value: unknown): void {
  whenSettled(value, returned, threw);
}

function returned(value: unknown): void {
  // Only where a script has broken promises for itself can one be resolved with another.
  if (typeof value === "object" && value !== null && ObjectPrototypeIsPrototypeOf(PromisePrototype, value)) {
    whenSettled(value, settleReturned, threw);
  } else settleReturned(value);
}

function settleReturned(value: unknown): void {
  settle("returned", value);
}

function threw(error: unknown): void {
  // Asked at once: C forgets a failure when the script is heard of again.
  if (outcome === "pending") failure = failureReason(error);
  settle("threw", error);
}

function settle(as: Outcome, value: unknown): void {
  if (outcome !== "pending") {
    if (as === "threw") warn("uncaught_error", `after the script had ended: ${errorLine(value, 900)}`);
    return;
  }
  outcome = as;
  result = value;
}

function callbackReturned(): void {}

const loading = makeEntrance(loaded, threw);
const entering = makeEntrance(entered, threw);
/** Where callbacks of timers and microtasks run. */
export const calling = makeEntrance(callbackReturned, threw);
setTimerEntrance(calling);

interface DeliverHeader {
  readonly activation: number;
  readonly kind: "call" | "timer";
  readonly clock: number;
  readonly position: number;
  readonly ok: boolean;
  readonly error: HostErrorFields;
}

/** From C: the whole text of Deliver and the attachments of its value. */
export function deliver(text: string, attachments: ArrayBuffer | undefined, devalue: boolean): void {
  if (ended) return;
  const end = StringPrototypeIndexOf(text, "\n");
  // TRUST: the parent's. Fields that a kind lacks are not read.
  const header = JSONParse(end < 0 ? text : StringPrototypeSlice(text, 0, end)) as DeliverHeader;
  // An outcome for the activation before this one may still have been in the pipe.
  if (header.activation !== activation) return;
  delivered++;
  moveClock(header.clock);
  if (header.kind === "timer") {
    fireDueTimer();
  } else if (header.ok) {
    callSucceeded(header.position, decodeValue(StringPrototypeSlice(text, end + 1), devalue, attachments));
  } else {
    callFailed(header.position, hostErrorFields(header.error));
  }
}

/** With every field its own: what the parent left out must not come from the guest's Object.prototype. */
function hostErrorFields(error: HostErrorFields): HostErrorFields {
  return {
    code: error.code,
    message: error.message,
    detail: ObjectHasOwn(error, "detail") ? error.detail : undefined,
    retryable: error.retryable,
    name: ObjectHasOwn(error, "name") ? error.name : undefined,
  };
}

// ------------------------------------------------------------------------------------------------------------------ ending

const deadlockMessage =
  "the script waits for something that can never happen: no host call and no timer is open";

/**
 * From C: no job is pending and no frame is buffered. `memoryRefused`: the engine was refused memory at some time; it may
 * have dropped jobs since, so that a wait without end is no mistake of the script's.
 */
export function idle(memoryRefused: boolean): void {
  if (ended) return;
  if (outcome !== "pending") {
    finish();
    return;
  }
  const timer = nextTimerAt();
  if (callsOpen === 0 && timer === undefined) {
    if (memoryRefused) finishWithBudget("memory", 0, 0);
    else finishWithError("deadlock", ownErrorJson("Error", deadlockMessage));
  } else {
    const next = timer === undefined ? "null" : timer;
    sendBlocked(`{"nextTimerAt":${next},"openCalls":${callsOpen},"delivered":${delivered}}`);
  }
}

function finish(): void {
  warnOfOpenCalls();
  switch (outcome) {
    case "returned":
      finishWithResult();
      break;
    case "no_entry":
      finishWithError("no_entry", ownErrorJson("Error", noEntryMessage()));
      break;
    default:
      finishThrown(result, failure);
  }
}

function noEntryMessage(): string {
  if (result === undefined)
    return "the script has no default export function: export default async function (input, host) { … }";
  return `the script's default export is not a function but ${result === null ? "null" : `of type ${typeof result}`}`;
}

function finishThrown(error: unknown, reason: "memory" | "stack" | undefined): void {
  if (reason !== undefined) finishWithBudget(reason, 0, 0);
  else finishWithError(wireCode(error), errorJson(error));
}

function finishWithResult(): void {
  let encoded: Encoded;
  try {
    encoded = encodeValue(result, limits.resultBytes, limits.bodyBytes);
  } catch (error) {
    if (error instanceof EncodeFailure) finishUnsendable(error);
    else finishThrown(error, failureReason(error));
    return;
  }
  const text = `{"status":"completed","warnings":${warningsJson()},"hostCalls":${callsMade}}\n${encoded.text}`;
  endActivation();
  const send = encoded.devalue ? sendFinishedDevalue : sendFinishedJson;
  if (encoded.attachments === undefined) send(text);
  else send(text, encoded.attachments);
}

function finishUnsendable({ code, what, path }: EncodeFailure): void {
  if (code === "text_bytes" || code === "body_bytes") {
    const { used, path: largest } = measureResult(result);
    const limit = code === "text_bytes" ? limits.resultBytes : limits.bodyBytes;
    if (largest !== "") warn("result_size", `most of the result is at ${largest}`);
    finishWithBudget("result_size", limit, used > limit ? used : limit + 1);
    return;
  }
  const message = path === "" ? `the result: ${what}` : `the result: ${what}: ${path}`;
  finishWithError("unsendable", ownErrorJson("TypeError", message));
}

function finishWithError(code: string | undefined, error: string): void {
  const codeField = code === undefined ? "" : `"code":"${code}",`;
  const text = `{"status":"script_error",${codeField}"error":${error},"warnings":${warningsJson()},"hostCalls":${callsMade}}`;
  endActivation();
  sendFinishedJson(text);
}

function finishWithBudget(reason: string, limit: number, used: number): void {
  const text = `{"status":"budget_exceeded","reason":"${reason}","limit":${limit},"used":${used},"warnings":${warningsJson()},"hostCalls":${callsMade}}`;
  endActivation();
  sendFinishedJson(text);
}

/** In the middle of guest code: C ends the activation at the next interrupt check, and no guest code runs until then. */
function exhaust(reason: "host_calls", limit: number, used: number): never {
  finishWithBudget(reason, limit, used);
  for (;;);
}
setExhaust(exhaust);

/** From C: the script cannot be loaded. */
export function refuse(error: unknown): void {
  const reason = failureReason(error);
  if (reason !== undefined) {
    finishWithBudget(reason, 0, 0);
    return;
  }
  const text = `{"error":${syntaxErrorJson(error)}}`;
  endActivation();
  sendRefused(text);
}
