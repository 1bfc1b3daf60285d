/**
 * A simulated guest: runs a program as a worker's engine runs a script. Whatever it does is a function of its program and of
 * what was delivered to it, in that order; every argument it passes tells all that it has seen so far, so that a replay that
 * is not exact shows as other arguments.
 *
 * It sends what a worker sends, in the worker's order: positions are given when calls are made, calls beyond `inFlight` wait
 * and are never sent when they are given up before, Blocked follows each delivery that left it waiting.
 */

import type { CallOutcome, EncodedValue } from "@flowcell/protocol";
import type { CallNode, Node } from "./program.js";
import { mix, mixText } from "./random.js";

export type GuestMessage =
  | {
      readonly kind: "called";
      readonly position: number;
      readonly name: string;
      readonly args: EncodedValue;
      readonly digest: string;
    }
  | { readonly kind: "callCancelled"; readonly position: number }
  | { readonly kind: "logged"; readonly seq: number; readonly text: string; readonly guestTimeMs: number }
  | { readonly kind: "blocked"; readonly nextTimerAt: number | null; readonly openCalls: number }
  | { readonly kind: "returned"; readonly value: EncodedValue }
  | { readonly kind: "threw"; readonly reason: string };

interface Settled {
  readonly ok: boolean;
  readonly value: number;
}

type Then = (settled: Settled) => void;

interface OpenCall {
  readonly position: number;
  readonly then: Then;
  settled: boolean;
  /** What is sent when there is room; null when it was sent. */
  message: GuestMessage | null;
}

interface Timer {
  readonly id: number;
  readonly due: number;
  readonly fire: () => void;
}

const done: Settled = { ok: true, value: 1 };
const gaveUp: Settled = { ok: false, value: 2 };

export class Guest {
  readonly #program: Node;
  readonly #inFlight: number;
  readonly #send: (message: GuestMessage) => void;
  #clock: number;
  /** Everything seen so far. */
  #seen: number;
  #positions = 0;
  #open = 0;
  readonly #calls = new Map<number, OpenCall>();
  #waiting: OpenCall[] = [];
  readonly #timers: Timer[] = [];
  #timerIds = 0;
  #lines = 0;
  #outcome: Settled | null = null;
  #ended = false;

  constructor(
    program: Node,
    seed: number,
    inFlight: number,
    clock: number,
    send: (message: GuestMessage) => void,
  ) {
    this.#program = program;
    this.#seen = seed;
    this.#inFlight = inFlight;
    this.#clock = clock;
    this.#send = send;
  }

  start(): void {
    this.#run(this.#program, (settled) => {
      this.#outcome ??= settled;
    });
    this.#idle();
  }

  deliver(position: number, outcome: CallOutcome, clock: number): void {
    if (this.#ended) return;
    this.#clock = clock;
    const call = this.#calls.get(position);
    if (call === undefined || call.message !== null)
      throw new Error(`guest: call ${position} is not open and was answered`);
    this.#calls.delete(position);
    this.#open -= 1;
    this.#sendWaiting();
    if (!call.settled) {
      call.settled = true;
      this.#see(outcome.ok ? outcome.value.text : outcome.error.code);
      call.then({ ok: outcome.ok, value: this.#seen });
    }
    this.#idle();
  }

  fireTimer(clock: number): void {
    if (this.#ended) return;
    this.#clock = clock;
    const timer = this.#earliest();
    if (timer !== undefined && timer.due <= clock) {
      this.#timers.splice(this.#timers.indexOf(timer), 1);
      this.#see("timer");
      timer.fire();
    }
    this.#idle();
  }

  #see(text: string): void {
    this.#seen = mixText(mix(this.#seen, this.#clock), text);
  }

  #idle(): void {
    const outcome = this.#outcome;
    if (outcome !== null) {
      this.#ended = true;
      if (outcome.ok)
        this.#send({
          kind: "returned",
          value: { text: String(this.#seen), devalue: false, attachments: [] },
        });
      else this.#send({ kind: "threw", reason: "uncaught" });
      return;
    }
    const timer = this.#earliest();
    if (this.#open === 0 && timer === undefined) {
      this.#ended = true;
      this.#send({ kind: "threw", reason: "deadlock" });
    } else this.#send({ kind: "blocked", nextTimerAt: timer?.due ?? null, openCalls: this.#open });
  }

  #earliest(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers)
      if (first === undefined || timer.due < first.due || (timer.due === first.due && timer.id < first.id))
        first = timer;
    return first;
  }

  // -------------------------------------------------------------------------------------------------------------- program

  #run(node: Node, then: Then): void {
    switch (node.kind) {
      case "call":
        this.#call(node, then);
        return;
      case "timer":
        this.#timer(node.ms, () => then(done));
        return;
      case "interval":
        this.#interval(node.ms, node.times, then);
        return;
      case "seq":
        this.#sequence(node.of, 0, then);
        return;
      case "all":
        this.#group(node.of, then, ({ ok }) => !ok, node.of.length);
        return;
      case "any":
        this.#group(node.of, then, ({ ok }) => ok, node.of.length);
        return;
      case "race":
        this.#group(node.of, then, () => true, node.of.length);
        return;
      case "settled":
        this.#group(node.of, then, () => false, node.of.length);
        return;
      case "caught":
        this.#run(node.of, () => then(done));
        return;
      case "loop":
        this.#sequence(
          Array.from({ length: node.times }, () => node.of),
          0,
          then,
        );
        return;
      case "loose":
        this.#run(node.of, () => undefined);
        then(done);
        return;
      case "cancelled":
        this.#cancelled(node.call, node.by, then);
        return;
      case "log":
        this.#send({
          kind: "logged",
          seq: this.#lines++,
          text: String(this.#seen),
          guestTimeMs: this.#clock,
        });
        then(done);
        return;
      case "throw":
        then({ ok: false, value: 3 });
        return;
    }
  }

  #sequence(nodes: readonly Node[], at: number, then: Then): void {
    const node = nodes[at];
    if (node === undefined) then(done);
    else this.#run(node, (settled) => (settled.ok ? this.#sequence(nodes, at + 1, then) : then(settled)));
  }

  /** Ends with the first that decides, or when there are none left. */
  #group(nodes: readonly Node[], then: Then, decides: (settled: Settled) => boolean, count: number): void {
    let left = count;
    let over = false;
    for (const node of nodes) {
      this.#run(node, (settled) => {
        left -= 1;
        if (over || !(decides(settled) || left === 0)) return;
        over = true;
        then(settled);
      });
    }
  }

  #timer(ms: number, fire: () => void): void {
    this.#timers.push({ id: this.#timerIds++, due: this.#clock + ms, fire });
  }

  #interval(ms: number, times: number, then: Then): void {
    this.#timer(ms, () => (times <= 1 ? then(done) : this.#interval(ms, times - 1, then)));
  }

  #cancelled(node: CallNode, by: Node, then: Then): void {
    const call = this.#call(node, then);
    this.#run(by, () => {
      if (call.settled) return;
      call.settled = true;
      if (call.message !== null) {
        this.#waiting = this.#waiting.filter((other) => other !== call);
        this.#calls.delete(call.position);
      } else if (!this.#ended) this.#send({ kind: "callCancelled", position: call.position });
      call.then(gaveUp);
    });
  }

  #call({ id, name, ms }: CallNode, then: Then): OpenCall {
    const position = this.#positions++;
    const args = { text: JSON.stringify([this.#seen, id, ms]), devalue: false, attachments: [] };
    const message = { kind: "called", position, name, args, digest: `${name} ${args.text}` } as const;
    const call: OpenCall = { position, then, settled: false, message };
    this.#calls.set(position, call);
    this.#waiting.push(call);
    this.#sendWaiting();
    return call;
  }

  #sendWaiting(): void {
    while (this.#open < this.#inFlight) {
      const call = this.#waiting.shift();
      if (call === undefined || call.message === null) return;
      this.#open += 1;
      const { message } = call;
      call.message = null;
      this.#send(message);
    }
  }
}
