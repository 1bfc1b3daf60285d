// kill -9 of a service, or of its workers, at every step of the journal and at any time, over a run that uses every effect and
// every way to wait: when the next process takes over, the run ends as an uncut one could have, effects of `once` happened
// at most once, keyed ones once for each key, and nothing is lost silently. What is checked is the world, not the journal.
//
// CRASH_ALL=1 tries every step in each of the three ways; otherwise each step is tried in one of them, in turn.
import { rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildProgram, CrashLab, type Cut, type Ended, expectedValue, type Lived } from "./crash-lab.js";

let program = "";
/** Where the flows are installed; every run begins with a copy of its store. */
let home: CrashLab;

beforeAll(async () => {
  program = await buildProgram();
  home = new CrashLab(program, null);
  await home.open();
  await home.install();
}, 60_000);

afterAll(async () => {
  await home.close();
  rmSync(program, { force: true });
});

const newLab = (): CrashLab => new CrashLab(program, home.folder);

/** Ways to be killed; the last process is left to end. */
async function outlived(
  lives: readonly ((lab: CrashLab) => Promise<Lived>)[],
  look: (lived: readonly Lived[]) => void = () => undefined,
): Promise<Ended> {
  const lab = newLab();
  await lab.open();
  try {
    const lived: Lived[] = [];
    for (const live of lives) lived.push(await live(lab));
    look(lived);
    const last = await lab.live(null);
    const said = [...lived, last].map(({ err }) => err).join("\n");
    if (last.ended === null)
      throw new Error(`the last process ended with ${last.code} ${last.signal}: ${said}`);
    checkWorld(lab, last.ended, said);
    return last.ended;
  } finally {
    await lab.close();
  }
}

function checkWorld(lab: CrashLab, { report, others, replay }: Ended, said: string): void {
  expect(report.error, said).toBeUndefined();
  const first: unknown = expect.stringMatching(/^(?:timer|sleep)$/);
  expect(report).toMatchObject({ status: "completed", value: { ...expectedValue, first } });
  expect(lab.once).toBe(1);
  expect([...lab.keys.keys()]).toEqual(["order-1"]);
  expect(lab.read("log.txt")).toBe("line\n");
  expect(lab.read("out.txt")).toMatch(/^input\d+$/);
  expect(lab.has("gone.txt")).toBe(false);
  // The child, the listener of the event, and the run itself: each once, although some calls were made again.
  expect([...others].sort()).toEqual(["child completed", "crash completed", "listener completed"]);
  for (const { name, state } of report.calls) expect(["done", "cancelled"], name).toContain(state);
  expect(report.logs.map(({ text }) => text)).toEqual(["ordered ordered"]);
  expect(replay).toMatchObject({ matched: true, divergence: null });
}

const ways = ["before", "during", "after"] as const;

test("a run ends the same when its process is killed at any step of the journal", {
  timeout: 900_000,
}, async () => {
  const { steps } = await outlived([]);
  expect(steps).toBeGreaterThan(20);
  const cuts: Cut[] = [];
  for (let step = 1; step <= steps; step++) {
    for (const [at, when] of ways.entries()) {
      if (process.env["CRASH_ALL"] === "1" || step % ways.length === at) cuts.push({ step, when });
    }
  }
  let fired = 0;
  for (const cut of cuts) {
    await outlived([(lab) => lab.live(cut)], ([lived]) => {
      if (lived?.signal === "SIGKILL") fired += 1;
    }).catch((error: unknown) => {
      throw new Error(`killed ${cut.when} step ${cut.step}`, { cause: error });
    });
  }
  // How calls share units varies, so a run may have a step less; nearly all cuts have to have been made.
  expect(fired).toBeGreaterThan(cuts.length * 0.9);
});

test("a run ends the same when every process is killed after a few steps", { timeout: 300_000 }, async () => {
  for (const when of ways) {
    const lives = Array.from(
      { length: 5 },
      (_, at) => (lab: CrashLab) => lab.live({ step: 4 + (at % 3), when }),
    );
    await outlived(lives);
  }
});

test("a run ends the same when its processes are killed at random times", { timeout: 300_000 }, async () => {
  for (let round = 0; round < 4; round++) {
    const killedAfter = (ms: number) => (lab: CrashLab) =>
      lab.live(null, (child) => {
        void delay(ms).then(() => child.kill("SIGKILL"));
      });
    const times = Array.from({ length: 3 }, () => 300 + Math.random() * 1200);
    await outlived(times.map(killedAfter)).catch((error: unknown) => {
      throw new Error(`killed after ${times.join(", ")} ms`, { cause: error });
    });
  }
});

test("a run ends the same when its workers are killed at random times", { timeout: 300_000 }, async () => {
  let killed = 0;
  for (let round = 0; round < 3; round++) {
    // Two deaths in a row are retried; more would be the flow's end as worker_lost, which is right and not the same.
    let left = 2;
    const meddle = (child: { readonly exitCode: number | null }): void => {
      void (async () => {
        while (left > 0 && child.exitCode === null) {
          await delay(100 + Math.random() * 400);
          if (CrashLab.killWorker(child as Parameters<typeof CrashLab.killWorker>[0])) {
            left -= 1;
            killed += 1;
          }
        }
      })();
    };
    const lab = newLab();
    await lab.open();
    try {
      const lived = await lab.live(null, meddle);
      if (lived.ended === null)
        throw new Error(`the process ended with ${lived.code} ${lived.signal}: ${lived.err}`);
      checkWorld(lab, lived.ended, lived.err);
    } finally {
      await lab.close();
    }
  }
  expect(killed).toBeGreaterThan(0);
});
