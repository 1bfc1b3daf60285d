// The shared timer on a fake clock.
import { describe, expect, it } from "vitest";
import { Deadline, Deadlines } from "./deadlines.js";
import { FakeClock } from "./testing/fake-clock.js";

function harness() {
  const clock = new FakeClock();
  const deadlines = new Deadlines(clock);
  const fired: [string, number][] = [];
  const named = (name: string, then: () => void = () => {}) =>
    new Deadline((now) => {
      fired.push([name, now]);
      then();
    });
  return { clock, deadlines, fired, named };
}

describe("Deadlines", () => {
  it("fires each deadline once, at its own time", () => {
    const { clock, deadlines, fired, named } = harness();
    deadlines.set(named("late"), 30);
    deadlines.set(named("early"), 10);
    deadlines.set(named("middle"), 20);
    clock.advance(100);
    expect(fired).toEqual([
      ["early", 10],
      ["middle", 20],
      ["late", 30],
    ]);
    expect(clock.armed).toBe(0);
  });

  it("uses one timer for any number of deadlines", () => {
    const { clock, deadlines, named } = harness();
    for (let i = 1; i <= 50; i++) deadlines.set(named(String(i)), 1000 - i);
    expect(clock.armed).toBe(1);
  });

  it("moves a deadline later, earlier and away", () => {
    const { clock, deadlines, fired, named } = harness();
    const later = named("later");
    const earlier = named("earlier");
    const never = named("never");
    for (const entry of [later, earlier, never]) deadlines.set(entry, 50);
    deadlines.set(later, 80);
    deadlines.set(earlier, 20);
    deadlines.set(never, Number.POSITIVE_INFINITY);
    clock.advance(200);
    expect(fired).toEqual([
      ["earlier", 20],
      ["later", 80],
    ]);
  });

  it("lets a callback set its own deadline again and drop another that is due in the same pass", () => {
    const { clock, deadlines, fired, named } = harness();
    const victim = named("victim");
    let rounds = 0;
    const again: Deadline = named("again", () => {
      deadlines.drop(victim);
      rounds += 1;
      if (rounds < 3) deadlines.set(again, clock.monotonicMs() + 5);
    });
    deadlines.set(again, 10);
    deadlines.set(victim, 10);
    clock.advance(100);
    expect(fired).toEqual([
      ["again", 10],
      ["again", 15],
      ["again", 20],
    ]);
  });

  it("lets everything be read first when the event loop was held up", () => {
    const { clock, deadlines, fired, named } = harness();
    const late = named("late");
    const answered = named("answered");
    deadlines.set(late, 10);
    deadlines.set(answered, 10);
    clock.heldUpUntil(500, () => deadlines.drop(answered));
    expect(fired).toEqual([["late", 500]]);
  });

  it("leaves no timer and fires nothing after it is closed", () => {
    const { clock, deadlines, fired, named } = harness();
    deadlines.set(named("a"), 10);
    deadlines.close();
    deadlines.set(named("b"), 20);
    expect(clock.armed).toBe(0);
    clock.advance(100);
    expect(fired).toEqual([]);
  });
});
