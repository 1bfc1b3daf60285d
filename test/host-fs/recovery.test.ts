// What is told of a call after a crash: from the note that was kept with its intent and from what the disk shows, a call
// happened, did not happen, or nobody can know. Each state of the disk is made as the crash would have left it.
import { createHash } from "node:crypto";
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { below, Ground, type Scripted } from "./ground.js";

let ground: Ground;
let script: Scripted;
let file: string;

beforeEach(() => {
  ground = new Ground();
  script = ground.script([{ mount: "data", access: "write" }]);
  file = join(ground.data, "f");
});

afterEach(() => {
  ground.remove();
  expect(below(ground.root), "descriptors left open").toEqual([]);
});

const unknown = { state: "unknown" };
const notApplied = { state: "not_applied" };

describe("fs.append", () => {
  const prepare = (key = "k"): ReturnType<Scripted["prepare"]> =>
    script.prepare({ idempotencyKey: key, signal: AbortSignal.abort() }, "append", "/data/f", "new");
  const recover = async (note: Awaited<ReturnType<typeof prepare>>): Promise<unknown> =>
    await script.recover(note, "append", "/data/f", "new");
  const applied = { state: "applied", value: { bytes: 3 } };

  test("that did not begin, happened as a whole, or in part", async () => {
    writeFileSync(file, "old");
    const note = await prepare();
    expect(await recover(note)).toEqual(notApplied);
    appendFileSync(file, "ne");
    expect(await recover(note)).toEqual(unknown);
    appendFileSync(file, "w");
    expect(await recover(note)).toEqual(applied);
    appendFileSync(file, "!");
    expect(await recover(note)).toEqual(unknown);
  });

  test("to a file that it makes itself", async () => {
    const note = await prepare();
    expect(await recover(note)).toEqual(notApplied);
    writeFileSync(file, "");
    expect(await recover(note)).toEqual(notApplied);
    writeFileSync(file, "new");
    expect(await recover(note)).toEqual(applied);
    writeFileSync(file, "other");
    expect(await recover(note)).toEqual(unknown);
  });

  test("to a file with other bytes at that place, that is shorter, another one, or gone", async () => {
    writeFileSync(file, "old");
    const note = await prepare();
    writeFileSync(file, "oldnow");
    expect(await recover(note)).toEqual(unknown);
    writeFileSync(file, "ol");
    expect(await recover(note)).toEqual(unknown);
    writeFileSync(join(ground.data, "g"), "old");
    renameSync(join(ground.data, "g"), file);
    expect(await recover(note)).toEqual(unknown);
    rmSync(file);
    expect(await recover(note)).toEqual(unknown);
    expect(await recover(null)).toEqual(unknown);
  });

  test("that was noted while another was under way: the same bytes may be the other's", async () => {
    writeFileSync(file, "old");
    const first = new AbortController();
    const of = { idempotencyKey: "first", signal: first.signal };
    await script.prepare(of, "append", "/data/f", "new");
    const second = await script.prepare({ idempotencyKey: "second" }, "append", "/data/f", "new");
    expect(await script.callWith(of, "append", "/data/f", "new")).toMatchObject({ ok: true });
    expect(await recover(second)).toEqual(unknown);
  });

  test("refuses before its intent what it would refuse later", async () => {
    await expect(script.prepare({}, "append", "/data/no/f", "new")).rejects.toMatchObject({
      code: "not_found",
    });
    await expect(script.prepare({}, "append", "/other/f", "new")).rejects.toMatchObject({ code: "denied" });
    await expect(script.prepare({}, "append", "/data", "new")).rejects.toMatchObject({ code: "conflict" });
  });
});

describe("fs.delete", () => {
  const prepare = (): ReturnType<Scripted["prepare"]> => script.prepare({}, "delete", "/data/f");
  const recover = async (note: Awaited<ReturnType<typeof prepare>>): Promise<unknown> =>
    await script.recover(note, "delete", "/data/f");

  test("of a file that is still there, gone, or another one", async () => {
    writeFileSync(file, "old");
    const note = await prepare();
    expect(await recover(note)).toEqual(notApplied);
    writeFileSync(join(ground.data, "g"), "old");
    renameSync(join(ground.data, "g"), file);
    expect(await recover(note)).toEqual(unknown);
    rmSync(file);
    expect(await recover(note)).toEqual({ state: "applied", value: true });
    expect(await recover(null)).toEqual(unknown);
  });

  test("of nothing", async () => {
    const note = await prepare();
    expect(await recover(note)).toEqual({ state: "applied", value: false });
    writeFileSync(file, "new");
    expect(await recover(note)).toEqual(unknown);
  });
});

describe("fs.write", () => {
  const recover = async (data: string | Uint8Array): Promise<unknown> =>
    await script.recover(null, "write", "/data/f", data);

  test("happened when the file has the content, else it is made again", async () => {
    expect(await recover("new")).toEqual(notApplied);
    writeFileSync(file, "old");
    expect(await recover("new")).toEqual(notApplied);
    writeFileSync(file, "new");
    expect(await recover("new")).toEqual({ state: "applied", value: { bytes: 3 } });
    expect(await recover(Buffer.from("new"))).toMatchObject({ state: "applied" });
    rmSync(file);
    symlinkSync("../outside/x", file);
    await expect(recover("new")).rejects.toMatchObject({ code: "denied" });
  });

  test("a second try with the same key takes away what the first one left", async () => {
    const left = `.flowcell-${createHash("sha256").update("k").digest("hex").slice(0, 32)}`;
    for (const leave of [
      () => writeFileSync(join(ground.data, left), "half of the cont"),
      () => symlinkSync("/etc/hostname", join(ground.data, left)),
    ]) {
      leave();
      const answer = await script.callWith({ idempotencyKey: "k" }, "write", "/data/f", "content");
      expect(answer).toEqual({ ok: true, value: { bytes: 7 } });
      expect(readdirSync(ground.data)).toEqual(["f"]);
    }
    mkdirSync(join(ground.data, left));
    expect(await script.callWith({ idempotencyKey: "k" }, "write", "/data/f", "content")).toMatchObject({
      ok: false,
    });
  });
});
