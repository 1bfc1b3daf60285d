/**
 * Values in columns. NAME_text and NAME_devalue are the value's own; NAME_parts holds its attachments, null if it has none:
 * for each one byte that tells the kind, four bytes length (big endian), then for kind 0 the bytes themselves, for kind 1
 * the SHA-256 of a row of `bodies`. Bodies are stored once however many values hold them; `body_uses` names the run or the
 * key that needs each, and the last use to go takes the body with it.
 */

import { createHash } from "node:crypto";
import type { CallOutcome, EncodedValue, HostErrorData } from "@flowcell/protocol";
import type { Database, Statement } from "./driver.js";

/** About a page: from here on a reference costs less than the bytes, also when nobody else holds them. */
const bodyBytes = 4096;
const headBytes = 5;
const hashBytes = 32;

/** Those that were unpacked for one answer, by their SHA-256: an answer that holds one a hundred times has its bytes once. */
export type Bodies = Map<string, Uint8Array>;

/** Who needs the bodies of a value: nobody, when they are to lie in the row itself. */
export type Holder = { readonly run: number } | { readonly flow: string; readonly key: string } | null;

export type ValueColumns = readonly [text: string, devalue: number, parts: Uint8Array | null];
export type OptionalColumns = ValueColumns | readonly [null, null, null];

export class Values {
  readonly #addBody: Statement;
  readonly #addUse: Statement;
  readonly #dropUses: Statement;
  readonly #body: Statement<{ readonly bytes: Uint8Array }>;

  constructor(db: Database) {
    this.#addBody = db.prepare("INSERT INTO bodies (hash, bytes) VALUES (?, ?) ON CONFLICT DO NOTHING");
    this.#addUse = db.prepare(
      "INSERT INTO body_uses (hash, run, flow, key) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
    );
    this.#dropUses = db.prepare("DELETE FROM body_uses WHERE flow = ? AND key = ?");
    this.#body = db.prepare("SELECT bytes FROM bodies WHERE hash = ?");
  }

  pack(value: EncodedValue, holder: Holder): ValueColumns {
    const { text, devalue, attachments } = value;
    return [text, devalue ? 1 : 0, attachments.length === 0 ? null : this.#packParts(attachments, holder)];
  }

  packOptional(value: EncodedValue | null, holder: Holder): OptionalColumns {
    return value === null ? [null, null, null] : this.pack(value, holder);
  }

  /** The columns error_json, value_text, value_devalue, value_parts. */
  packOutcome(outcome: CallOutcome | null, holder: Holder): readonly [string | null, ...OptionalColumns] {
    if (outcome === null) return [null, null, null, null];
    if (outcome.ok) return [null, ...this.pack(outcome.value, holder)];
    return [JSON.stringify(outcome.error), null, null, null];
  }

  /** Before a key gets another value. */
  dropUses(flow: string, key: string): void {
    this.#dropUses.run(flow, key);
  }

  /** With `bodies`, one that was unpacked before is shared, and one that is unpacked is added. */
  unpack(text: string, devalue: number, parts: Uint8Array | null, bodies?: Bodies): EncodedValue {
    const attachments = parts === null ? [] : this.#unpackParts(parts, bodies);
    return { text, devalue: devalue === 1, attachments };
  }

  unpackOptional(
    text: string | null,
    devalue: number | null,
    parts: Uint8Array | null,
    bodies?: Bodies,
  ): EncodedValue | null {
    return text === null || devalue === null ? null : this.unpack(text, devalue, parts, bodies);
  }

  unpackOutcome(
    errorJson: string | null,
    text: string | null,
    devalue: number | null,
    parts: Uint8Array | null,
    bodies?: Bodies,
  ): CallOutcome | null {
    // What is in the column was stored by packOutcome.
    if (errorJson !== null) return { ok: false, error: JSON.parse(errorJson) as HostErrorData };
    const value = this.unpackOptional(text, devalue, parts, bodies);
    return value === null ? null : { ok: true, value };
  }

  #packParts(attachments: readonly Uint8Array[], holder: Holder): Uint8Array {
    const pieces: Uint8Array[] = [];
    for (const part of attachments) {
      const apart = holder !== null && part.byteLength >= bodyBytes;
      const head = Buffer.alloc(headBytes);
      head.writeUInt8(apart ? 1 : 0);
      head.writeUInt32BE(part.byteLength, 1);
      pieces.push(head, apart ? this.#keep(part, holder) : part);
    }
    return Buffer.concat(pieces);
  }

  #keep(bytes: Uint8Array, holder: Exclude<Holder, null>): Uint8Array {
    const hash = createHash("sha256").update(bytes).digest();
    this.#addBody.run(hash, bytes);
    if ("run" in holder) this.#addUse.run(hash, holder.run, null, null);
    else this.#addUse.run(hash, null, holder.flow, holder.key);
    return hash;
  }

  #unpackParts(parts: Uint8Array, bodies: Bodies | undefined): Uint8Array[] {
    return [...partsIn(parts)].map(({ kind, bytes }) =>
      // A copy: what a caller gets has bytes of its own.
      kind === 0 ? new Uint8Array(bytes) : this.#find(bytes, bodies),
    );
  }

  #find(hash: Uint8Array, bodies: Bodies | undefined): Uint8Array {
    const name = Buffer.from(hash).toString("hex");
    let body = bodies?.get(name);
    if (body === undefined) {
      const row = this.#body.get(hash);
      if (row === undefined) throw new Error(`the store is damaged: body ${name} is missing`);
      body = new Uint8Array(row.bytes);
      bodies?.set(name, body);
    }
    return body;
  }
}

/** How many bytes a value's attachments have; none of them is read that lies in `bodies`. */
export function partsBytes(parts: Uint8Array | null): number {
  let sum = 0;
  if (parts !== null) for (const { length } of partsIn(parts)) sum += length;
  return sum;
}

/** For kind 0, `bytes` are the attachment's own; else the hash by which it is found. */
function* partsIn(
  parts: Uint8Array,
): Generator<{ readonly kind: number; readonly length: number; readonly bytes: Uint8Array }> {
  const view = new DataView(parts.buffer, parts.byteOffset, parts.byteLength);
  for (let at = 0; at < parts.byteLength; ) {
    const kind = view.getUint8(at);
    const length = view.getUint32(at + 1);
    at += headBytes;
    const end = at + (kind === 0 ? length : hashBytes);
    yield { kind, length, bytes: parts.subarray(at, end) };
    at = end;
  }
}
