/** The name of a value's class, from data properties alone: a guest's accessor or trap is not run for it. */

import { descriptorOf, ObjectGetPrototypeOf } from "./primordials.js";
import { isProxy } from "./proxies.js";
import { cut } from "./text.js";

/** The name of the nearest constructor on the prototype chain; "" when there is none. */
export function classTag(value: object): string {
  let holder: object | null = value;
  for (let steps = 0; holder !== null && steps < 8; steps++) {
    if (isProxy(holder)) return "";
    const made = descriptorOf(holder, "constructor")?.value as unknown; // any value at all
    if (typeof made === "function" && !isProxy(made)) {
      const name = descriptorOf(made, "name")?.value as unknown; // any value at all
      if (typeof name === "string" && name !== "") return cut(name, 100);
    }
    holder = ObjectGetPrototypeOf(holder);
  }
  return "";
}
