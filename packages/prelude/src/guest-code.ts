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
  NativePromise,
  PromisePrototype,
  PromisePrototypeThen,
  PromiseResolve,
  ReflectDefineProperty,
  ReflectDeleteProperty,
  record,
  SymbolSpecies,
} from "./primordials.js";

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

const speciesGetter = descriptorOf(NativePromise, SymbolSpecies)?.get;

/** Whether `then` on an ordinary promise still derives an ordinary promise. */
function speciesIsPristine(): boolean {
  return (
    descriptorOf(PromisePrototype, "constructor")?.value === NativePromise &&
    descriptorOf(NativePromise, SymbolSpecies)?.get === speciesGetter
  );
}

let settleResolve: Settle;
let settleReject: Settle;
function takeCapability(resolve: Settle, reject: Settle): void {
  settleResolve = resolve;
  settleReject = reject;
}

export interface Deferred {
  readonly promise: Promise<unknown>;
  readonly resolve: Settle;
  readonly reject: Settle;
}

/** A promise of the guest's realm and its two functions. */
export function makeDeferred(): Deferred {
  const promise = new NativePromise(takeCapability);
  return { promise, resolve: settleResolve, reject: settleReject };
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
  const { promise, resolve } = makeDeferred();
  defineData(promise, "constructor", undefined);
  resolve(value);
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
