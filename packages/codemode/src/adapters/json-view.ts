/**
 * A value of a script as JSON: for results that are stored, sent or shown to a model as JSON. What JSON has no word for becomes
 * what a reader would write for it; nothing is left out without a mark.
 *
 *   Date        its ISO text                    bigint       its digits, as a text
 *   Map         an object if its keys are texts, else a list of [key, value]
 *   Set         a list                          bytes        { "bytes": n, "base64": … }, without the text beyond 64 KiB
 *   Error       { "error": "Name: message" }    NaN, ±Infinity, undefined and holes in a list: null; undefined in an object: left out
 *   RegExp      its source text                 a cycle      "[circular]"
 *
 * TRUST: the value was decoded from a script's; it is a tree or graph of plain data, bounded in size and depth.
 */

export type JsonView = null | boolean | number | string | JsonView[] | { [key: string]: JsonView };

const base64BytesMost = 64 * 1024;

export function jsonView(value: unknown): JsonView {
  return new Viewer().view(value) ?? null;
}

class Viewer {
  /** Objects that the one at hand stands in. */
  readonly #open = new Set<object>();

  /** Undefined for what JSON leaves out. */
  view(value: unknown): JsonView | undefined {
    switch (typeof value) {
      case "string":
      case "boolean":
        return value;
      case "number":
        return Number.isFinite(value) ? value : null;
      case "bigint":
        return String(value);
      case "object":
        return value === null ? null : this.#viewObject(value);
      default:
        return undefined;
    }
  }

  #viewObject(value: object): JsonView {
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
    if (value instanceof RegExp) return String(value);
    if (value instanceof ArrayBuffer) return bytesView(new Uint8Array(value));
    if (ArrayBuffer.isView(value))
      return bytesView(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    if (value instanceof Error) return { error: `${value.name}: ${value.message}` };
    if (this.#open.has(value)) return "[circular]";
    this.#open.add(value);
    const view = this.#viewContainer(value);
    this.#open.delete(value);
    return view;
  }

  #viewContainer(value: object): JsonView {
    if (Array.isArray(value)) return Array.from(value, (item: unknown) => this.#item(item));
    if (value instanceof Set) return Array.from(value, (item: unknown) => this.#item(item));
    if (value instanceof Map) {
      const pairs: (readonly [unknown, unknown])[] = [...value];
      if (pairs.every(([key]) => typeof key === "string"))
        return this.#record(pairs.map(([key, item]) => [String(key), item]));
      return pairs.map(([key, item]) => [this.#item(key), this.#item(item)]);
    }
    return this.#record(Object.entries(value));
  }

  #item(value: unknown): JsonView {
    return this.view(value) ?? null;
  }

  #record(entries: readonly (readonly [string, unknown])[]): JsonView {
    const record: { [key: string]: JsonView } = {};
    for (const [key, item] of entries) {
      const view = this.view(item);
      // A key may be `__proto__`.
      if (view !== undefined)
        Object.defineProperty(record, key, {
          value: view,
          enumerable: true,
          writable: true,
          configurable: true,
        });
    }
    return record;
  }
}

function bytesView(bytes: Uint8Array): JsonView {
  if (bytes.length > base64BytesMost) return { bytes: bytes.length };
  return { bytes: bytes.length, base64: Buffer.from(bytes).toString("base64") };
}
