// When runs begin, over real workers: concurrency, cron over changes of the clocks and after downtime, events, retries,
// disabling. The clock is real time moved to where something is about to happen.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { FlowService } from "@flowcell/flows";
import { defineHostFunction, HostError } from "@flowcell/host";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { type FlowFiles, finished, Laboratory, suspended, until } from "./laboratory.js";

const lab = new Laboratory();
afterEach(() => lab.reset());
afterAll(() => lab.close());

/** Waits for a signal, so that a test says when it ends. */
function waiter(over: object = {}): FlowFiles {
  return {
    manifest: { id: "waiter", ...over },
    script: `export default async (input, host) => { await host.signal.wait("go"); return input; };`,
  };
}

async function states(service: FlowService, flow = "waiter"): Promise<(string | null)[]> {
  const runs = await service.runs({ flow });
  return runs.map(({ state, status }) => (state === "finished" ? status : state)).reverse();
}

async function audits(action: string): Promise<string[]> {
  const rows = await lab.store.audit(100);
  return rows.filter((row) => row.action === action).map(({ detail }) => detail);
}

describe("concurrency", () => {
  test("queue: one at a time, oldest first, by key; suspended runs hold their places", async () => {
    const service = await lab.service();
    await lab.approved(service, waiter({ concurrency: { key: "/k" } }));
    const start = async (k: string, n: number): Promise<string> =>
      (await service.start({ flow: "waiter", input: { k, n }, by: "me" })).runId;
    const [a1, a2, a3, b1] = [
      await start("a", 1),
      await start("a", 2),
      await start("a", 3),
      await start("b", 4),
    ];
    await suspended(service, a1);
    await suspended(service, b1);
    expect(await states(service)).toEqual(["suspended", "pending", "pending", "suspended"]);
    for (const runId of [a1, a2, a3]) {
      await suspended(service, runId);
      await service.signal({ runId, name: "go", by: "me" });
      await finished(service, runId);
    }
    const runs = await Promise.all([a1, a2, a3].map((runId) => service.run(runId)));
    const times = runs.map(({ startedAt, finishedAt }) => [startedAt ?? 0, finishedAt ?? 0] as const);
    for (const [index, [, end]] of times.slice(0, -1).entries()) {
      expect(times[index + 1]?.[0]).toBeGreaterThanOrEqual(end);
    }
  });

  test("skip: refused without a key; with one there is a run that says so", async () => {
    const service = await lab.service();
    await lab.approved(service, waiter({ concurrency: { onLimit: "skip" } }));
    const first = await service.start({ flow: "waiter", by: "me", deduplicationKey: "one" });
    await expect(service.start({ flow: "waiter", by: "me" })).rejects.toMatchObject({ code: "conflict" });
    expect(await service.start({ flow: "waiter", by: "me", deduplicationKey: "one" })).toEqual({
      runId: first.runId,
      created: false,
    });
    const second = await service.start({ flow: "waiter", by: "me", deduplicationKey: "two" });
    expect(await service.run(second.runId)).toMatchObject({
      status: "overloaded",
      error: { code: "skipped" },
      activations: 0,
    });
    await service.signal({ runId: first.runId, name: "go", by: "me" });
    await finished(service, first.runId);
    expect((await service.start({ flow: "waiter", by: "me" })).created).toBe(true);
  });

  test("cancelOldest: the new run takes the place of the oldest", async () => {
    const service = await lab.service();
    await lab.approved(service, waiter({ concurrency: { limit: 2, onLimit: "cancelOldest" } }));
    const ids: string[] = [];
    for (const n of [1, 2, 3]) {
      const { runId } = await service.start({ flow: "waiter", input: n, by: "me" });
      await suspended(service, runId);
      ids.push(runId);
    }
    expect(await finished(service, ids[0] ?? "")).toMatchObject({
      status: "cancelled",
      error: { code: "superseded" },
    });
    expect(await states(service)).toEqual(["cancelled", "suspended", "suspended"]);
  });

  test("a run that waits for an operator to reconcile it holds no place", async () => {
    const once = defineHostFunction({
      name: "tools.pay",
      doc: "Pays, and nobody knows.",
      effect: "once",
      grant: "tools",
      input: z.tuple([]),
      handler: () => new Promise<never>(() => undefined),
    });
    const functions = [once];
    const first = await lab.service({ functions });
    await lab.approved(first, {
      manifest: { id: "pays", grants: { tools: ["pay"] } },
      script: `export default async (input, host) => input ? await host.tools.pay() : "free";`,
    });
    const { runId } = await first.start({ flow: "pays", input: true, by: "me" });
    await until(
      async () => ((await first.run(runId)).calls.length > 0 ? true : undefined),
      "the call is begun",
    );
    await lab.stop(first);
    const second = await lab.service({ functions });
    const report = await suspended(second, runId);
    expect(report).toMatchObject({
      status: "needs_reconcile",
      calls: [{ name: "tools.pay", state: "unknown" }],
    });
    const free = await second.start({ flow: "pays", by: "me" });
    expect((await finished(second, free.runId)).value).toBe("free");
    await expect(
      second.reconcile({ runId, position: 7, decision: "not_applied", by: "op" }),
    ).rejects.toMatchObject({ code: "conflict" });
    const position = report.calls[0]?.position ?? 0;
    await second.reconcile({ runId, position, decision: "observed", value: { paid: 3 }, by: "op" });
    expect((await finished(second, runId)).value).toEqual({ paid: 3 });
    expect(await audits("run.reconcile")).toEqual([`call ${position} (tools.pay): observed`]);
  });

  test("flows take turns when no more may be active", async () => {
    const service = await lab.service({ activeMost: 1, drives: "all" });
    const quick = (id: string): FlowFiles => ({
      manifest: { id, concurrency: { limit: 50 } },
      script: `export default () => 1;`,
    });
    await lab.approved(service, quick("many"));
    await lab.approved(service, quick("few"));
    const many = [];
    for (let n = 0; n < 12; n++) many.push(await service.start({ flow: "many", by: "me" }));
    const few = await service.start({ flow: "few", by: "me" });
    const end = (await finished(service, few.runId)).finishedAt ?? 0;
    const all = await Promise.all(many.map(({ runId }) => finished(service, runId)));
    expect(all.at(-1)?.startedAt ?? 0).toBeGreaterThanOrEqual(end);
  });
});

describe("cron", () => {
  const clock = (expression: string, timeZone: string, missed = "once"): FlowFiles => ({
    manifest: { id: "clock", trigger: { kind: "cron", expression, timeZone, missed } },
    script: `export default (input) => input.scheduledAt;`,
  });
  const scheduled = async (service: FlowService): Promise<string[]> => {
    const runs = await service.runs({ flow: "clock" });
    const reports = await Promise.all(runs.map(({ runId }) => finished(service, runId)));
    return reports.map(({ value }) => String(value)).sort();
  };
  /** The clock stands shortly before. */
  const moveTo = (time: string, beforeMs: number): void => {
    lab.offsetMs = Date.parse(time) - beforeMs - Date.now();
  };

  for (const [name, zone, expression, before, due, after] of [
    [
      "Berlin, spring",
      "Europe/Berlin",
      "30 2 * * *",
      "2026-03-28T12:00Z",
      "2026-03-29T01:00Z",
      "2026-03-30T00:30Z",
    ],
    [
      "Berlin, autumn",
      "Europe/Berlin",
      "30 2 * * *",
      "2026-10-24T12:00Z",
      "2026-10-25T00:30Z",
      "2026-10-26T01:30Z",
    ],
    [
      "New York, spring",
      "America/New_York",
      "30 2 * * *",
      "2026-03-07T12:00Z",
      "2026-03-08T07:00Z",
      "2026-03-09T06:30Z",
    ],
    [
      "New York, autumn",
      "America/New_York",
      "30 1 * * *",
      "2026-10-31T12:00Z",
      "2026-11-01T05:30Z",
      "2026-11-02T06:30Z",
    ],
  ] as const) {
    test(`${name}: one run on the day on which the clocks change`, async () => {
      moveTo(before, 0);
      const planning = await lab.service();
      await lab.approved(planning, clock(expression, zone));
      const planned = new Date(due).getTime();
      expect((await planning.list())[0]?.nextFireAt).toBe(planned);
      await lab.stop(planning);
      moveTo(due, 700);
      const service = await lab.service();
      await until(
        async () => ((await service.runs({})).length === 1 ? true : undefined),
        "the time has come",
      );
      expect(await scheduled(service)).toEqual([new Date(due).toISOString()]);
      expect((await service.list())[0]?.nextFireAt).toBe(new Date(after).getTime());
      await lab.stop(service);
      // An hour later it is the same wall clock time again, or was left out: there is nothing more to do.
      moveTo(due, -3_600_000 - 30_000);
      const later = await lab.service();
      expect((await later.list())[0]?.nextFireAt).toBe(new Date(after).getTime());
      expect(await later.runs({})).toHaveLength(1);
    });
  }

  for (const [missed, expected] of [
    ["once", ["2026-01-01T09:00:00.000Z"]],
    ["skip", []],
    ["each", Array.from({ length: 9 }, (_, hour) => `2026-01-01T0${hour + 1}:00:00.000Z`)],
  ] as const) {
    test(`times that passed while nothing ran: ${missed}`, async () => {
      moveTo("2026-01-01T00:30Z", 0);
      const first = await lab.service();
      await lab.approved(first, clock("0 * * * *", "UTC", missed));
      await lab.stop(first);
      moveTo("2026-01-01T09:30Z", 0);
      const second = await lab.service();
      const next = Date.parse("2026-01-01T10:00Z");
      await until(
        async () => ((await second.list())[0]?.nextFireAt === next ? true : undefined),
        "it goes on",
      );
      expect(await scheduled(second)).toEqual(expected);
      const told = await audits("cron.skip");
      expect(told).toHaveLength(missed === "each" ? 0 : 1);
      await lab.stop(second);
      const third = await lab.service();
      expect(await third.runs({})).toHaveLength(expected.length);
    });
  }

  test("a disabled flow's times are skipped, which is told once; enabling makes up for nothing", async () => {
    moveTo("2026-01-01T00:00:01Z", 0);
    const service = await lab.service();
    await lab.approved(service, clock("* * * * * *", "UTC"));
    await service.disable("clock", "op", "holiday");
    const count = (await service.runs({})).length;
    const told = await until(async () => {
      const details = await audits("cron.skip");
      return details.length > 0 ? details : undefined;
    }, "a time is skipped");
    expect(told[0]).toContain("disabled by op");
    const due = (await service.list())[0]?.nextFireAt ?? 0;
    await until(
      async () => (((await service.list())[0]?.nextFireAt ?? 0) > due ? true : undefined),
      "the next too",
    );
    expect(await audits("cron.skip")).toHaveLength(1);
    expect(await service.runs({})).toHaveLength(count);
    await expect(service.start({ flow: "clock", by: "me" })).rejects.toMatchObject({
      code: "denied",
      message: expect.stringContaining("holiday"),
    });
    await service.enable("clock", "op");
    await until(async () => ((await service.runs({})).length > count ? true : undefined), "it runs again");
  });
});

describe("events", () => {
  const listener = (id: string): FlowFiles => ({
    manifest: { id, trigger: { kind: "event", name: "order.created" }, concurrency: { limit: 5 } },
    script: `export default (order) => order.id;`,
  });

  test("one run of each flow that has the trigger, once for each id, across a restart", async () => {
    const first = await lab.service();
    for (const id of ["one", "two", "off"]) await lab.approved(first, listener(id));
    await first.disable("off", "op", "no");
    await first.install({ folder: lab.folder(listener("unapproved")), by: "author" });
    const event = { name: "order.created", value: { id: 7 }, eventId: "e1", by: "shop" };
    const [runs, again] = await Promise.all([first.emit(event), first.emit(event)]);
    expect(runs).toHaveLength(2);
    expect(new Set(again)).toEqual(new Set(runs));
    for (const runId of runs) expect((await finished(first, runId)).value).toBe(7);
    await lab.stop(first);
    const second = await lab.service();
    expect(new Set(await second.emit(event))).toEqual(new Set(runs));
    expect(await second.emit({ ...event, name: "other.event", eventId: "e2" })).toEqual([]);
    expect(await second.runs({})).toHaveLength(2);
    await expect(second.emit({ ...event, name: "Order Created" })).rejects.toMatchObject({ code: "invalid" });
  });

  test("a flow that comes later is not begun by an event that was handed out before", async () => {
    const service = await lab.service();
    await lab.approved(service, listener("one"));
    const event = { name: "order.created", value: { id: 7 }, eventId: "e1", by: "shop" };
    await service.emit(event);
    await lab.approved(service, listener("late"));
    await service.emit(event);
    const late = await service.runs({ flow: "late" });
    expect(late.map(({ status, reason, activations }) => [status, reason, activations])).toEqual([
      ["overloaded", "skipped", 0],
    ]);
  });

  test("a script emits what its manifest grants", async () => {
    const service = await lab.service();
    await lab.approved(service, listener("one"));
    await lab.approved(service, {
      manifest: { id: "shop", grants: { events: ["order.created"] } },
      script: `export default async (input, host) => {
        const code = await host.event.emit("other.event").catch((e) => e.code);
        return [code, (await host.event.emit("order.created", { id: 3 })).eventId];
      };`,
    });
    const { runId } = await service.start({ flow: "shop", by: "me" });
    expect((await finished(service, runId)).value).toEqual(["denied", expect.stringMatching(/^evt_/)]);
    const [run] = await service.runs({ flow: "one" });
    expect((await finished(service, run?.runId ?? "")).value).toBe(3);
  });
});

describe("after a run", () => {
  test("a failure that may pass is tried again as often as the manifest says", async () => {
    let calls = 0;
    const flaky = defineHostFunction({
      name: "tools.flaky",
      doc: "Fails twice.",
      effect: "read",
      grant: "tools",
      input: z.tuple([]),
      handler: () => {
        calls += 1;
        if (calls < 3) throw new HostError("unavailable", "not now");
        return calls;
      },
    });
    const service = await lab.service({ functions: [flaky] });
    await lab.approved(service, {
      manifest: { id: "tries", grants: { tools: ["flaky"] }, retry: { attempts: 3, backoffMs: 20 } },
      script: `export default (input, host) => host.tools.flaky();`,
    });
    const { runId } = await service.start({ flow: "tries", input: { n: 1 }, by: "me" });
    await finished(service, runId);
    const last = await until(
      async () => (await service.runs({ flow: "tries", state: "completed" }))[0],
      "the third attempt completes",
    );
    const runs = [...(await service.runs({ flow: "tries" }))].reverse();
    expect(runs.map(({ attempt, status, trigger }) => [attempt, status, trigger.kind])).toEqual([
      [1, "script_error", "manual"],
      [2, "script_error", "retry"],
      [3, "completed", "retry"],
    ]);
    expect(last.input).toEqual(runs[0]?.input);
  });

  test("attempts are not made after an effect that may have happened, nor beyond their number", async () => {
    const pay = defineHostFunction({
      name: "tools.pay",
      doc: "Pays, perhaps.",
      effect: "once",
      grant: "tools",
      input: z.tuple([]),
      handler: () => {
        throw new HostError("outcome_unknown", "the line went dead");
      },
    });
    const service = await lab.service({ functions: [pay] });
    const flow = (id: string, script: string): FlowFiles => ({
      manifest: { id, grants: { tools: ["pay"] }, retry: { attempts: 2, backoffMs: 0 } },
      script,
    });
    await lab.approved(service, flow("pays", `export default (input, host) => host.tools.pay();`));
    await lab.approved(service, flow("throws", `export default () => { throw new Error("always"); };`));
    const paid = await service.start({ flow: "pays", by: "me" });
    await finished(service, paid.runId);
    const thrown = await service.start({ flow: "throws", by: "me" });
    await finished(service, thrown.runId);
    await until(
      async () => ((await states(service, "throws")).length === 2 ? true : undefined),
      "the second attempt",
    );
    await until(async () => ((await audits("run.no_retry")).length === 1 ? true : undefined), "it is told");
    expect(await states(service, "pays")).toHaveLength(1);
  });

  test.each([
    ["leads to a host that is not granted", "http://10.1.2.3/", {}, "denied"],
    ["leads on for ever", "/", {}, "upstream"],
    ["is refused by the script's request", "/", { redirect: "error" }, "upstream"],
  ])(
    "a POST whose redirect %s is made once, also when the script catches the error",
    async (_, location, init, cause) => {
      let posts = 0;
      const server = createServer((request, response) => {
        if (request.method === "POST") posts += 1;
        response.writeHead(303, { location }).end();
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      try {
        const { port } = server.address() as AddressInfo; // of a server that listens to a port
        const service = await lab.service({ privateHosts: ["127.0.0.1"] });
        await lab.approved(service, {
          manifest: {
            id: "pays",
            grants: { net: [{ host: "127.0.0.1", methods: ["GET", "POST"] }] },
            retry: { attempts: 3, backoffMs: 0 },
          },
          script: `export default async (url) => {
          try { await fetch(url, { ...${JSON.stringify(init)}, method: "POST", body: "pay" }); }
          catch (error) { throw new Error("caught " + error.code + " of " + error.detail?.cause); }
        };`,
        });
        const { runId } = await service.start({ flow: "pays", input: `http://127.0.0.1:${port}/`, by: "me" });
        const report = await finished(service, runId);
        expect(report.error?.message).toContain(`caught outcome_unknown of ${cause}`);
        await until(async () => ((await audits("run.no_retry")).length > 0 ? true : undefined), "it is told");
        expect(await states(service, "pays")).toHaveLength(1);
        expect(posts).toBe(1);
      } finally {
        server.closeAllConnections();
        server.close();
      }
    },
  );

  test("a flow whose runs end by violation three times in a row is disabled", async () => {
    const service = await lab.service({
      pool: {
        health: () => lab.pool.health(),
        activate: async (request) => {
          const result = await lab.pool.activate(request);
          if (result.value?.text !== '"violate"') return result;
          const { value: _value, ...rest } = result;
          const error = { code: "protocol", message: "bytes that are no message" };
          return { ...rest, status: "violation" as const, reason: "protocol", error };
        },
      },
    });
    await lab.approved(service, {
      manifest: { id: "bad" },
      script: `export default (input) => input;`,
    });
    const run = async (input: string): Promise<void> => {
      const { runId } = await service.start({ flow: "bad", input, by: "me" });
      await finished(service, runId);
    };
    for (const input of ["violate", "violate", "fine", "violate", "violate", "violate"]) await run(input);
    const [flow] = await until(async () => {
      const flows = await service.list();
      return flows[0]?.enabled === false ? flows : undefined;
    }, "it is disabled");
    expect(flow).toMatchObject({
      disabledBy: "flowcell",
      disabledReason: expect.stringContaining("3 runs in a row"),
    });
    await expect(run("fine")).rejects.toMatchObject({ code: "denied" });
    await service.enable("bad", "op");
    await run("fine");
  });
});
