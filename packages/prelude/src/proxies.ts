/**
 * Tells a proxy from what it stands for. The language hides the difference, but some of the runtime must not run traps
 * (inspection) or must read every property exactly once if there may be any (the codec's quick path). `Proxy` is therefore
 * the guest's through a constructor that keeps a note; nothing else in this realm makes one.
 */

import { trimming, trimStack } from "./boundary.js";
import { defineMethods } from "./define.js";
import {
  FunctionPrototypeBind,
  NativeProxy,
  NativeTypeError,
  NativeWeakMap,
  ObjectDefineProperty,
  ReflectApply,
  WeakMapPrototypeGet,
  WeakMapPrototypeHas,
  WeakMapPrototypeSet,
} from "./primordials.js";

/** Proxy → target; a target that is itself a proxy has its own entry. */
const targets = new NativeWeakMap<object, object>();

/** Whether this activation has made a proxy. */
export let anyProxy = false;

const nativeRevocable = NativeProxy.revocable;

function note(proxy: object, target: object): void {
  anyProxy = true;
  WeakMapPrototypeSet(targets, proxy, target);
}

function GuestProxy(target: object, handler: ProxyHandler<object>): object {
  if (new.target === undefined) throw trimStack(new NativeTypeError("Constructor Proxy requires 'new'"));
  const proxy = trimming(() => new NativeProxy(target, handler));
  note(proxy, target);
  return proxy;
}

const revocable = (target: object, handler: ProxyHandler<object>): { proxy: object; revoke: () => void } => {
  const made = trimming(() => ReflectApply(nativeRevocable, NativeProxy, [target, handler])) as {
    proxy: object;
    revoke: () => void;
  }; // as the intrinsic is typed
  note(made.proxy, target);
  return made;
};

/** A proxy of the runtime's own, which inspection shows as `shownAs`. */
export function makeProxy(target: object, handler: ProxyHandler<object>, shownAs: object): object {
  const proxy = new NativeProxy(target, handler);
  WeakMapPrototypeSet(targets, proxy, shownAs);
  return proxy;
}

/** The object itself, or what its proxies stand for; undefined if they are nested too deep to say. */
export function proxyTarget(value: object): object | undefined {
  let target = value;
  for (let steps = 0; steps < 16; steps++) {
    const next = WeakMapPrototypeGet(targets, target);
    if (next === undefined) return target;
    target = next;
  }
  return undefined;
}

export function isProxy(value: object): boolean {
  return WeakMapPrototypeHas(targets, value);
}

export function installProxy(): void {
  // A bound function has no `prototype`, as the engine's own Proxy has none.
  const bound = FunctionPrototypeBind(GuestProxy, undefined);
  defineMethods(bound, { revocable });
  ObjectDefineProperty(bound, "length", { value: 2, configurable: true });
  ObjectDefineProperty(bound, "name", { value: "Proxy", configurable: true });
  ObjectDefineProperty(globalThis, "Proxy", { value: bound, writable: true, configurable: true });
}
