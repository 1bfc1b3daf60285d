// The commands for flows as processes of their own, over an embedded store: from install to replay, and mistakes on purpose.
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FlowBench, textAt } from "./flow-bench.js";

let bench: FlowBench;
beforeAll(() => {
  bench = new FlowBench();
});
afterAll(() => bench.remove());

const counter = `export default async (input, host) => {
  const before = (await host.kv.get("n")) ?? 0;
  await host.kv.set("n", before + 1);
  console.log("run", before + 1);
  return { runs: before + 1, bytes: new Uint8Array([1, 2]) };
};`;
const counterManifest = { grants: { kv: { maxBytes: 1024 } } };

describe("a flow's way", () => {
  let hash = "";
  let runId = "";

  test("install shows what it may reach and what it would call, and approves nothing", async () => {
    const { code, out } = await bench.run("install", bench.flow("counter", counterManifest, counter));
    expect(code).toBe(0);
    expect(out).toMatch(/^counter, version 1: installed\n/);
    expect(out).toContain("kv       1.0 KiB of its own keys and values");
    expect(out).toMatch(
      /dry run \(no call was carried out\): completed\n {2}kv\.get 'n'\n {2}kv\.set 'n', 1\n/,
    );
    hash = /hash {6}([0-9a-f]{64})/.exec(out)?.[1] ?? "";
    expect(out).toContain(`next: flowcell approve counter --hash ${hash.slice(0, 12)}`);
    expect(statSync(bench.data).mode & 0o777).toBe(0o700);
  });

  test("it does not start before it is approved", async () => {
    const { code, json, err } = await bench.json("start", "counter");
    expect(code).toBe(3);
    expect(json).toMatchObject({ ok: false, error: { code: "denied" } });
    expect(err).toContain("has no approved version");
  });

  test("approve wants the hash where nobody can be asked, and takes its beginning", async () => {
    const asked = await bench.run("approve", "counter");
    expect(asked.code).toBe(2);
    expect(asked.err).toContain(`flowcell approve counter --hash ${hash.slice(0, 12)}`);
    const wrong = await bench.run("approve", "counter", "--hash", "0123456789");
    expect(wrong.code).toBe(2);
    expect(wrong.err).toMatch(/has no version "0123456789"; .*the newest is/);
    const { code, json } = await bench.json("approve", "counter", "--hash", hash.slice(0, 12));
    expect(code).toBe(0);
    expect(json).toEqual({ ok: true, flow: "counter", hash, number: 1, state: "approved" });
  });

  test("start runs it in a confined worker and prints the result alone on standard output", async () => {
    const { code, json, err } = await bench.json("start", "counter");
    expect(code).toBe(0);
    expect(json).toMatchObject({
      ok: true,
      status: "completed",
      value: { runs: 1, bytes: { $type: "Uint8Array", base64: "AQI=" } },
      calls: [
        { position: 0, name: "kv.get", effect: "local", state: "done" },
        { position: 1, name: "kv.set", effect: "local", state: "done" },
      ],
      logs: [{ level: "log", text: "run 1" }],
    });
    expect(err).toContain(`no service running; using the store in ${bench.data}`);
    runId = textAt(json, "runId");
    const second = await bench.run("start", "counter");
    expect(second.out).toBe("{ runs: 2, bytes: Uint8Array(2) [ 1, 2 ] }\n");
    expect(second.err).toMatch(/\[log\] run 2\ncompleted: run_.* confined by wasm, seccomp/);
  });

  test("a key starts one run", async () => {
    const first = await bench.json("start", "counter", "--key", "monday");
    const again = await bench.json("start", "counter", "--key", "monday");
    expect(textAt(again.json, "runId")).toBe(textAt(first.json, "runId"));
    expect(again.err).toContain("the key was used before");
  });

  test("runs and journal show what happened", async () => {
    const list = await bench.json("runs", "--flow", "counter", "--state", "completed");
    expect(list.json).toMatchObject({ ok: true, runs: [{ status: "completed" }, {}, { runId }] });
    const one = await bench.run("runs", runId);
    expect(one.code).toBe(0);
    expect(one.out).toMatch(/0 {5}kv\.get {2}local {3}done/);
    const journal = await bench.run("journal", runId);
    expect(journal.out).toMatch(/1 .* kv\.set {2}\[ 'n', 1 \] {2}undefined\n/);
    const { json } = await bench.json("journal", runId);
    expect(json).toMatchObject({
      run: { runId, result: { runs: 1 } },
      calls: [{ args: ["n"] }, {}],
      deliveries: [{ order: 0 }, { order: 1 }],
    });
  });

  test("replay does it again and finds the same", async () => {
    const { code, json } = await bench.json("replay", runId);
    expect({ code, json }).toMatchObject({
      code: 0,
      json: { ok: true, matched: true, calls: 2, divergence: null },
    });
  });

  test("a new version is shown by what changed, reach first", async () => {
    const changed = counter
      .replace("before + 1 }", "before + 10 }")
      .replace("runs: before + 1", "runs: before + 10");
    const folder = bench.flow(
      "counter",
      { grants: { kv: { maxBytes: 2048 }, net: [{ host: "api.example.com" }] } },
      changed,
    );
    const { code } = await bench.run("install", folder);
    expect(code).toBe(0);
    const { out } = await bench.run("show", "counter", "--diff");
    expect(out).toMatch(
      /reach, compared with the approved version [0-9a-f]{12}:\n {2}\+ .*api\.example\.com/,
    );
    expect(out).toMatch(/\n-.*runs: before \+ 1,.*\n\+.*runs: before \+ 10,/);
    expect(out.indexOf("reach, compared")).toBeLessThan(out.indexOf("runs: before"));
    const list = await bench.run("list");
    expect(list.out).toMatch(
      /counter: version 2 waits for approval \(flowcell approve counter --hash [0-9a-f]{12}\)/,
    );
    const rejected = await bench.json("reject", "counter", "--reason", "any host");
    expect(rejected.json).toMatchObject({ ok: true, number: 2, state: "rejected" });
    const shown = await bench.json("show", "counter");
    expect(shown.json).toMatchObject({ state: "rejected", decisionReason: "any host" });
  });

  test("disabled it does not start, enabled it does, revoked it does not", async () => {
    expect((await bench.run("disable", "counter", "--reason", "holiday")).code).toBe(0);
    expect((await bench.run("list")).out).toContain("counter: disabled by");
    const refused = await bench.json("start", "counter", "--no-wait");
    expect(refused.code).toBe(3);
    expect(refused.json).toMatchObject({ ok: false, error: { code: "denied" } });
    expect(refused.err).toMatch(/counter.* is disabled .*holiday/);
    expect((await bench.run("enable", "counter")).code).toBe(0);
    expect((await bench.run("start", "counter")).code).toBe(0);
    expect((await bench.json("revoke", "counter")).json).toMatchObject({ ok: true, hash, state: "revoked" });
    expect((await bench.run("start", "counter")).code).toBe(3);
  });
});

describe("runs that wait", () => {
  test("an approval: start ends with 8 and says how to answer, the answer goes on with the run", async () => {
    const asks = `export default async (input, host) => {
      const { approved, value, by } = await host.approval.request("ship " + input, { detail: { n: 1 } });
      return { approved, value, by: typeof by };
    };`;
    await bench.approved(bench.flow("ship", {}, asks));
    const started = await bench.json("start", "ship", "--input", '"it"');
    expect(started.code).toBe(8);
    expect(started.json).toMatchObject({
      ok: false,
      status: "suspended",
      pending: [{ name: "approval.request", title: "ship it", args: { n: 1 } }],
    });
    const callId = textAt(started.json, "pending.0.callId");
    const text = await bench.run("runs", textAt(started.json, "runId"));
    expect(text.err).toContain(`flowcell approve ${callId}`);
    const answered = await bench.json("approve", callId, "--value", '{"box":3}');
    expect(answered.code).toBe(0);
    expect(answered.json).toMatchObject({
      ok: true,
      callId,
      approved: true,
      run: { status: "completed", value: { approved: true, value: { box: 3 }, by: "string" } },
    });
    const other = await bench.run("reject", callId);
    expect(other.code).toBe(2);
    expect(other.err).toContain("was answered differently before");
    const unknown = await bench.run("approve", "call_0123456789012345678901");
    expect(unknown.code).toBe(2);
  });

  test("a signal: it is taken once, and the run goes on", async () => {
    await bench.approved(
      bench.flow("paid", {}, 'export default async (_, host) => await host.signal.wait("paid");'),
    );
    const { json } = await bench.json("start", "paid");
    const runId = textAt(json, "runId");
    const sent = await bench.json("signal", runId, "paid", "--value", '{"cents":5}', "--id", "one");
    expect(sent.json).toMatchObject({
      ok: true,
      sent: true,
      run: { status: "completed", value: { cents: 5 } },
    });
    const late = await bench.run("signal", runId, "paid");
    expect(late.code).toBe(2);
    expect(late.err).toContain("is finished");
  });

  test("cancel ends a run that waits, and a finished one is said to be finished", async () => {
    const { json } = await bench.json("start", "paid");
    const runId = textAt(json, "runId");
    const cancelled = await bench.json("cancel", runId);
    expect(cancelled.json).toMatchObject({ ok: true, run: { status: "cancelled", state: "finished" } });
    const again = await bench.run("cancel", runId);
    expect(again.code).toBe(2);
    expect(again.err).toContain("is finished already (cancelled)");
  });

  test("without waiting the run is left to whoever comes next", async () => {
    const { code, out } = await bench.run("start", "paid", "--no-wait");
    expect(code).toBe(0);
    const runId = out.trim();
    expect(runId).toMatch(/^run_[\w-]{22}$/);
    expect((await bench.json("runs", runId)).json).toMatchObject({ state: "pending", calls: [] });
    const sent = await bench.json("signal", runId, "paid");
    expect(sent.json).toMatchObject({ run: { status: "completed" } });
  });
});

describe("mistakes", () => {
  test("there is no data folder yet: nothing is made by looking", async () => {
    const none = join(bench.folder, "none");
    const { code, err } = await bench.run("list", "--data", none);
    expect(code).toBe(78);
    expect(err).toBe(
      `flowcell: there is no data folder ${none}; flowcell install makes it, --data or FLOWCELL_DATA names another\n`,
    );
    expect(existsSync(none)).toBe(false);
  });

  test("a data folder that others may enter is refused", async () => {
    const open = join(bench.folder, "open");
    mkdirSync(open);
    chmodSync(open, 0o755);
    const { code, json } = await bench.json("list", "--data", open);
    expect(code).toBe(78);
    expect(json).toMatchObject({
      ok: false,
      error: { code: "configuration", message: expect.stringContaining(`chmod 700 ${open}`) },
    });
  });

  test("a store that is none is refused", async () => {
    const bad = join(bench.folder, "bad");
    mkdirSync(bad, { mode: 0o700 });
    writeFileSync(join(bad, "flows.db"), "this is no database at all, but long enough to be looked at", {
      mode: 0o600,
    });
    const { code, err } = await bench.run("list", "--data", bad);
    expect(code).toBe(75);
    expect(err.trim().split("\n")).toHaveLength(1);
  });

  test("an approval names what is missing, and keeps what it was given", async () => {
    const manifest = {
      grants: {
        fs: [{ mount: "out", access: "write" }],
        net: [{ host: "api.example.com" }],
        secrets: [{ name: "key", hosts: ["api.example.com"], header: "authorization" }],
      },
    };
    const folder = bench.flow("needs", manifest, "export default () => 1");
    const installed = await bench.json("install", folder);
    const hash = textAt(installed.json, "hash");
    const missing = await bench.run("approve", "needs", "--hash", hash);
    expect(missing.code).toBe(2);
    expect(missing.err).toMatch(/mount "out" is not configured; give it a folder with: --mount out=DIR/);
    expect(missing.err).toMatch(/secret "key"/);
    const typed = await bench.run("approve", "needs", "--hash", hash, "--secret", "key=s3cret");
    expect(typed.code).toBe(2);
    expect(typed.err).toContain("key=env:VARIABLE");
    expect(typed.err).not.toContain("s3cret");
    const options = ["--mount", `out=${bench.folder}`, "--secret", "key=env:HOME"];
    expect((await bench.run("approve", "needs", "--hash", hash, ...options)).code).toBe(0);
    const kept: unknown = JSON.parse(readFileSync(join(bench.data, "settings.json"), "utf8"));
    expect(kept).toMatchObject({ mounts: { out: bench.folder }, secrets: { key: "env:HOME" } });
  });

  test.each([
    [["start", "cuonter"], 2, /there is no flow "cuonter": did you mean counter\?/],
    [["start", "./paid"], 2, /a folder runs with: flowcell run \.\/paid/],
    [["run", "paid"], 2, /if paid is an installed flow: flowcell start paid/],
    [["start", "paid", "--input", "{"], 2, /--input is not JSON/],
    [["signal", "run_x", "n", "--value", "word"], 2, /--value is not JSON/],
    [["runs", "run_0123456789012345678901"], 2, /run_0123456789012345678901/],
    [["runs", "--state", "runing"], 2, /did you mean running\?/],
    [["runs", "--limit", "0"], 2, /--limit must be a whole number from 1 to 1000/],
    [["reconcile", "run_x"], 2, /by one of --observed, --not-applied, --cancel/],
    [["reconcile", "run_x", "--not-applied", "--value", "1"], 2, /it goes with --observed/],
    [["approve", "paid", "--value", "1"], 2, /--value answers a call/],
    [["approve", "call_x", "--hash", "12345678"], 2, /--hash is for versions/],
    [["drain"], 2, /no service runs/],
    [["install", "package.json"], 2, /./],
    [["install", "examples"], 2, /flow\.json/],
  ])("%j is one line and code %i", async (args, code, text) => {
    const ran = await bench.run(...args);
    expect(ran).toMatchObject({ code, out: "" });
    expect(ran.err).toMatch(text);
    expect(ran.err).not.toMatch(/\n {4}at /);
  });

  test("a manifest's mistakes are told with their places, all at once", async () => {
    const folder = bench.flow("typo", { grant: {}, trigger: { kind: "corn" } }, "export default () => 1");
    const { code, out } = await bench.run("check", folder);
    expect(code).toBe(1);
    expect(out).toMatch(/flow\.json:1:\d+: .*"grant".*did you mean "grants"/);
    expect(out).toMatch(/trigger/);
  });
});
