/**
 * Effects of kind `local`: what a script does to flowcell's own store. An operation is data, so that any store can carry it
 * out inside the very transaction that records the call and its outcome; `applyLocal` is the one meaning of each, over the
 * few primitives that a store offers as `LocalTx`.
 *
 * TRUST: keys and values are a script's. They were bounded by the host function's schema and by the run's limits; the sum
 * of a flow's values is bounded here.
 */

import type { CallOutcome } from "./effect.js";
import type { HostErrorData } from "./host-error.js";
import type { EncodedValue } from "./value.js";

export type LocalOperation =
  | { readonly kind: "kv.get"; readonly key: string }
  | { readonly kind: "kv.set"; readonly key: string; readonly value: EncodedValue }
  | { readonly kind: "kv.delete"; readonly key: string }
  | {
      readonly kind: "kv.list";
      readonly prefix: string;
      /** Keys after this one, in code unit order of their UTF-8. */
      readonly after: string | null;
      readonly limit: number;
    }
  | {
      readonly kind: "kv.compareAndSet";
      readonly key: string;
      /** Null: the key must be absent. */
      readonly expected: EncodedValue | null;
      /** Null: the key is deleted. */
      readonly value: EncodedValue | null;
    };

/** One flow's keys and values, inside one transaction. */
export interface LocalTx {
  get(key: string): EncodedValue | undefined;
  put(key: string, value: EncodedValue): void;
  /** Whether it was there. */
  delete(key: string): boolean;
  /** Ascending by UTF-8 bytes. */
  list(prefix: string, after: string | null, limit: number): readonly string[];
  /** Bytes of all keys and values of the flow. */
  bytes(): number;
}

const absent: EncodedValue = Object.freeze({ text: "-1", devalue: true, attachments: [] });

export function applyLocal(tx: LocalTx, operation: LocalOperation, bytesMax: number): CallOutcome {
  switch (operation.kind) {
    case "kv.get":
      return { ok: true, value: tx.get(operation.key) ?? absent };
    case "kv.set":
      return put(tx, operation.key, operation.value, bytesMax) ?? { ok: true, value: absent };
    case "kv.delete":
      return { ok: true, value: json(tx.delete(operation.key)) };
    case "kv.list":
      return { ok: true, value: json(tx.list(operation.prefix, operation.after, operation.limit)) };
    case "kv.compareAndSet": {
      const { key, expected, value } = operation;
      if (!sameEncoded(tx.get(key) ?? null, expected)) return { ok: true, value: json(false) };
      if (value === null) tx.delete(key);
      else {
        const refused = put(tx, key, value, bytesMax);
        if (refused !== null) return refused;
      }
      return { ok: true, value: json(true) };
    }
  }
}

/** Bytes that a key and its value count. */
export function localBytes(key: string, value: EncodedValue): number {
  let bytes = Buffer.byteLength(key) + Buffer.byteLength(value.text);
  for (const part of value.attachments) bytes += part.byteLength;
  return bytes;
}

function put(tx: LocalTx, key: string, value: EncodedValue, bytesMax: number): CallOutcome | null {
  const old = tx.get(key);
  const bytes = tx.bytes() - (old === undefined ? 0 : localBytes(key, old)) + localBytes(key, value);
  if (bytes > bytesMax) {
    const message = `kv: the flow's keys and values would have ${bytes} bytes; its grant kv.maxBytes is ${bytesMax}`;
    const error: HostErrorData = { code: "limit", message, retryable: false };
    return { ok: false, error };
  }
  tx.put(key, value);
  return null;
}

/** Equal as encoded: the same value written the same way, key order included. */
function sameEncoded(one: EncodedValue | null, other: EncodedValue | null): boolean {
  if (one === null || other === null) return one === other;
  if (one.text !== other.text || one.devalue !== other.devalue) return false;
  if (one.attachments.length !== other.attachments.length) return false;
  return one.attachments.every((bytes, at) => {
    const second = other.attachments[at];
    return second !== undefined && Buffer.compare(bytes, second) === 0;
  });
}

function json(value: boolean | readonly string[]): EncodedValue {
  return { text: JSON.stringify(value), devalue: false, attachments: [] };
}
