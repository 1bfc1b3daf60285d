/**
 * How values of provider functions cross, the parent's half: as JSON, since that is what functions written for
 * @cloudflare/codemode expect (a Date arrives as text, `toJSON` is asked, undefined in a list is null, a bigint is an
 * error), with bytes beside it. cloudflare-guest.ts has the worker's half.
 *
 *   [text, bytes…]   In the text, `{"__codemode_binary_v1__": "Uint8Array" | "ArrayBuffer" | "ArrayBufferView", "data": n}`
 *                    stands for bytes n. As in the package, any other view arrives as a Uint8Array.
 *
 * TRUST: `unpack` reads what a script sent. It is bounded by the codec below it; an index that is none is left as it is.
 */

export const binaryTag = "__codemode_binary_v1__";

export type Packed = readonly [text: string, ...bytes: Uint8Array[]];

/** Throws a TypeError for what JSON cannot hold. */
export function pack(value: unknown): Packed {
  const bytes: Uint8Array[] = [];
  const text = JSON.stringify(value, function (this: unknown, key: string, item: unknown) {
    // `toJSON` was asked already; a Buffer has one.
    const original: unknown = isObject(this) ? this[key] : item;
    const kind = binaryKind(original);
    if (kind === undefined) return item;
    bytes.push(kind.bytes);
    return { [binaryTag]: kind.name, data: bytes.length - 1 };
  });
  return [text ?? "null", ...bytes];
}

/** Undefined when it is nothing that `pack` makes. */
export function unpack(packed: readonly unknown[]): { readonly value: unknown } | undefined {
  const [text, ...bytes] = packed;
  if (typeof text !== "string") return undefined;
  try {
    const value: unknown = JSON.parse(text, (_key, item: unknown) => bytesOf(item, bytes) ?? item);
    return { value };
  } catch {
    return undefined;
  }
}

function binaryKind(value: unknown): { readonly name: string; readonly bytes: Uint8Array } | undefined {
  if (value instanceof Uint8Array) return { name: "Uint8Array", bytes: value };
  if (value instanceof ArrayBuffer) return { name: "ArrayBuffer", bytes: new Uint8Array(value) };
  if (!ArrayBuffer.isView(value)) return undefined;
  const { buffer, byteOffset, byteLength } = value;
  return { name: "ArrayBufferView", bytes: new Uint8Array(buffer, byteOffset, byteLength) };
}

function bytesOf(item: unknown, bytes: readonly unknown[]): Uint8Array | ArrayBuffer | undefined {
  if (!isObject(item) || !Object.hasOwn(item, binaryTag)) return undefined;
  const { data } = item;
  const found = typeof data === "number" ? bytes[data] : undefined;
  if (!(found instanceof Uint8Array)) return undefined;
  if (item[binaryTag] !== "ArrayBuffer") return found;
  return found.slice().buffer;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
