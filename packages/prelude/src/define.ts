/** How the surface of the guest realm is put in place, while the image is made: names, attributes, classes. */

import { ObjectDefineProperty, ObjectKeys } from "./primordials.js";

/** Gives a function the name that scripts see; the bundle's own names are shortened. */
export function named<F extends object>(value: F, name: string): F {
  ObjectDefineProperty(value, "name", { value: name, configurable: true });
  return value;
}

/** Enumerable globals, as the web's functions are (`setTimeout`, `fetch`, …). */
export function defineGlobals(values: { readonly [name: string]: object }): void {
  for (const name of ObjectKeys(values)) {
    const value = values[name] as object; // its own key
    if (typeof value === "function") named(value, name);
    ObjectDefineProperty(globalThis, name, { value, writable: true, enumerable: true, configurable: true });
  }
}

/** Global classes and namespaces: not enumerable, as the language's own. */
export function defineClasses(values: { readonly [name: string]: object }): void {
  for (const name of ObjectKeys(values)) {
    const value = values[name] as object; // its own key
    if (typeof value === "function") named(value, name);
    ObjectDefineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
    tag(value, name);
  }
}

function tag(value: object, name: string): void {
  const owner = typeof value === "function" ? (value.prototype as object | undefined) : undefined; // a class has one
  if (owner === undefined || Object.hasOwn(owner, Symbol.toStringTag)) return;
  if (owner instanceof Error || owner === Error.prototype) return;
  ObjectDefineProperty(owner, Symbol.toStringTag, { value: name, configurable: true });
}

/** Replaces or adds methods of an existing object, with the attributes that built-in methods have. */
export function defineMethods(owner: object, methods: { readonly [name: string]: object }): void {
  for (const name of ObjectKeys(methods)) {
    const value = named(methods[name] as object, name); // its own key
    ObjectDefineProperty(owner, name, { value, writable: true, enumerable: false, configurable: true });
  }
}

export function removeGlobals(names: readonly string[]): void {
  for (const name of names) Reflect.deleteProperty(globalThis, name);
}
