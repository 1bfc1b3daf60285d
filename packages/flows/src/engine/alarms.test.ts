// The heap of alarms against a clock of the test's own.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Alarm, Alarms } from "./alarms.js";

let now = 0;
let rung: string[] = [];

function alarms(): Alarms {
  return new Alarms(() => now);
}

function alarm(name: string, more: () => void = () => undefined): Alarm {
  return new Alarm(() => {
    rung.push(name);
    more();
  });
}

/** Real time and the clock go on together. */
function pass(ms: number): void {
  now += ms;
  vi.advanceTimersByTime(ms);
}

beforeEach(() => {
  now = 1_000_000;
  rung = [];
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("alarms", () => {
  test("ring in the order of their times, those of one time in the order in which they were set", () => {
    const all = alarms();
    const order = [5, 1, 4, 1, 3, 9, 2, 6, 5, 3];
    for (const [index, at] of order.entries()) all.set(alarm(`${at}.${index}`), now + at);
    for (let ms = 0; ms < 10; ms++) pass(1);
    expect(rung).toEqual(["1.1", "1.3", "2.6", "3.4", "3.9", "4.2", "5.0", "5.8", "6.7", "9.5"]);
    expect(all.size).toBe(0);
  });

  test("agree with a list that is searched, whatever is set, moved and cleared", () => {
    const all = alarms();
    const set = new Map<Alarm, number>();
    const made = Array.from({ length: 60 }, (_, index) => {
      const one: Alarm = alarm(String(index), () => set.delete(one));
      return one;
    });
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed % below;
    };
    for (let step = 0; step < 3000; step++) {
      const one = made[random(made.length)];
      if (one === undefined) continue;
      if (random(4) === 0) {
        all.clear(one);
        set.delete(one);
      } else {
        const at = now + 1 + random(50);
        all.set(one, at);
        set.set(one, at);
      }
      if (random(5) === 0) {
        pass(random(10));
        for (const at of set.values()) expect(at).toBeGreaterThan(now);
      }
      expect(all.size).toBe(set.size);
    }
  });

  test("ring once; an alarm that sets itself again rings again", () => {
    const all = alarms();
    let left = 2;
    const again: Alarm = alarm("again", () => {
      if (left-- > 0) all.set(again, now + 10);
    });
    all.set(again, now + 10);
    for (let ms = 0; ms < 100; ms++) pass(1);
    expect(rung).toEqual(["again", "again", "again"]);
  });

  test("one that another clears in the same turn does not ring", () => {
    const all = alarms();
    const second = alarm("second");
    all.set(
      alarm("first", () => all.clear(second)),
      now + 5,
    );
    all.set(second, now + 5);
    pass(10);
    expect(rung).toEqual(["first"]);
  });

  test("the others ring although one throws", () => {
    const all = alarms();
    all.set(
      alarm("bad", () => {
        throw new Error("bad");
      }),
      now + 5,
    );
    all.set(alarm("good"), now + 6);
    expect(() => pass(5)).toThrow("bad");
    pass(5);
    expect(rung).toEqual(["bad", "good"]);
  });

  test("a clock that is set forward is noticed within a minute, one that is set back delays nobody", () => {
    const all = alarms();
    all.set(alarm("far"), now + 86_400_000);
    now += 86_400_000;
    vi.advanceTimersByTime(60_000);
    expect(rung).toEqual(["far"]);
    all.set(alarm("later"), now + 90_000);
    all.set(alarm("soon"), now + 1000);
    now -= 3_600_000;
    pass(1000);
    expect(rung).toEqual(["far", "soon"]);
    pass(88_999);
    expect(rung).toEqual(["far", "soon"]);
    pass(1);
    expect(rung).toEqual(["far", "soon", "later"]);
    // Another alarm takes the timer over before it could tell.
    all.set(alarm("before"), now + 1000);
    now -= 3_600_000;
    all.set(alarm("after"), now + 10);
    pass(10);
    expect(rung.slice(3)).toEqual(["after"]);
    pass(990);
    expect(rung.slice(3)).toEqual(["after", "before"]);
  });

  test("leave no timer behind when none is set", () => {
    const all = alarms();
    const one = alarm("one");
    all.set(one, now + 100);
    expect(vi.getTimerCount()).toBe(1);
    all.clear(one);
    expect(vi.getTimerCount()).toBe(0);
    all.set(one, now + 100);
    all.clearAll();
    expect(vi.getTimerCount()).toBe(0);
    pass(1000);
    expect(rung).toEqual([]);
  });
});
