import { expect, test } from "vitest";
import { Simulation } from "./simulator/simulation.js";

test("smoke", async () => {
  const failures: string[] = [];
  const begin = Number(process.env.SIM_SEED ?? 0);
  const count = Number(process.env.SIM_RUNS ?? 2000);
  const t = performance.now();
  let steps = 0;
  for (let seed = begin; seed < begin + count; seed++) {
    try {
      steps += (await new Simulation(seed, null, count === 1 ? console.log : null).run()).steps;
    } catch (error) {
      failures.push(`${seed}: ${count === 1 ? (error as Error).stack : error}`);
      if (failures.length > 20) break;
    }
  }
  console.log(performance.now() - t, steps);
  console.log(failures.join("\n"));
  expect(failures.length).toBe(0);
}, 600_000);
