// A process that owns a store is killed at random times: everything that it acknowledged is there, nothing is half there,
// and the next process goes on from it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSqliteStore, StoreHeld } from "../../packages/journal/src/index.js";
import { buildWriter, Writer } from "./program.js";
import { acknowledged, expectWhole } from "./work.js";

let folder = "";
let program = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "flowcell-journal-"));
  program = buildWriter(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a kill at any time loses nothing that was acknowledged and leaves nothing half", async () => {
  const path = join(folder, "crash", "store.db");
  let units = 0;
  for (let round = 0; round < 12; round += 1) {
    const writer = new Writer(program, "loop", path);
    // Some kills come while the file is made or recovered, most while units are written.
    const wait = Math.random() * 150;
    if (round % 4 !== 3) await writer.until((line) => line.startsWith("ok"));
    await delay(wait);
    writer.kill();
    expect(await writer.ended).toMatchObject({ signal: "SIGKILL" });
    const store = await openSqliteStore({ path });
    await expectWhole(store, writer.lines);
    await store.close();
    for (const last of acknowledged(writer.lines).values()) units += last + 1;
  }
  expect(units).toBeGreaterThan(12);
}, 300_000);

test("a second process is told at once who holds the store, and gets it when the holder is killed", async () => {
  const path = join(folder, "held", "store.db");
  const holder = new Writer(program, "hold", path);
  await holder.until((line) => line === "open");
  await expect(openSqliteStore({ path })).rejects.toThrow(StoreHeld);
  await expect(openSqliteStore({ path })).rejects.toThrow(`the store ${path} is held by another process`);
  const second = new Writer(program, "hold", path);
  expect(await second.until((line) => line.startsWith("refused"))).toContain("refused StoreHeld");
  holder.kill();
  await holder.ended;
  const store = await openSqliteStore({ path });
  await store.close();
});
