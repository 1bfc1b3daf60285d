/**
 * Names that scripts reach for although nothing stands behind them here: using one throws and says what to use instead. A
 * library that asks `typeof` is to find out that it is not in Node or a browser with Intl: `process` and `require` are
 * functions, and what libraries read of `process` before they decide is undefined rather than an error.
 */

import { trimStack } from "./boundary.js";
import { defineGlobals } from "./define.js";
import { NativeError, ReflectOwnKeys, record } from "./primordials.js";
import { makeProxy } from "./proxies.js";

type Key = string | symbol;

function unavailable(text: string): never {
  throw trimStack(new NativeError(text));
}

/** A function that throws when called, and whose unknown properties throw when read. */
function thrower(whenCalled: string, whenRead: (key: string) => unknown): object {
  const target = (): never => unavailable(whenCalled);
  const handler = {
    __proto__: null,
    apply: () => unavailable(whenCalled),
    get: (_target: object, key: Key) =>
      typeof key === "symbol" || askedOfAnything[key] === true ? undefined : whenRead(key),
    has: () => false,
    ownKeys: () => ReflectOwnKeys(target),
    set: () => false,
    defineProperty: () => false,
  };
  return makeProxy(target, handler as ProxyHandler<object>, target); // its prototype is all that the type does not know
}

/** What the language and libraries ask of any value. */
const askedOfAnything = lookup([
  "then",
  "toJSON",
  "constructor",
  "prototype",
  "toString",
  "valueOf",
  "inspect",
  "default",
  "__esModule",
  "$$typeof",
  "nodeType",
]);

/** What libraries ask of `process` to find out where they are, and of its `env` to find out how they should behave. */
const probed = [
  "versions",
  "version",
  "browser",
  "type",
  "release",
  "platform",
  "pid",
  "title",
  "nextTick",
  "emitWarning",
];
const probedEnvironment = [
  "NODE_ENV",
  "DEBUG",
  "NODE_DEBUG",
  "FORCE_COLOR",
  "NO_COLOR",
  "TERM",
  "CI",
  "BABEL_ENV",
  "READABLE_STREAM",
];

function lookup(names: readonly string[]): { [name: string]: boolean } {
  const table = record<boolean>();
  for (const name of names) table[name] = true;
  return table;
}

function makeProcess(): object {
  const quiet = lookup(probed);
  const quietEnvironment = lookup(probedEnvironment);
  const environment = thrower("process.env is no function", (key) => {
    if (quietEnvironment[key] === true) return undefined;
    return unavailable(`process.env.${key}: scripts have no environment; take it from the input`);
  });
  return thrower("process is not available here", (key) => {
    if (key === "env") return environment;
    if (quiet[key] === true) return undefined;
    return unavailable(`process.${key} is not available here: scripts run in no process of their own`);
  });
}

const noIntl = "Intl is not available here";

export function installThrowers(): void {
  const require = (name: unknown): never =>
    unavailable(
      `require(${typeof name === "string" ? `"${name}"` : ""}) is not available here: use import at the top of the script`,
    );
  const intl = thrower(noIntl, (key) =>
    unavailable(
      `Intl.${key} is not available here: format with toFixed, padStart or toISOString, or with toLocaleString in en-US`,
    ),
  );
  const process = makeProcess();
  defineGlobals({ require });
  for (const [name, value] of [
    ["process", process],
    ["Intl", intl],
  ] as const) {
    Object.defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
  }
}
