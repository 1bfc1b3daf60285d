/**
 * Timers in the guest's virtual time: a heap ordered by due time, then by id. Nothing here waits; the parent is told when
 * the next timer is due (`Blocked`), moves the clock and says `Deliver{timer}`, upon which exactly one due timer fires. C
 * drains all jobs before it asks again, so that what a timer's callback started has run before the next one.
 *
 * A callback's exception is not lost: it ends the script, as it would a process (`onThrow` of the activation).
 */

import { defineGlobals } from "./define.js";
import { bindCall } from "./guest-code.js";
import { NativeRangeError, NativeTypeError, PromisePrototypeThen, record } from "./primordials.js";
import { clock } from "./state.js";

/** More live timers than this are a leak. */
const timersMost = 1_000;
/** The longest delay that the web's timers take; browsers wrap beyond it, which is never meant. */
const delayMost = 0x7fff_ffff;

interface Timer {
  readonly id: number;
  due: number;
  readonly callback: unknown;
  readonly args: unknown[];
  /** Undefined: fires once. */
  readonly every: number | undefined;
  /** Place in the heap, -1 when it is not in it. */
  place: number;
}

const heap = record<Timer>();
let count = 0;
let nextId = 1;
const byId = record<Timer>();

let entrance: Promise<unknown>;

/** Where callbacks run; see `guest-code.ts`. */
export function setTimerEntrance(promise: Promise<unknown>): void {
  entrance = promise;
}

export function nextTimerAt(): number | undefined {
  return count === 0 ? undefined : at(0).due;
}

/** Fires the earliest timer that is due, if there is one. */
export function fireDueTimer(): void {
  if (count === 0) return;
  const timer = at(0);
  if (timer.due > clock) return;
  if (timer.every === undefined) {
    remove(timer);
  } else {
    timer.due = clock + timer.every;
    sink(0);
  }
  PromisePrototypeThen(entrance, bindCall(timer.callback, timer.args));
}

function at(place: number): Timer {
  return heap[place] as Timer; // every caller stays below `count`
}

function before(one: Timer, other: Timer): boolean {
  return one.due < other.due || (one.due === other.due && one.id < other.id);
}

function put(place: number, timer: Timer): void {
  heap[place] = timer;
  timer.place = place;
}

function rise(place: number): void {
  const timer = at(place);
  let to = place;
  while (to > 0) {
    const parent = (to - 1) >> 1;
    if (!before(timer, at(parent))) break;
    put(to, at(parent));
    to = parent;
  }
  put(to, timer);
}

function sink(place: number): void {
  const timer = at(place);
  let to = place;
  for (;;) {
    let child = 2 * to + 1;
    if (child >= count) break;
    if (child + 1 < count && before(at(child + 1), at(child))) child++;
    if (!before(at(child), timer)) break;
    put(to, at(child));
    to = child;
  }
  put(to, timer);
}

function remove(timer: Timer): void {
  const { place } = timer;
  count--;
  if (place !== count) {
    const last = at(count);
    put(place, last);
    rise(place);
    sink(last.place);
  }
  delete heap[count];
  delete byId[timer.id];
  timer.place = -1;
}

function add(what: string, callback: unknown, delay: unknown, args: unknown[], repeats: boolean): number {
  if (typeof callback !== "function") {
    throw new NativeTypeError(`${what}: the callback must be a function`);
  }
  let ms = +(delay as number); // whatever it is, as the web's timers convert it
  if (!(ms > 0)) ms = 0;
  if (ms > delayMost) throw new NativeRangeError(`${what}: the delay must not exceed ${delayMost} ms`);
  if (count >= timersMost) throw new NativeRangeError(`${what}: more than ${timersMost} timers are set`);
  // An interval of 0 would never let the clock move.
  const whole = ms < 1 && repeats ? 1 : ms - (ms % 1);
  const timer: Timer = {
    id: nextId++,
    due: clock + whole,
    callback,
    args,
    every: repeats ? whole : undefined,
    place: count,
  };
  heap[count] = timer;
  byId[timer.id] = timer;
  count++;
  rise(timer.place);
  return timer.id;
}

export function setTimeout(callback: unknown, delay: unknown, ...args: unknown[]): number {
  return add("setTimeout", callback, delay, args, false);
}

function setInterval(callback: unknown, delay: unknown, ...args: unknown[]): number {
  return add("setInterval", callback, delay, args, true);
}

export function clearTimeout(id: unknown): void {
  if (typeof id !== "number") return;
  const timer = byId[id];
  if (timer !== undefined) remove(timer);
}

export function installTimers(): void {
  defineGlobals({ setTimeout, setInterval, clearTimeout, clearInterval: (id: unknown) => clearTimeout(id) });
}
