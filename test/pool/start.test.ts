// Workers that lie or fail before they are asked anything, through the real launcher: each is killed before a byte of
// a script is sent, counted under its reason, named in the answer, and collected; the next start is an honest one.
import { readdirSync, readFileSync } from "node:fs";
import { welcomeFields } from "@flowcell/protocol";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import type { ActivationResult } from "../../packages/pool/src/index.js";
import { Pool, type PoolEvent } from "../../packages/pool/src/index.js";
import { honestFacts, type LiarConfinement, Liars, request, resultValue } from "./liars.js";

const liars = new Liars();
const open: Pool<LiarConfinement>[] = [];

afterEach(async () => {
  for (const pool of open.splice(0)) await pool.close();
});
afterAll(() => liars.remove());

/** A pool whose first worker behaves as said and whose others are honest. */
function poolOf(behaviour: string, startDeadlineMs = 5000) {
  let starts = 0;
  const events: PoolEvent[] = [];
  const pool = new Pool(
    liars.backend(() => (starts++ === 0 ? behaviour : "honest")),
    { spares: 0, workersMax: 2, startDeadlineMs, onEvent: (event) => events.push(event) },
  );
  open.push(pool);
  return { pool, events };
}

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

async function refusal(behaviour: string, startDeadlineMs?: number): Promise<string> {
  const { pool, events } = poolOf(behaviour, startDeadlineMs);
  const calls: unknown[] = [];
  const script = "hostcall 0 echo []\nawait\nreturn 1";
  const onHostCall = () => {
    calls.push(1);
    return { ok: true, value: { text: "1", devalue: false, attachments: [] } } as const;
  };
  const refused: ActivationResult<LiarConfinement> = await pool.activate(request(script, { onHostCall }));
  expect(refused.status).toBe("sandbox_unavailable");
  expect(refused).toMatchObject({ started: false, worker: null, confinement: null, calls: [], logs: [] });
  expect(calls).toEqual([]);
  const fact = `${refused.reason}/${refused.error?.fact}`;
  expect(pool.health().startsRefused).toEqual({ [fact]: 1 });

  // The pool is healthy: the next activation waits for the pause after the failure and runs on an honest worker.
  const good = await pool.activate(request("hostcall 0 echo []\nawait\nreturn 42", { onHostCall }));
  expect(resultValue(good)).toBe(42);
  expect(good.confinement).toEqual({ liar: "honest" });
  expect(pool.health().starts.failuresInARow).toBe(0);
  const [event] = events;
  if (event?.kind !== "start_refused") throw new Error("the refusal was not reported");
  await pool.close();
  if (event.pid !== null) expect(isAlive(event.pid)).toBe(false);
  return fact;
}

describe("a worker that", () => {
  it("is honest is accepted, which is the control of every refusal below", async () => {
    const { pool, events } = poolOf("honest");
    const result = await pool.activate(request("echo"));
    expect(resultValue(result)).toEqual({ n: 1 });
    expect(events).toEqual([]);
    expect(pool.health().startsRefused).toEqual({});
  });

  const cases: [behaviour: string, fact: string, startDeadlineMs?: number][] = [
    ["silent", "welcome_late/startDeadlineMs", 600],
    ["late-1500", "welcome_late/startDeadlineMs", 600],
    ["stalled", "welcome_late/startDeadlineMs", 600],
    ["truncated", "start_failed/unknown"],
    ["eager", "welcome_refused/early_bytes"],
    ["twice", "welcome_refused/early_bytes"],
    ["early", "welcome_refused/unexpected_message"],
    ["garbage", "welcome_refused/unknown_type"],
    ["oversize", "welcome_refused/too_long"],
    ["missing", "spawn_failed/open"],
    ["exit-0", "start_failed/unknown"],
    ["exit-66", "start_failed/procfs"],
    ["exit-90", "start_failed/landlock_missing"],
    ["exit-97", "start_failed/seccomp_install"],
    ["exit-111", "start_failed/unknown"],
    ["signal-31", "start_failed/signal"],
    ["signal-11", "start_failed/signal"],
    ["signal-9", "start_failed/signal"],
  ];
  for (const [behaviour, expected, startDeadlineMs] of cases) {
    it(`does “${behaviour}” is refused as ${expected}`, async () => {
      expect(await refusal(behaviour, startDeadlineMs)).toBe(expected);
    });
  }

  it("waits longer than it may but says Welcome in time is accepted", async () => {
    const { pool } = poolOf("late-200");
    expect(resultValue(await pool.activate(request("return 1")))).toBe(1);
    expect(pool.health().startsRefused).toEqual({});
  });
});

describe("a Welcome with one fact changed", () => {
  /** Another value that the field's own type admits. */
  function changed(value: string | number | boolean): string {
    if (typeof value === "boolean") return String(!value);
    if (typeof value === "number") return String(value + 1);
    if (value === "linux") return '"windows"';
    if (value === "x64" || value === "arm64") return value === "x64" ? '"arm64"' : '"x64"';
    return `"${value.slice(0, -1)}${value.endsWith("9") ? "8" : "9"}"`;
  }

  it("is refused, whichever of the facts it is", async () => {
    const seen = await Promise.all(
      welcomeFields.map(async ({ name }) => [
        name,
        await refusal(`fact-${name}=${changed(honestFacts[name])}`),
      ]),
    );
    // An operating system that no worker is built for is no well-formed fact at all.
    const expected = welcomeFields.map(({ name }) => [
      name,
      name === "os" ? "welcome_refused/form" : `welcome_refused/${name}`,
    ]);
    expect(seen).toEqual(expected);
  });

  it("is refused when a fact is missing", async () => {
    expect(await refusal("lack-noNewPrivs")).toBe("welcome_refused/form");
  });

  it("is refused when a fact has another type", async () => {
    expect(await refusal('fact-threads="1"')).toBe("welcome_refused/form");
  });
});

describe("many refused starts", () => {
  it("leave no process and no descriptor behind", async () => {
    const descriptors = (): number => readdirSync("/proc/self/fd").length;
    const before = descriptors();
    for (let i = 0; i < 12; i++) {
      const pool = new Pool(liars.backend(i % 2 === 0 ? "garbage" : "exit-90"), { spares: 2, workersMax: 4 });
      const result = await pool.activate(request("return 1"));
      expect(result.status).toBe("sandbox_unavailable");
      await pool.close();
      expect(pool.health().workers.total).toBe(0);
    }
    expect(descriptors()).toBeLessThanOrEqual(before + 1);
  });
});
