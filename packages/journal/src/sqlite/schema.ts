/**
 * What is on disk: version 1 of the SQLite schema. `migrations.ts` makes it in a new file; docs/JOURNAL.md explains it.
 *
 * The constraints hold the rules of `store.ts` against whoever writes to the file: a bug in flowcell or a person with the
 * sqlite3 program (which enforces no foreign keys by itself, so that triggers repeat those that matter). In particular
 *   - an outcome is a row of `deliveries`, whose key is (run, ord): it cannot exist without its order;
 *   - nothing repeats what `deliveries` and `log_lines` say: next order, guest's clock and next log number are read from
 *     them, so that they cannot differ;
 *   - what only grows is written once: no update, no `INSERT OR REPLACE`, no removal but that of the whole finished run.
 *
 * A value (`EncodedValue`) is three columns: NAME_text, NAME_devalue, and NAME_parts for its attachments (`values.ts` has
 * the format; large ones lie in `bodies` once each, and `body_uses` says who needs them). Times are milliseconds.
 * Rows that are written often are small: what a run starts with is apart from how it goes on. What is written with every
 * call lies in as few trees as can be, since each is a page of the log for each flush: the keys of calls and deliveries are
 * their tables, and an index holds only rows that it is asked for.
 */

import { journalFormat } from "../recording.js";

/** "flow": tells a store from every other SQLite file. */
export const applicationId = 0x666c6f77;

const value = (name: string): string => `
  ${name}_text TEXT NOT NULL, ${name}_devalue INTEGER NOT NULL CHECK (${name}_devalue IN (0, 1)), ${name}_parts BLOB`;

const optionalValue = (name: string): string => `
  ${name}_text TEXT, ${name}_devalue INTEGER CHECK (${name}_devalue IN (0, 1)), ${name}_parts BLOB,
  CHECK ((${name}_text IS NULL) = (${name}_devalue IS NULL) AND (${name}_parts IS NULL OR ${name}_text IS NOT NULL))`;

/** A trigger that refuses `event` when `condition` holds. */
const refuse = (name: string, event: string, condition: string, message: string): string => `
CREATE TRIGGER ${name} BEFORE ${event} WHEN ${condition} BEGIN SELECT RAISE(ABORT, '${message}'); END;`;

const finished = (row: string): string =>
  `(SELECT state FROM runs WHERE seq = ${row}.run) IS NOT NULL AND (SELECT state FROM runs WHERE seq = ${row}.run) = 'finished'`;

/** Rows of a run that are written once, and go with the run. */
const once = (table: string, columns: string): string =>
  refuse(`${table}_content`, `UPDATE OF ${columns} ON ${table}`, "1", `what ${table} says never changes`) +
  refuse(
    `${table}_kept`,
    `DELETE ON ${table}`,
    "EXISTS (SELECT 1 FROM runs WHERE seq = OLD.run)",
    `rows of ${table} go with their run`,
  ) +
  refuse(`${table}_late`, `INSERT ON ${table}`, finished("NEW"), "a finished run never changes");

/** Rows that stay for ever. */
const forever = (table: string, key: string): string =>
  refuse(`${table}_content`, `UPDATE ON ${table}`, "1", `what ${table} says never changes`) +
  refuse(`${table}_kept`, `DELETE ON ${table}`, "1", `${table} are kept for ever`) +
  refuse(
    `${table}_twice`,
    `INSERT ON ${table}`,
    `EXISTS (SELECT 1 FROM ${table} WHERE ${key})`,
    `what ${table} says never changes`,
  );

const runTables = `
CREATE TABLE runs (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE CHECK (id <> ''),
  flow TEXT NOT NULL CHECK (flow <> ''),
  owner TEXT,
  generation INTEGER NOT NULL DEFAULT 0 CHECK (generation >= 0),
  state TEXT NOT NULL DEFAULT 'pending',
  status TEXT,
  reason TEXT,
  started_at REAL,
  finished_at REAL,
  changed_at REAL NOT NULL,
  active_ms REAL NOT NULL DEFAULT 0,
  due_at REAL,
  activations INTEGER NOT NULL DEFAULT 0 CHECK (activations >= 0),
  failures INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
  cpu_us REAL NOT NULL DEFAULT 0,
  heap_peak_bytes INTEGER NOT NULL DEFAULT 0 CHECK (heap_peak_bytes >= 0),
  fingerprint TEXT,
  end_order INTEGER CHECK (end_order >= 0),
  end_status TEXT CHECK (end_status NOT IN ('suspended', 'needs_reconcile')),
  error_json TEXT,
  warnings_json TEXT NOT NULL DEFAULT '[]',
  confinement_json TEXT,
  cancel_requested_by TEXT,
  ${optionalValue("result")},
  CHECK ((owner IS NULL) = (generation = 0)),
  CHECK ((end_order IS NULL) = (end_status IS NULL)),
  CHECK ((state = 'finished') = (finished_at IS NOT NULL)),
  CHECK (CASE state
    WHEN 'pending' THEN status IS NULL
    WHEN 'running' THEN status IS NULL
    WHEN 'suspended' THEN coalesce(status IN ('suspended', 'needs_reconcile'), 0)
    WHEN 'finished' THEN coalesce(status NOT IN ('suspended', 'needs_reconcile'), 0)
    ELSE 0 END)
) STRICT;
CREATE INDEX runs_open ON runs (seq) WHERE state <> 'finished';
CREATE INDEX runs_ended ON runs (finished_at, seq) WHERE state = 'finished';
CREATE INDEX runs_of_flow ON runs (flow, seq);
${refuse("runs_content", "UPDATE OF seq, id, flow ON runs", "1", "what a run is never changes")}
${refuse("runs_ended_change", "UPDATE ON runs", "OLD.state = 'finished'", "a finished run never changes")}
${refuse("runs_generation", "UPDATE OF generation ON runs", "NEW.generation < OLD.generation", "the generation of a run never goes back")}
${refuse("runs_twice", "INSERT ON runs", "EXISTS (SELECT 1 FROM runs WHERE id = NEW.id OR seq = NEW.seq)", "a run is made once")}
${refuse("runs_kept", "DELETE ON runs", "OLD.state <> 'finished'", "only a finished run is removed")}
CREATE TRIGGER runs_gone AFTER DELETE ON runs BEGIN
  DELETE FROM signals WHERE run = OLD.seq;
  DELETE FROM deliveries WHERE run = OLD.seq;
  DELETE FROM calls WHERE run = OLD.seq;
  DELETE FROM log_lines WHERE run = OLD.seq;
  DELETE FROM run_starts WHERE run = OLD.seq;
  DELETE FROM quarantine WHERE run_id = OLD.id;
  DELETE FROM body_uses WHERE run = OLD.seq;
END;

CREATE TABLE run_keys (
  flow TEXT NOT NULL,
  key TEXT NOT NULL CHECK (key <> ''),
  run_id TEXT NOT NULL,
  PRIMARY KEY (flow, key)
) STRICT, WITHOUT ROWID;
${forever("run_keys", "flow = NEW.flow AND key = NEW.key")}

CREATE TABLE run_starts (
  run INTEGER PRIMARY KEY REFERENCES runs (seq),
  flow TEXT NOT NULL,
  version_hash TEXT NOT NULL,
  guest_start_ms REAL NOT NULL,
  trigger_json TEXT NOT NULL CHECK (json_valid(trigger_json)),
  deduplication_key TEXT,
  concurrency_key TEXT NOT NULL,
  seed TEXT NOT NULL,
  created_at REAL NOT NULL,
  not_before REAL NOT NULL,
  deadline_ms REAL NOT NULL,
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  ${value("input")},
  FOREIGN KEY (flow, deduplication_key) REFERENCES run_keys (flow, key)
) STRICT;
${once("run_starts", "run, flow, version_hash, guest_start_ms, trigger_json, deduplication_key, concurrency_key, seed, created_at, not_before, deadline_ms, attempt, input_text, input_devalue, input_parts")}
${refuse("run_starts_twice", "INSERT ON run_starts", "EXISTS (SELECT 1 FROM run_starts WHERE run = NEW.run)", "a run starts once")}

CREATE TABLE calls (
  run INTEGER NOT NULL REFERENCES runs (seq),
  position INTEGER NOT NULL CHECK (position >= 0),
  name TEXT NOT NULL CHECK (name <> ''),
  effect TEXT NOT NULL CHECK (effect IN ('local', 'wait', 'read', 'keyed', 'once')),
  attempts INTEGER NOT NULL CHECK (attempts >= 0 AND (effect <> 'wait' OR attempts = 0)),
  cancelled INTEGER NOT NULL DEFAULT 0 CHECK (cancelled IN (0, 1)),
  unknown_reason TEXT CHECK (unknown_reason IS NULL OR effect IN ('keyed', 'once')),
  digest TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  made_at REAL NOT NULL,
  note_json TEXT CHECK (note_json IS NULL OR json_valid(note_json)),
  wait_json TEXT CHECK (wait_json IS NULL OR (effect = 'wait' AND json_valid(wait_json))),
  due_at REAL CHECK (due_at IS NULL OR wait_json IS NOT NULL),
  call_id TEXT,
  ${value("args")},
  ${optionalValue("detail")},
  CHECK (detail_text IS NULL OR wait_json IS NOT NULL),
  PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX calls_by_id ON calls (call_id) WHERE call_id IS NOT NULL;
CREATE INDEX calls_waiting ON calls (run, position) WHERE wait_json IS NOT NULL;
${once("calls", "run, position, name, effect, digest, idempotency_key, made_at, note_json, wait_json, due_at, call_id, args_text, args_devalue, args_parts, detail_text, detail_devalue, detail_parts")}
${refuse("calls_twice", "INSERT ON calls", "EXISTS (SELECT 1 FROM calls WHERE (run = NEW.run AND position = NEW.position) OR call_id = NEW.call_id)", "a call is recorded once")}
${refuse("calls_of_no_run", "INSERT ON calls", "NOT EXISTS (SELECT 1 FROM runs WHERE seq = NEW.run)", "a call belongs to a run")}
${refuse("calls_ended", "UPDATE ON calls", finished("OLD"), "a finished run never changes")}
${refuse("calls_back", "UPDATE ON calls", "NEW.attempts < OLD.attempts OR NEW.cancelled < OLD.cancelled", "what was done to a call is not undone")}
${refuse(
  "calls_settled",
  "UPDATE OF attempts, unknown_reason ON calls",
  "(NEW.attempts <> OLD.attempts OR NEW.unknown_reason IS NOT NULL) AND EXISTS (SELECT 1 FROM deliveries WHERE run = OLD.run AND position = OLD.position)",
  "a call with an outcome is not begun and not unknown",
)}

CREATE TABLE deliveries (
  run INTEGER NOT NULL REFERENCES runs (seq),
  ord INTEGER NOT NULL CHECK (ord >= 0),
  kind TEXT NOT NULL CHECK (kind IN ('call', 'timer')),
  guest_clock_ms REAL NOT NULL,
  at REAL NOT NULL,
  position INTEGER,
  error_json TEXT CHECK (error_json IS NULL OR json_valid(error_json)),
  ${optionalValue("value")},
  CHECK ((kind = 'call') = (position IS NOT NULL)),
  CHECK ((error_json IS NOT NULL) + (value_text IS NOT NULL) = (kind = 'call')),
  PRIMARY KEY (run, ord),
  FOREIGN KEY (run, position) REFERENCES calls (run, position)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX deliveries_of_call ON deliveries (run, position) WHERE position IS NOT NULL;
${once("deliveries", "run, ord, kind, guest_clock_ms, at, position, error_json, value_text, value_devalue, value_parts")}
${refuse(
  "deliveries_in_order",
  "INSERT ON deliveries",
  "NEW.ord IS NOT coalesce((SELECT max(ord) + 1 FROM deliveries WHERE run = NEW.run), 0)",
  "deliveries have no gaps",
)}
${refuse(
  "deliveries_clock",
  "INSERT ON deliveries",
  `NEW.guest_clock_ms < coalesce(
    (SELECT guest_clock_ms FROM deliveries WHERE run = NEW.run ORDER BY ord DESC LIMIT 1),
    (SELECT guest_start_ms FROM run_starts WHERE run = NEW.run))`,
  "the clock of the guest never goes back",
)}
${refuse("deliveries_twice", "INSERT ON deliveries", "EXISTS (SELECT 1 FROM deliveries WHERE run = NEW.run AND position = NEW.position)", "a call has at most one outcome")}
${refuse("deliveries_of_no_call", "INSERT ON deliveries", "NEW.position IS NOT NULL AND NOT EXISTS (SELECT 1 FROM calls WHERE run = NEW.run AND position = NEW.position)", "an outcome belongs to a recorded call")}
${refuse("deliveries_of_no_run", "INSERT ON deliveries", "NOT EXISTS (SELECT 1 FROM runs WHERE seq = NEW.run)", "a delivery belongs to a run")}

CREATE TABLE log_lines (
  run INTEGER NOT NULL REFERENCES runs (seq),
  seq INTEGER NOT NULL,
  level TEXT NOT NULL CHECK (level IN ('debug', 'log', 'info', 'warn', 'error')),
  guest_time_ms REAL NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;
${once("log_lines", "run, seq, level, guest_time_ms, text")}
${refuse("log_lines_in_order", "INSERT ON log_lines", "NEW.seq IS NOT coalesce((SELECT max(seq) + 1 FROM log_lines WHERE run = NEW.run), 0)", "log lines have no gaps")}

CREATE TABLE signals (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  run INTEGER NOT NULL REFERENCES runs (seq),
  name TEXT NOT NULL,
  signal_id TEXT NOT NULL,
  at REAL NOT NULL,
  taken_ord INTEGER,
  ${value("value")},
  UNIQUE (run, signal_id),
  UNIQUE (run, taken_ord),
  FOREIGN KEY (run, taken_ord) REFERENCES deliveries (run, ord)
) STRICT;
CREATE INDEX signals_buffered ON signals (run, name, seq) WHERE taken_ord IS NULL;
${once("signals", "seq, run, name, signal_id, at, value_text, value_devalue, value_parts")}
${refuse("signals_twice", "INSERT ON signals", "EXISTS (SELECT 1 FROM signals WHERE (run = NEW.run AND signal_id = NEW.signal_id) OR seq = NEW.seq)", "a signal is sent once")}
${refuse("signals_taken", "UPDATE OF taken_ord ON signals", `OLD.taken_ord IS NOT NULL OR ${finished("OLD")}`, "a signal is taken once")}

CREATE TABLE quarantine (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  at REAL NOT NULL,
  reason TEXT NOT NULL,
  error_json TEXT CHECK (error_json IS NULL OR json_valid(error_json)),
  ${optionalValue("value")},
  CHECK (error_json IS NULL OR value_text IS NULL)
) STRICT;
CREATE INDEX quarantine_of_run ON quarantine (run_id, seq);
${refuse("quarantine_content", "UPDATE ON quarantine", "1", "what quarantine says never changes")}
${refuse("quarantine_kept", "DELETE ON quarantine", "EXISTS (SELECT 1 FROM runs WHERE id = OLD.run_id)", "rows of quarantine go with their run")}
`;

const flowTables = `
CREATE TABLE flows (
  flow TEXT PRIMARY KEY CHECK (flow <> ''),
  enabled INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
  disabled_by TEXT,
  disabled_reason TEXT,
  violations_in_a_row INTEGER NOT NULL DEFAULT 0 CHECK (violations_in_a_row >= 0),
  changed_at REAL NOT NULL,
  next_fire_at REAL
) STRICT, WITHOUT ROWID;

CREATE TABLE versions (
  flow TEXT NOT NULL REFERENCES flows (flow),
  hash TEXT NOT NULL CHECK (hash <> ''),
  number INTEGER NOT NULL CHECK (number >= 1),
  state TEXT NOT NULL DEFAULT 'installed'
    CHECK (state IN ('installed', 'approved', 'rejected', 'superseded', 'revoked')),
  decided_at REAL,
  decided_by TEXT,
  decision_reason TEXT,
  installed_at REAL NOT NULL,
  installed_by TEXT NOT NULL,
  dry_run_json TEXT,
  manifest_text TEXT NOT NULL,
  bundle TEXT NOT NULL,
  bundle_map TEXT NOT NULL,
  sources_json TEXT NOT NULL CHECK (json_valid(sources_json)),
  CHECK ((state = 'installed') = (decided_at IS NULL)),
  CHECK ((decided_at IS NULL) = (decided_by IS NULL)),
  PRIMARY KEY (flow, hash),
  UNIQUE (flow, number)
) STRICT;
CREATE UNIQUE INDEX versions_approved ON versions (flow) WHERE state = 'approved';
${refuse("versions_content", "UPDATE OF flow, hash, number, installed_at, installed_by, dry_run_json, manifest_text, bundle, bundle_map, sources_json ON versions", "1", "the content of a version never changes")}
${refuse("versions_kept", "DELETE ON versions", "1", "versions are kept for ever")}
${refuse("versions_twice", "INSERT ON versions", "EXISTS (SELECT 1 FROM versions WHERE flow = NEW.flow AND (hash = NEW.hash OR number = NEW.number OR (state = 'approved' AND NEW.state = 'approved')))", "a version is installed once")}
${refuse("versions_one_approved", "UPDATE OF state ON versions", "NEW.state = 'approved' AND EXISTS (SELECT 1 FROM versions WHERE flow = NEW.flow AND state = 'approved' AND hash <> NEW.hash)", "one version of a flow is approved")}

CREATE TABLE events (
  id TEXT PRIMARY KEY CHECK (id <> ''),
  name TEXT NOT NULL,
  at REAL NOT NULL,
  ${value("value")}
) STRICT;
${forever("events", "id = NEW.id")}

CREATE TABLE audit (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  flow TEXT,
  run_id TEXT,
  detail TEXT NOT NULL
) STRICT;
${forever("audit", "seq = NEW.seq")}
`;

const valueTables = `
CREATE TABLE kv (
  flow TEXT NOT NULL,
  key TEXT NOT NULL,
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  ${value("value")},
  PRIMARY KEY (flow, key)
) STRICT;
CREATE TABLE kv_totals (
  flow TEXT PRIMARY KEY,
  bytes INTEGER NOT NULL CHECK (bytes >= 0)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER kv_added AFTER INSERT ON kv BEGIN
  INSERT INTO kv_totals (flow, bytes) VALUES (NEW.flow, NEW.bytes)
    ON CONFLICT (flow) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER kv_changed AFTER UPDATE ON kv WHEN NEW.bytes <> OLD.bytes OR NEW.flow <> OLD.flow BEGIN
  UPDATE kv_totals SET bytes = bytes - OLD.bytes WHERE flow = OLD.flow;
  UPDATE kv_totals SET bytes = bytes + NEW.bytes WHERE flow = NEW.flow;
END;
CREATE TRIGGER kv_removed AFTER DELETE ON kv BEGIN
  UPDATE kv_totals SET bytes = bytes - OLD.bytes WHERE flow = OLD.flow;
  DELETE FROM body_uses WHERE flow = OLD.flow AND key = OLD.key;
END;

CREATE TABLE bodies (
  hash BLOB PRIMARY KEY CHECK (length(hash) = 32),
  bytes BLOB NOT NULL
) STRICT;
${refuse("bodies_content", "UPDATE ON bodies", "1", "a body never changes")}
${refuse("bodies_needed", "DELETE ON bodies", "EXISTS (SELECT 1 FROM body_uses WHERE hash = OLD.hash)", "a body is kept while it is needed")}

CREATE TABLE body_uses (
  hash BLOB NOT NULL REFERENCES bodies (hash),
  run INTEGER,
  flow TEXT,
  key TEXT,
  CHECK ((run IS NOT NULL) + (flow IS NOT NULL) = 1 AND (flow IS NULL) = (key IS NULL))
) STRICT;
CREATE INDEX body_uses_of_body ON body_uses (hash);
CREATE UNIQUE INDEX body_uses_of_run ON body_uses (run, hash) WHERE run IS NOT NULL;
CREATE UNIQUE INDEX body_uses_of_key ON body_uses (flow, key, hash) WHERE flow IS NOT NULL;
CREATE TRIGGER body_uses_gone AFTER DELETE ON body_uses
  WHEN NOT EXISTS (SELECT 1 FROM body_uses WHERE hash = OLD.hash) BEGIN
  DELETE FROM bodies WHERE hash = OLD.hash;
END;
`;

const metaTable = `
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta (key, value) VALUES ('schema', 1), ('journal_format', ${journalFormat});
`;

export const schemaVersion1 = metaTable + flowTables + valueTables + runTables;
