/**
 * The body of a response: collected as it arrives, then decoded.
 *
 * Trust: the bytes are a server's. One that sends single bytes must not cost an object each, so chunks are copied into one
 * growing buffer; a compressed body is held to the same bound again while it unfolds.
 */

import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, inflateRaw } from "node:zlib";

const firstBytes = 16 * 1024;

/** Bytes up to a bound. */
export class BodyCollector {
  readonly #most: number;
  #bytes: Buffer = Buffer.alloc(0);
  #length = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get length(): number {
    return this.#length;
  }

  /** False when the chunk does not fit; nothing of it is kept then. */
  append(chunk: Uint8Array): boolean {
    const length = this.#length + chunk.length;
    if (length > this.#most) return false;
    if (length > this.#bytes.length) {
      const grown = Buffer.alloc(Math.min(this.#most, Math.max(length, 2 * this.#bytes.length, firstBytes)));
      grown.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = grown;
    }
    this.#bytes.set(chunk, this.#length);
    this.#length = length;
    return true;
  }

  /** What was collected, in place. */
  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }
}

export type Decoded =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly problem: "too_large" | "malformed" };

type Decoder = (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Uint8Array>;

const decoders: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ["gzip", promisify(gunzip)],
  ["x-gzip", promisify(gunzip)],
  ["br", promisify(brotliDecompress)],
  ["deflate", inflateEither],
]);

/** The low four bits of a zlib header name its method; raw deflate, which some servers send, has no header. */
const zlibMethod = 8;

const inflateZlib: Decoder = promisify(inflate);
const inflateHeadless: Decoder = promisify(inflateRaw);

function inflateEither(bytes: Uint8Array, options: { maxOutputLength: number }): Promise<Uint8Array> {
  const decode = ((bytes[0] ?? 0) & 0x0f) === zlibMethod ? inflateZlib : inflateHeadless;
  return decode(bytes, options);
}

/**
 * Undoes one coding that a server applied although it was asked for none. What has several codings or an unknown one stays
 * as it came, and its header says what it is.
 */
export async function decodeBody(bytes: Uint8Array, coding: string, most: number): Promise<Decoded> {
  const decode = decoders.get(coding.trim().toLowerCase());
  if (decode === undefined || bytes.length === 0) return { ok: true, bytes };
  try {
    return { ok: true, bytes: await decode(bytes, { maxOutputLength: most }) };
  } catch (error) {
    const tooLarge = error instanceof RangeError && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE";
    return { ok: false, problem: tooLarge ? "too_large" : "malformed" };
  }
}
