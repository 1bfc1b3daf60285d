// The service over a runner that does what the test says, a store in memory and a clock of the test's own: who is driven
// when, what is made up for after a crash, and how everything ends.
import { StoreFailure } from "@flowcell/journal";
import { describe, expect, test, vi } from "vitest";
import { begin, install, openService, settle, start, store } from "./testing/service-stage.js";

describe("turns", () => {
  test("no more than activeMost are driven; whoever is suspended lets another in, and none is driven twice", async () => {
    const { service, runner } = await openService({ activeMost: 2 });
    await install(service, "f", { concurrency: { limit: 10 } });
    const runs: string[] = [];
    for (let n = 0; n < 4; n++) runs.push(await begin(service, "f"));
    expect(runner.adopted).toEqual(runs.slice(0, 2));
    await runner.suspend(runs[0] ?? "");
    expect(runner.adopted).toEqual(runs.slice(0, 3));
    await runner.finish(runs[1] ?? "");
    expect(runner.adopted).toEqual(runs);
  });

  test("a new process takes up what had begun, then others in their turn", async () => {
    const first = await openService();
    await install(first.service, "f", { concurrency: { limit: 2 } });
    await install(first.service, "g");
    const [a, b, c, g] = [
      await begin(first.service, "f"),
      await begin(first.service, "f"),
      await begin(first.service, "f"),
      await begin(first.service, "g"),
    ];
    await first.runner.suspend(a ?? "");
    await first.runner.begin(b ?? "");
    await first.runner.suspend(g ?? "", "needs_reconcile");
    await first.service.close();
    const second = await openService();
    expect(second.runner.adopted).toEqual([a, b, g]);
    const next = await begin(second.service, "g");
    expect(second.runner.adopted).toEqual([a, b, g, next]);
    await second.runner.finish(a ?? "");
    expect(second.runner.adopted).toEqual([a, b, g, next, c]);
  });

  test("a disabled flow's waiting runs wait, those that have begun go on", async () => {
    const first = await openService();
    await install(first.service, "f");
    const [a, b] = [await begin(first.service, "f"), await begin(first.service, "f")];
    await first.runner.begin(a);
    await first.service.disable("f", "op", "reason");
    await first.service.close();
    const { service, runner } = await openService();
    expect(runner.adopted).toEqual([a]);
    await runner.finish(a);
    expect(runner.adopted).toEqual([a]);
    await service.enable("f", "op");
    expect(runner.adopted).toEqual([a, b]);
  });

  test("a service that only answers drives nothing and fires nothing, but for what it is told about", async () => {
    const first = await openService();
    await install(first.service, "f");
    await install(first.service, "c", { trigger: { kind: "cron", expression: "* * * * *" } });
    const run = await begin(first.service, "f");
    await first.runner.suspend(run);
    await first.service.close();
    const { service, runner } = await openService({ drives: "nothing" });
    const waiting = await begin(service, "f");
    await vi.advanceTimersByTimeAsync(300_000);
    expect(runner.adopted).toEqual([]);
    expect(await service.cancel(waiting, "me")).toBe(true);
    expect(runner.adopted).toEqual([]);
    expect(await service.cancel(run, "me")).toBe(true);
    expect(runner.adopted).toEqual([run]);
    expect((await service.runs({})).map(({ status }) => status)).toEqual(["cancelled", "cancelled"]);
  });
});

describe("cron", () => {
  test("a time begins one run, the next is planned in the same unit, and a restart adds nothing", async () => {
    const { service, runner } = await openService();
    await install(service, "c", { trigger: { kind: "cron", expression: "*/10 * * * *" } });
    await vi.advanceTimersByTimeAsync(10 * 60_000);
    const [run] = await service.runs({});
    expect(run).toMatchObject({
      trigger: { kind: "cron", scheduledAt: start + 600_000 },
      deduplicationKey: "cron:2026-01-01T00:10:00.000Z",
      input: { text: '{"scheduledAt":"2026-01-01T00:10:00.000Z"}' },
    });
    expect(runner.adopted).toEqual([run?.runId]);
    expect((await service.list())[0]?.nextFireAt).toBe(start + 1_200_000);
    await service.close();
    const second = await openService();
    expect(await second.service.runs({})).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(10 * 60_000);
    expect(await second.service.runs({})).toHaveLength(2);
  });

  test("no caller's key takes a time from a flow", async () => {
    const { service } = await openService();
    await install(service, "c", {
      trigger: { kind: "cron", expression: "0 * * * *" },
      concurrency: { limit: 5 },
    });
    await service.start({ flow: "c", by: "me", deduplicationKey: "cron:2026-01-01T01:00:00.000Z" });
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect((await service.runs({})).map(({ trigger }) => trigger.kind)).toEqual(["cron", "manual"]);
    for (const deduplicationKey of ["", "x".repeat(201)]) {
      await expect(service.start({ flow: "c", by: "me", deduplicationKey })).rejects.toMatchObject({
        code: "invalid",
      });
    }
  });

  test("a time that the policy skips is told", async () => {
    const { service, runner } = await openService();
    await install(service, "c", {
      trigger: { kind: "cron", expression: "0 * * * *" },
      concurrency: { onLimit: "skip" },
    });
    await vi.advanceTimersByTimeAsync(3_600_000);
    await runner.begin(runner.adopted[0] ?? "");
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect(await service.runs({})).toHaveLength(1);
    const [row] = await store.audit(1);
    expect(row).toMatchObject({ action: "cron.skip", flow: "c" });
    expect(row?.detail).toContain("2026-01-01T02:00:00.000Z: a run is going on");
  });

  test("an approved version's trigger replaces the one before; a revoked one has none", async () => {
    const { service } = await openService();
    await install(service, "c", { trigger: { kind: "cron", expression: "0 * * * *" } });
    const hash = await install(service, "c", { trigger: { kind: "cron", expression: "30 * * * *" } });
    const nextFireAt = async (): Promise<unknown> => (await service.list())[0]?.nextFireAt;
    expect(await nextFireAt()).toBe(start + 1_800_000);
    await service.revoke({ flow: "c", hash, by: "op", reason: null });
    expect(await nextFireAt()).toBeNull();
    await vi.advanceTimersByTimeAsync(7_200_000);
    expect(await service.runs({})).toEqual([]);
  });
});

describe("after a crash", () => {
  test("between the end of a run and its next attempt, the attempt is made, once", async () => {
    const first = await openService();
    await install(first.service, "f", { retry: { attempts: 2, backoffMs: 5000 } });
    const run = await begin(first.service, "f");
    await first.runner.begin(run);
    await first.runner.finish(run, "script_error", { reason: "uncaught", tell: false });
    await first.service.close();
    for (const adopted of [0, 1]) {
      const { service, runner } = await openService();
      const runs = await service.runs({});
      expect(runs.map(({ attempt, trigger }) => [attempt, trigger.kind])).toEqual([
        [2, "retry"],
        [1, "manual"],
      ]);
      await vi.advanceTimersByTimeAsync(4000);
      expect(runner.adopted).toHaveLength(adopted);
      await service.close();
    }
  });

  test("between a revocation and what follows, the runs of the version end", async () => {
    const first = await openService();
    const hash = await install(first.service, "f", { concurrency: { limit: 5 } });
    const [sleeps, waits] = [await begin(first.service, "f"), await begin(first.service, "f")];
    await first.runner.suspend(sleeps);
    await first.service.close();
    await store.commit({
      operations: [
        { kind: "decideVersion", flow: "f", hash, state: "revoked", by: "op", reason: null, at: start },
      ],
    });
    const { service } = await openService();
    await settle();
    for (const runId of [sleeps, waits]) {
      expect(await service.run(runId)).toMatchObject({ status: "cancelled", error: { code: "revoked" } });
    }
  });

  test("a run that waits for another one is told of its end, whichever process sees it", async () => {
    const first = await openService();
    await install(first.service, "f", { concurrency: { limit: 5 } });
    const [parent, child, other] = [
      await begin(first.service, "f"),
      await begin(first.service, "f"),
      await begin(first.service, "f"),
    ];
    await first.runner.awaitRun(parent, 0, child);
    await first.runner.awaitRun(parent, 1, child);
    await first.runner.awaitRun(parent, 2, other);
    await first.runner.suspend(parent);
    await first.runner.suspend(child);
    await first.service.close();
    const { runner } = await openService();
    await runner.finish(child);
    expect(runner.told.map(({ runId, position }) => [runId, position])).toEqual([
      [parent, 0],
      [parent, 1],
    ]);
    expect(runner.told[0]?.outcome).toMatchObject({
      ok: true,
      value: { text: expect.stringContaining('"completed"') },
    });
  });
});

describe("the end", () => {
  test("a store that failed ends everything: waiting callers, operations, timers", async () => {
    const { service, runner } = await openService();
    await install(service, "f");
    const run = await begin(service, "f");
    const waiting = service.wait(run, { through: "finished" });
    waiting.catch(() => undefined);
    await settle();
    const failure = new StoreFailure("the disk is full");
    runner.failStore(failure);
    await expect(waiting).rejects.toBe(failure);
    expect(await service.failed).toBe(failure);
    await expect(service.start({ flow: "f", by: "me" })).rejects.toBe(failure);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("an exception that nobody expects is kept in the audit log", async () => {
    const { runner } = await openService();
    runner.bug(new TypeError("of nothing"));
    await settle();
    const [row] = await store.audit(1);
    expect(row).toMatchObject({ action: "flowcell.bug", runId: "run_x" });
    expect(row?.detail).toContain("TypeError: of nothing");
  });

  test("closing lets waiting callers go with what is known, and leaves no timer", async () => {
    const { service } = await openService();
    await install(service, "c", { trigger: { kind: "cron", expression: "0 * * * *" } });
    const run = await begin(service, "c");
    const waiting = service.wait(run);
    await settle();
    await service.close();
    expect((await waiting).state).toBe("pending");
    expect(vi.getTimerCount()).toBe(0);
    await service.close();
  });

  test("a caller who gives up gets what is known", async () => {
    const { service, runner } = await openService();
    await install(service, "f");
    const run = await begin(service, "f");
    const controller = new AbortController();
    const waiting = service.wait(run, { signal: controller.signal });
    await settle();
    await runner.begin(run);
    controller.abort();
    expect((await waiting).state).toBe("running");
    expect((await service.wait(run, { signal: controller.signal })).state).toBe("running");
    await expect(service.wait("run_x")).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("retention", () => {
  test("removes runs that finished long ago, and their keys stay used", async () => {
    const { service, runner } = await openService();
    await install(service, "f", { retention: { days: 2 } });
    const ask = { flow: "f", by: "me", deduplicationKey: "k" };
    const { runId } = await service.start(ask);
    await runner.finish(runId);
    await vi.advanceTimersByTimeAsync(47 * 3_600_000);
    expect((await service.run(runId)).status).toBe("completed");
    await vi.advanceTimersByTimeAsync(3 * 3_600_000);
    await expect(service.run(runId)).rejects.toMatchObject({ code: "not_found" });
    expect(await service.start(ask)).toEqual({ runId, created: false });
  });
});

test("a run that awakes between two looks at it is waited for, not told of half way", async () => {
  const { service, runner } = await openService();
  await install(service, "f");
  const runId = await begin(service, "f");
  await runner.suspend(runId);
  const heads = vi.spyOn(store, "heads");
  const history = vi.spyOn(store, "history");
  heads.mockImplementationOnce(async (id) => {
    const patch = { state: "running", status: null, reason: null, changedAt: start, activations: 2 } as const;
    await runner.commit(id, [{ kind: "run", patch }]);
    return await store.heads(id);
  });
  const waiting = service.wait(runId);
  await settle();
  expect((await service.run(runId)).state).toBe("running");
  await runner.finish(runId);
  expect(await waiting).toMatchObject({ state: "finished", status: "completed" });
  // What the calls were given and returned may be large, and is not needed to tell how the run stands.
  expect(history).not.toHaveBeenCalled();
});

test("a flow's runs are kept as long as its own manifest says", async () => {
  const { service, runner } = await openService();
  await install(service, "short", { retention: { days: 1 } });
  await install(service, "long", { retention: { days: 9 } });
  const [short, long] = [await begin(service, "short"), await begin(service, "long")];
  await runner.finish(short);
  await runner.finish(long);
  await vi.advanceTimersByTimeAsync(26 * 3_600_000);
  await expect(service.run(short)).rejects.toMatchObject({ code: "not_found" });
  expect((await service.run(long)).status).toBe("completed");
});

test("the oldest finished runs go while the store is too large", async () => {
  const { service, runner } = await openService({ storeBytesMost: 1000 });
  await install(service, "f", { concurrency: { limit: 5 } });
  const [one, two] = [await begin(service, "f"), await begin(service, "f")];
  await runner.finish(one);
  const stats = await store.stats();
  let bytes = 5000;
  vi.spyOn(store, "stats").mockImplementation(async () => ({ ...stats, bytes }));
  const retain = vi.spyOn(store, "retain");
  await vi.advanceTimersByTimeAsync(2 * 3_600_000);
  await expect(service.run(one)).rejects.toMatchObject({ code: "not_found" });
  expect((await service.run(two)).state).not.toBe("finished");
  bytes = 900;
  retain.mockClear();
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(retain.mock.calls.every(([{ runsMax }]) => runsMax === 500)).toBe(true);
});

test("states and statuses are asked for by name, with a suggestion for a wrong one", async () => {
  const { service, runner } = await openService();
  await install(service, "f", { concurrency: { limit: 5 } });
  const [one, two] = [await begin(service, "f"), await begin(service, "f")];
  await runner.finish(one);
  const ids = async (state: string): Promise<string[]> =>
    (await service.runs({ state })).map(({ runId }) => runId);
  expect(await ids("pending")).toEqual([two]);
  expect(await ids("finished")).toEqual([one]);
  expect(await ids("completed")).toEqual([one]);
  expect(await ids("cancelled")).toEqual([]);
  await expect(ids("complete")).rejects.toMatchObject({
    message: expect.stringContaining("did you mean completed?"),
  });
  await expect(service.runs({ flow: "g" })).rejects.toMatchObject({ code: "not_found" });
  await expect(service.runs({ limit: 0 })).rejects.toMatchObject({ code: "invalid" });
});
