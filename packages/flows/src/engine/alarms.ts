/**
 * Alarms of all runs on one timer: a binary heap by time. Used by the runner.
 *
 * Times are epoch milliseconds of the runner's clock, which may jump: the timer is never set for longer than `lookMs`, and
 * the clock decides what is due. Nobody waits longer for a clock that is set back: alarms go with it, and whoever wants a time
 * of the day looks at the clock and sets the alarm anew. Setting and clearing an alarm of a heap of n costs log n; alarms that are due at the
 * same time ring in the order in which they were set. The timer keeps the process alive as long as an alarm is set.
 */

/** A clock that is set forward or back is noticed within this time. */
const lookMs = 60_000;
/** A timer that rings so much before its time by the clock tells that the clock was set back; less is their inaccuracy. */
const setBackMs = 500;

const unset = -1;
/** Taken out of the heap because its time has come; it rings in this very turn unless it is cleared or set anew. */
const due = -2;

export class Alarm {
  /** Called once for each time it was set, never within `set`. */
  readonly ring: () => void;
  at = 0;
  /** Of setting: breaks ties. */
  sequence = 0;
  /** Place in the heap, or one of the two below. */
  place = unset;

  constructor(ring: () => void) {
    this.ring = ring;
  }
}

export class Alarms {
  readonly #now: () => number;
  readonly #heap: Alarm[] = [];
  #sequence = 0;
  #timer: NodeJS.Timeout | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  /** What the clock said last. */
  #last = Number.NEGATIVE_INFINITY;

  constructor(now: () => number) {
    this.#now = now;
  }

  get size(): number {
    return this.#heap.length;
  }

  /** In place of the time that it was set to before. */
  set(alarm: Alarm, at: number): void {
    this.#look();
    if (alarm.place >= 0) {
      if (alarm.at === at) return;
      this.#remove(alarm);
    }
    alarm.at = at;
    alarm.sequence = this.#sequence++;
    alarm.place = this.#heap.length;
    this.#heap.push(alarm);
    this.#up(alarm);
    if (this.#heap[0] === alarm) this.#schedule();
  }

  clear(alarm: Alarm): void {
    if (alarm.place < 0) {
      alarm.place = unset;
      return;
    }
    this.#remove(alarm);
    // A timer that rings for nothing costs less than one for each alarm that is moved; but none may be left at the end.
    if (this.#heap.length === 0) this.#stopTimer();
  }

  clearAll(): void {
    for (const alarm of this.#heap) alarm.place = unset;
    this.#heap.length = 0;
    this.#stopTimer();
  }

  /** What the clock says; where that is less than before, the alarms that are set go back with it. */
  #look(): number {
    const now = this.#now();
    this.#goBack(this.#last - now);
    this.#last = now;
    return now;
  }

  /** By the same for all: the order of the heap stays. */
  #goBack(ms: number): void {
    if (ms <= 0) return;
    for (const alarm of this.#heap) alarm.at -= ms;
    this.#timerAt -= ms;
  }

  #schedule(): void {
    const first = this.#heap[0];
    if (first === undefined) return;
    const now = this.#look();
    const wait = Math.min(lookMs, Math.max(0, Math.ceil(first.at - now)));
    if (this.#timer !== null) {
      if (this.#timerAt <= now + wait) return;
      this.#stopTimer();
    }
    this.#timerAt = now + wait;
    this.#timer = setTimeout(() => this.#rang(), wait);
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  #rang(): void {
    // By now it was to be that late.
    if (this.#timerAt - this.#now() >= setBackMs) this.#last = this.#timerAt;
    const now = this.#look();
    this.#timer = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
    // What rings may set alarms anew: those wait for the next round.
    const round: Alarm[] = [];
    for (let first = this.#heap[0]; first !== undefined && first.at <= now; first = this.#heap[0]) {
      this.#remove(first);
      first.place = due;
      round.push(first);
    }
    try {
      for (const alarm of round) {
        if (alarm.place !== due) continue;
        alarm.place = unset;
        alarm.ring();
      }
    } finally {
      this.#schedule();
    }
  }

  #remove(alarm: Alarm): void {
    const heap = this.#heap;
    const last = heap.pop();
    const { place } = alarm;
    alarm.place = unset;
    if (last === undefined || last === alarm) return;
    heap[place] = last;
    last.place = place;
    this.#up(last);
    this.#down(last);
  }

  #up(alarm: Alarm): void {
    const heap = this.#heap;
    for (;;) {
      const above = (alarm.place - 1) >> 1;
      const parent = alarm.place === 0 ? undefined : heap[above];
      if (parent === undefined || !before(alarm, parent)) return;
      this.#swap(alarm, parent);
    }
  }

  #down(alarm: Alarm): void {
    const heap = this.#heap;
    for (;;) {
      const left = heap[2 * alarm.place + 1];
      const right = heap[2 * alarm.place + 2];
      if (left === undefined) return;
      const least = right !== undefined && before(right, left) ? right : left;
      if (!before(least, alarm)) return;
      this.#swap(alarm, least);
    }
  }

  #swap(one: Alarm, other: Alarm): void {
    const { place } = one;
    one.place = other.place;
    other.place = place;
    this.#heap[one.place] = one;
    this.#heap[other.place] = other;
  }
}

function before(one: Alarm, other: Alarm): boolean {
  return one.at < other.at || (one.at === other.at && one.sequence < other.sequence);
}
