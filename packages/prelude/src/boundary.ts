/**
 * The edge between scripts and the runtime's own JavaScript. What a public function throws shows no frame of the prelude in
 * its `stack`: the names there are shortened and the positions change with every build, so a script that passes a stack on
 * would pass on what nobody can read and no replay repeats.
 *
 * `surface.ts` puts the guards in place, once, when everything else is installed; inside the runtime the unguarded classes
 * are used, which share their prototypes with the public ones. What it keeps true: trimming runs no guest code, and an error
 * that a script froze or gave a `stack` of its own stays as it is.
 */

import { named } from "./define.js";
import { preludeFile, withoutPreludeFrames } from "./error-text.js";
import {
  defineData,
  descriptorOf,
  ErrorIsError,
  NativeMap,
  NativeTypeError,
  ObjectDefineProperty,
  ObjectGetPrototypeOf,
  ObjectSetPrototypeOf,
  ReflectApply,
  ReflectConstruct,
  ReflectDefineProperty,
  ReflectOwnKeys,
  StringPrototypeIncludes,
} from "./primordials.js";

/** Cuts the prelude's frames out of an error's `stack`; every other value stays as it is. Returns what it was given. */
export function trimStack<T>(thrown: T): T {
  if (!ErrorIsError(thrown)) return thrown;
  const error = thrown as object; // every error is one
  const descriptor = descriptorOf(error, "stack");
  const stack: unknown = descriptor?.value;
  if (descriptor === undefined || typeof stack !== "string" || !StringPrototypeIncludes(stack, preludeFile))
    return thrown;
  descriptor.value = withoutPreludeFrames(stack);
  ReflectDefineProperty(error, "stack", descriptor);
  return thrown;
}

/** What `step` returns; what it throws is trimmed. For the bodies of async functions, whose errors no guard sees. */
export function trimming<T>(step: () => T): T {
  try {
    return step();
  } catch (error) {
    throw trimStack(error);
  }
}

type Callable = (...args: never[]) => unknown;

/** Another wording for an error of a library's, or undefined to keep its own. `what` names the function. */
export type Reword = (message: string, args: readonly unknown[], what: string) => string | undefined;

export interface ClassRule {
  /** Arguments that the constructor cannot do without, in words. */
  readonly required?: string;
  readonly reword?: Reword;
}

function settle(error: unknown, args: readonly unknown[], what: string, reword: Reword | undefined): unknown {
  if (reword !== undefined && ErrorIsError(error)) {
    const own = error as object; // every error is one
    const message: unknown = descriptorOf(own, "message")?.value;
    const text = typeof message === "string" ? reword(message, args, what) : undefined;
    if (text !== undefined) defineData(own, "message", text, false);
  }
  return trimStack(error);
}

function dressed<F extends object>(outer: F, inner: object, name: unknown): F {
  ObjectDefineProperty(outer, "length", { value: descriptorOf(inner, "length")?.value, configurable: true });
  return named(outer, name as string); // as the inner function has it
}

/** A method, since those are no constructors: neither are the web's functions. */
function guarded(inner: Callable, what: string, reword?: Reword): object {
  const { outer } = {
    outer(this: unknown, ...args: unknown[]): unknown {
      try {
        return ReflectApply(inner, this, args as never[]); // whatever the script gave
      } catch (error) {
        throw settle(error, args, what, reword);
      }
    },
  };
  return dressed(outer, inner, descriptorOf(inner, "name")?.value);
}

/** Unguarded → guarded, so that one function stays one (`Headers.prototype.entries` is its iterator method, too). */
const outers = new NativeMap<object, object>();

function guardedOnce(inner: unknown, what: string, reword?: Reword): unknown {
  if (typeof inner !== "function") return inner;
  const known = outers.get(inner) ?? guarded(inner as Callable, what, reword); // it is a function
  outers.set(inner, known);
  return known;
}

/** Guards one method or accessor where it is, with the attributes that it has. */
export function guardProperty(owner: object, key: PropertyKey, what: string, reword?: Reword): void {
  const descriptor = descriptorOf(owner, key);
  if (descriptor === undefined || descriptor.configurable !== true) return;
  if (descriptor.get !== undefined || descriptor.set !== undefined) {
    const { get, set } = descriptor;
    if (get !== undefined) descriptor.get = guardedOnce(get, what) as () => unknown; // as it was
    if (set !== undefined) descriptor.set = guardedOnce(set, what, reword) as (value: unknown) => void; // as it was
  } else {
    descriptor.value = guardedOnce(descriptor.value, what);
  }
  ObjectDefineProperty(owner, key, descriptor);
}

/** Guards every member but the constructor. */
export function guardMembers(owner: object, name: string, reword?: Reword): void {
  for (const key of ReflectOwnKeys(owner)) {
    if (key === "constructor") continue;
    guardProperty(owner, key, typeof key === "string" ? `${name}.${key}` : name, reword);
  }
}

/** Puts a guarded class in the place of a global one: the same prototype, the same statics, a constructor that is guarded. */
export function guardClass(name: string, { required, reword }: ClassRule = {}): void {
  const place = descriptorOf(globalThis, name);
  const inner = place?.value as Callable & { prototype: object }; // a class of the surface
  function Outer(this: unknown, ...args: unknown[]): unknown {
    try {
      const target = new.target;
      if (target === undefined) throw new NativeTypeError(`Constructor ${name} requires 'new'`);
      if (required !== undefined && args.length === 0)
        throw new NativeTypeError(`${name}: ${required} is missing`);
      return ReflectConstruct(inner, args, target);
    } catch (error) {
      throw settle(error, args, name, reword);
    }
  }
  guardMembers(inner.prototype, name, reword);
  for (const key of ReflectOwnKeys(inner)) {
    if (key === "prototype" || key === "length" || key === "name") continue;
    guardProperty(inner, key, typeof key === "string" ? `${name}.${key}` : name);
    ObjectDefineProperty(Outer, key, descriptorOf(inner, key) as PropertyDescriptor); // its own key
  }
  dressed(Outer, inner, name);
  const { prototype } = inner;
  ObjectDefineProperty(Outer, "prototype", { value: prototype, writable: false });
  ObjectDefineProperty(prototype, "constructor", { value: Outer, writable: true, configurable: true });
  const parent = ObjectGetPrototypeOf(inner);
  ObjectSetPrototypeOf(Outer, parent === null ? null : (outers.get(parent) ?? parent));
  outers.set(inner, Outer);
  ObjectDefineProperty(globalThis, name, { ...place, value: Outer });
}
