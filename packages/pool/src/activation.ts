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
 * outcome that comes after the end is dropped; the script's time starts with Activate, so neither waiting nor a cold start
 * is charged.
 */
import {
  activateHeader,
  type CallOutcome,
  decodeUsageReport,
  deliverHeader,
  type EncodedValue,
  encodeActivateBudget,
  encodeFrame,
  type Frame,
  type Limits,
  messageType,
  ProtocolError,
  parseBlocked,
  parseFinished,
  parseRefused,
  type ScriptErrorData,
  type UsageReport,
  verify,
  type WarningData,
} from "@flowcell/protocol";
import { unwatch, watch } from "./cancellation.js";
import type { Clock } from "./clock.js";
import { ConsoleLog } from "./console-log.js";
import { type Call, HostCalls } from "./host-calls.js";
import type {
  ActivationError,
  ActivationRequest,
  ActivationResult,
  CallRecord,
  ConsoleLine,
  DrivenActivation,
  Verdict,
} from "./types.js";
import { milliseconds, ownedValue } from "./values.js";
import { cpuExceeded, finishedVerdict, resultVerdict, wallExceeded } from "./verdict.js";
import { Violation } from "./violation.js";
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
/** A reading of a worker's CPU clock is used this long. */
const cpuReadMs = 10;
const completed = "completed";

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

/** The struct is the same for every usual activation under the same limits. */
const budgetBytes = new WeakMap<Limits, Buffer>();

export class Activation<Confinement> implements Waiter {
  readonly request: ActivationRequest;
  readonly enqueuedAt: number;
  readonly dueAt: number;
  /** Wants a process that has run nothing and will run nothing after. */
  readonly fresh: boolean;
  readonly #clock: Clock;
  readonly #resolve: (result: ActivationResult<Confinement>) => void;
  readonly #onCancel: (activation: Activation<Confinement>) => void;

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
  /** Deliver messages sent. */
  #delivered = 0;
  /** CPU time allowed from #cpuFromUs on. */
  #cpuAllowedMs = 0;
  /** Where the CPU budget that holds now begins. */
  #cpuFromUs = 0;
  /** What was left of it when the worker's clock was last read, and when that was. */
  #cpuLeftAtRead = 0;
  #cpuReadAt = Number.NEGATIVE_INFINITY;

  #calls: HostCalls | null = null;
  #log: ConsoleLog | null = null;
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
    const { signal } = request;
    if (signal !== undefined) {
      this.#abortListener = () => this.#onCancel(this);
      watch(signal, this.#abortListener);
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
    this.#cpuAllowedMs = limits.cpuMs + (request.replayCpuMs ?? 0);
    this.#wallAt = this.#startedAt + limits.wallMs;
    this.#cpuStartUs = this.#cpuFromUs = port.cpuUs() ?? 0;
    this.#cpuLeftAtRead = this.#cpuAllowedMs + cpuGraceMs;
    this.#cpuReadAt = this.#startedAt;
    this.#cpuCheckAt = this.#startedAt + this.#cpuLeftAtRead;
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
      attachments: [this.#budget(), script],
    });
    this.#post(frame);
    this.#schedule();
    this.#tellDriver();
  }

  #tellDriver(): void {
    try {
      this.request.driver?.begun(this.#driven());
    } catch {
      this.condemn({
        status: "internal",
        reason: "bug",
        message: "the driver failed when the activation began",
      });
    }
  }

  #budget(): Buffer {
    const { limits, replayCpuMs } = this.request;
    const usual = replayCpuMs === undefined && !this.fresh;
    const kept = usual ? budgetBytes.get(limits) : undefined;
    if (kept !== undefined) return kept;
    const budget = encodeActivateBudget({
      cpuBudgetUs: this.#cpuAllowedMs * 1000,
      heapBytes: limits.heapBytes,
      stackBytes: limits.stackBytes,
      resultBytes: limits.resultBytes,
      singleUse: this.fresh,
    });
    if (usual) budgetBytes.set(limits, budget);
    return budget;
  }

  #driven(): DrivenActivation {
    const setClock = (guestClockMs: number): void => {
      this.#guestClock = Math.max(this.#guestClock, guestClockMs);
    };
    return {
      deliver: (position, outcome, guestClockMs) => {
        if (this.#state !== "running") return;
        setClock(guestClockMs);
        this.#hostCalls().answer(position, outcome);
      },
      fireTimer: (guestClockMs) => {
        if (this.#state !== "running") return;
        setClock(guestClockMs);
        this.#sendTimer();
      },
      frontier: () => {
        if (this.#state !== "running") return;
        this.#cpuFromUs = this.#port?.cpuUs() ?? this.#cpuFromUs;
        this.#cpuAllowedMs = this.request.limits.cpuMs;
        this.#cpuReadAt = Number.NEGATIVE_INFINITY;
        const now = this.#clock.monotonicMs();
        this.#cpuCheckAt = now + this.#cpuLeftMs(now);
        this.#schedule();
      },
      end: (verdict) => this.condemn(verdict),
    };
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
        this.#resume();
        this.#hostCalls().take(frame);
        return false;
      case messageType.CancelCall:
        this.#hostCalls().cancel(frame);
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
      this.condemn(wallExceeded(limits, now - this.#startedAt));
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
    this.#calls?.abandon(verdict.message, this.#endedAt);
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
      this.#calls?.abandon("the worker ended", this.#endedAt);
    }
    this.#cpuEndUs = cpuUs ?? this.#cpuStartUs;
    this.#end();
  }

  /** After `frame` returned true, once the worker has looked at everything that came with it. */
  settle(evidence: string | null): void {
    if (evidence !== null) this.#evidence.push(evidence);
    this.#end();
  }

  // -------------------------------------------------------------------------------------------------- calls, console, time

  #hostCalls(): HostCalls {
    this.#calls ??= new HostCalls(this.request, this.#clock, (call, outcome) => this.#outcome(call, outcome));
    return this.#calls;
  }

  #outcome(call: Call, outcome: CallOutcome): void {
    const { activations } = this.#port ?? unreachable();
    const base = {
      activation: activations,
      kind: "call",
      position: call.position,
      clock: this.#clockNow(),
    } as const;
    const type = messageType.Deliver;
    this.#deliver(
      outcome.ok
        ? encodeFrame({ type, header: deliverHeader({ ...base, ok: true }), value: outcome.value })
        : encodeFrame({ type, header: deliverHeader({ ...base, ok: false, error: outcome.error }) }),
    );
  }

  #console(frame: Frame): void {
    this.#log ??= new ConsoleLog(this.request.limits.outputBytes);
    const line = this.#log.take(frame);
    this.request.onConsole?.(line);
  }

  #blockedMessage(frame: Frame): void {
    const { nextTimerAt, openCalls, delivered } = parseBlocked(frame.text);
    this.#blockedLeft -= 1;
    if (this.#blockedLeft < 0)
      throw new Violation("unexpected_message", "Blocked again although nothing was delivered");
    // It was sent before the worker saw what is on its way: another message follows that.
    if (delivered < this.#delivered) return;
    if (delivered > this.#delivered || openCalls !== (this.#calls?.open ?? 0))
      throw new Violation("unexpected_message", "Blocked with other calls than those that are open");
    this.#blocked = true;
    const { driver } = this.request;
    if (driver !== undefined) {
      driver.blocked({ nextTimerAt, openCalls });
      this.#schedule();
      return;
    }
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
    // A call that is answered in this very turn was made before its timer was late: on a host that was held up, the answer
    // of a call that takes no time would otherwise lose against any timer.
    if (wait <= 0 && openCalls === 0) this.#deliverTimer();
    else this.#timerAt = this.#clock.monotonicMs() + Math.max(0, wait);
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
    this.#sendTimer();
  }

  #sendTimer(): void {
    const { activations } = this.#port ?? unreachable();
    const header = deliverHeader({ activation: activations, kind: "timer", clock: this.#guestClock });
    this.#deliver(encodeFrame({ type: messageType.Deliver, header }));
  }

  #deliver(frame: Buffer): void {
    this.#blockedLeft += 1;
    this.#delivered += 1;
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
    const now = this.#clock.monotonicMs();
    // One that is due stays so, or a script that goes on calling would never see it.
    if (this.#timerAt > now) this.#timerAt = Number.POSITIVE_INFINITY;
    this.#cpuCheckAt = now + this.#cpuLeftMs(now);
    this.#schedule();
  }

  /**
   * CPU time in milliseconds until the parent kills; a process with one thread needs at least as long on the wall. So a
   * reading that is a moment old tells the least that can be left: reading costs more than the rest of a delivery.
   */
  #cpuLeftMs(now: number): number {
    if (now - this.#cpuReadAt > cpuReadMs || this.#cpuLeftAtRead - (now - this.#cpuReadAt) < cpuReadMs) {
      const used = ((this.#port?.cpuUs() ?? this.#cpuFromUs) - this.#cpuFromUs) / 1000;
      this.#cpuLeftAtRead = this.#cpuAllowedMs + cpuGraceMs - used;
      this.#cpuReadAt = now;
    }
    return Math.max(1, this.#cpuLeftAtRead - (now - this.#cpuReadAt));
  }

  #cpuExhausted(now: number): boolean {
    const usedMs = ((this.#port?.cpuUs() ?? this.#cpuFromUs) - this.#cpuFromUs) / 1000;
    const left = this.#cpuAllowedMs + cpuGraceMs - usedMs;
    if (left <= 0) {
      this.condemn(cpuExceeded(this.request.limits, usedMs));
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
      this.#verdict = resultVerdict(value, this.request.limits);
      if (this.#verdict !== null) this.#value = undefined;
    } else {
      if (frame.hasValue) throw new ProtocolError("unexpected_value", "Finished");
      this.#warnings = header.warnings ?? noWarnings;
      this.#verdict = finishedVerdict(header, this.request.limits, this.#report.heapPeakBytes);
      if (header.status === "script_error") this.#scriptError = header.error;
    }
    this.#endAlive("the script ended before the call did");
  }

  #refused(frame: Frame): void {
    if (this.#calls !== null) throw new ProtocolError("unexpected_message", "Refused after host calls");
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
    this.#calls?.abandon(why, this.#endedAt);
  }

  #end(): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    if (this.#abortListener !== null) {
      const { signal } = this.request;
      if (signal !== undefined) unwatch(signal, this.#abortListener);
      this.#abortListener = null;
    }
    this.#resolve(this.#result());
  }

  #result(): ActivationResult<Confinement> {
    const port = this.#port;
    const verdict = this.#verdict;
    const end = this.#endedAt;
    const shared = {
      logs: this.#log?.lines ?? noLines,
      logsTruncated: this.#log?.truncated ?? false,
      warnings: this.#warnings,
      usage: {
        cpuMs: Math.max(0, this.#cpuEndUs - this.#cpuStartUs) / 1000,
        wallMs: milliseconds(end - this.#startedAt),
        heapPeakBytes: this.#report.heapPeakBytes,
        hostCalls: this.#calls?.size ?? 0,
        bytesIn: this.#bytesIn,
        bytesOut: this.#bytesOut,
        queuedMs: milliseconds(this.#startedAt - this.enqueuedAt),
      },
      replayCpuMs: Math.max(0, this.#cpuFromUs - this.#cpuStartUs) / 1000,
      calls: this.#calls?.records() ?? noCalls,
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
            ...(script.code === undefined || script.code === reason ? {} : { ownCode: script.code }),
            stack: script.stack,
            ...(script.cause === undefined ? {} : { cause: script.cause }),
            ...(script.errors === undefined ? {} : { errors: script.errors }),
          }),
      ...(limit === undefined ? {} : { limit }),
      ...(used === undefined ? {} : { used }),
      ...(fact === undefined ? {} : { fact }),
    };
  }
}

function hex(seed: Uint8Array): string {
  return Buffer.from(seed.buffer, seed.byteOffset, seed.byteLength).toString("hex");
}

function unreachable(): never {
  throw new Error("an activation without a worker was asked to send: a bug in the pool");
}
