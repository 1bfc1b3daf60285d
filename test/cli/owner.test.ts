// A store has one owner: a service that other commands talk to by its socket, a service that is killed, two commands at once,
// and a call that nobody knows the outcome of.

import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, createConnection } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { at, FlowBench, textAt } from "./flow-bench.js";

const benches: FlowBench[] = [];
const servers: Server[] = [];
afterEach(async () => {
  for (const bench of benches.splice(0)) await bench.remove();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

function newBench(): FlowBench {
  const bench = new FlowBench();
  benches.push(bench);
  return bench;
}

const slow = { timeout: 60_000, interval: 300 };

describe("a running service", () => {
  test("answers the other commands, drives runs, and drains on SIGTERM with exit code 0", async () => {
    const bench = newBench();
    await bench.approved(
      bench.flow("paid", {}, 'export default async (_, host) => await host.signal.wait("paid");'),
    );
    const service = await bench.serve();
    const socket = join(bench.data, "owner.sock");
    expect(statSync(socket).mode & 0o777).toBe(0o600);

    const started = await bench.json("start", "paid");
    expect(started.code).toBe(8);
    expect(started.err).not.toContain("no service running");
    const runId = textAt(started.json, "runId");
    const sent = await bench.json("signal", runId, "paid", "--value", "[1,2n]".replace("2n", "2"));
    // The service drives the run: there is nothing to wait for here.
    expect(sent.json).toEqual({ ok: true, runId, sent: true });
    await expect
      .poll(async () => (await bench.json("runs", runId)).json, slow)
      .toMatchObject({ status: "completed", value: [1, 2] });
    const mistake = await bench.json("start", "piad");
    expect(mistake.code).toBe(2);
    expect(mistake.json).toMatchObject({
      error: { code: "not_found", message: expect.stringContaining("did you mean paid?") },
    });

    const second = await bench.run("serve");
    expect(second.code).toBe(75);
    expect(second.err).toContain(`holds the store in ${bench.data} already`);

    expect(await service.stop("SIGTERM")).toEqual({ code: 0, signal: null });
    expect(service.err()).toMatch(/SIGTERM: draining.*\n(?:.*\n)*flowcell: drained\n$/);
    expect(existsSync(socket)).toBe(false);
  });

  test("fires a cron trigger", async () => {
    const bench = newBench();
    const manifest = { trigger: { kind: "cron", expression: "* * * * * *" } };
    await bench.approved(bench.flow("tick", manifest, "export default (input) => typeof input.scheduledAt"));
    await bench.serve();
    await expect
      .poll(async () => (await bench.json("runs", "--state", "completed")).json, slow)
      .toMatchObject({
        runs: expect.arrayContaining([
          expect.objectContaining({ flow: "tick", trigger: expect.objectContaining({ kind: "cron" }) }),
        ]),
      });
  });

  test("that was killed leaves a socket that hinders nobody, and its runs go on", async () => {
    const bench = newBench();
    await bench.approved(
      bench.flow("nap", {}, "export default async (_, host) => { await host.sleep(3000); return 1; };"),
    );
    const service = await bench.serve();
    const runId = (await bench.run("start", "nap", "--no-wait")).out.trim();
    expect(await service.stop("SIGKILL")).toEqual({ code: null, signal: "SIGKILL" });
    expect(existsSync(join(bench.data, "owner.sock"))).toBe(true);
    expect((await bench.json("runs", runId)).json).toMatchObject({ runId });
    await bench.serve();
    await expect
      .poll(async () => (await bench.json("runs", runId)).json, slow)
      .toMatchObject({ status: "completed", value: 1 });
  });

  test("that is drained takes no new work and still answers", async () => {
    const bench = newBench();
    await bench.approved(bench.flow("one", {}, "export default () => 1"));
    await bench.serve();
    expect((await bench.json("drain")).json).toEqual({ ok: true });
    expect((await bench.json("list")).json).toMatchObject({ flows: [{ flow: "one" }] });
    const refused = await bench.json("start", "one");
    expect(refused.code).not.toBe(0);
    expect(refused.json).toMatchObject({ ok: false });
  });

  test("cuts a client that sends what is no request, and goes on", async () => {
    const bench = newBench();
    await bench.approved(bench.flow("one", {}, "export default () => 1"));
    await bench.serve();
    const socket = createConnection(join(bench.data, "owner.sock"));
    const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
    socket.on("error", () => undefined);
    socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff, 1, 2, 3]));
    await closed;
    expect((await bench.json("start", "one")).json).toMatchObject({ status: "completed", value: 1 });
  });
});

describe("without a service", () => {
  test("a command that waits is the owner, and others reach it", async () => {
    const bench = newBench();
    await bench.approved(
      bench.flow(
        "nap",
        {},
        "export default async () => { await new Promise((done) => setTimeout(done, 8000)); return 1; };",
      ),
    );
    const waiting = bench.json("start", "nap");
    await expect.poll(() => existsSync(join(bench.data, "owner.sock")), slow).toBe(true);
    const seen = await bench.json("runs");
    expect(seen.json).toMatchObject({ ok: true });
    expect((await waiting).json).toMatchObject({ status: "completed", value: 1 });
  });

  test("many commands at once take turns", async () => {
    const bench = newBench();
    const flow = bench.flow(
      "count",
      { grants: { kv: { maxBytes: 100 } } },
      'export default async (_, host) => { const n = ((await host.kv.get("n")) ?? 0) + 1; await host.kv.set("n", n); return n; };',
    );
    await bench.approved(flow);
    const ended = await Promise.all([1, 2, 3, 4].map(() => bench.json("start", "count")));
    expect(ended.map(({ code, err }) => (code === 0 ? 0 : err))).toEqual([0, 0, 0, 0]);
    expect(ended.map(({ json }) => json["value"]).sort()).toEqual([1, 2, 3, 4]);
  });
});

/** Takes requests and never answers; says how many it has taken. */
async function deafServer(): Promise<{ readonly url: string; readonly requests: () => number }> {
  let requests = 0;
  const server = createServer((request) => {
    requests++;
    request.resume();
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  const { port } = server.address() as AddressInfo; // a TCP server has a port
  return { url: `http://127.0.0.1:${port}/orders`, requests: () => requests };
}

describe("a call whose outcome nobody knows", () => {
  const post = `export default async (input, host) => {
    try {
      const answer = await fetch(input, { method: "POST", body: "1" });
      return { status: answer.status };
    } catch (error) {
      return { failed: error.code };
    }
  };`;
  const manifest = { grants: { net: [{ host: "127.0.0.1", methods: ["POST"] }] } };

  async function stuckRun(): Promise<{ bench: FlowBench; runId: string; requests: () => number }> {
    const bench = newBench();
    const { url, requests } = await deafServer();
    const open = `127.0.0.1:${new URL(url).port}`;
    await bench.approved(bench.flow("order", manifest, post), "--allow-net", open);
    const service = await bench.serve();
    const runId = (await bench.run("start", "order", "--input", JSON.stringify(url), "--no-wait")).out.trim();
    await expect.poll(requests, slow).toBe(1);
    await service.stop("SIGKILL");
    await bench.serve();
    await expect
      .poll(async () => (await bench.json("runs", runId)).json, slow)
      .toMatchObject({ status: "needs_reconcile" });
    return { bench, runId, requests };
  }

  test("waits for somebody who looked, is not sent again, and goes on with what was seen", async () => {
    const { bench, runId, requests } = await stuckRun();
    const shown = await bench.run("runs", runId);
    expect(shown.err).toMatch(/call 0 fetch: nobody knows whether it happened \(idempotency key /);
    expect(shown.err).toContain(`flowcell reconcile ${runId} 0 --observed`);
    expect((await bench.run("list")).out).toContain("order: 1 to reconcile");
    const seen = {
      url: "http://127.0.0.1/orders",
      status: 201,
      statusText: "Created",
      redirected: false,
      headers: [],
      body: null,
    };
    const reconciled = await bench.json("reconcile", runId, "--observed", "--value", JSON.stringify(seen));
    expect(reconciled.json).toMatchObject({ ok: true, position: 0, decision: "observed" });
    await expect
      .poll(async () => (await bench.json("runs", runId)).json, slow)
      .toMatchObject({ state: "finished" });
    expect(requests()).toBe(1);
    const again = await bench.run("reconcile", runId, "0", "--not-applied");
    expect(again.code).toBe(2);
  });

  test("is made again when it was found not to have happened", async () => {
    const { bench, runId, requests } = await stuckRun();
    expect((await bench.json("reconcile", runId, "0", "--not-applied")).code).toBe(0);
    await expect.poll(requests, slow).toBe(2);
    const cancelled = await bench.json("cancel", runId);
    expect(at(cancelled.json, "ok")).toBe(true);
    expect(readFileSync(join(bench.data, "settings.json"), "utf8")).toContain("127.0.0.1:");
  });
});
