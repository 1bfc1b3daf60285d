/**
 * What every store must do: the rules in the head of store.ts, each with its violation refused and nothing changed, and what
 * the methods promise. `storeConformance` is called by the test of each store.
 */

import { afterEach, beforeEach, describe } from "vitest";
import type { Store } from "../src/store.js";
import { callsConform } from "./conformance/calls.js";
import { flowsConform } from "./conformance/flows.js";
import { inputsConform } from "./conformance/inputs.js";
import { runsConform } from "./conformance/runs.js";
import type { Stage } from "./conformance/stage.js";
import { unitsConform } from "./conformance/units.js";

/** `open` makes a new, empty store for each test. */
export function storeConformance(name: string, open: () => Promise<Store>): void {
  describe(name, () => {
    let store: Store | undefined;
    const stage: Stage = {
      get store(): Store {
        if (store === undefined) throw new Error("no test has opened a store");
        return store;
      },
    };
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store?.close());

    runsConform(stage);
    callsConform(stage);
    inputsConform(stage);
    flowsConform(stage);
    unitsConform(stage);
  });
}
