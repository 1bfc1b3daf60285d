// The waiting room: order, rotation, bounds, deadlines.
import { afterEach, describe, expect, it } from "vitest";
import { Deadlines } from "./deadlines.js";
import { FakeClock, ticks } from "./testing/fake-clock.js";
import { type LeaveReason, type Waiter, WaitingRoom } from "./waiting-room.js";

class TestWaiter implements Waiter {
  readonly flow: string;
  readonly name: string;
  readonly enqueuedAt = 0;
  readonly dueAt: number;
  refused: LeaveReason[] = [];

  constructor(flow: string, name: string, dueAt = Number.POSITIVE_INFINITY) {
    this.flow = flow;
    this.name = name;
    this.dueAt = dueAt;
  }

  refuse(why: LeaveReason): void {
    this.refused.push(why);
  }
}

function room(bounds: { queueMax?: number; queueTotalMax?: number } = {}) {
  const clock = new FakeClock();
  const deadlines = new Deadlines(clock);
  const waiting = new WaitingRoom<TestWaiter>({
    queueMax: bounds.queueMax ?? 100,
    queueTotalMax: bounds.queueTotalMax ?? 1000,
    deadlines,
    onHead: () => {},
  });
  open.push(deadlines);
  return { clock, waiting };
}

const open: Deadlines[] = [];
afterEach(() => {
  for (const deadlines of open.splice(0)) deadlines.close();
});

/** Serves the waiter whose turn it is, as a pool with one worker would, until nobody waits. */
async function serveAll(waiting: WaitingRoom<TestWaiter>): Promise<string[]> {
  const order: string[] = [];
  while (waiting.size > 0) {
    await ticks();
    const [next] = waiting.heads();
    if (next === undefined) throw new Error("somebody waits but nobody is at a head");
    order.push(next.name);
    waiting.served(next);
  }
  return order;
}

describe("WaitingRoom", () => {
  it("serves flows that come again, in the turn in which they were served and later, few or many", async () => {
    const { waiting } = room();
    const flows = Array.from({ length: 100 }, (_, index) => `flow-${index}`);
    for (const round of ["1", "2", "3"]) {
      for (const flow of flows) waiting.enter(new TestWaiter(flow, `${flow} ${round}`));
      if (round !== "2") expect(await serveAll(waiting)).toEqual(flows.map((flow) => `${flow} ${round}`));
      else {
        await ticks();
        for (const waiter of [...waiting.heads()]) {
          waiting.served(waiter);
          waiting.enter(new TestWaiter(waiter.flow, `${waiter.flow} again`));
        }
        expect(flows.map((flow) => waiting.sizeOf(flow))).toEqual(flows.map(() => 1));
        expect((await serveAll(waiting)).sort()).toEqual(flows.map((flow) => `${flow} again`).sort());
      }
      expect(flows.map((flow) => waiting.sizeOf(flow))).toEqual(flows.map(() => 0));
    }
  });

  it("serves the waiters of one flow in the order in which they came", async () => {
    const { waiting } = room();
    for (const name of ["1", "2", "3", "4"]) waiting.enter(new TestWaiter("a", name));
    expect(await serveAll(waiting)).toEqual(["1", "2", "3", "4"]);
  });

  it("serves flows in rotation, so that a long queue of one flow does not delay another", async () => {
    const { waiting } = room();
    for (let i = 1; i <= 5; i++) waiting.enter(new TestWaiter("greedy", `g${i}`));
    waiting.enter(new TestWaiter("b", "b1"));
    waiting.enter(new TestWaiter("c", "c1"));
    waiting.enter(new TestWaiter("b", "b2"));
    expect(await serveAll(waiting)).toEqual(["g1", "b1", "c1", "g2", "b2", "g3", "g4", "g5"]);
  });

  it("refuses a waiter beyond the flow's bound and one beyond the pool's bound, and takes one again after room was made", async () => {
    const { waiting } = room({ queueMax: 2, queueTotalMax: 3 });
    const first = new TestWaiter("a", "1");
    expect(waiting.enter(first)).toBe("entered");
    expect(waiting.enter(new TestWaiter("a", "2"))).toBe("entered");
    expect(waiting.enter(new TestWaiter("a", "3"))).toBe("flow_full");
    expect(waiting.enter(new TestWaiter("b", "4"))).toBe("entered");
    expect(waiting.enter(new TestWaiter("c", "5"))).toBe("pool_full");
    waiting.served(first);
    expect(waiting.enter(new TestWaiter("a", "6"))).toBe("entered");
    expect(await serveAll(waiting)).toEqual(["4", "2", "6"]);
  });

  it("refuses an expired waiter once, at its deadline, at the head and behind it, and never offers it again", async () => {
    const { clock, waiting } = room();
    const head = new TestWaiter("a", "head", 100);
    const behind = new TestWaiter("a", "behind", 50);
    const last = new TestWaiter("a", "last");
    for (const waiter of [head, behind, last]) waiting.enter(waiter);
    await ticks();
    clock.advance(49);
    expect(behind.refused).toEqual([]);
    clock.advance(1);
    expect(behind.refused).toEqual(["expired"]);
    expect(head.refused).toEqual([]);
    clock.advance(50);
    expect(head.refused).toEqual(["expired"]);
    expect(await serveAll(waiting)).toEqual(["last"]);
    clock.advance(10_000);
    expect([head.refused, behind.refused, last.refused]).toEqual([["expired"], ["expired"], []]);
  });

  it("does not refuse a waiter that was served before its deadline", async () => {
    const { clock, waiting } = room();
    const waiter = new TestWaiter("a", "1", 10);
    waiting.enter(waiter);
    waiting.served(waiter);
    clock.advance(1000);
    waiting.leave(waiter, "cancelled");
    expect(waiter.refused).toEqual([]);
    expect(clock.armed).toBe(0);
  });

  it("forgets a flow that has no waiter", async () => {
    const { waiting } = room();
    const waiter = new TestWaiter("a", "1");
    waiting.enter(waiter);
    expect(waiting.sizeOf("a")).toBe(1);
    waiting.leave(waiter, "cancelled");
    expect(waiting.sizeOf("a")).toBe(0);
    expect(waiting.size).toBe(0);
    expect(waiter.refused).toEqual(["cancelled"]);
  });

  it("serves a waiter that comes while the flow's queue is being emptied", async () => {
    const { waiting } = room();
    const first = new TestWaiter("a", "1");
    waiting.enter(first);
    waiting.served(first);
    waiting.enter(new TestWaiter("a", "2"));
    expect(await serveAll(waiting)).toEqual(["2"]);
  });
});
