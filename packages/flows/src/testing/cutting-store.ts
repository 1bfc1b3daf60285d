/**
 * A store that fails at a unit of the test's choice, as if the process had been killed there: the units before are kept, that
 * one is kept or lost, and none comes after. What is kept lies in the store behind it, for the next process.
 */

import { type Store, StoreFailure, type Unit, type UnitResult } from "@flowcell/journal";

export interface Cut {
  /** The unit, counted from 0; it and all after it fail. */
  readonly at: number;
  /** Whether the unit itself is kept: the process dies before it hears of it. */
  readonly kept: boolean;
}

export interface CutStore {
  readonly store: Store;
  /** Units that were asked for. */
  readonly units: () => number;
}

export function cuttingStore(behind: Store, cut: Cut | null): CutStore {
  let units = 0;
  const commit = async (unit: Unit): Promise<UnitResult> => {
    const index = units++;
    if (cut === null || index < cut.at) return await behind.commit(unit);
    if (index === cut.at && cut.kept) await behind.commit(unit);
    throw new StoreFailure("the process was cut off here");
  };
  const store = new Proxy(behind, {
    get: (target, name) => {
      if (name === "commit") return commit;
      const member: unknown = Reflect.get(target, name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
  return { store, units: () => units };
}
