/**
 * Time for scripts: `Date` and `performance` read the activation's virtual clock, which stands still while a script runs.
 * Local time is UTC on every machine. The engine's own `Date` reads the system's clock and is out of the guest's reach.
 */

import { trimStack } from "./boundary.js";
import { defineClasses, defineMethods, named } from "./define.js";
import {
  DateParse,
  DatePrototype,
  DatePrototypeToString,
  DateUTC,
  NativeDate,
  ObjectDefineProperty,
  ReflectConstruct,
} from "./primordials.js";
import { clock, startClock } from "./state.js";

/** Has the engine's prototype, so that every Date is one of its own. */
function GuestDate(this: unknown, ...args: unknown[]): unknown {
  const target = new.target;
  if (target === undefined) return DatePrototypeToString(new NativeDate(clock));
  if (args.length === 0) {
    if (target === GuestDate) return new NativeDate(clock);
    args = [clock];
  }
  try {
    return ReflectConstruct(NativeDate, args, target);
  } catch (error) {
    throw trimStack(error);
  }
}

const token = {};

class Performance {
  constructor(given?: unknown) {
    if (given !== token) throw new TypeError("Illegal constructor");
  }

  get timeOrigin(): number {
    return startClock;
  }
}

export function installClock(): void {
  named(GuestDate, "Date");
  ObjectDefineProperty(GuestDate, "length", { value: 7, configurable: true });
  ObjectDefineProperty(GuestDate, "prototype", { value: DatePrototype, writable: false });
  ObjectDefineProperty(DatePrototype, "constructor", {
    value: GuestDate,
    writable: true,
    configurable: true,
  });
  defineMethods(GuestDate, { now: () => clock, parse: DateParse, UTC: DateUTC });
  ObjectDefineProperty(globalThis, "Date", { value: GuestDate, writable: true, configurable: true });

  defineMethods(Performance.prototype, {
    now: () => clock - startClock,
    toJSON: () => ({ timeOrigin: startClock }),
  });
  defineClasses({ Performance });
  const performance = new Performance(token);
  ObjectDefineProperty(globalThis, "performance", {
    value: performance,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}
