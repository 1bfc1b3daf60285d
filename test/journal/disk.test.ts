// Disks that are slow, full or broken. A store that cannot write fails for good, says so to everybody, and what it had
// acknowledged is in the file; a flush that failed is not tried again, even though the disk works once more.
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSqliteStore } from "../../packages/journal/src/index.js";
import { buildDisk, buildWriter, Writer } from "./program.js";
import { acknowledged, expectWhole } from "./work.js";

let folder = "";
let program = "";
let library = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "flowcell-journal-"));
  program = buildWriter(folder);
  library = buildDisk(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Ground {
  readonly path: string;
  readonly order: string;
  readonly env: Readonly<Record<string, string>>;
}

function ground(name: string): Ground {
  mkdirSync(join(folder, name), { mode: 0o700 });
  const order = join(folder, name, "order");
  return {
    path: join(folder, name, "store.db"),
    order,
    env: { LD_PRELOAD: library, FLOWCELL_TEST_DISK: order },
  };
}

/** The disk finds a whole order or none. */
function give(order: string, what: string): void {
  writeFileSync(`${order}.draft`, what);
  renameSync(`${order}.draft`, order);
}

/** The writer ended by itself, told all four runs and everybody after them, and left a whole store. */
async function expectFailed(writer: Writer, path: string): Promise<void> {
  expect(await writer.ended).toEqual({ code: 75, signal: null });
  const failures = writer.lines.filter((line) => line.startsWith("failed"));
  expect(failures).toHaveLength(4);
  for (const line of failures) expect(line).toMatch(/^failed StoreFailure the store has failed: .*\(SQLITE_/);
  const later = writer.lines.filter((line) => line.startsWith("later"));
  expect(later).toHaveLength(2);
  for (const line of later) expect(line).toMatch(/^later StoreFailure the store has failed/);
  const store = await openSqliteStore({ path });
  await expectWhole(store, writer.lines);
  await store.close();
}

test.each([
  ["a flush that fails once", "e"],
  ["a write that finds the disk full once", "w"],
])(
  "%s ends the store for good and loses nothing that was acknowledged",
  async (_what, what) => {
    const { path, order, env } = ground(`order-${what}`);
    const writer = new Writer(program, "loop", path, { env });
    await writer.until((line) => line.endsWith(" 20"));
    give(order, what);
    await expectFailed(writer, path);
  },
  120_000,
);

test("a file that may not grow ends the store for good and loses nothing that was acknowledged", async () => {
  const { path } = ground("limit");
  const writer = new Writer(program, "loop", path, { fileKilobytes: 2_000 });
  await expectFailed(writer, path);
  expect(Math.max(...acknowledged(writer.lines).values())).toBeGreaterThan(10);
}, 120_000);

test("the event loop goes on while a flush takes long", async () => {
  const { path, order, env } = ground("slow");
  const writer = new Writer(program, "slow", path, { env });
  await writer.until((line) => line.startsWith("turns"));
  give(order, "s");
  // Of the hundred and fifty turns that a flush of a second and a half leaves time for, a busy machine still gives many.
  await writer.until((line) => Number(line.split(" ")[1]) >= 30);
  writer.kill();
  await writer.ended;
}, 120_000);
