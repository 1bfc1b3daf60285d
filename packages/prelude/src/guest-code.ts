/**
 * The only ways in which the runtime runs guest functions and waits for guest values. Both hold when a script has replaced
 * every property of every intrinsic.
 *
 * `entrance` runs a function as a job of its own, so that no frame of the prelude is below it: a stack that a script reads
 * shows its own lines only. It rests on two rules of the language: a reaction's handler is called by the engine itself, and
 * its result goes to the capability that the promise's species made, here two functions of ours, so that a promise or a
 * thenable that the guest returns arrives as it is.
 */

import {
  defineData,
  descriptorOf,
  FunctionPrototypeBind,
  NativePromise,
  PromisePrototype,
  PromisePrototypeThen,
  PromiseResolve,
  ReflectApply,
  ReflectDefineProperty,
  ReflectDeleteProperty,
  record,
  SymbolSpecies,
} from "./primordials.js";
import { isProxy } from "./proxies.js";

type Settle = (value: unknown) => void;

/** A promise for `PromisePrototypeThen(entrance, guestFunction)`. Made in the image, used any number of times. */
export function makeEntrance(onReturn: Settle, onThrow: Settle): Promise<unknown> {
  const entrance = PromiseResolve();
  const species = record<unknown>();
  species[SymbolSpecies] = function Capability(executor: (resolve: Settle, reject: Settle) => void): void {
    executor(onReturn, onThrow);
  };
  defineData(entrance, "constructor", species);
  return entrance;
}

/**
 * Reflect.apply itself is the guest's, and binding a function reads its `name` and `length`: this copy is out of reach. It
 * takes exactly three arguments, so that what a job passes on besides does not reach the function.
 */
const apply = FunctionPrototypeBind(ReflectApply, undefined);

/** A function of the engine's that calls `callback` with `args` and no others. */
export function bindCall(callback: unknown, args: readonly unknown[]): (...rest: unknown[]) => unknown {
  return FunctionPrototypeBind(apply, undefined, callback, undefined, args);
}

/** Like `bindCall`, and without a frame of its own, if binding `callback` runs no guest code; the job's argument is last. */
export function bindEntry(
  callback: object,
  first: unknown,
  second: unknown,
): (...rest: unknown[]) => unknown {
  const plain =
    !isProxy(callback) &&
    typeof descriptorOf(callback, "name")?.value === "string" &&
    typeof descriptorOf(callback, "length")?.value === "number";
  return plain
    ? FunctionPrototypeBind(callback, undefined, first, second)
    : bindCall(callback, [first, second]);
}

const speciesGetter = descriptorOf(NativePromise, SymbolSpecies)?.get;

/** Whether `then` on an ordinary promise still derives an ordinary promise. */
function speciesIsPristine(): boolean {
  return (
    descriptorOf(PromisePrototype, "constructor")?.value === NativePromise &&
    descriptorOf(NativePromise, SymbolSpecies)?.get === speciesGetter
  );
}

/** The functions of the promise that `newPromise` made last. */
export let promiseResolve: Settle;
export let promiseReject: Settle;

function takeCapability(resolve: Settle, reject: Settle): void {
  promiseResolve = resolve;
  promiseReject = reject;
}

/** A promise of the guest's realm. */
export function newPromise(): Promise<unknown> {
  return new NativePromise(takeCapability);
}

/**
 * Calls one of the two once `value` is settled, as `await value` would. A promise is waited for by its internal state, so
 * a replaced `then`, `constructor` or species on the shared prototype changes nothing; a thenable of the guest's own is
 * called by the engine, under the budget like all guest code.
 */
export function whenSettled(value: unknown, onFulfilled: Settle, onRejected: Settle): void {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) {
    onFulfilled(value);
    return;
  }
  if (attach(value, onFulfilled, onRejected)) return;
  if (!speciesIsPristine() && attachWithoutSpecies(value, onFulfilled, onRejected)) return;
  const promise = newPromise();
  defineData(promise, "constructor", undefined);
  promiseResolve(value);
  PromisePrototypeThen(promise, onFulfilled, onRejected);
}

/** False if `value` is no promise, or is one whose species cannot be made. */
function attach(value: object, onFulfilled: Settle, onRejected: Settle): boolean {
  try {
    PromisePrototypeThen(value, onFulfilled, onRejected);
    return true;
  } catch {
    return false;
  }
}

/** An own `constructor` of undefined makes `then` use the default; it is taken off again. */
function attachWithoutSpecies(value: object, onFulfilled: Settle, onRejected: Settle): boolean {
  const before = descriptorOf(value, "constructor");
  const shadow = { __proto__: null, value: undefined, configurable: true, writable: true };
  if (!ReflectDefineProperty(value, "constructor", shadow as PropertyDescriptor)) return false; // a null prototype is all it adds
  const attached = attach(value, onFulfilled, onRejected);
  if (before === undefined) ReflectDeleteProperty(value, "constructor");
  else ReflectDefineProperty(value, "constructor", before);
  return attached;
}
