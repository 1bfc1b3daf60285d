// What a store does to the process that owns it: nothing before it is opened, nothing when it is idle.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildWriter, Writer } from "./program.js";

let folder = "";
let program = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "flowcell-journal-"));
  program = buildWriter(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("what was asked keeps the process alive until it is answered; an idle store does not", async () => {
  const writer = new Writer(program, "idle", join(folder, "idle", "store.db"));
  expect(await writer.ended).toEqual({ code: 0, signal: null });
  expect(writer.lines).toEqual(Array.from({ length: 50 }, (_, n) => `ok run_0 ${n}`));
}, 60_000);

test("SQLite is loaded when a store is opened, not before", async () => {
  const writer = new Writer(program, "load", join(folder, "load", "store.db"));
  expect(await writer.ended).toEqual({ code: 0, signal: null });
  expect(writer.lines).toEqual(["before none", "after sqlite"]);
}, 60_000);
