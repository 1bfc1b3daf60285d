/** What the parts of the suite share: the store under test, and the check that a refused unit changed nothing. */

import { expect } from "vitest";
import type { Store, Unit, UnitResult } from "../../src/store.js";
import { dump } from "../dump.js";

/** Holds the store of the test that runs. */
export interface Stage {
  readonly store: Store;
}

type Refusal = Extract<UnitResult, { readonly ok: false }>;

/** The unit is refused as expected, and the store says what it said before. */
export async function refused(store: Store, unit: Unit, expected: Partial<Refusal>): Promise<void> {
  const before = await dump(store);
  expect(await store.commit(unit)).toMatchObject({ ok: false, ...expected });
  expect(await dump(store)).toEqual(before);
}

export const hash = (letter: string): string => letter.repeat(64);
