/**
 * One activation: from the request to its result.
 *
 * Made by the pool for each request; driven by the worker that got it (frames, deadlines, death) and by the answers of
 * host functions. It knows the protocol and nothing of processes, queues or what a host function means.
 *
 * TRUST: every frame was written by a script that may have taken its engine over. The decoder has checked form, phase and
 * size; here each message is checked against what this activation has seen and was granted. What no correct worker would
 * send is a violation: the worker is killed.
 *
 * Kept true: the request is answered exactly once; the first verdict stands and later findings are only attached; an
 * outcome that comes after the end is dropped; positions ascend; every call that was handed to a
 * handler is in the result; the script's time starts with Activate, so neither waiting nor a cold start is charged.
 */
import { randomUUID } from "node:crypto";
import {
  activateHeader,
  type ConsoleHeader,
  decodeUsageReport,
  deliverHeader,
  type EncodedValue,
  encodeActivateBudget,
  encodeFrame,
  type FinishedHeader,
  type Frame,
  HostError,
  type HostErrorData,
  hostErrorData,
  type Limits,
  messageType,
  ProtocolError,
  parseBlocked,
  parseCancelCall,
  parseConsole,
  parseFinished,
  parseHostCall,
  parseRefused,
  type ScriptErrorData,
  type UsageReport,
  verify,
  type WarningData,
} from "@flowcell/protocol";
import type { Clock } from "./clock.js";
import type {
  ActivationError,
  ActivationRequest,
  ActivationResult,
  CallOutcome,
  CallRecord,
  CallState,
  ConsoleLine,
  HostCall,
  Verdict,
} from "./types.js";
import type { LeaveReason, Waiter } from "./waiting-room.js";

/** What an activation may do with the worker that runs it. */
export interface ActivationPort<Confinement> {
  readonly pid: number;
  /** Activations of this worker, this one included; also its number on the wire. */
  readonly activations: number;
  readonly confinement: Confinement;
  readonly unsentBytes: number;
  /** Sends soon: everything posted in one turn of the event loop shares one write. */
  post(frame: Buffer): void;
  cpuUs(): number | null;
  /** Calls `wake` at `dueAt` (monotonic), in place of what was asked before. */
  wakeAt(dueAt: number): void;
  /** Kills the process; `died` follows when it is gone. */
  kill(): void;
}

/** The native timer of a CPU budget ends the script by itself; this much later the parent does. */
const cpuGraceMs = 50;
/** A worker that says it waits is looked at this often: waiting costs nothing, and pretending to wait is seen. */
const blockedCheckMs = 1000;
/**
 * Console frames beyond the output limit that a correct worker can send: its truncation mark, and what a differently
 * counting prelude might send before it stops. More is a flood.
 */
const consoleSlackBytes = 64 * 1024;
/** What one line costs beside its text, so that empty lines are bounded too. */
const consoleLineBytes = 16;

const completed = "completed";

/** A call from HostCall to its outcome. */
class Call {
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

  abort(message: string): void {
    if (this.#aborted !== undefined) return;
    this.#aborted = new HostError("cancelled", message);
    this.#abort?.abort(this.#aborted);
  }
}

/** What a handler holds. It keeps the arguments; the record of the call does not. */
class HandlerCall implements HostCall {
  readonly position: number;
  readonly name: string;
  readonly args: EncodedValue;
  readonly #call: Call;
  readonly #keys: { key(position: number): string };

  constructor(call: Call, args: EncodedValue, keys: { key(position: number): string }) {
    this.position = call.position;
    this.name = call.name;
    this.args = args;
    this.#call = call;
    this.#keys = keys;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  get idempotencyKey(): string {
    return this.#keys.key(this.position);
  }
}

type State = "waiting" | "running" | "condemned" | "ended";

const noLines: readonly ConsoleLine[] = Object.freeze([]);
const noCalls: readonly CallRecord[] = Object.freeze([]);
const noWarnings: readonly WarningData[] = Object.freeze([]);
const noReport: UsageReport = Object.freeze({
  cpuUs: 0,
  heapPeakBytes: 0,
  heapNowBytes: 0,
  gcRuns: 0,
  interrupts: 0,
});

/** The struct and the set are the same for every activation under the same limits and names. */
const budgetBytes = new WeakMap<Limits, Buffer>();
const grantedNames = new WeakMap<readonly string[], ReadonlySet<string>>();

export class Activation<Confinement> implements Waiter {
  readonly request: ActivationRequest;
  readonly enqueuedAt: number;
  readonly dueAt: number;
  /** Wants a process that has run nothing and will run nothing after. */
  readonly fresh: boolean;
  readonly #clock: Clock;
  readonly #resolve: (result: ActivationResult<Confinement>) => void;
  readonly #onCancel: (activation: Activation<Confinement>) => void;
  readonly #granted: ReadonlySet<string>;

  #state: State = "waiting";
  #port: ActivationPort<Confinement> | null = null;
  #verdict: Verdict | null = null;
  #evidence: string[] = [];
  #abortListener: (() => void) | null = null;

  #startedAt = 0;
  #endedAt = 0;
  #cpuStartUs = 0;
  #cpuEndUs = 0;
  #wallAt = 0;
  #cpuCheckAt = Number.POSITIVE_INFINITY;
  /** When the guest's next timer is due: on our clock, and on the guest's. */
  #timerAt = Number.POSITIVE_INFINITY;
  #timerGuestAt = Number.NEGATIVE_INFINITY;
  /** The script's code was loaded: false again when the worker refused it. */
  #started = false;

  #guestClock: number;
  #blocked = false;
  /** Blocked messages that may still come: one to begin with, and one for each Deliver. */
  #blockedLeft = 1;

  readonly #calls = new Map<number, Call>();
  #nextPosition = 0;
  /** Calls without an outcome; the worker counts a cancelled one until it is answered, too. */
  #open = 0;
  #keyPrefix: string | undefined;

  #lines: ConsoleLine[] | null = null;
  #outputBytes = 0;
  #linesTruncated = false;
  #warnings: readonly WarningData[] = noWarnings;
  #value: EncodedValue | undefined;
  #scriptError: ScriptErrorData | undefined;
  #report: UsageReport = noReport;
  #bytesIn = 0;
  #bytesOut = 0;

  constructor(
    request: ActivationRequest,
    clock: Clock,
    dueAt: number,
    resolve: (result: ActivationResult<Confinement>) => void,
    onCancel: (activation: Activation<Confinement>) => void,
  ) {
    this.request = request;
    this.fresh = request.isolation === "process";
    this.#clock = clock;
    this.enqueuedAt = clock.monotonicMs();
    this.dueAt = dueAt;
    this.#resolve = resolve;
    this.#onCancel = onCancel;
    this.#guestClock = request.clock.epochMs;
    let granted = grantedNames.get(request.names);
    if (granted === undefined) {
      granted = new Set(request.names);
      grantedNames.set(request.names, granted);
    }
    this.#granted = granted;
    const { signal } = request;
    if (signal !== undefined) {
      this.#abortListener = () => this.#onCancel(this);
      signal.addEventListener("abort", this.#abortListener, { once: true });
    }
  }

  get flow(): string {
    return this.request.flow;
  }

  /** Whether the end was a limit or a kill after which the worker is not used again. */
  get endsWorker(): boolean {
    return this.fresh || this.#verdict?.status === "budget_exceeded";
  }

  get running(): boolean {
    return this.#state === "running";
  }

  // ------------------------------------------------------------------------------------------------ before and at the start

  /** Waiter: no worker was had. */
  refuse(why: LeaveReason): void {
    switch (why) {
      case "expired":
        this.refuseWith({
          status: "overloaded",
          reason: "queue_timeout",
          message: `no worker became free within ${Math.round(this.dueAt - this.enqueuedAt)} ms; raise queueDeadlineMs or the number of workers`,
        });
        return;
      case "cancelled":
        this.refuseWith({
          status: "cancelled",
          reason: "caller",
          message: "the caller cancelled while the activation waited",
        });
        return;
      case "closed":
        this.refuseWith({ status: "cancelled", reason: "closing", message: "the pool was closed" });
        return;
      case "unavailable":
        this.refuseWith({
          status: "sandbox_unavailable",
          reason: "start_failed",
          message: "no worker can be started",
        });
        return;
    }
  }

  /** Ends it before it began. */
  refuseWith(verdict: Verdict): void {
    if (this.#state !== "waiting") return;
    this.#verdict = verdict;
    this.#startedAt = this.#endedAt = this.#clock.monotonicMs();
    this.#end();
  }

  /** Sends Activate with the request's script as UTF-8. The script's clocks start here. */
  begin(port: ActivationPort<Confinement>, script: Buffer): void {
    const { request } = this;
    const { limits, clock } = request;
    this.#port = port;
    this.#state = "running";
    this.#started = true;
    this.#startedAt = this.#clock.monotonicMs();
    this.#wallAt = this.#startedAt + limits.wallMs;
    this.#cpuStartUs = port.cpuUs() ?? 0;
    this.#cpuCheckAt = this.#startedAt + limits.cpuMs + cpuGraceMs;
    let budget = budgetBytes.get(limits);
    if (budget === undefined) {
      budget = encodeActivateBudget({
        cpuBudgetUs: limits.cpuMs * 1000,
        heapBytes: limits.heapBytes,
        stackBytes: limits.stackBytes,
        resultBytes: limits.resultBytes,
      });
      budgetBytes.set(limits, budget);
    }
    const frame = encodeFrame({
      type: messageType.Activate,
      header: activateHeader({
        activation: port.activations,
        clock: clock.epochMs,
        seed: hex(request.seed),
        names: request.names,
        limits,
        codeGeneration: request.codeGeneration ?? true,
      }),
      value: request.input,
      attachments: [budget, script],
    });
    this.#post(frame);
    this.#schedule();
  }

  // --------------------------------------------------------------------------------------------------------- worker's events

  /** The worker received `length` bytes for this activation. */
  received(length: number): void {
    this.#bytesOut += length;
  }

  /** One frame. True when it ended the activation. Throws ProtocolError for what no correct worker sends. */
  frame(frame: Frame): boolean {
    switch (frame.type) {
      case messageType.HostCall:
        this.#hostCall(frame);
        return false;
      case messageType.CancelCall:
        this.#cancelCall(frame);
        return false;
      case messageType.Console:
        this.#console(frame);
        return false;
      case messageType.Blocked:
        this.#blockedMessage(frame);
        return false;
      case messageType.Finished:
        this.#finished(frame);
        return true;
      case messageType.Refused:
        this.#refused(frame);
        return true;
      default:
        throw new ProtocolError("unexpected_message");
    }
  }

  /** A deadline asked for by `wakeAt` has come. */
  wake(now: number): void {
    if (this.#state !== "running") return;
    const { limits } = this.request;
    if (now >= this.#wallAt) {
      this.condemn({
        status: "budget_exceeded",
        reason: "wall",
        message: `the activation took longer than wallMs (${limits.wallMs} ms)`,
        limit: limits.wallMs,
        used: Math.round(now - this.#startedAt),
      });
      const unsent = this.#port?.unsentBytes ?? 0;
      if (unsent > 0) this.#evidence.push(`not_reading: the worker had not taken ${unsent} bytes`);
      return;
    }
    if (now >= this.#cpuCheckAt && this.#cpuExhausted(now)) return;
    if (now >= this.#timerAt) this.#deliverTimer();
    this.#schedule();
  }

  /** Ends the activation by killing its worker; only the first verdict counts. */
  condemn(verdict: Verdict): void {
    if (this.#state === "condemned") {
      this.#evidence.push(`${verdict.status}/${verdict.reason}: ${verdict.message}`);
      return;
    }
    if (this.#state !== "running") return;
    this.#state = "condemned";
    this.#verdict = verdict;
    this.#endedAt = this.#clock.monotonicMs();
    this.#abortCalls(verdict.message);
    this.#port?.kill();
  }

  /**
   * The process is gone, or does not go although it was killed. `verdict` is for an activation that had none; `evidence` is
   * kept when there was one before.
   */
  died(verdict: Verdict | null, cpuUs: number | null, evidence: readonly string[]): void {
    if (this.#state === "ended") return;
    if (this.#verdict === null) this.#verdict = verdict;
    else this.#evidence.push(...evidence);
    if (this.#state === "running") {
      this.#endedAt = this.#clock.monotonicMs();
      this.#abortCalls("the worker ended");
    }
    this.#cpuEndUs = cpuUs ?? this.#cpuStartUs;
    this.#end();
  }

  /** After `frame` returned true, once the worker has looked at everything that came with it. */
  settle(evidence: string | null): void {
    if (evidence !== null) this.#evidence.push(evidence);
    this.#end();
  }

  // -------------------------------------------------------------------------------------------------------------- host calls

  #hostCall(frame: Frame): void {
    const { position, name } = parseHostCall(frame.header);
    const { limits } = this.request;
    // Ascending, with a gap for every call that the script cancelled before the worker could send it.
    if (position < this.#nextPosition) {
      throw new Violation("bad_position", `host call ${position} came after call ${this.#nextPosition - 1}`);
    }
    if (!this.#granted.has(name))
      throw new Violation("not_granted", "a host call by a name that was not granted");
    if (position >= limits.hostCalls) {
      throw new Violation("too_many_calls", `more host calls than hostCalls (${limits.hostCalls})`);
    }
    if (this.#open >= limits.inFlight) {
      throw new Violation("too_many_calls", `more unanswered host calls than inFlight (${limits.inFlight})`);
    }
    const args = ownedValue(frame.value());
    const call = new Call(position, name, this.#clock.monotonicMs(), sizeOfValue(args));
    this.#calls.set(position, call);
    this.#nextPosition = position + 1;
    this.#open += 1;
    this.#resume();
    let answer: Promise<CallOutcome> | CallOutcome;
    try {
      answer = this.request.onHostCall(new HandlerCall(call, args, this));
    } catch (thrown) {
      this.#settleCall(call, failed(thrown));
      return;
    }
    if (isPromise(answer)) {
      answer.then(
        (outcome) => this.#settleCall(call, outcome),
        (thrown: unknown) => this.#settleCall(call, failed(thrown)),
      );
    } else {
      this.#settleCall(call, answer);
    }
  }

  /** The idempotency key of a position. */
  key(position: number): string {
    this.#keyPrefix ??= this.request.callKeyPrefix ?? randomUUID();
    return `${this.#keyPrefix}.${position}`;
  }

  #settleCall(call: Call, given: CallOutcome): void {
    // Late: the activation has ended, and the call's record says so already.
    if (this.#state !== "running" || call.state !== "open") return;
    const outcome = this.#checkedOutcome(given);
    call.endedAt = this.#clock.monotonicMs();
    this.#open -= 1;
    const { activations } = this.#port ?? unreachable();
    const clock = this.#clockNow();
    if (outcome.ok) {
      call.state = "done";
      call.outputBytes = sizeOfValue(outcome.value);
    } else {
      call.state = outcome.error.code === "cancelled" ? "cancelled" : "failed";
      call.code = outcome.error.code;
    }
    const base = { activation: activations, kind: "call", position: call.position, clock } as const;
    this.#deliver(
      outcome.ok
        ? encodeFrame({
            type: messageType.Deliver,
            header: deliverHeader({ ...base, ok: true }),
            value: outcome.value,
          })
        : encodeFrame({
            type: messageType.Deliver,
            header: deliverHeader({ ...base, ok: false, error: outcome.error }),
          }),
    );
  }

  /** What a handler answered, bounded; a handler that answers nonsense is a bug of the host and tells the script nothing. */
  #checkedOutcome(given: CallOutcome): CallOutcome {
    const { limits } = this.request;
    try {
      if (given.ok === true) {
        const { text, attachments, devalue } = given.value;
        if (typeof text !== "string" || typeof devalue !== "boolean") return failed(undefined);
        // Three bytes a character at most, so most texts need no counting.
        const textBytes = text.length * 3 <= limits.valueBytes ? 0 : Buffer.byteLength(text);
        if (textBytes > limits.valueBytes) {
          return tooLarge(
            `the result of the call has ${textBytes} bytes; valueBytes is ${limits.valueBytes}`,
          );
        }
        const bodyBytes = sumOf(attachments);
        if (bodyBytes > limits.bodyBytes) {
          return tooLarge(
            `the binary parts of the result have ${bodyBytes} bytes; bodyBytes is ${limits.bodyBytes}`,
          );
        }
        return given;
      }
      const { code, message, retryable } = given.error;
      if (typeof code !== "string" || typeof message !== "string" || typeof retryable !== "boolean")
        return failed(undefined);
      return given;
    } catch (thrown) {
      return failed(thrown);
    }
  }

  #cancelCall(frame: Frame): void {
    const { position } = parseCancelCall(frame.text);
    const call = this.#calls.get(position);
    if (call === undefined || call.cancelled) {
      throw new Violation("bad_position", `a cancellation of call ${position}, which is not open`);
    }
    call.cancelled = true;
    // An outcome may be on its way already.
    if (call.state === "open") call.abort("the script cancelled the call");
  }

  #abortCalls(why: string): void {
    if (this.#open === 0) return;
    for (const call of this.#calls.values()) {
      if (call.state !== "open") continue;
      call.state = "unknown";
      call.endedAt = this.#endedAt;
      call.abort(why);
    }
  }

  // ------------------------------------------------------------------------------------------------------- console and time

  #console(frame: Frame): void {
    const header = parseConsole(frame.text);
    const { outputBytes } = this.request.limits;
    const bytes = Buffer.byteLength(header.text);
    this.#outputBytes += bytes + consoleLineBytes;
    if (this.#outputBytes > outputBytes * 2 + consoleSlackBytes) {
      throw new Violation("unexpected_message", "console output went on far beyond outputBytes");
    }
    this.#lines ??= [];
    this.#lines.push(header);
    this.#tell(header);
  }

  #tell(line: ConsoleHeader): void {
    this.request.onConsole?.(line);
  }

  #blockedMessage(frame: Frame): void {
    const { nextTimerAt, openCalls } = parseBlocked(frame.text);
    this.#blockedLeft -= 1;
    if (this.#blockedLeft < 0)
      throw new Violation("unexpected_message", "Blocked again although nothing was delivered");
    // It was sent before the worker saw an outcome that is on its way: another message follows that one.
    if (openCalls > this.#open) return;
    this.#blocked = true;
    this.#timerAt = Number.POSITIVE_INFINITY;
    if (nextTimerAt !== null) this.#awaitTimer(nextTimerAt, openCalls);
    this.#schedule();
  }

  #awaitTimer(nextTimerAt: number, openCalls: number): void {
    this.#timerGuestAt = nextTimerAt;
    if (this.request.clock.mode === "virtual") {
      if (openCalls === 0) this.#deliverTimer();
      return;
    }
    const wait = nextTimerAt - this.#clockNow();
    if (wait <= 0) this.#deliverTimer();
    else this.#timerAt = this.#clock.monotonicMs() + wait;
  }

  /** The guest's clock for a delivery: it moves with real time, or with timers alone. */
  #clockNow(): number {
    if (this.request.clock.mode === "real") {
      const elapsed = Math.floor(this.#clock.monotonicMs() - this.#startedAt);
      this.#guestClock = Math.max(this.#guestClock, this.request.clock.epochMs + elapsed);
    }
    return this.#guestClock;
  }

  #deliverTimer(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    // Never before the time that the timer waits for, whatever rounding says.
    this.#guestClock = Math.max(this.#clockNow(), this.#timerGuestAt);
    const { activations } = this.#port ?? unreachable();
    const header = deliverHeader({ activation: activations, kind: "timer", clock: this.#guestClock });
    this.#deliver(encodeFrame({ type: messageType.Deliver, header }));
  }

  #deliver(frame: Buffer): void {
    this.#blockedLeft += 1;
    this.#post(frame);
    this.#resume();
  }

  #post(frame: Buffer): void {
    this.#bytesIn += frame.byteLength;
    this.#port?.post(frame);
  }

  // ------------------------------------------------------------------------------------------------------------- budgets

  /** The worker runs again after it said that it waits: its CPU clock has to be watched closely again. */
  #resume(): void {
    if (!this.#blocked) return;
    this.#blocked = false;
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.#clock.monotonicMs();
    this.#cpuCheckAt = now + this.#cpuLeftMs();
    this.#schedule();
  }

  /** CPU time in milliseconds until the parent kills; a process with one thread needs at least as long on the wall. */
  #cpuLeftMs(): number {
    const used = ((this.#port?.cpuUs() ?? this.#cpuStartUs) - this.#cpuStartUs) / 1000;
    return Math.max(1, this.request.limits.cpuMs + cpuGraceMs - used);
  }

  #cpuExhausted(now: number): boolean {
    const { cpuMs } = this.request.limits;
    const usedMs = ((this.#port?.cpuUs() ?? this.#cpuStartUs) - this.#cpuStartUs) / 1000;
    const left = cpuMs + cpuGraceMs - usedMs;
    if (left <= 0) {
      this.condemn({
        status: "budget_exceeded",
        reason: "cpu",
        message: `the script used more CPU time than cpuMs (${cpuMs} ms)`,
        limit: cpuMs,
        used: Math.round(usedMs),
      });
      return true;
    }
    this.#cpuCheckAt = now + Math.max(1, left, this.#blocked ? blockedCheckMs : 0);
    return false;
  }

  #schedule(): void {
    this.#port?.wakeAt(Math.min(this.#wallAt, this.#cpuCheckAt, this.#timerAt));
  }

  // ----------------------------------------------------------------------------------------------------------------- the end

  #finished(frame: Frame): void {
    const header = parseFinished(frame.header);
    this.#endReport(frame);
    if (header.status === completed) {
      const value = frame.value(0, -1); // throws missing_value
      this.#value = ownedValue(value);
      this.#warnings = header.warnings;
      this.#verdict = this.#resultTooLarge(value);
      if (this.#verdict !== null) this.#value = undefined;
    } else {
      if (frame.hasValue) throw new ProtocolError("unexpected_value", "Finished");
      this.#warnings = header.warnings ?? noWarnings;
      this.#verdict = finishedVerdict(header);
      if (header.status === "script_error") this.#scriptError = header.error;
    }
    this.#endAlive("the script ended before the call did");
  }

  /** The worker bounds its own result; this is for one that does not. */
  #resultTooLarge(value: EncodedValue): Verdict | null {
    const { resultBytes, bodyBytes } = this.request.limits;
    const text = Buffer.byteLength(value.text);
    const bodies = sumOf(value.attachments);
    if (text <= resultBytes && bodies <= bodyBytes) return null;
    const [name, limit, used] =
      text > resultBytes ? ["resultBytes", resultBytes, text] : ["bodyBytes", bodyBytes, bodies];
    return {
      status: "budget_exceeded",
      reason: "result_size",
      message: `the result has ${used} bytes; ${name} is ${limit}`,
      limit: Number(limit),
      used: Number(used),
    };
  }

  #refused(frame: Frame): void {
    if (this.#calls.size > 0) throw new ProtocolError("unexpected_message", "Refused after host calls");
    const { error } = parseRefused(frame.text);
    this.#endReport(frame);
    this.#started = false;
    this.#scriptError = error;
    this.#verdict = { status: "script_error", reason: "syntax", message: error.message };
    this.#endAlive("the script was refused");
  }

  #endReport(frame: Frame): void {
    const last = frame.attachments.at(-1);
    if (last === undefined) throw new ProtocolError("missing_attachments");
    // TRUST: figures of the worker about itself, with form and range checked; only the heap's is shown.
    this.#report = verify(decodeUsageReport(last), (report) => report);
  }

  /** The worker lives on; `settle` follows. */
  #endAlive(why: string): void {
    this.#endedAt = this.#clock.monotonicMs();
    this.#cpuEndUs = this.#port?.cpuUs() ?? this.#cpuStartUs;
    this.#state = "condemned";
    this.#abortCalls(why);
  }

  #end(): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    if (this.#abortListener !== null) {
      this.request.signal?.removeEventListener("abort", this.#abortListener);
      this.#abortListener = null;
    }
    this.#resolve(this.#result());
  }

  #result(): ActivationResult<Confinement> {
    const port = this.#port;
    const verdict = this.#verdict;
    const end = this.#endedAt;
    const shared = {
      logs: this.#lines ?? noLines,
      logsTruncated: this.#linesTruncated,
      warnings: this.#warnings,
      usage: {
        cpuMs: Math.max(0, this.#cpuEndUs - this.#cpuStartUs) / 1000,
        wallMs: milliseconds(end - this.#startedAt),
        heapPeakBytes: this.#report.heapPeakBytes,
        hostCalls: this.#calls.size,
        bytesIn: this.#bytesIn,
        bytesOut: this.#bytesOut,
        queuedMs: milliseconds(this.#startedAt - this.enqueuedAt),
      },
      calls:
        this.#calls.size === 0 ? noCalls : Array.from(this.#calls.values(), (call) => this.#record(call)),
      started: this.#started,
      confinement: port?.confinement ?? null,
      worker: port === null ? null : { pid: port.pid, activations: port.activations },
      evidence: this.#evidence,
    };
    this.#port = null;
    if (verdict === null) {
      return { status: completed, ...shared, ...(this.#value === undefined ? {} : { value: this.#value }) };
    }
    return { status: verdict.status, reason: verdict.reason, error: this.#error(verdict), ...shared };
  }

  #error(verdict: Verdict): ActivationError {
    const { reason, message, limit, used, fact } = verdict;
    const script = this.#scriptError;
    return {
      code: reason,
      message,
      ...(script === undefined
        ? {}
        : {
            name: script.name,
            stack: script.stack,
            ...(script.cause === undefined ? {} : { cause: script.cause }),
            ...(script.errors === undefined ? {} : { errors: script.errors }),
          }),
      ...(limit === undefined ? {} : { limit }),
      ...(used === undefined ? {} : { used }),
      ...(fact === undefined ? {} : { fact }),
    };
  }

  #record(call: Call): CallRecord {
    return {
      position: call.position,
      name: call.name,
      // Every call is settled or marked unknown before a result is made.
      state: call.state === "open" ? "unknown" : call.state,
      ...(call.code === undefined ? {} : { code: call.code }),
      durationMs: milliseconds(call.endedAt - call.startedAt),
      inputBytes: call.inputBytes,
      outputBytes: call.outputBytes,
      idempotencyKey: this.key(call.position),
    };
  }
}

/** What no correct worker does; `reason` is one of the outcome table's for `violation`. */
export class Violation extends Error {
  override readonly name = "Violation";
  readonly reason: "bad_position" | "not_granted" | "too_many_calls" | "unexpected_message";

  constructor(reason: Violation["reason"], message: string) {
    super(message);
    this.reason = reason;
  }
}

function finishedVerdict(header: Exclude<FinishedHeader, { status: "completed" }>): Verdict {
  if (header.status === "budget_exceeded") {
    const { reason, limit, used } = header;
    return { status: "budget_exceeded", reason, message: `the limit for ${reason} was reached`, limit, used };
  }
  const reason = header.code ?? "uncaught";
  return { status: reason === "denied" ? "denied" : "script_error", reason, message: header.error.message };
}

function failed(thrown: unknown): CallOutcome {
  return { ok: false, error: hostErrorData(thrown) };
}

function tooLarge(message: string): CallOutcome {
  const error: HostErrorData = { code: "result_too_large", message, retryable: false };
  return { ok: false, error };
}

function isPromise(answer: Promise<CallOutcome> | CallOutcome): answer is Promise<CallOutcome> {
  return (
    typeof answer === "object" && answer !== null && "then" in answer && typeof answer.then === "function"
  );
}

function sumOf(attachments: readonly Uint8Array[]): number {
  let sum = 0;
  for (const bytes of attachments) sum += bytes.byteLength;
  return sum;
}

function sizeOfValue(value: EncodedValue): number {
  return Buffer.byteLength(value.text) + (value.attachments.length === 0 ? 0 : sumOf(value.attachments));
}

/** Attachments of a frame are views of memory that the next read overwrites. */
function ownedValue(value: EncodedValue): EncodedValue {
  if (value.attachments.length === 0) return value;
  return {
    text: value.text,
    devalue: value.devalue,
    attachments: value.attachments.map((bytes) => new Uint8Array(bytes)),
  };
}

function hex(seed: Uint8Array): string {
  return Buffer.from(seed.buffer, seed.byteOffset, seed.byteLength).toString("hex");
}

/** Three digits are what the clocks give. */
function milliseconds(value: number): number {
  return Math.max(0, Math.round(value * 1000) / 1000);
}

function unreachable(): never {
  throw new Error("an activation without a worker was asked to send: a bug in the pool");
}
