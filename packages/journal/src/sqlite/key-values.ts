/** Keys and values of flows in the table `kv`: the primitives that local operations are made of. */

import { type EncodedValue, type LocalTx, localBytes } from "@flowcell/protocol";
import type { Database, Statement } from "./driver.js";
import type { Values } from "./values.js";

interface ValueRow {
  readonly value_text: string;
  readonly value_devalue: number;
  readonly value_parts: Uint8Array | null;
}

export class KeyValues {
  readonly values: Values;
  readonly get: Statement<ValueRow>;
  readonly put: Statement;
  readonly delete: Statement;
  readonly listFrom: Statement<{ readonly key: string }>;
  readonly bytes: Statement<{ readonly bytes: number }>;

  constructor(db: Database, values: Values) {
    this.values = values;
    this.get = db.prepare("SELECT value_text, value_devalue, value_parts FROM kv WHERE flow = ? AND key = ?");
    this.put = db.prepare(
      `INSERT INTO kv (flow, key, bytes, value_text, value_devalue, value_parts) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (flow, key) DO UPDATE SET bytes = excluded.bytes, value_text = excluded.value_text,
         value_devalue = excluded.value_devalue, value_parts = excluded.value_parts`,
    );
    this.delete = db.prepare("DELETE FROM kv WHERE flow = ? AND key = ?");
    // Text is compared by its UTF-8 bytes.
    this.listFrom = db.prepare(
      "SELECT key FROM kv WHERE flow = ? AND key >= ? AND key IS NOT ? ORDER BY key",
    );
    this.bytes = db.prepare("SELECT bytes FROM kv_totals WHERE flow = ?");
  }
}

/** One flow's keys and values, inside one unit. */
export function localTx(table: KeyValues, flow: string): LocalTx {
  const { values } = table;
  return {
    get(key): EncodedValue | undefined {
      const row = table.get.get(flow, key);
      return row && values.unpack(row.value_text, row.value_devalue, row.value_parts);
    },
    put(key, value): void {
      values.dropUses(flow, key);
      table.put.run(flow, key, localBytes(key, value), ...values.pack(value, { flow, key }));
    },
    delete: (key) => table.delete.run(flow, key).changes > 0,
    list(prefix, after, limit): string[] {
      const keys: string[] = [];
      if (limit === 0) return keys;
      // Keys with a prefix stand together, the prefix itself before all of them.
      const from =
        after !== null && Buffer.compare(Buffer.from(after), Buffer.from(prefix)) > 0 ? after : prefix;
      for (const { key } of table.listFrom.iterate(flow, from, after)) {
        if (!key.startsWith(prefix)) break;
        keys.push(key);
        if (keys.length === limit) break;
      }
      return keys;
    },
    bytes: () => table.bytes.get(flow)?.bytes ?? 0,
  };
}
