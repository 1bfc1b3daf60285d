/**
 * An activation without code generation: `eval` and the four constructors that compile text become functions that throw.
 * The constructors are replaced where scripts can reach them, which is on the prototypes of functions, and keep their
 * prototypes, so that `f instanceof Function` holds.
 */

import { trimStack } from "./boundary.js";
import {
  defineData,
  NativeEvalError,
  ObjectDefineProperty,
  ObjectGetPrototypeOf,
  ObjectSetPrototypeOf,
} from "./primordials.js";

const prototypes = {
  Function: Function.prototype as object,
  AsyncFunction: ObjectGetPrototypeOf(async () => {}) as object, // functions have prototypes
  GeneratorFunction: ObjectGetPrototypeOf(function* () {}) as object,
  AsyncGeneratorFunction: ObjectGetPrototypeOf(async function* () {}) as object,
};

function refusal(name: string): never {
  throw trimStack(new NativeEvalError(`${name}: this script may not compile code from text`));
}

/** A constructor with the given prototype that refuses, put where scripts find the real one. */
function refuser(name: string, prototype: object): object {
  function Refused(): never {
    return refusal(name);
  }
  defineData(Refused, "name", name, false);
  const fixed = { __proto__: null, value: prototype, writable: false };
  ObjectDefineProperty(Refused, "prototype", fixed as PropertyDescriptor); // its prototype is all that the type does not know
  const onPrototype = { __proto__: null, value: Refused, writable: false, configurable: true };
  ObjectDefineProperty(prototype, "constructor", onPrototype as PropertyDescriptor); // likewise
  return Refused;
}

/** Called before any guest code. */
export function forbidCodeGeneration(): void {
  const refused = refuser("Function", prototypes.Function);
  defineData(globalThis, "Function", refused, false);
  ObjectSetPrototypeOf(refuser("AsyncFunction", prototypes.AsyncFunction), refused);
  ObjectSetPrototypeOf(refuser("GeneratorFunction", prototypes.GeneratorFunction), refused);
  ObjectSetPrototypeOf(refuser("AsyncGeneratorFunction", prototypes.AsyncGeneratorFunction), refused);
  const evaluate = (): never => refusal("eval");
  defineData(evaluate, "name", "eval", false);
  defineData(globalThis, "eval", evaluate, false);
}
