/**
 * Simulated runs; simulator/simulation.ts lists what is checked. A failing seed is run again alone, with all that goes into
 * its machines and comes out of them, by FLOWCELL_SIMULATION_SEED; FLOWCELL_SIMULATION_RUNS sets how many there are.
 */

import { describe, expect, test } from "vitest";
import { type FaultName, faults } from "./simulator/faults.js";
import { Broken } from "./simulator/record.js";
import { simulate } from "./simulator/simulation.js";
import type { Story } from "./simulator/stage.js";

const { FLOWCELL_SIMULATION_SEED: oneSeed, FLOWCELL_SIMULATION_RUNS: runsGiven } = process.env;
const runs = Number(runsGiven ?? 100_000);
const parts = 5;
const timeout = 900_000;

async function simulateAll(first: number, count: number): Promise<readonly Story[]> {
  const stories: Story[] = [];
  for (let seed = first; seed < first + count; seed++) {
    try {
      stories.push(await simulate(seed));
    } catch (error) {
      const hint = `seed ${seed}; run it alone with FLOWCELL_SIMULATION_SEED=${seed}`;
      throw new Error(hint, { cause: error });
    }
  }
  return stories;
}

describe.skipIf(oneSeed !== undefined)("simulated runs", () => {
  const size = Math.ceil(runs / parts);
  test.each(Array.from({ length: parts }, (_, part) => part * size))(
    "keep every promise, from seed %i on",
    async (first) => {
      const stories = await simulateAll(first, size);
      expect(stories).toHaveLength(size);
      expect(stories.every(({ status }) => status !== "")).toBe(true);
    },
    timeout,
  );

  test(
    "come to every kind of end, through every kind of trouble",
    async () => {
      const stories = await simulateAll(0, 6_000);
      const statuses = new Set(stories.map(({ status }) => status));
      for (const status of [
        "completed",
        "script_error",
        "cancelled",
        "timed_out",
        "budget_exceeded",
        "worker_lost",
        "replay_diverged",
        "engine_mismatch",
      ])
        expect(statuses).toContain(status);
      const sum = (of: (story: Story) => number): number =>
        stories.reduce((total, story) => total + of(story), 0);
      expect(sum(({ crashes }) => crashes)).toBeGreaterThan(1_000);
      expect(sum(({ suspensions }) => suspensions)).toBeGreaterThan(1_000);
      expect(sum(({ unknowns }) => unknowns)).toBeGreaterThan(100);
      expect(sum(({ quarantined }) => quarantined)).toBeGreaterThan(100);
      expect(stories.some(({ newEngine, crashes }) => newEngine && crashes > 0)).toBe(true);
    },
    timeout,
  );
});

const caught: { readonly [name in FaultName]: RegExp } = {
  "delivers before the commit": /was sent before it was committed/,
  "dispatches before the intent is committed": /was begun 1 times, with 0 intents stored/,
  "sends a second attempt with a new key": /the effect of call \d+ \(keyed\) happened 2 times/,
  "begins a once call again after a crash": /the effect of call \d+ \((once|proven)\) happened 2 times/,
  "replays by position instead of by order": /was sent (out of order|as another one)/,
  "begins new calls during a replay": /was begun during a replay/,
  "drops an outcome that comes while it is suspended": /the run does not end/,
  "takes a signal twice": /a signal was taken twice/,
};

// As TypeScript sees them, the keys of an object are any text.
const faultNames = Object.keys(faults) as FaultName[];

describe.skipIf(oneSeed !== undefined)("the simulator catches a machine that", () => {
  test.each(faultNames)(
    "%s",
    async (name) => {
      const messages: string[] = [];
      for (let seed = 0; seed < 3_000; seed++) {
        const broken = await simulate(seed, name).then(
          () => null,
          (error: unknown) => error,
        );
        if (broken instanceof Broken) messages.push(broken.message);
        if (messages.some((message) => caught[name].test(message))) return;
      }
      expect.fail(
        `not caught within 3000 runs; other findings: ${[...new Set(messages)].slice(0, 5).join("; ")}`,
      );
    },
    timeout,
  );
});

if (oneSeed !== undefined) {
  test(
    `seed ${oneSeed}`,
    async () => {
      const lines: string[] = [];
      try {
        await simulate(Number(oneSeed), null, (line) => lines.push(line));
      } finally {
        process.stdout.write(`${lines.join("\n")}\n`);
      }
    },
    timeout,
  );
}
