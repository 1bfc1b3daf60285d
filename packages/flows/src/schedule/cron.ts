/**
 * When a cron trigger is due: pure, over croner. The catalog asks `cronProblem` when it reads a manifest, the scheduler asks
 * for times.
 *
 * Times are those of the trigger's time zone. At a change of the clocks a trigger that names its hours (no `*` and no step in
 * hours and minutes) is due once for each time that it names: at the end of the gap for one that the clock leaves out, at the
 * first of the two for one that comes twice. Other triggers are intervals: they go on in real time.
 *
 * Kept true: times ascend; nothing here loops over more than `missedMost` times, however long nobody asked.
 */

import { Cron } from "croner";

export interface CronTrigger {
  readonly expression: string;
  readonly timeZone: string;
  readonly missed: "once" | "skip" | "each";
}

/** Runs that `missed: "each"` makes up for at most: the latest ones. */
export const missedMost = 10;
/** A time that is served at most this late was not missed: timers are late, and services restart. */
export const lateMostMs = 60_000;

/** What is wrong with an expression, worded for its author, or null. */
export function cronProblem(expression: string, timeZone: string): string | null {
  try {
    if (pattern({ expression, timeZone }).nextRun(new Date(0)) === null) {
      return "is never due: no date fits it";
    }
    return null;
  } catch (error) {
    const what = error instanceof Error ? error.message.replace(/^CronPattern: /, "") : "is no expression";
    return `${what.slice(0, 300)}; write five fields, as in "0 7 * * MON-FRI" (minute, hour, day, month, weekday)`;
  }
}

/** The first time after `after`, or null when there is none. */
export function nextTime(trigger: Omit<CronTrigger, "missed">, after: number): number | null {
  return pattern(trigger).nextRun(new Date(after))?.getTime() ?? null;
}

export interface CronPlan {
  /** Times that get a run each, ascending. */
  readonly fire: readonly number[];
  /** How many due times get none. At most one more than `missedMost` is counted. */
  readonly skipped: number;
  readonly next: number | null;
}

/** What becomes of the times from `due`, the next one that was planned, up to `now`. */
export function planCron(trigger: CronTrigger, due: number, now: number): CronPlan {
  const cron = pattern(trigger);
  const next = nextTime(trigger, now);
  // Newest first, and one more than can be wanted: whether there were others decides what is said.
  const latest = cron
    .previousRuns(missedMost + 1, new Date(now + 1))
    .map((date) => date.getTime())
    .filter((time) => time >= due && time <= now);
  const times = latest.length > 0 ? latest.reverse() : [due];
  const newest = times.at(-1) ?? due;
  const fire = now - newest <= lateMostMs && times.length === 1 ? times : missed(trigger, times, now);
  return { fire, skipped: times.length - fire.length, next };
}

function missed(trigger: CronTrigger, times: readonly number[], now: number): readonly number[] {
  switch (trigger.missed) {
    case "once":
      return times.slice(-1);
    case "each":
      return times.slice(-missedMost);
    case "skip":
      return times.slice(-1).filter((time) => now - time <= lateMostMs);
  }
}

function pattern({ expression, timeZone }: Omit<CronTrigger, "missed">): Cron {
  return new Cron(expression, {
    timezone: timeZone,
    mode: "5-or-6-parts",
    fixedTimeRule: "no-wildcard",
    paused: true,
  });
}
