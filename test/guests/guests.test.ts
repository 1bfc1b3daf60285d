// Every guest case of the tables, in a real worker: it ends as it must, its logs are whole, and the next script on the
// pool (in the same process, where the process lives on) is served as if nothing had been.
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { type GuestCase, misfit, show } from "./case.js";
import { greedy } from "./greedy.js";
import { honest } from "./honest.js";
import { hostile } from "./hostile.js";
import { Laboratory, type Observed, plain, plainValue } from "./laboratory.js";

const laboratory = new Laboratory({ profile: "flow" });
/** All guests share it, and with it a worker, which they would never do outside of a test. */
const flow = "guests";

afterAll(() => laboratory.close());

async function runPlain(): Promise<Observed> {
  const after = await laboratory.guest(plain, flow);
  const { result } = after;
  expect(result.ok && isDeepStrictEqual(result.value, plainValue), show(result)).toBe(true);
  expect(result.logs.map(({ level, text }) => `${level}: ${text}`)).toEqual(["log: plain"]);
  expect(result.logsTruncated).toBe(false);
  expect(result.warnings).toEqual([]);
  expect(result.calls.map(({ state }) => state)).toEqual(["done", "done"]);
  return after;
}

async function check(guest: GuestCase): Promise<void> {
  laboratory.events.length = 0;
  const observed = await laboratory.guest(guest, flow);
  const { result } = observed;
  expect(misfit(result, guest.expect), show(result)).toBe("");
  if (guest.logs !== undefined) {
    expect(result.logs.map(({ level, text }) => `${level}: ${text}`)).toEqual(guest.logs);
  }
  if (result.started) expect(result.confinement?.layers.map(({ layer }) => layer)).toContain("seccomp");
  if (guest.settleMs !== undefined) await delay(guest.settleMs);
  const after = await runPlain();
  if (observed.worker !== null && after.worker?.pid === observed.worker.pid) {
    expect(after.worker.activations).toBe(observed.worker.activations + 1);
  }
  expect(laboratory.misconduct).toBe("");
}

for (const [name, table] of Object.entries({ honest, greedy, hostile })) {
  describe(`${name} guests`, () => {
    for (const guest of table) test(guest.name, () => check(guest));
  });
}

test("no guest made the pool see a violation or an unexplained death", () => {
  const { violations, startsRefused, deathsByFlow } = laboratory.health;
  expect(violations).toEqual({});
  expect(startsRefused).toEqual({});
  for (const deaths of Object.values(deathsByFlow))
    expect(deaths).toMatchObject({ sigsysDeaths: 0, trapDeaths: 0 });
});
