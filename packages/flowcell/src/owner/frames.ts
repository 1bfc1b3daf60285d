/**
 * Frames on the owner's socket, both directions: four bytes of length, big endian, then that many bytes of UTF-8 JSON text.
 * What is in a frame is in wire.ts.
 *
 * TRUST: whoever can open the socket is this user, and may still be broken: the length is checked before anything is kept,
 * and a frame is read only when all of it is there.
 */

const lengthBytes = 4;

/** Bytes that are no frame: the connection is of no use any more. */
export class FrameError extends Error {
  override readonly name = "FrameError";
}

export function frameOf(message: unknown, bytesMax: number): Buffer {
  const text = Buffer.from(JSON.stringify(message), "utf8");
  if (text.length > bytesMax)
    throw new FrameError(`a message of ${text.length} bytes; the limit is ${bytesMax}`);
  const head = Buffer.allocUnsafe(lengthBytes);
  head.writeUInt32BE(text.length);
  return Buffer.concat([head, text]);
}

export class FrameReader {
  readonly #bytesMax: number;
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** Of the frame that is being read, its head included; undefined while the head is not there. */
  #wanted: number | undefined;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Whether a frame has begun that is not all there. */
  get partial(): boolean {
    return this.#bytes > 0;
  }

  /** The messages that are complete now. Throws FrameError. */
  push(chunk: Buffer): unknown[] {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    const messages: unknown[] = [];
    for (;;) {
      this.#wanted ??= this.#readHead();
      if (this.#wanted === undefined || this.#bytes < this.#wanted) return messages;
      messages.push(this.#take(this.#wanted));
      this.#wanted = undefined;
    }
  }

  #readHead(): number | undefined {
    if (this.#bytes < lengthBytes) return undefined;
    const length = this.#joined().readUInt32BE();
    if (length > this.#bytesMax) {
      throw new FrameError(`a frame of ${length} bytes was announced; the limit is ${this.#bytesMax}`);
    }
    return lengthBytes + length;
  }

  #take(wanted: number): unknown {
    const all = this.#joined();
    const rest = all.subarray(wanted);
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#bytes = rest.length;
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(all.subarray(lengthBytes, wanted));
      return JSON.parse(text);
    } catch {
      throw new FrameError("a frame that is no JSON text");
    }
  }

  #joined(): Buffer {
    const [first] = this.#chunks;
    if (first !== undefined && this.#chunks.length === 1) return first;
    const all = Buffer.concat(this.#chunks);
    this.#chunks = [all];
    return all;
  }
}
