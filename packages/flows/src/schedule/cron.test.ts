// Cron times over changes of the clocks, and what becomes of times that passed while nobody looked.
import { describe, expect, test } from "vitest";
import { type CronTrigger, cronProblem, lateMostMs, missedMost, nextTime, planCron } from "./cron.js";

const at = (text: string): number => Date.parse(text);

function times(expression: string, timeZone: string, after: string, count: number): string[] {
  const found: string[] = [];
  let time: number | null = at(after);
  for (let index = 0; index < count && time !== null; index++) {
    time = nextTime({ expression, timeZone }, time);
    if (time !== null) found.push(new Date(time).toISOString().slice(0, 16));
  }
  return found;
}

describe("changes of the clocks", () => {
  test("Berlin in spring: a time in the gap is due once, when the gap ends", () => {
    expect(times("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00Z", 3)).toEqual([
      "2026-03-28T01:30",
      "2026-03-29T01:00",
      "2026-03-30T00:30",
    ]);
  });

  test("Berlin in autumn: a time that comes twice is due once, the first time", () => {
    expect(times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", 2)).toEqual([
      "2026-10-25T00:30",
      "2026-10-26T01:30",
    ]);
  });

  test("New York in spring and in autumn", () => {
    expect(times("30 2 * * *", "America/New_York", "2026-03-07T12:00Z", 2)).toEqual([
      "2026-03-08T07:00",
      "2026-03-09T06:30",
    ]);
    expect(times("30 1 * * *", "America/New_York", "2026-10-31T12:00Z", 2)).toEqual([
      "2026-11-01T05:30",
      "2026-11-02T06:30",
    ]);
  });

  test("a list of hours counts as named hours", () => {
    expect(times("30 2,3 * * *", "Europe/Berlin", "2026-10-24T12:00Z", 3)).toEqual([
      "2026-10-25T00:30",
      "2026-10-25T02:30",
      "2026-10-26T01:30",
    ]);
  });

  test("an interval goes on in real time", () => {
    expect(times("0 * * * *", "Europe/Berlin", "2026-10-24T23:30Z", 4)).toEqual([
      "2026-10-25T00:00",
      "2026-10-25T01:00",
      "2026-10-25T02:00",
      "2026-10-25T03:00",
    ]);
    expect(times("0 * * * *", "Europe/Berlin", "2026-03-29T00:30Z", 2)).toEqual([
      "2026-03-29T01:00",
      "2026-03-29T02:00",
    ]);
  });
});

describe("expressions", () => {
  test("five or six fields and names are right", () => {
    for (const expression of ["0 7 * * MON-FRI", "*/15 * * * *", "30 0 7 1 JAN *", "@daily"]) {
      expect(cronProblem(expression, "Europe/Berlin"), expression).toBeNull();
    }
  });

  test("what is none, and what is never due, is told with an example", () => {
    for (const expression of ["", "hourly", "* * * *", "60 * * * *", "* * * * * * *"]) {
      expect(cronProblem(expression, "UTC"), expression).toContain('"0 7 * * MON-FRI"');
    }
    expect(cronProblem("0 0 30 2 *", "UTC")).toBe("is never due: no date fits it");
  });
});

describe("times that passed", () => {
  const hourly = (missed: CronTrigger["missed"]): CronTrigger => ({
    expression: "0 * * * *",
    timeZone: "UTC",
    missed,
  });
  const due = at("2026-01-01T01:00Z");

  test("one that is served in time is served, whatever is said about missed ones", () => {
    for (const missed of ["once", "skip", "each"] as const) {
      expect(planCron(hourly(missed), due, due + lateMostMs)).toEqual({
        fire: [due],
        skipped: 0,
        next: at("2026-01-01T02:00Z"),
      });
    }
  });

  test("one that is late is missed", () => {
    const now = due + lateMostMs + 1;
    expect(planCron(hourly("once"), due, now).fire).toEqual([due]);
    expect(planCron(hourly("each"), due, now).fire).toEqual([due]);
    expect(planCron(hourly("skip"), due, now)).toMatchObject({ fire: [], skipped: 1 });
  });

  test("several: one run for the latest, none, or one each", () => {
    const now = at("2026-01-01T04:30Z");
    expect(planCron(hourly("once"), due, now)).toEqual({
      fire: [at("2026-01-01T04:00Z")],
      skipped: 3,
      next: at("2026-01-01T05:00Z"),
    });
    expect(planCron(hourly("skip"), due, now)).toMatchObject({ fire: [], skipped: 4 });
    expect(planCron(hourly("each"), due, now).fire.map((time) => new Date(time).getUTCHours())).toEqual([
      1, 2, 3, 4,
    ]);
  });

  test("skip serves the latest one if that is not late", () => {
    const now = at("2026-01-01T04:00:30Z");
    expect(planCron(hourly("skip"), due, now)).toMatchObject({
      fire: [at("2026-01-01T04:00Z")],
      skipped: 3,
    });
  });

  test("a year of downtime makes up for no more than its bound", () => {
    const plan = planCron(hourly("each"), due, at("2027-01-01T00:30Z"));
    expect(plan.fire).toHaveLength(missedMost);
    expect(plan.fire.at(-1)).toBe(at("2027-01-01T00:00Z"));
    expect(plan.next).toBe(at("2027-01-01T01:00Z"));
  });

  test("a planned time that the expression no longer names is served all the same", () => {
    expect(planCron(hourly("once"), at("2026-01-01T01:20Z"), at("2026-01-01T01:20:10Z")).fire).toEqual([
      at("2026-01-01T01:20Z"),
    ]);
  });
});
