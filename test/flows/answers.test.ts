// What people tell runs, over real workers, when it crosses something else: a timeout, another answer, another decision. What
// is answered is what was recorded, and soon.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { FlowService } from "@flowcell/flows";
import { defineHostFunction } from "@flowcell/host";
import type { Store } from "@flowcell/journal";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { type FlowFiles, finished, Laboratory, suspended, until } from "./laboratory.js";

const lab = new Laboratory();
afterEach(() => lab.reset());
afterAll(() => lab.close());

const kinds = (rows: readonly PromiseSettledResult<unknown>[]): string[] =>
  rows.map((row) => (row.status === "fulfilled" ? "ok" : String(Object(row.reason).code))).sort();

async function audits(action: string): Promise<string[]> {
  const rows = await lab.store.audit(100);
  return rows.filter((row) => row.action === action).map(({ detail }) => detail);
}

test("an answer that meets the timeout is refused as too late, not as one that is on its way", async () => {
  const honest = lab.store;
  let holds = false;
  let letGo = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const slow = async (runId: string): ReturnType<Store["heads"]> => {
    const heads = await honest.heads(runId);
    if (!holds) return heads;
    holds = false;
    await gate;
    return heads;
  };
  lab.store = new Proxy(honest, {
    get: (store, name: keyof Store) => (name === "heads" ? slow : store[name].bind(store)),
  });
  const service = await lab.service();
  await lab.approved(service, {
    manifest: { id: "asks" },
    script: `export default (input, host) =>
      host.approval.request("May I?", { timeoutMs: 3000 }).catch((error) => error.code);`,
  });
  const { runId } = await service.start({ flow: "asks", by: "me" });
  const [pending] = (await suspended(service, runId)).pending;
  holds = true;
  const answering = service.answer({ callId: pending?.callId ?? "", approve: true, by: "boss" });
  answering.catch(() => undefined); // looked at below
  await until(async () => (holds ? undefined : true), "the answer has looked at the run");
  expect((await finished(service, runId)).value).toBe("timeout");
  letGo();
  await expect(answering).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("ended with timeout"),
  });
  expect(await audits("approval.approve")).toEqual([]);
});

test("what is said of a request is a whole response", async () => {
  const server = createServer(() => undefined);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = server.address() as AddressInfo; // of a server that listens to a port
    const url = `http://127.0.0.1:${port}/`;
    const first = await lab.service({ privateHosts: ["127.0.0.1"] });
    await lab.approved(first, {
      manifest: { id: "posts", grants: { net: [{ host: "127.0.0.1", methods: ["POST"] }] } },
      script: `export default async (url) => (await fetch(url, { method: "POST", body: "pay" })).status;`,
    });
    const { runId } = await first.start({ flow: "posts", input: url, by: "me" });
    await until(async () => ((await first.run(runId)).calls.length > 0 ? true : undefined), "it is begun");
    await lab.stop(first);
    const service = await lab.service({ privateHosts: ["127.0.0.1"] });
    const position = (await suspended(service, runId)).calls[0]?.position ?? 0;
    const observed = { runId, position, decision: "observed", by: "op" } as const;
    await expect(service.reconcile({ ...observed, value: { status: 201 } })).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("not what fetch returns"),
    });
    const response = { status: 201, statusText: "Created", headers: [], url, redirected: false, body: null };
    await service.reconcile({ ...observed, value: response });
    expect((await finished(service, runId)).value).toBe(201);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

describe("what became of a call", () => {
  const pays: FlowFiles = {
    manifest: { id: "pays", grants: { tools: ["pay"] }, concurrency: { limit: 5 } },
    script: `export default (input, host) => host.tools.pay();`,
  };

  /** A run whose call of `tools.pay` was begun by a process that is gone. */
  async function stuck(output?: z.ZodMiniType): Promise<{ service: FlowService; runId: string }> {
    const functions = [
      defineHostFunction({
        name: "tools.pay",
        doc: "Pays, and nobody knows.",
        effect: "once",
        grant: "tools",
        input: z.tuple([]),
        ...(output === undefined ? {} : { output }),
        handler: () => new Promise<never>(() => undefined),
      }),
    ];
    const first = await lab.service({ functions });
    await lab.approved(first, pays);
    const { runId } = await first.start({ flow: "pays", by: "me" });
    await until(async () => ((await first.run(runId)).calls.length > 0 ? true : undefined), "it is begun");
    await lab.stop(first);
    const service = await lab.service({ functions });
    await suspended(service, runId);
    return { service, runId };
  }

  const observed = (runId: string, value?: unknown) =>
    ({ runId, position: 0, decision: "observed", value, by: "op" }) as const;

  test("is told by the first of two who say different things, and the other one learns it", async () => {
    const { service, runId } = await stuck();
    const both = await Promise.allSettled([
      service.reconcile(observed(runId, 1)),
      service.reconcile(observed(runId, 2)),
    ]);
    expect(kinds(both)).toEqual(["conflict", "ok"]);
    expect((await finished(service, runId)).value).toBe(1);
    expect(await audits("run.reconcile")).toHaveLength(1);
    await expect(service.reconcile(observed(runId, 2))).rejects.toMatchObject({ code: "conflict" });
  });

  test("may be told twice at once when both say the same", async () => {
    const { service, runId } = await stuck();
    await Promise.all([service.reconcile(observed(runId, 1)), service.reconcile(observed(runId, 1))]);
    expect((await finished(service, runId)).value).toBe(1);
    expect(await audits("run.reconcile")).toHaveLength(1);
  });

  test("is what the function could have returned", async () => {
    const { service, runId } = await stuck(z.strictObject({ paid: z.number() }));
    for (const [value, what] of [
      [undefined, "tools.pay returns something: say what it returned, with: --value JSON"],
      [{ paid: "3" }, "not what tools.pay returns at paid"],
      [{ paid: 3, more: 1 }, "not what tools.pay returns"],
    ] as const) {
      await expect(service.reconcile(observed(runId, value))).rejects.toMatchObject({
        code: "invalid",
        message: expect.stringContaining(what),
      });
    }
    expect(await audits("run.reconcile")).toEqual([]);
    await service.reconcile(observed(runId, { paid: 3 }));
    expect((await finished(service, runId)).value).toEqual({ paid: 3 });
  });

  test("counts for nothing when the run is cancelled first", async () => {
    const { service, runId } = await stuck();
    const [, told] = await Promise.allSettled([
      service.cancel(runId, "me"),
      service.reconcile(observed(runId, 1)),
    ]);
    const report = await finished(service, runId);
    expect(told.status === "fulfilled" ? report.value : report.status).toBe(
      told.status === "fulfilled" ? 1 : "cancelled",
    );
    expect(await audits("run.reconcile")).toHaveLength(told.status === "fulfilled" ? 1 : 0);
  });
});
