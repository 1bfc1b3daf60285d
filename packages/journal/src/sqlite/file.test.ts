// Which files become a store, and which are refused with what to do about it.
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { StoreFailure, StoreHeld, StoreUnreadable } from "../store.js";
import { startedRun } from "../testing/samples.js";
import { loadDriver } from "./driver.js";
import { migrate, migrations } from "./migrations.js";
import { openSqliteStore } from "./store.js";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "flowcell-store-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const mode = (path: string): number => statSync(path).mode & 0o777;

test("a new store is this user's alone, with every file beside it", async () => {
  const home = join(folder, "deep", "home");
  const store = await openSqliteStore({ path: join(home, "store.db") });
  await startedRun(store, "run_a");
  expect(mode(home)).toBe(0o700);
  expect(readdirSync(home).sort()).toEqual(["store.db", "store.db-wal"]);
  for (const name of readdirSync(home)) expect(mode(join(home, name))).toBe(0o600);
  await store.close();
  expect(readdirSync(home)).toEqual(["store.db"]);
});

test("a folder or a file that others can reach is refused, and opened again once it is closed to them", async () => {
  const path = join(folder, "store.db");
  await (await openSqliteStore({ path })).close();
  chmodSync(folder, 0o750);
  await expect(openSqliteStore({ path })).rejects.toThrow(`chmod 700 ${folder}`);
  await expect(openSqliteStore({ path })).rejects.toThrow(/a folder of its own, .*: \S+\/state\/[\w.]+;/);
  chmodSync(folder, 0o700);
  chmodSync(path, 0o640);
  await expect(openSqliteStore({ path })).rejects.toThrow(`chmod 600 ${path}`);
  await expect(openSqliteStore({ path })).rejects.toThrow(StoreUnreadable);
  chmodSync(path, 0o600);
  await (await openSqliteStore({ path })).close();
});

test("a file that is a link, has two names or is no file is refused", async () => {
  const path = join(folder, "store.db");
  await (await openSqliteStore({ path })).close();
  symlinkSync(path, join(folder, "link.db"));
  await expect(openSqliteStore({ path: join(folder, "link.db") })).rejects.toThrow(/is a link/);
  symlinkSync(join(folder, "nowhere"), join(folder, "dangling.db"));
  await expect(openSqliteStore({ path: join(folder, "dangling.db") })).rejects.toThrow(/is a link/);
  expect(existsSync(join(folder, "nowhere"))).toBe(false);
  mkdirSync(join(folder, "folder.db"));
  await expect(openSqliteStore({ path: join(folder, "folder.db") })).rejects.toThrow(/is not a file/);
  linkSync(path, join(folder, "second.db"));
  await expect(openSqliteStore({ path })).rejects.toThrow(/2 names/);
  for (const odd of ["", " store.db", join(folder, "store.db "), join(folder, "a\0b")])
    await expect(openSqliteStore({ path: odd })).rejects.toThrow(StoreUnreadable);
});

test("a folder is reached through links", async () => {
  mkdirSync(join(folder, "real"), { mode: 0o700 });
  symlinkSync(join(folder, "real"), join(folder, "alias"));
  const store = await openSqliteStore({ path: join(folder, "alias", "store.db") });
  await expect(openSqliteStore({ path: join(folder, "real", "store.db") })).rejects.toThrow(StoreHeld);
  await store.close();
});

test("what is no store is refused and left as it is", async () => {
  const path = join(folder, "garbage.db");
  for (const contents of ["not a database at all, but long enough to have a header\n".repeat(40), "short"]) {
    writeFileSync(path, contents, { mode: 0o600 });
    await expect(openSqliteStore({ path })).rejects.toThrow(StoreUnreadable);
    expect(readFileSync(path, "utf8")).toBe(contents);
  }
});

test("an SQLite file of another program is refused and left as it is", async () => {
  const path = join(folder, "other.db");
  const other = new (loadDriver())(path, {});
  other.exec("CREATE TABLE things (x); INSERT INTO things VALUES (1)");
  other.close();
  chmodSync(path, 0o600);
  await expect(openSqliteStore({ path })).rejects.toThrow(/another program/);
  await expect(openSqliteStore({ path })).rejects.toThrow(StoreUnreadable);
  const again = new (loadDriver())(path, {});
  expect(again.prepare("SELECT name FROM sqlite_schema").all()).toEqual([{ name: "things" }]);
  again.close();
});

test("a store of a newer flowcell is refused with both versions and what to do", async () => {
  const path = join(folder, "store.db");
  for (const [key, value] of [
    ["schema", 99],
    ["journal_format", 98],
  ] as const) {
    await (await openSqliteStore({ path })).close();
    const db = new (loadDriver())(path, {});
    db.prepare("UPDATE meta SET value = ? WHERE key = ?").run(value, key);
    db.close();
    const refusal = openSqliteStore({ path });
    await expect(refusal).rejects.toThrow(StoreUnreadable);
    await expect(refusal).rejects.toThrow(
      `has schema ${key === "schema" ? 99 : 1} and journal format ${key === "schema" ? 1 : 98}; this flowcell knows schema 1 and journal format 1: use the newer flowcell that wrote it, or another store`,
    );
    rmSync(path);
  }
});

test("a store that was cut short is refused or fails, and never reads as empty", async () => {
  const path = join(folder, "store.db");
  const store = await openSqliteStore({ path });
  await startedRun(store, "run_a");
  await store.close();
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.subarray(0, 8_192));
  const attempt = openSqliteStore({ path }).then((opened) => opened.run("run_a"));
  await expect(attempt).rejects.toThrow(/damaged|malformed|failed/);
});

test("a second store of the same file in this process is told who holds it, and gets it afterwards", async () => {
  const path = join(folder, "store.db");
  const first = await openSqliteStore({ path });
  await expect(openSqliteStore({ path })).rejects.toThrow(StoreHeld);
  await expect(openSqliteStore({ path })).rejects.toThrow(path);
  // The attempts have not loosened the hold of the first.
  await expect(openSqliteStore({ path })).rejects.toThrow(StoreHeld);
  await startedRun(first, "run_a");
  const waiting = openSqliteStore({ path, heldMs: 60_000 });
  await first.close();
  const second = await waiting;
  expect(await second.run("run_a")).toMatchObject({ owner: "owner-1" });
  await second.close();
});

test("stores that open one file at the same instant: one gets it", async () => {
  const path = join(folder, "store.db");
  const attempts = await Promise.allSettled(Array.from({ length: 5 }, () => openSqliteStore({ path })));
  const opened = attempts.filter((attempt) => attempt.status === "fulfilled");
  expect(opened).toHaveLength(1);
  for (const attempt of attempts) {
    if (attempt.status === "rejected") expect(attempt.reason).toBeInstanceOf(StoreHeld);
    else await attempt.value.close();
  }
});

test("unknown options and values are refused", async () => {
  const path = join(folder, "store.db");
  await expect(openSqliteStore({ path, durable: true } as never)).rejects.toThrow(/unknown option durable/);
  await expect(openSqliteStore({ path, durability: "none" as never })).rejects.toThrow(/durability/);
  await expect(openSqliteStore({ path, heldMs: -1 })).rejects.toThrow(RangeError);
  await expect(openSqliteStore({ path, threadPath: join(folder, "none.cjs") })).rejects.toThrow(StoreFailure);
});

test("migrations go step by step, each whole, and not again", () => {
  const db = new (loadDriver())(":memory:", {});
  migrate(db, "a store");
  db.prepare("INSERT INTO flows (flow, changed_at) VALUES ('kept', 1)").run();
  const second = { to: 2, sql: "ALTER TABLE flows ADD COLUMN note TEXT" };
  const broken = { to: 3, sql: "ALTER TABLE flows ADD COLUMN more TEXT; SELECT nonsense FROM nowhere" };
  const schema = (): unknown => db.prepare("SELECT value FROM meta WHERE key = 'schema'").pluck().get();
  expect(() => migrate(db, "a store", [...migrations, second, broken])).toThrow(/nowhere/);
  expect(schema()).toBe(2);
  expect(db.prepare("SELECT flow, note FROM flows").all()).toEqual([{ flow: "kept", note: null }]);
  expect(() => db.prepare("SELECT more FROM flows")).toThrow(/more/);
  migrate(db, "a store", [...migrations, second]);
  expect(schema()).toBe(2);
  db.close();
});
