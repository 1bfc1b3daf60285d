// The service over real workers: from a folder to a result, and what happens to runs when versions, callers and processes
// change under them.
import type { RunHistory, Store } from "@flowcell/journal";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { type FlowFiles, finished, Laboratory, suspended, until } from "./laboratory.js";

const lab = new Laboratory();
afterEach(() => lab.reset());
afterAll(() => lab.close());

const adder: FlowFiles = {
  manifest: {
    id: "adder",
    input: { type: "object", properties: { a: { type: "number" } }, required: ["a"] },
    output: { type: "number" },
    grants: { kv: { maxBytes: 1000 } },
  },
  script: `export default async function (input: { a: number }, host: any) {
    console.log("adding", input.a);
    const sum = ((await host.kv.get("sum")) ?? 0) + input.a;
    await host.kv.set("sum", sum);
    return sum;
  }`,
};

const asks: FlowFiles = {
  manifest: { id: "asks" },
  script: `export default async function (input, host) {
    const answer = await host.approval.request("May I?", { detail: { cost: 3 } });
    return answer.approved ? answer.value : "refused by " + answer.by;
  }`,
};

describe("a run", () => {
  test("goes from a folder to a result that is reported whole", async () => {
    const service = await lab.service();
    const hash = await lab.approved(service, adder);
    const { runId, created } = await service.start({ flow: "adder", input: { a: 2 }, by: "me" });
    expect(created).toBe(true);
    const report = await finished(service, runId);
    expect(report).toMatchObject({
      runId,
      flow: "adder",
      versionHash: hash,
      ok: true,
      status: "completed",
      value: 2,
      trigger: { kind: "manual", by: "me" },
      attempt: 1,
      activations: 1,
      pending: [],
    });
    expect(report.calls.map(({ name, effect, state }) => [name, effect, state])).toEqual([
      ["kv.get", "local", "done"],
      ["kv.set", "local", "done"],
    ]);
    expect(report.logs.map(({ level, text }) => [level, text])).toEqual([["log", "adding 2"]]);
    expect(report.confinement).toMatchObject({});
    const second = await service.start({ flow: "adder", input: { a: 5 }, by: "me" });
    expect((await finished(service, second.runId)).value).toBe(7);
  });

  test("is refused at the door when its input is not what the manifest declares", async () => {
    const service = await lab.service();
    await lab.approved(service, adder);
    await expect(service.start({ flow: "adder", input: { a: "2" }, by: "me" })).rejects.toMatchObject({
      name: "OperationError",
      code: "invalid",
      message: expect.stringContaining("input.a must be a number"),
    });
    expect(await service.runs({})).toEqual([]);
  });

  test("that returns what the manifest does not declare ends as script_error with reason output", async () => {
    const service = await lab.service();
    await lab.approved(service, {
      manifest: { id: "liar", output: { type: "number" } },
      script: `export default () => "text";`,
    });
    const { runId } = await service.start({ flow: "liar", by: "me" });
    const report = await finished(service, runId);
    expect(report).toMatchObject({ ok: false, status: "script_error", error: { code: "output" } });
    expect(report.error?.message).toContain("result must be a number");
    expect(report.value).toBeUndefined();
  });

  test("has errors at the author's lines", async () => {
    const service = await lab.service();
    await lab.approved(service, {
      manifest: { id: "thrower" },
      script: `import { fail } from "./lib.ts";\nexport default () => fail();`,
      files: {
        "lib.ts": `type T = string;\nexport function fail(): never {\n  throw new Error("on line 3" as T);\n}\n`,
      },
    });
    const { runId } = await service.start({ flow: "thrower", by: "me" });
    expect((await finished(service, runId)).error).toMatchObject({
      name: "Error",
      message: "on line 3",
      place: { file: "lib.ts", line: 3 },
    });
  });

  test("is one for one deduplication key", async () => {
    const service = await lab.service();
    await lab.approved(service, adder);
    const ask = { flow: "adder", input: { a: 1 }, by: "me", deduplicationKey: "monday" };
    const [first, second] = await Promise.all([service.start(ask), service.start(ask)]);
    expect(second.runId).toBe(first.runId);
    await finished(service, first.runId);
    expect(await service.start(ask)).toEqual({ runId: first.runId, created: false });
  });

  test("can be cancelled while it waits for its turn and while it is suspended", async () => {
    const service = await lab.service();
    await lab.approved(service, asks);
    const first = await service.start({ flow: "asks", by: "me" });
    await suspended(service, first.runId);
    const second = await service.start({ flow: "asks", by: "me" });
    expect(await service.cancel(second.runId, "you")).toBe(true);
    expect(await finished(service, second.runId)).toMatchObject({
      status: "cancelled",
      activations: 0,
      error: { code: "caller" },
    });
    expect(await service.cancel(first.runId, "you")).toBe(true);
    expect((await finished(service, first.runId)).status).toBe("cancelled");
    expect(await service.cancel(first.runId, "you")).toBe(false);
  });
});

describe("versions", () => {
  test("none runs without an approval, and a rejected one never", async () => {
    const service = await lab.service();
    const { hash } = await service.install({ folder: lab.folder(adder), by: "author" });
    await expect(service.start({ flow: "adder", input: { a: 1 }, by: "me" })).rejects.toMatchObject({
      code: "denied",
      message: expect.stringContaining(`flowcell approve adder --hash ${hash}`),
    });
    await expect(service.revoke({ flow: "adder", hash, by: "operator", reason: null })).rejects.toMatchObject(
      {
        message: expect.stringContaining(`flowcell reject adder --hash ${hash}`),
      },
    );
    await service.reject({ flow: "adder", hash, by: "operator", reason: "no" });
    await expect(service.start({ flow: "adder", input: { a: 1 }, by: "me" })).rejects.toMatchObject({
      code: "denied",
    });
  });

  test("an approval is taken back by the command that a refused rejection names", async () => {
    const service = await lab.service();
    const hash = await lab.approved(service, adder);
    await expect(service.reject({ flow: "adder", hash, by: "op", reason: null })).rejects.toMatchObject({
      message: expect.stringContaining(`flowcell revoke adder --hash ${hash}`),
    });
  });

  test("an approval is taken back also when nothing drives runs: its runs end, and stay ended", async () => {
    const first = await lab.service();
    const hash = await lab.approved(first, asks);
    const { runId } = await first.start({ flow: "asks", by: "me" });
    await suspended(first, runId);
    const waiting = await first.start({ flow: "asks", by: "me" });
    await lab.stop(first);
    const command = await lab.service({ drives: "nothing" });
    await command.revoke({ flow: "asks", hash, by: "operator", reason: "found a bug" });
    for (const one of [runId, waiting.runId])
      expect(await command.run(one)).toMatchObject({ status: "cancelled", error: { code: "revoked" } });
    await lab.stop(command);
    const second = await lab.service();
    expect((await second.runs({})).map(({ status }) => status)).toEqual(["cancelled", "cancelled"]);
    await expect(second.start({ flow: "asks", by: "me" })).rejects.toMatchObject({ code: "denied" });
  });

  test("a superseded version's run finishes on it", async () => {
    const service = await lab.service();
    const version = (text: string): FlowFiles => ({
      manifest: { id: "v" },
      script: `export default async (input, host) => { await host.signal.wait("go"); return ${JSON.stringify(text)}; };`,
    });
    const old = await lab.approved(service, version("old"));
    const { runId } = await service.start({ flow: "v", by: "me" });
    await suspended(service, runId);
    const now = await lab.approved(service, version("new"));
    expect(now).not.toBe(old);
    await service.signal({ runId, name: "go", by: "me" });
    expect(await finished(service, runId)).toMatchObject({
      status: "completed",
      value: "old",
      versionHash: old,
    });
    const { versions } = (await service.list())[0] ?? { versions: [] };
    expect(versions.map(({ state }) => state)).toEqual(["approved", "superseded"]);
  });

  test("revoking cancels suspended and waiting runs, and nothing starts", async () => {
    const service = await lab.service();
    const hash = await lab.approved(service, asks);
    const first = await service.start({ flow: "asks", by: "me" });
    await suspended(service, first.runId);
    const second = await service.start({ flow: "asks", by: "me" });
    await service.revoke({ flow: "asks", hash, by: "operator", reason: "found a bug" });
    for (const { runId } of [first, second]) {
      expect(await finished(service, runId)).toMatchObject({
        status: "cancelled",
        error: { code: "revoked" },
      });
    }
    await expect(service.start({ flow: "asks", by: "me" })).rejects.toMatchObject({ code: "denied" });
    await expect(service.approve({ flow: "asks", hash, by: "operator" })).rejects.toMatchObject({
      code: "conflict",
    });
  });
});

describe("approvals", () => {
  test("suspend the run, are answered once, and the answer survives asking again", async () => {
    const service = await lab.service();
    await lab.approved(service, asks);
    const { runId } = await service.start({ flow: "asks", by: "me" });
    const [pending] = (await suspended(service, runId)).pending;
    expect(pending).toMatchObject({ name: "approval.request", title: "May I?", args: { cost: 3 } });
    const callId = pending?.callId ?? "";
    expect(callId).toMatch(/^call_[\w-]{22}$/);
    const yes = { callId, approve: true, value: "yes", by: "boss" };
    const both = await Promise.all([service.answer(yes), service.answer(yes)]);
    expect(both).toEqual([{ runId }, { runId }]);
    expect((await finished(service, runId)).value).toBe("yes");
    expect(await service.answer(yes)).toEqual({ runId });
    await expect(service.answer({ ...yes, approve: false })).rejects.toMatchObject({ code: "conflict" });
    await expect(service.answer({ ...yes, value: "other" })).rejects.toMatchObject({ code: "conflict" });
    await expect(service.answer({ ...yes, callId: "call_x" })).rejects.toMatchObject({ code: "not_found" });
  });

  test("can be answered by another process, which takes the run up", async () => {
    const first = await lab.service();
    await lab.approved(first, asks);
    const { runId } = await first.start({ flow: "asks", by: "me" });
    const [pending] = (await suspended(first, runId)).pending;
    await lab.stop(first);
    const only = await lab.service({ drives: "nothing" });
    await only.answer({ callId: pending?.callId ?? "", approve: false, by: "boss" });
    await lab.stop(only);
    const second = await lab.service();
    expect((await finished(second, runId)).value).toBe("refused by boss");
  });
});

describe("parents and children", () => {
  const parent: FlowFiles = {
    manifest: { id: "parent", grants: { flows: ["child", "missing"] } },
    script: `export default async function (input, host) {
      const started = await Promise.all(input.map((n) => host.flow.start("child", { n })));
      const ended = await Promise.all(started.map(({ runId }) => host.flow.wait(runId)));
      return ended.map(({ ok, value, error }) => ok ? value : error.message);
    }`,
  };
  const child: FlowFiles = {
    manifest: { id: "child", concurrency: { limit: 10 } },
    script: `export default async function ({ n }, host) {
      await host.signal.wait("go");
      if (n === 3) throw new Error("three");
      return n * n;
    }`,
  };

  test("a parent fans out, is suspended, and gets every child's end, across a restart", async () => {
    const first = await lab.service();
    await lab.approved(first, child);
    await lab.approved(first, parent);
    const { runId } = await first.start({ flow: "parent", input: [1, 2, 3, 4], by: "me" });
    const children = await until(async () => {
      const runs = await first.runs({ flow: "child", state: "suspended" });
      return runs.length === 4 ? runs : undefined;
    }, "four children wait");
    const [one, ...others] = children;
    if (one === undefined) throw new Error("no child");
    await first.signal({ runId: one.runId, name: "go", by: "me" });
    await finished(first, one.runId);
    await lab.stop(first);
    const second = await lab.service();
    for (const { runId: id } of others) await second.signal({ runId: id, name: "go", by: "me" });
    const report = await finished(second, runId);
    expect(report).toMatchObject({ status: "completed", value: [1, 4, "three", 16] });
    expect(await second.runs({ flow: "child" })).toHaveLength(4);
    const replay = await second.replay(runId);
    expect(replay).toMatchObject({ matched: true, calls: 8, divergence: null });
  });

  test("a child that cannot be started is an error that the script can catch", async () => {
    const service = await lab.service();
    await lab.approved(service, {
      ...parent,
      script: `export default async (input, host) => {
        const codes = [];
        for (const flow of ["missing", "other"]) await host.flow.start(flow).catch((e) => codes.push(e.code));
        await host.flow.wait("run_nobody").catch((e) => codes.push(e.code));
        return codes;
      };`,
    });
    const { runId } = await service.start({ flow: "parent", by: "me" });
    expect((await finished(service, runId)).value).toEqual(["not_found", "denied", "not_found"]);
  });
});

describe("a replay", () => {
  const busy: FlowFiles = {
    manifest: { id: "busy", grants: { kv: { maxBytes: 1000 } } },
    script: `export default async function (input, host) {
      const dice = [Math.random(), crypto.randomUUID(), Date.now()];
      await host.kv.set("dice", dice);
      await new Promise((resolve) => setTimeout(resolve, 30));
      await host.signal.wait("go");
      const first = await Promise.race([host.sleep(20).then(() => "sleep"), host.kv.get("dice").then(() => "kv")]);
      if (input === "fail") throw new RangeError("as asked");
      return { dice, first, later: Date.now() - dice[2] };
    }`,
  };

  test("matches, whatever the script made of time, chance and order, and however it ended", async () => {
    const service = await lab.service();
    await lab.approved(service, busy);
    for (const input of ["well", "fail"]) {
      const { runId } = await service.start({ flow: "busy", input, by: "me" });
      await suspended(service, runId);
      expect(await service.replay(runId)).toMatchObject({ matched: true, calls: 2 });
      await service.signal({ runId, name: "go", by: "me" });
      await finished(service, runId);
      expect(await service.replay(runId)).toMatchObject({ matched: true, calls: 4, divergence: null });
    }
    const values = await service.runs({ flow: "busy" });
    expect(values).toHaveLength(2);
  });

  test("tells the first difference, both sides, when the journal says something else", async () => {
    const honest = lab.store;
    const service = await lab.service();
    await lab.approved(service, busy);
    const { runId } = await service.start({ flow: "busy", by: "me" });
    await service.signal({ runId, name: "go", by: "me" });
    await finished(service, runId);
    await lab.stop(service);
    const changed = async (id: string): Promise<RunHistory | null> => {
      const history = await honest.history(id);
      if (history === null) return null;
      const calls = history.calls.map((call) =>
        call.position === 0 ? { ...call, name: "kv.delete" } : call,
      );
      return { ...history, calls };
    };
    lab.store = new Proxy(honest, {
      get: (store, name: keyof Store) => (name === "history" ? changed : store[name].bind(store)),
    });
    const second = await lab.service();
    const report = await second.replay(runId);
    expect(report).toMatchObject({
      matched: false,
      divergence: { where: "call 0", expected: { name: "kv.delete" }, actual: { name: "kv.set" } },
    });
  });
});

describe("going down", () => {
  test("drain suspends what waits and takes nothing new; the next process goes on", async () => {
    const first = await lab.service();
    await lab.approved(first, {
      manifest: { id: "naps" },
      script: `export default async (input, host) => { await host.sleep(1500); return "slept"; };`,
    });
    const { runId } = await first.start({ flow: "naps", by: "me" });
    await until(async () => ((await first.run(runId)).calls.length === 1 ? true : undefined), "it sleeps");
    await first.drain(10_000);
    await expect(first.start({ flow: "naps", by: "me" })).rejects.toMatchObject({ code: "unavailable" });
    await lab.stop(first);
    const second = await lab.service();
    expect(await finished(second, runId)).toMatchObject({ value: "slept" });
  });

  test("a waiting caller is let go when the service closes", async () => {
    const service = await lab.service();
    await lab.approved(service, asks);
    const { runId } = await service.start({ flow: "asks", by: "me" });
    await suspended(service, runId);
    const waiting = service.wait(runId, { through: "finished" });
    waiting.catch(() => undefined);
    await service.drain(1000);
    const closing = lab.stop(service);
    expect((await waiting).state).toBe("suspended");
    await closing;
  });
});
