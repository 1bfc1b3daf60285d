/**
 * Where the code of a store's thread is: it is a file of its own, since a thread starts with a file. Called when a store is
 * opened without `threadPath`.
 *
 * Three layouts have one: the bundle of the command line (store-thread.cjs beside it), this package's build (thread.js
 * beside this module), and its sources, of which the test runner makes dist/store-thread.cjs whenever it starts.
 */

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { StoreFailure } from "../store.js";

const fromSources = import.meta.url.endsWith(".ts");
const places = fromSources ? ["../../dist/store-thread.cjs"] : ["./store-thread.cjs", "./thread.js"];

export function threadFile(): string {
  const candidates = places.map((place) => fileURLToPath(new URL(place, import.meta.url)));
  const found = candidates.find((file) => existsSync(file));
  if (found === undefined)
    throw new StoreFailure(
      `the code of the store's thread is missing (${candidates.join(", ")}): run npm run build`,
    );
  return found;
}
