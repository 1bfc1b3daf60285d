// Installing, reviewing and deciding over real workers and a real store file: what a version is, what a reviewer sees, and
// that no byte changes under an approval.
import { cpSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { defineHostFunction } from "@flowcell/host";
import { openSqliteStore, type Store } from "@flowcell/journal";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { ceilings, type FlowFiles, finished, Laboratory, suspended, until } from "./laboratory.js";

const lab = new Laboratory();
afterEach(() => lab.reset());
afterAll(() => lab.close());

const watcher: FlowFiles = {
  manifest: {
    id: "watcher",
    grants: {
      net: [{ host: "api.example.com", port: 443 }],
      kv: { maxBytes: 1000 },
      fs: [{ mount: "out", access: "write" }],
    },
  },
  script: `import { url } from "./lib/url.ts"; import pad from "pad";
export default async function (input, host) {
  const response = await fetch(url + pad(7));
  if (!response.ok) throw new Error("no");
  await host.kv.set("last", response.status);
  const seen = await host.fs.list("/out");
  console.log("seen", seen.length);
  await host.fs.write("/out/a.txt", "x".repeat(1000));
  return "done";
}\n`,
  files: {
    "lib/url.ts": 'export const url: string = "https://api.example.com/v1/";\n',
    "node_modules/pad/package.json": '{"name": "pad", "main": "index.js"}',
    "node_modules/pad/index.js": "module.exports = (n) => String(n).padStart(3, '0');\n",
  },
};

describe("installing", () => {
  test("shows source, bundle, reach and what the script would call, with nothing behind it", async () => {
    const service = await lab.service();
    const folder = lab.folder(watcher);
    const report = await service.install({ folder, by: "author" });
    expect(report).toMatchObject({
      flow: "watcher",
      added: true,
      number: 1,
      state: "installed",
      installedBy: "author",
      difference: null,
    });
    expect(report.sources.map(({ path }) => path)).toEqual([
      "flow.ts",
      "lib/url.ts",
      "node_modules/pad/index.js",
    ]);
    expect(report.bundle).toContain("padStart");
    expect(report.reach.hosts).toEqual(["allow api.example.com, port 443, GET, HEAD"]);
    expect(report.reach.mounts).toEqual(["write /out"]);
    expect(report.reach.remarks).toContain("grants.fs[0]: writes, replaces and deletes files in all of /out");
    const { dryRun } = report;
    expect(dryRun).toMatchObject({ status: "completed", logs: ["log: seen 0"] });
    expect(dryRun?.calls.map(({ name }) => name)).toEqual(["fetch", "kv.set", "fs.list", "fs.write"]);
    expect(dryRun?.calls[0]?.args).toContain("https://api.example.com/v1/007");
    expect(dryRun?.calls[3]?.args.length).toBeLessThan(600);
    expect(await service.show("watcher", report.hash.slice(0, 8))).toMatchObject({ hash: report.hash });
  });

  test("is the same version for the same bytes, from wherever they come", async () => {
    const service = await lab.service();
    const folder = lab.folder(watcher);
    const { hash } = await service.install({ folder, by: "author" });
    const copy = join(lab.root, "deep", "er", "copy of it");
    mkdirSync(join(copy, ".."), { recursive: true });
    cpSync(folder, copy, { recursive: true });
    writeFileSync(join(copy, "README.md"), "not part of the flow");
    expect(await service.install({ folder: copy, by: "somebody" })).toMatchObject({
      hash,
      added: false,
      number: 1,
      installedBy: "author",
    });
  });

  test("gives another version, which needs its own approval, for one changed byte anywhere", async () => {
    const service = await lab.service({ mounts: new Map([["out", lab.root]]) });
    const approved = await lab.approved(service, watcher);
    const changes: FlowFiles[] = [
      { ...watcher, script: `${watcher.script}\n` },
      { ...watcher, manifest: { ...watcher.manifest, description: "x" } },
      ...Object.entries(watcher.files ?? {})
        .filter(([path]) => !path.endsWith(".json"))
        .map(([path, text]) => ({ ...watcher, files: { ...watcher.files, [path]: `${text}\n` } })),
    ];
    const hashes = new Set([approved]);
    for (const flow of changes) {
      const { hash, added, state } = await service.install({ folder: lab.folder(flow), by: "author" });
      expect({ added, state }).toEqual({ added: true, state: "installed" });
      hashes.add(hash);
    }
    expect(hashes.size).toBe(changes.length + 1);
    expect((await service.list())[0]).toMatchObject({ approvedHash: approved });
  });

  test("refuses what is no flow, with every problem at its place", async () => {
    const service = await lab.service();
    await expect(service.install({ folder: lab.root, by: "author" })).rejects.toMatchObject({
      code: "invalid",
      problems: [expect.stringContaining("flow.json")],
    });
    const broken = lab.folder({
      manifest: { id: "x", grant: {}, version: 3 },
      script: "export default () => 1;",
    });
    await expect(service.install({ folder: broken, by: "author" })).rejects.toMatchObject({
      code: "invalid",
      problems: [expect.stringMatching(/^flow\.json:1:\d+: .*grant/), expect.stringContaining("version")],
    });
    const linked = lab.folder({ manifest: { id: "x" }, script: "" });
    symlinkSync("/etc/passwd", join(linked, "lib.ts"));
    writeFileSync(join(linked, "flow.ts"), 'import "./lib.ts"; export default () => 1;');
    await expect(service.install({ folder: linked, by: "author" })).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("outside the folder"),
    });
    const greedy = lab.folder({
      manifest: { id: "x", budgets: { cpuMs: 60_000 } },
      script: "export default () => 1;",
    });
    await expect(service.install({ folder: greedy, by: "author" })).rejects.toMatchObject({
      message: expect.stringContaining("cpuMs"),
    });
    expect(await service.list()).toEqual([]);
  });

  test("a cron trigger that is none, or whose input the schema refuses, is refused", async () => {
    const service = await lab.service();
    const cron = (over: object): string =>
      lab.folder({
        manifest: { id: "c", trigger: { kind: "cron", expression: "0 7 * * *" }, ...over },
        script: "export default () => 1;",
      });
    const odd = cron({ trigger: { kind: "cron", expression: "0 25 * * *" } });
    await expect(service.install({ folder: odd, by: "author" })).rejects.toMatchObject({
      message: expect.stringContaining("trigger.expression"),
    });
    const strict = cron({ input: { type: "string" } });
    await expect(service.install({ folder: strict, by: "author" })).rejects.toMatchObject({
      message: expect.stringContaining("scheduledAt"),
    });
  });

  test("a dry run that fails or never ends is information, not a refusal", async () => {
    const service = await lab.service();
    const outcomes: Record<string, unknown> = {};
    const scripts = {
      throws: `export default () => { throw new Error("on nothing"); };`,
      endless: `export default async (input, host) => { for (;;) await host.sleep(1000); };`,
      waits: `export default () => new Promise(() => {});`,
      timers: `export default async () => { await new Promise((r) => setTimeout(r, 3600000)); return 1; };`,
      spins: `export default () => { for (;;); };`,
      example: `export default (input) => console.log(JSON.stringify(input));`,
    };
    for (const [id, script] of Object.entries(scripts)) {
      const input = {
        type: "object",
        properties: { n: { type: "integer", minimum: 3 }, s: { enum: ["a", "b"] } },
      };
      const folder = lab.folder({ manifest: { id, input }, script });
      const { dryRun } = await service.install({ folder, by: "author" });
      outcomes[id] = [dryRun?.status, dryRun?.calls.length, dryRun?.logs];
    }
    expect(outcomes).toEqual({
      throws: ["script_error", 0, []],
      endless: ["budget_exceeded", 100, []],
      waits: ["script_error", 0, []],
      timers: ["completed", 0, []],
      spins: ["budget_exceeded", 0, []],
      example: ["completed", 0, ['log: {"n":3,"s":"a"}']],
    });
  });
});

describe("approving", () => {
  test("wants the whole hash, names the nearest, and does it twice without a word", async () => {
    const service = await lab.service();
    const plain: FlowFiles = { manifest: { id: "plain" }, script: "export default () => 1;" };
    const { hash } = await service.install({ folder: lab.folder(plain), by: "author" });
    const approve = (text: string, flow = "plain"): Promise<void> =>
      service.approve({ flow, hash: text, by: "op" });
    await expect(approve(hash.slice(0, 12))).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining(hash),
    });
    const wrong = `${hash.slice(0, -1)}${hash.endsWith("0") ? "1" : "0"}`;
    await expect(approve(wrong)).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining(hash),
    });
    await expect(approve(hash, "plian")).rejects.toMatchObject({
      message: expect.stringContaining("did you mean plain?"),
    });
    await approve(hash);
    await approve(hash);
    const actions = (await lab.store.audit(10)).map(({ action, actor }) => `${action} ${actor}`);
    expect(actions).toEqual(["flow.approve op", "flow.install author"]);
    expect(await service.show("plain")).toMatchObject({ state: "approved", decidedBy: "op" });
  });

  test("fails with the remedy while a mount or a secret is missing", async () => {
    const flow: FlowFiles = {
      manifest: {
        id: "needs",
        grants: {
          fs: [{ mount: "data", access: "read" }],
          net: [{ host: "a.example" }],
          secrets: [{ name: "token", hosts: ["a.example"], header: "Authorization", scheme: "Bearer" }],
        },
      },
      script: "export default () => 1;",
    };
    const without = await lab.service();
    const { hash } = await without.install({ folder: lab.folder(flow), by: "author" });
    await expect(without.approve({ flow: "needs", hash, by: "op" })).rejects.toMatchObject({
      code: "invalid",
      problems: [
        expect.stringContaining("--mount data=DIR"),
        expect.stringContaining("--secret token=env:VARIABLE"),
      ],
    });
    await lab.stop(without);
    const nowhere = await lab.service({
      mounts: new Map([["data", join(lab.root, "nowhere")]]),
      secretValue: () => "s",
    });
    await expect(nowhere.approve({ flow: "needs", hash, by: "op" })).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("data"),
    });
    await lab.stop(nowhere);
    const whole = await lab.service({ mounts: new Map([["data", lab.root]]), secretValue: () => "s" });
    await whole.approve({ flow: "needs", hash, by: "op" });
    expect((await whole.show("needs")).state).toBe("approved");
  });

  test("shows what is new and what is gone against the approved version", async () => {
    const service = await lab.service();
    const flow = (grants: object, budgets: object = {}): FlowFiles => ({
      manifest: { id: "grows", grants, budgets },
      script: "export default () => 1;",
    });
    const first = await lab.approved(
      service,
      flow({ net: [{ host: "a.example", port: 443 }], flows: ["x"] }),
    );
    const wider = flow({ net: [{ host: "*", methods: ["GET", "POST"] }], events: ["done"] }, { cpuMs: 2000 });
    const { difference, reach } = await service.install({ folder: lab.folder(wider), by: "author" });
    expect(difference).toEqual({
      approvedHash: first,
      added: ["net: allow *, any port, GET, POST", "event: done", "budget: cpuMs 2000"],
      removed: ["net: allow a.example, port 443, GET, HEAD", "flow: x", "budget: cpuMs 1000"],
    });
    expect(reach.remarks).toEqual([
      "grants.net[0]: any host on the internet",
      "grants.net[0]: any port of *",
      "grants.net[0]: may change things at * (POST)",
      "grants.net: patterns without any rule that denies",
      "budgets.cpuMs: 2000, more than the usual 1000",
    ]);
  });
});

describe("a version", () => {
  test("has no function that was not granted, and the embedder's tools by their patterns", async () => {
    const tool = (name: string) =>
      defineHostFunction({
        name,
        doc: "A tool.",
        effect: "read",
        grant: "tools",
        input: z.tuple([]),
        handler: () => name,
      });
    const functions = ["tools.calendar.list", "tools.calendar.add", "tools.mail.send"].map(tool);
    const service = await lab.service({ functions });
    await lab.approved(service, {
      manifest: { id: "tools", grants: { tools: ["calendar.*"] } },
      script: `export default async (input, host) => {
        const codes = [];
        for (const call of [
          () => host.tools.calendar.list(), () => host.tools.calendar.add(), () => host.tools.mail.send(),
          () => host.kv.get("x"), () => fetch("https://a.example"), () => host.fs.read("/a/b"),
          () => host.flow.start("x"), () => host.event.emit("x"),
        ]) codes.push(await (async () => call())().catch((e) => e.code));
        return codes;
      };`,
    });
    const { runId } = await service.start({ flow: "tools", by: "me" });
    const report = await finished(service, runId);
    expect(report.error).toBeUndefined();
    expect(report.value).toEqual([
      "tools.calendar.list",
      "tools.calendar.add",
      ...Array.from({ length: 6 }, () => "denied"),
    ]);
  });

  test("runs from what was stored, in a store file, after its folder is gone and the process too", async () => {
    const path = join(lab.root, "store.sqlite");
    lab.store = await openSqliteStore({ path });
    const first = await lab.service();
    await lab.approved(first, {
      manifest: { id: "kept" },
      script: `import { n } from "./n.ts"; export default (input) => { if (input) throw new Error("x"); return n; };`,
      files: { "n.ts": "\n\nexport const n: number = 41 + 1;\n" },
    });
    await lab.stop(first);
    await lab.store.close();
    lab.store = await openSqliteStore({ path });
    const second = await lab.service();
    const { runId } = await second.start({ flow: "kept", by: "me" });
    expect((await finished(second, runId)).value).toBe(42);
    const failing = await second.start({ flow: "kept", input: true, by: "me" });
    expect((await finished(second, failing.runId)).error?.place).toMatchObject({ file: "flow.ts", line: 1 });
    await lab.stop(second);
    await lab.store.close();
  });

  test("waits while its mount is missing, which is told, and goes on when it is there again", async () => {
    const mount = join(lab.root, "mount");
    mkdirSync(mount);
    writeFileSync(join(mount, "a.txt"), "content");
    const mounts = new Map([["m", mount]]);
    const first = await lab.service({ mounts });
    await lab.approved(first, {
      manifest: { id: "reads", grants: { fs: [{ mount: "m", access: "read" }] } },
      script: `export default async (input, host) => { await host.signal.wait("go"); return host.fs.read("/m/a.txt"); };`,
    });
    const { runId } = await first.start({ flow: "reads", by: "me" });
    await suspended(first, runId);
    await lab.stop(first);
    const without = await lab.service();
    await without.signal({ runId, name: "go", by: "me" });
    const told = await until(
      async () => (await lab.store.audit(10)).find(({ action }) => action === "flow.waits"),
      "somebody is told",
    );
    expect(told.detail).toContain('"m"');
    expect((await without.run(runId)).state).not.toBe("finished");
    await lab.stop(without);
    const again = await lab.service({ mounts });
    expect(await finished(again, runId)).toMatchObject({ ok: true, value: "content" });
  });

  test("has the folder that is mounted now, also when it was replaced while the service ran", async () => {
    const mount = join(lab.root, "replaced");
    const put = (content: string): void => {
      mkdirSync(mount);
      writeFileSync(join(mount, "a.txt"), content);
    };
    put("old");
    const service = await lab.service({ mounts: new Map([["m", mount]]) });
    await lab.approved(service, {
      manifest: { id: "reads", grants: { fs: [{ mount: "m", access: "read" }] }, concurrency: { limit: 5 } },
      script: `export default async (input, host) => {
        const before = await host.fs.read("/m/a.txt");
        if (input === "wait") await host.signal.wait("go");
        return [before, await host.fs.read("/m/a.txt")];
      };`,
    });
    const waits = await service.start({ flow: "reads", input: "wait", by: "me" });
    await suspended(service, waits.runId);
    renameSync(mount, `${mount}.old`);
    put("new");
    const next = await service.start({ flow: "reads", by: "me" });
    expect((await finished(service, next.runId)).value).toEqual(["new", "new"]);
    await service.signal({ runId: waits.runId, name: "go", by: "me" });
    expect((await finished(service, waits.runId)).value).toEqual(["old", "new"]);
  });

  test("does not run when what is stored is not what was approved", async () => {
    const honest = lab.store;
    const first = await lab.service();
    await lab.approved(first, { manifest: { id: "kept" }, script: "export default () => 1;" });
    await lab.stop(first);
    const changed: Partial<Store> = {
      version: async (flow, hash) => {
        const version = await honest.version(flow, hash);
        return version === null ? null : { ...version, bundle: version.bundle.replace("1", "2") };
      },
    };
    lab.store = new Proxy(honest, {
      get: (store, name: keyof Store) => changed[name] ?? store[name].bind(store),
    });
    const second = await lab.service();
    const { runId } = await second.start({ flow: "kept", by: "me" });
    const report = await finished(second, runId);
    expect(report).toMatchObject({ status: "denied", error: { code: "not_approved" }, confinement: null });
    expect(report.error?.message).toContain("not what was approved");
  });

  test("is shown and not run while it asks for more than the operator gives now; others go on", async () => {
    const first = await lab.service();
    const event = { kind: "event", name: "a.b" };
    const wants = (id: string, budgets: object): FlowFiles => ({
      manifest: { id, budgets, trigger: event },
      script: "export default () => 1;",
    });
    await lab.approved(first, wants("greedy", { cpuMs: 5000 }));
    await lab.approved(first, wants("modest", {}));
    await lab.stop(first);
    const second = await lab.service({ ceilings: { ...ceilings, cpuMs: 2000 } });
    expect((await second.list()).map(({ flow, trigger }) => [flow, trigger])).toEqual([
      ["greedy", "event a.b"],
      ["modest", "event a.b"],
    ]);
    expect((await second.show("greedy")).reach.budgets.cpuMs).toBe(1000);
    await expect(second.start({ flow: "greedy", by: "me" })).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("cpuMs"),
    });
    const runs = await second.emit({ name: "a.b", eventId: "e", by: "me" });
    expect(runs).toHaveLength(1);
    expect((await finished(second, runs[0] ?? "")).flow).toBe("modest");
    const [skip] = (await lab.store.audit(10)).filter(({ action }) => action === "event.skip");
    expect(skip).toMatchObject({ flow: "greedy", detail: expect.stringContaining("cpuMs") });
  });
});
