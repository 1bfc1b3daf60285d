/**
 * Where activations wait for a worker: one bounded first-in-first-out queue per flow (p-queue), and one rotation
 * over the flows that wait.
 *
 * Used by the pool alone. A flow's queue runs one task at a time, and a task is nothing but standing at the head:
 * it ends when its waiter got a worker or gave up, and then the flow's next waiter comes to the head. A flow whose
 * head was served goes to the end of the rotation, so with few workers every flow is served in its turn, however
 * many waiters another flow has.
 *
 * Kept true: a waiter is answered exactly once, by `served` or by its `refuse`; a refused waiter is never offered
 * again; waiting is counted from the moment that `dueAt` was computed, not from the head of the queue (p-queue's
 * own `timeout` counts run time only, so the deadline is ours); both bounds hold. A waiter that leaves from behind
 * the head is taken out of p-queue's line: an AbortSignal for each, which p-queue offers for that, costs more than
 * a whole activation does otherwise.
 */
import PQueue, { type Queue, type QueueAddOptions } from "p-queue";
import { Deadline, type Deadlines } from "./deadlines.js";

/** Why a waiter left without a worker. `expired`: its own deadline; the rest is the caller's word. */
export type LeaveReason = "expired" | "cancelled" | "closed" | "unavailable";

export interface Waiter {
  readonly flow: string;
  /** Monotonic times: when it began to wait, and when it stops. */
  readonly enqueuedAt: number;
  readonly dueAt: number;
  refuse(why: LeaveReason): void;
}

export interface WaitingRoomOptions {
  /** Waiters of one flow. */
  readonly queueMax: number;
  /** Waiters of all flows. */
  readonly queueTotalMax: number;
  readonly deadlines: Deadlines;
  /** A waiter came to the head of its flow's queue. */
  onHead(): void;
}

/** Queues in which nobody stands are kept up to so many: making one costs a quarter of a warm activation. */
const queuesKept = 64;

type Task = () => Promise<unknown>;

/** The line behind a flow's head: p-queue's storage, first in, first out, with a way out from everywhere. */
class Line implements Queue<Task, QueueAddOptions> {
  readonly #tasks = new Map<string, Task>();

  get size(): number {
    return this.#tasks.size;
  }

  enqueue(task: Task, options?: Partial<QueueAddOptions>): void {
    if (options?.id === undefined) throw new Error("p-queue gave a task no id");
    this.#tasks.set(options.id, task);
  }

  dequeue(): Task | undefined {
    for (const [id, task] of this.#tasks) {
      this.#tasks.delete(id);
      return task;
    }
    return undefined;
  }

  remove(id: string): void {
    this.#tasks.delete(id);
  }

  filter(): Task[] {
    return [...this.#tasks.values()];
  }

  setPriority(): never {
    throw new Error("a line has no priorities");
  }
}

interface FlowQueue<W> {
  readonly queue: PQueue<Line>;
  readonly line: Line;
  readonly tickets: Set<Ticket<W>>;
}

function makeFlowQueue<W>(): FlowQueue<W> {
  const line = new Line();
  // p-queue constructs its storage itself; this is how it comes to construct ours.
  const queueClass = class extends Line {
    constructor() {
      super();
      // biome-ignore lint/correctness/noConstructorReturn: see above
      return line;
    }
  };
  return { queue: new PQueue<Line>({ concurrency: 1, queueClass }), line, tickets: new Set() };
}

interface Ticket<W> {
  readonly waiter: W;
  readonly of: FlowQueue<W>;
  /** Its place in the line, while it is not at the head. */
  readonly id: string;
  readonly deadline: Deadline;
  /** Ends the p-queue task: set while the ticket stands at the head. */
  leaveHead: (() => void) | null;
}

export class WaitingRoom<W extends Waiter> {
  readonly #options: WaitingRoomOptions;
  readonly #flows = new Map<string, FlowQueue<W>>();
  /** Heads in rotation order: a Map iterates in the order of insertion. */
  readonly #heads = new Map<string, Ticket<W>>();
  readonly #tickets = new Map<W, Ticket<W>>();
  #nextId = 0;

  constructor(options: WaitingRoomOptions) {
    this.#options = options;
  }

  /** Waiters in all. */
  get size(): number {
    return this.#tickets.size;
  }

  sizeOf(flow: string): number {
    return this.#flows.get(flow)?.tickets.size ?? 0;
  }

  /** The flows' first waiters, the one whose turn is next first. Serving one while iterating is allowed. */
  *heads(): Generator<W> {
    for (const ticket of this.#heads.values()) yield ticket.waiter;
  }

  /** Every waiter; the result is a copy. */
  all(): W[] {
    return [...this.#tickets.keys()];
  }

  /** Queues the waiter, or returns which bound is reached. `onHead` may be called before this returns. */
  enter(waiter: W): "entered" | "flow_full" | "pool_full" {
    if (this.#tickets.size >= this.#options.queueTotalMax) return "pool_full";
    let of = this.#flows.get(waiter.flow);
    if (of !== undefined && of.tickets.size >= this.#options.queueMax) return "flow_full";
    if (of === undefined) {
      if (this.#options.queueMax === 0) return "flow_full";
      of = makeFlowQueue();
      this.#flows.set(waiter.flow, of);
    }
    const ticket: Ticket<W> = {
      waiter,
      of,
      id: String(this.#nextId++),
      deadline: new Deadline(() => this.leave(waiter, "expired")),
      leaveHead: null,
    };
    of.tickets.add(ticket);
    this.#tickets.set(waiter, ticket);
    this.#options.deadlines.set(ticket.deadline, waiter.dueAt);
    // The promise says nothing that the ticket does not: it settles after the head was left, or never.
    void of.queue.add(() => this.#standAtHead(ticket), { id: ticket.id });
    return "entered";
  }

  /** The waiter got a worker. */
  served(waiter: W): void {
    this.#remove(waiter);
  }

  /** The waiter gives up, or is given up; does nothing when it is not waiting any more. */
  leave(waiter: W, why: LeaveReason): void {
    if (this.#remove(waiter)) waiter.refuse(why);
  }

  async #standAtHead(ticket: Ticket<W>): Promise<void> {
    if (!this.#tickets.has(ticket.waiter)) return;
    await new Promise<void>((resolve) => {
      ticket.leaveHead = resolve;
      this.#heads.set(ticket.waiter.flow, ticket);
      this.#options.onHead();
    });
  }

  #remove(waiter: W): boolean {
    const ticket = this.#tickets.get(waiter);
    if (ticket === undefined) return false;
    this.#tickets.delete(waiter);
    this.#options.deadlines.drop(ticket.deadline);
    ticket.of.tickets.delete(ticket);
    if (ticket.of.tickets.size === 0 && this.#flows.size > queuesKept) this.#flows.delete(waiter.flow);
    if (ticket.leaveHead === null) {
      ticket.of.line.remove(ticket.id);
    } else {
      if (this.#heads.get(waiter.flow) === ticket) this.#heads.delete(waiter.flow);
      ticket.leaveHead();
    }
    return true;
  }
}
