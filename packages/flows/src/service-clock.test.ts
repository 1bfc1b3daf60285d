// What the service makes up for whatever the clock did, and what it tells and removes once: over a runner that does what the
// test says.
import { encodeValue } from "@flowcell/protocol";
import { describe, expect, test, vi } from "vitest";
import { begin, install, openService, settle, start, store } from "./testing/service-stage.js";

const dayMs = 86_400_000;

describe("a cron time that was planned by a wrong clock", () => {
  const hourly = { trigger: { kind: "cron", expression: "0 * * * *" }, concurrency: { limit: 50 } };
  const planned = async (service: { list(): Promise<readonly { nextFireAt: number | null }[]> }) =>
    (await service.list())[0]?.nextFireAt;

  test("is planned anew when the service opens", async () => {
    vi.setSystemTime(start + 365 * dayMs);
    const first = await openService();
    await install(first.service, "c", hourly);
    await first.service.close();
    vi.setSystemTime(start);
    const { service } = await openService();
    expect(await planned(service)).toBe(start + 3_600_000);
    const [row] = await store.audit(1);
    expect(row).toMatchObject({ action: "cron.replan", flow: "c" });
    expect(row?.detail).toContain("2026-01-01T01:00:00.000Z is the next by the clock");
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect((await service.runs({})).map(({ deduplicationKey }) => deduplicationKey)).toEqual([
      "cron:2026-01-01T01:00:00.000Z",
    ]);
    // The control: what is right stays, and nothing is told of it.
    await service.close();
    await openService();
    expect((await store.audit(100)).filter(({ action }) => action === "cron.replan")).toHaveLength(1);
  });

  test("is planned anew while the service runs, within an hour or so", async () => {
    const { service } = await openService();
    await install(service, "c", hourly);
    vi.setSystemTime(start + 365 * dayMs);
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect((await service.runs({})).length).toBeGreaterThan(0);
    vi.setSystemTime(start);
    await vi.advanceTimersByTimeAsync(3 * 3_600_000);
    const times = (await service.runs({ limit: 100 })).map(({ trigger }) =>
      trigger.kind === "cron" ? trigger.scheduledAt : 0,
    );
    expect(times).toContain(start + 3 * 3_600_000);
  });

  test("gets no second run when it was served before", async () => {
    const { service } = await openService();
    await install(service, "c", hourly);
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect(await service.runs({})).toHaveLength(1);
    await service.close();
    vi.setSystemTime(start + 3_590_000);
    const again = await openService();
    expect(await planned(again.service)).toBe(start + 3_600_000);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await again.service.runs({})).toHaveLength(1);
    expect(await planned(again.service)).toBe(start + 7_200_000);
  });
});

test("that a run is not tried again is told once, however often a service opens", async () => {
  const first = await openService();
  await install(first.service, "f", { retry: { attempts: 2, backoffMs: 1000 } });
  const runId = await begin(first.service, "f");
  await first.runner.begin(runId);
  const call = {
    position: 0,
    name: "tools.pay",
    effect: "once",
    digest: "d",
    args: encodeValue([]),
    idempotencyKey: "k",
    madeAt: start,
    note: null,
    wait: null,
    dueAt: null,
    callId: null,
  } as const;
  const error = { code: "outcome_unknown", message: "the line went dead", retryable: false } as const;
  await first.runner.commit(runId, [
    { kind: "call", call, attempts: 1 },
    { kind: "deliver", order: 0, guestClockMs: start, position: 0, outcome: { ok: false, error }, at: start },
  ]);
  await first.runner.finish(runId, "script_error", { reason: "uncaught", tell: false });
  await first.service.close();
  for (const drives of ["runs", "runs", "all"] as const) {
    const { service } = await openService({ drives });
    await settle();
    const told = (await store.audit(100)).filter(({ action }) => action === "run.no_retry");
    expect(told.map((row) => row.runId)).toEqual([runId]);
    expect(await service.runs({})).toHaveLength(1);
    await service.close();
  }
});

describe("a command that drives runs", () => {
  async function old(): Promise<string> {
    const { service, runner } = await openService();
    await install(service, "f", { retention: { days: 2 }, concurrency: { limit: 5 } });
    const runId = await begin(service, "f");
    await runner.finish(runId);
    await service.close();
    vi.setSystemTime(start + 3 * dayMs);
    return runId;
  }

  test("removes runs that nobody has to keep when it ends", async () => {
    const runId = await old();
    const { service, runner } = await openService({ drives: "runs" });
    const next = await begin(service, "f");
    await runner.finish(next);
    expect(await store.run(runId)).not.toBeNull();
    await service.close();
    expect(await store.run(runId)).toBeNull();
    expect(await store.run(next)).not.toBeNull();
  });

  test("removes the oldest when the store is too large, and one that only answers removes nothing", async () => {
    const runId = await old();
    vi.setSystemTime(start + dayMs);
    const stats = await store.stats();
    vi.spyOn(store, "stats").mockResolvedValue({ ...stats, bytes: 5000 });
    const answers = await openService({ drives: "nothing", storeBytesMost: 1000 });
    await answers.service.close();
    expect(await store.run(runId)).not.toBeNull();
    const { service } = await openService({ drives: "runs", storeBytesMost: 1000 });
    await service.close();
    expect(await store.run(runId)).toBeNull();
  });
});
