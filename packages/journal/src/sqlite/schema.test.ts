// The rules hold against whoever writes SQL to the file: every statement here would make a history that cannot be, and is
// refused, with foreign keys on as the store has them and off as the sqlite3 program has them.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  call,
  deliver,
  finish,
  json,
  must,
  ok,
  sampleVersion,
  startedRun,
  timer,
} from "../testing/samples.js";
import { type Database, loadDriver } from "./driver.js";
import { openSqliteStore } from "./store.js";
import { tableRows } from "./tables.js";

const folder = mkdtempSync(join(tmpdir(), "flowcell-store-"));
const path = join(folder, "store.db");
let db: Database;

/** Run 1 is open with three calls, of which 0 has its outcome and 2 waits; run 2 is finished. */
beforeAll(async () => {
  const store = await openSqliteStore({ path });
  const wait = { kind: "signal", name: "go", timeoutMs: null } as const;
  const open = await startedRun(store, "run_open", { deduplicationKey: "k" });
  await must(store, {
    fence: open,
    operations: [
      call(0, { effect: "once" }),
      call(1, { effect: "once", callId: "call_1" }),
      call(2, { effect: "wait", wait }),
      deliver(0, 0, ok(1, new Uint8Array(5_000)), 2_000),
      timer(1, 3_000),
      { kind: "logs", lines: [{ seq: 0, level: "log", guestTimeMs: 1, text: "x" }] },
      { kind: "sendSignal", runId: "run_open", name: "go", value: json(1), signalId: "s1", at: 1 },
      { kind: "sendSignal", runId: "run_open", name: "go", value: json(2), signalId: "s2", at: 1 },
      { kind: "takeSignal", order: 2, guestClockMs: 3_000, position: 2, name: "go", at: 1 },
      { kind: "quarantine", row: { runId: "run_open", position: 0, at: 1, reason: "late", outcome: null } },
    ],
  });
  const ended = await startedRun(store, "run_ended");
  await must(store, { fence: ended, operations: [call(0), finish()] });
  const hashes = ["a", "b"].map((letter) => letter.repeat(64));
  await must(store, {
    operations: [
      ...hashes.map((hash) => ({ kind: "addVersion", version: sampleVersion(hash) }) as const),
      {
        kind: "decideVersion",
        flow: "watcher",
        hash: "a".repeat(64),
        state: "approved",
        by: "op",
        reason: null,
        at: 1,
      },
      { kind: "event", eventId: "e", name: "n", value: json(1), at: 1 },
      { kind: "audit", row: { at: 1, actor: "a", action: "b", flow: null, runId: null, detail: "" } },
    ],
  });
  await store.close();
  db = new (loadDriver())(path, {});
});

afterAll(() => {
  db.close();
  rmSync(folder, { recursive: true, force: true });
});

const delivery = (values: string): string =>
  `INSERT INTO deliveries (run, ord, kind, guest_clock_ms, at, position, error_json, value_text, value_devalue) VALUES (${values})`;
const callRow = (values: string): string =>
  `INSERT INTO calls (run, position, name, effect, attempts, digest, idempotency_key, made_at, args_text, args_devalue, wait_json, due_at, call_id) VALUES (${values})`;

const illegal: { readonly [what: string]: string } = {
  "an outcome without its order": delivery("1, NULL, 'call', 3000, 0, 1, NULL, '1', 0"),
  "a delivery that leaves a gap": delivery("1, 4, 'timer', 3000, 0, NULL, NULL, NULL, NULL"),
  "a delivery in a taken place": delivery("1, 2, 'timer', 3000, 0, NULL, NULL, NULL, NULL"),
  "a first delivery that is not number 0": delivery("2, 1, 'timer', 3000, 0, NULL, NULL, NULL, NULL"),
  "a delivery that replaces another": delivery("1, 2, 'timer', 3000, 0, NULL, NULL, NULL, NULL").replace(
    "INSERT",
    "INSERT OR REPLACE",
  ),
  "a second outcome of a call": delivery("1, 3, 'call', 3000, 0, 0, NULL, '1', 0"),
  "an outcome that replaces another": delivery("1, 3, 'call', 3000, 0, 0, NULL, '1', 0").replace(
    "INSERT",
    "INSERT OR REPLACE",
  ),
  "an outcome of no call": delivery("1, 3, 'call', 3000, 0, 9, NULL, '1', 0"),
  "a delivery to no run": delivery("9, 0, 'timer', 3000, 0, NULL, NULL, NULL, NULL"),
  "a clock that goes back": delivery("1, 3, 'timer', 2999, 0, NULL, NULL, NULL, NULL"),
  "an outcome that is neither value nor error": delivery("1, 3, 'call', 3000, 0, 1, NULL, NULL, NULL"),
  "an outcome that is both value and error": delivery("1, 3, 'call', 3000, 0, 1, '{}', '1', 0"),
  "a timer with an outcome": delivery("1, 3, 'timer', 3000, 0, NULL, NULL, '1', 0"),
  "a timer with a position": delivery("1, 3, 'timer', 3000, 0, 1, NULL, NULL, NULL"),
  "an outcome without a position": delivery("1, 3, 'call', 3000, 0, NULL, NULL, '1', 0"),
  "an error that is not JSON": delivery("1, 3, 'call', 3000, 0, 1, 'oops', NULL, NULL"),
  "a delivery of an unknown kind": delivery("1, 3, 'gift', 3000, 0, NULL, NULL, NULL, NULL"),
  "a delivery to a finished run": delivery("2, 0, 'timer', 3000, 0, NULL, NULL, NULL, NULL"),
  "a changed outcome": "UPDATE deliveries SET value_text = '2' WHERE run = 1 AND ord = 0",
  "a moved delivery": "UPDATE deliveries SET ord = 7 WHERE run = 1 AND ord = 2",
  "a removed delivery": "DELETE FROM deliveries WHERE run = 1 AND ord = 2",

  "a call recorded twice": callRow("1, 0, 'n', 'read', 1, 'd', 'k', 0, '1', 0, NULL, NULL, NULL"),
  "a call that replaces another": callRow(
    "1, 1, 'n', 'read', 1, 'd', 'k', 0, '1', 0, NULL, NULL, NULL",
  ).replace("INSERT", "INSERT OR REPLACE"),
  "a call whose id is another's": callRow("1, 3, 'n', 'read', 1, 'd', 'k', 0, '1', 0, NULL, NULL, 'call_1'"),
  "a call of no run": callRow("9, 0, 'n', 'read', 1, 'd', 'k', 0, '1', 0, NULL, NULL, NULL"),
  "a call of a finished run": callRow("2, 1, 'n', 'read', 1, 'd', 'k', 0, '1', 0, NULL, NULL, NULL"),
  "a call of an unknown effect": callRow("1, 3, 'n', 'magic', 1, 'd', 'k', 0, '1', 0, NULL, NULL, NULL"),
  "a negative position": callRow("1, -1, 'n', 'read', 1, 'd', 'k', 0, '1', 0, NULL, NULL, NULL"),
  "a wait that was begun": callRow("1, 3, 'n', 'wait', 1, 'd', 'k', 0, '1', 0, '{}', NULL, NULL"),
  "a read that waits": callRow("1, 3, 'n', 'read', 1, 'd', 'k', 0, '1', 0, '{}', NULL, NULL"),
  "a call that is due without waiting": callRow("1, 3, 'n', 'wait', 0, 'd', 'k', 0, '1', 0, NULL, 5, NULL"),
  "a changed argument": "UPDATE calls SET args_text = '[]' WHERE run = 1 AND position = 1",
  "a changed effect": "UPDATE calls SET effect = 'read' WHERE run = 1 AND position = 1",
  "a forgotten attempt": "UPDATE calls SET attempts = 0 WHERE run = 1 AND position = 1",
  "an attempt after the outcome": "UPDATE calls SET attempts = 2 WHERE run = 1 AND position = 0",
  "an unknown call with an outcome": "UPDATE calls SET unknown_reason = 'x' WHERE run = 1 AND position = 0",
  "an unknown wait": "UPDATE calls SET unknown_reason = 'x' WHERE run = 1 AND position = 2",
  "a changed call of a finished run": "UPDATE calls SET cancelled = 1 WHERE run = 2",
  "a removed call": "DELETE FROM calls WHERE run = 1 AND position = 1",

  "a finished run that goes on":
    "UPDATE runs SET state = 'running', status = NULL, finished_at = NULL WHERE seq = 2",
  "a finished run with another result": "UPDATE runs SET result_text = '2' WHERE seq = 2",
  "a finished run with another owner": "UPDATE runs SET owner = 'x' WHERE seq = 2",
  "a run that is finished without a status":
    "UPDATE runs SET state = 'finished', finished_at = 1 WHERE seq = 1",
  "a run that is finished and suspended":
    "UPDATE runs SET state = 'finished', status = 'suspended', finished_at = 1 WHERE seq = 1",
  "a run that is finished at no time":
    "UPDATE runs SET state = 'finished', status = 'completed' WHERE seq = 1",
  "a suspended run without a status": "UPDATE runs SET state = 'suspended' WHERE seq = 1",
  "a running run with a status": "UPDATE runs SET state = 'running', status = 'completed' WHERE seq = 1",
  "a run in an unknown state": "UPDATE runs SET state = 'dancing' WHERE seq = 1",
  "an end without its status": "UPDATE runs SET end_order = 1 WHERE seq = 1",
  "a generation that goes back": "UPDATE runs SET generation = 0, owner = NULL WHERE seq = 1",
  "a run held by nobody in a generation": "UPDATE runs SET owner = NULL WHERE seq = 1",
  "a renamed run": "UPDATE runs SET id = 'run_x' WHERE seq = 1",
  "a second run of one id": "INSERT INTO runs (id, flow, changed_at) VALUES ('run_open', 'f', 0)",
  "a run that replaces another": "REPLACE INTO runs (id, flow, changed_at) VALUES ('run_ended', 'f', 0)",
  "a removed run that is not finished": "DELETE FROM runs WHERE seq = 1",
  "another input": "UPDATE run_starts SET input_text = '2' WHERE run = 1",
  "another seed": "UPDATE run_starts SET seed = 'x' WHERE run = 1",
  "a removed start": "DELETE FROM run_starts WHERE run = 2",

  "a deduplication key that is free again": "DELETE FROM run_keys",
  "a deduplication key of another run": "UPDATE run_keys SET run_id = 'run_x'",
  "a deduplication key that is replaced":
    "REPLACE INTO run_keys (flow, key, run_id) VALUES ('watcher', 'k', 'x')",

  "a log line that leaves a gap": "INSERT INTO log_lines VALUES (1, 2, 'log', 0, 'x')",
  "a log line of a finished run": "INSERT INTO log_lines VALUES (2, 0, 'log', 0, 'x')",
  "a changed log line": "UPDATE log_lines SET text = 'y'",
  "a removed log line": "DELETE FROM log_lines",

  "a signal sent twice":
    "INSERT INTO signals (run, name, signal_id, at, value_text, value_devalue) VALUES (1, 'go', 's1', 0, '1', 0)",
  "a signal to a finished run":
    "INSERT INTO signals (run, name, signal_id, at, value_text, value_devalue) VALUES (2, 'go', 's1', 0, '1', 0)",
  "a signal that is given back": "UPDATE signals SET taken_ord = NULL WHERE signal_id = 's1'",
  "a signal that another took too": "UPDATE signals SET taken_ord = 2 WHERE signal_id = 's2'",
  "a changed signal": "UPDATE signals SET value_text = '9'",
  "a removed signal": "DELETE FROM signals",

  "two approved versions":
    "UPDATE versions SET state = 'approved', decided_at = 1, decided_by = 'x' WHERE number = 2",
  "a decision that nobody made": "UPDATE versions SET state = 'rejected' WHERE number = 2",
  "another bundle": "UPDATE versions SET bundle = 'x' WHERE number = 1",
  "another manifest": "UPDATE versions SET manifest_text = 'x' WHERE number = 1",
  "another hash": "UPDATE versions SET hash = 'x' WHERE number = 1",
  "a removed version": "DELETE FROM versions",
  "a version that replaces another": `REPLACE INTO versions (flow, hash, number, installed_at, installed_by,
     manifest_text, bundle, bundle_map, sources_json) VALUES ('watcher', '${"a".repeat(64)}', 1, 0, 'x', '', '', '', '[]')`,

  "a changed event": "UPDATE events SET name = 'x'",
  "an event that can come again": "DELETE FROM events",
  "an event that is replaced":
    "REPLACE INTO events (id, name, at, value_text, value_devalue) VALUES ('e', 'x', 0, '1', 0)",
  "a changed audit row": "UPDATE audit SET actor = 'x'",
  "a removed audit row": "DELETE FROM audit",
  "a changed quarantine row": "UPDATE quarantine SET reason = 'x'",
  "a removed quarantine row": "DELETE FROM quarantine",
  "a changed body": "UPDATE bodies SET bytes = x'00'",
  "a removed body that is needed": "DELETE FROM bodies",
};

describe.each([["on"], ["off"]])("with foreign keys %s", (keys) => {
  beforeAll(() => {
    db.pragma(`foreign_keys = ${keys}`);
  });

  for (const [what, sql] of Object.entries(illegal)) {
    test(`there is no ${what}`, () => {
      const before = everything();
      expect(() => db.exec(sql)).toThrow(
        expect.objectContaining({ code: expect.stringMatching(/^SQLITE_CONSTRAINT/) }),
      );
      expect(everything()).toEqual(before);
    });
  }
});

test("the same statements are taken where they are legal", () => {
  const legal = [
    delivery("1, 3, 'call', 3000, 0, 1, '{}', NULL, NULL"),
    callRow("1, 3, 'n', 'read', 1, 'd', 'k', 0, '1', 0, NULL, NULL, NULL"),
    "UPDATE calls SET attempts = attempts + 1 WHERE run = 1 AND position = 3",
    "INSERT INTO log_lines VALUES (1, 1, 'log', 0, 'x')",
    "UPDATE runs SET state = 'finished', status = 'completed', finished_at = 1 WHERE seq = 1",
    "DELETE FROM runs WHERE seq = 1",
  ];
  for (const sql of legal) db.exec(sql);
  const left = db.prepare<[], { n: number }>(
    `SELECT (SELECT count(*) FROM calls WHERE run = 1) + (SELECT count(*) FROM deliveries WHERE run = 1)
       + (SELECT count(*) FROM log_lines) + (SELECT count(*) FROM signals) + (SELECT count(*) FROM run_starts WHERE run = 1)
       + (SELECT count(*) FROM bodies) + (SELECT count(*) FROM body_uses) + (SELECT count(*) FROM quarantine) AS n`,
  );
  expect(left.get()?.n).toBe(0);
});

test("every table is described, and nothing else is", () => {
  const described = tableRows.map(({ table }) => table);
  expect(described.sort()).toEqual(tableNames().sort());
});

function tableNames(): string[] {
  return db
    .prepare<[], { name: string }>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    )
    .all()
    .map(({ name }) => name);
}

function everything(): unknown {
  return tableNames().map((name) => [name, db.prepare(`SELECT * FROM ${name}`).all()]);
}

test("no constraint reads a whole table, however much is in it", () => {
  const triggers = db
    .prepare<[], { name: string; sql: string }>("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
    .all();
  const conditions = triggers.flatMap(({ name, sql }) => {
    const condition = /\bWHEN (.*?) BEGIN\b/s.exec(sql)?.[1];
    return condition === undefined ? [] : [{ name, condition }];
  });
  expect(conditions.length).toBeGreaterThan(30);
  const plans = conditions.flatMap(({ name, condition }) => {
    const plan = db.prepare<unknown[], { detail: string }>(
      `EXPLAIN QUERY PLAN SELECT ${condition.replace(/\b(?:NEW|OLD)\.\w+/g, "?")}`,
    );
    return plan
      .all(...Array.from(condition.matchAll(/\b(?:NEW|OLD)\./g), () => 1))
      .map(({ detail }) => `${name}: ${detail}`);
  });
  expect(plans.filter((plan) => plan.includes("SEARCH")).length).toBeGreaterThan(30);
  expect(plans.filter((plan) => /: SCAN (?!CONSTANT)/.test(plan))).toEqual([]);
});
