/**
 * The host calls of one run, from the machine's commands to the host functions and back. Used by the actor of the run.
 *
 * What a call is and what it wants was read once, when it was classified; it is held until its outcome. The steps of
 * `@flowcell/host` always answer, so every command is answered by exactly one event. Kept true: a call has one signal for all
 * its steps; nothing is carried out that was not classified by this process.
 *
 * TRUST: arguments are a script's; `readCall` decodes them within the run's bounds.
 */

import { randomBytes } from "node:crypto";
import {
  createRegistry,
  type DispatchOptions,
  type HostFunction,
  type IncomingCall,
  noteCall,
  type ReadCall,
  type Registry,
  readCall,
  recoverCall,
  runCall,
} from "@flowcell/host";
import type { RunRow } from "@flowcell/journal";
import {
  type CallNote,
  type CallOutcome,
  type Effect,
  type EncodedValue,
  HostError,
} from "@flowcell/protocol";
import type { Classified, RunEvent } from "../machine/types.js";
import type { Runnable } from "../ports.js";
import { waitRefusal } from "./run-outcome.js";

/** The same rows for every run of a version. */
const registries = new WeakMap<readonly HostFunction[], Registry>();

/** Where a run's calls go: what its version is granted. */
export class CallTarget {
  readonly registry: Registry;
  readonly options: DispatchOptions;
  readonly kvMaxBytes: number;
  /** Flows whose runs may be waited for. */
  readonly flows: readonly string[];

  constructor(runnable: Runnable, clock: DispatchOptions["clock"]) {
    const { functions, limits, kvMaxBytes, manifest } = runnable;
    let registry = registries.get(functions);
    if (registry === undefined) {
      registry = createRegistry(functions);
      registries.set(functions, registry);
    }
    this.registry = registry;
    this.options = { limits, clock };
    this.kvMaxBytes = kvMaxBytes;
    this.flows = manifest.grants.flows;
  }
}

class HeldCall implements IncomingCall {
  readonly position: number;
  readonly name: string;
  readonly args: EncodedValue;
  readonly idempotencyKey: string;
  readonly runId: string;
  /** Set when it was read; a call that can only be given up has none. */
  read: ReadCall | null = null;
  #controller: AbortController | null = null;
  #aborted: HostError | null = null;

  constructor(position: number, name: string, args: EncodedValue, idempotencyKey: string, runId: string) {
    this.position = position;
    this.name = name;
    this.args = args;
    this.idempotencyKey = idempotencyKey;
    this.runId = runId;
  }

  /** Made when it is first asked for: calls that the store answers have none. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#aborted !== null) this.#controller.abort(this.#aborted);
    }
    return this.#controller.signal;
  }

  abort(why: string): void {
    if (this.#aborted !== null) return;
    this.#aborted = new HostError("cancelled", why);
    this.#controller?.abort(this.#aborted);
  }
}

type CallEvent = RunEvent & { readonly kind: "classified" | "outcome" | "recovered" };

export interface CallsUser {
  keyOf(position: number): string;
  post(event: CallEvent): void;
  /** A run that a call wants to wait for. */
  runOf(runId: string): Promise<Pick<RunRow, "flow"> | null>;
  own(promise: Promise<unknown>): void;
}

export class RunCalls {
  readonly #runId: string;
  readonly #user: CallsUser;
  readonly #held = new Map<number, HeldCall>();
  #target: CallTarget | null = null;
  #running = 0;

  constructor(runId: string, user: CallsUser) {
    this.#runId = runId;
    this.#user = user;
  }

  /** Handlers that have not answered. */
  get running(): number {
    return this.#running;
  }

  /** From the next call on. Never aimed: the version may not run, and nothing can be carried out for it. */
  aim(target: CallTarget): void {
    this.#target = target;
  }

  /** `recorded`: the effect by which the call is on record, if it is. */
  classify(
    command: { position: number; name: string; args: EncodedValue; withNote: boolean },
    recorded: Effect | undefined,
  ): void {
    const { position, name, args, withNote } = command;
    const target = this.#target;
    const call = new HeldCall(position, name, args, this.#user.keyOf(position), this.#runId);
    this.#held.set(position, call);
    if (target === null) {
      this.#user.post({ kind: "classified", position, as: withoutTarget(call, recorded) });
      return;
    }
    const classified = readCall(target.registry, call, target.options).then((result) => {
      if (!result.ok) {
        this.#classified(call, { kind: "answered", effect: effectOf(target, name), outcome: result.outcome });
        return undefined;
      }
      call.read = result.call;
      const as = asRead(result.call, target.kvMaxBytes);
      if (as.kind === "effect" && withNote && result.call.row.prepare !== undefined)
        return this.#note(call, result.call, as, target);
      if (as.kind === "wait" && as.condition.kind === "run")
        return this.#judgeWait(call, as, as.condition.runId, target);
      this.#classified(call, as);
      return undefined;
    });
    this.#user.own(classified);
  }

  #classified(call: HeldCall, as: Classified): void {
    if (as.kind !== "read" && as.kind !== "effect") this.#drop(call);
    this.#user.post({ kind: "classified", position: call.position, as });
  }

  async #note(
    call: HeldCall,
    read: ReadCall,
    as: Classified & { readonly kind: "effect" },
    { options }: CallTarget,
  ): Promise<void> {
    const { effect } = as;
    const noted = await this.#run(() => noteCall(read, call, options));
    if (noted.ok) this.#classified(call, { ...as, note: noted.note });
    else this.#classified(call, { kind: "answered", effect, outcome: noted.outcome });
  }

  /** Before it is recorded, since what ends the wait asks for nothing more. */
  async #judgeWait(call: HeldCall, as: Classified, runId: string, { flows }: CallTarget): Promise<void> {
    const run = await this.#user.runOf(runId);
    const refused = waitRefusal(runId, run?.flow ?? null, this.#runId, flows);
    this.#classified(call, refused === null ? as : { kind: "answered", effect: "wait", outcome: refused });
  }

  dispatch(position: number): void {
    const call = this.#held.get(position) ?? unclassified(position);
    const { read } = call;
    const target = this.#target;
    if (read === null || target === null) {
      this.#drop(call);
      this.#user.post({ kind: "outcome", position, outcome: givenUp(call) });
      return;
    }
    const over = this.#run(() => runCall(read, call, target.options)).then((outcome) => {
      this.#drop(call);
      this.#user.post({ kind: "outcome", position, outcome });
    });
    this.#user.own(over);
  }

  recover(position: number, note: CallNote | null): void {
    const call = this.#held.get(position) ?? unclassified(position);
    const { read } = call;
    const target = this.#target;
    if (read === null || target === null) {
      this.#user.post({ kind: "recovered", position, recovery: { state: "unknown" } });
      return;
    }
    const over = this.#run(() => recoverCall(read, note, call, target.options)).then((recovery) => {
      this.#user.post({ kind: "recovered", position, recovery });
    });
    this.#user.own(over);
  }

  abort(position: number, why: string): void {
    this.#held.get(position)?.abort(why);
  }

  abortAll(why: string): void {
    for (const call of this.#held.values()) call.abort(why);
  }

  async #run<Result>(step: () => Promise<Result>): Promise<Result> {
    this.#running += 1;
    try {
      return await step();
    } finally {
      this.#running -= 1;
    }
  }

  #drop(call: HeldCall): void {
    if (this.#held.get(call.position) === call) this.#held.delete(call.position);
  }
}

function unclassified(position: number): never {
  throw new Error(`engine: call ${position} is to be carried out and was not classified`);
}

function asRead(call: ReadCall, bytesMax: number): Classified {
  const { effect, local, wait } = call;
  switch (effect) {
    case "local":
      if (local === undefined) throw new Error(`engine: ${call.row.name} is local and says no operation`);
      return { kind: "local", operation: local, bytesMax };
    case "wait":
      // A row that waits by a handler of its own has nothing that could be recorded to wait for.
      if (wait === undefined) return { kind: "read" };
      return { kind: "wait", condition: wait, callId: wait.kind === "approval" ? newCallId() : null };
    case "read":
      return { kind: "read" };
    case "keyed":
    case "once":
      return { kind: "effect", effect, note: null };
  }
}

/** Of a call that was refused: nothing was done, so an effect that depends on the arguments is none. */
function effectOf({ registry }: CallTarget, name: string): Effect {
  const effect = registry.get(name)?.effect;
  return effect === undefined || effect === "local" || effect === "wait" ? "read" : effect;
}

function withoutTarget({ position }: HeldCall, recorded: Effect | undefined): Classified {
  switch (recorded) {
    case "keyed":
    case "once":
      return { kind: "effect", effect: recorded, note: null };
    case "read":
      return { kind: "read" };
    default:
      throw new Error(`engine: call ${position} was made by a version that may not run`);
  }
}

/** A recorded call of a version that may not run any more. */
function givenUp({ name }: HeldCall): CallOutcome {
  const message = `${name}: the flow's version may not run any more; whether the call took effect is unknown`;
  return { ok: false, error: { code: "outcome_unknown", message, retryable: false } };
}

/** Unguessable: whoever has it can answer the approval through the service. */
function newCallId(): string {
  return `call_${randomBytes(16).toString("base64url")}`;
}
