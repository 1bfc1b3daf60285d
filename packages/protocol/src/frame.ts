/**
 * The frame: how one message lies in the byte stream of a pipe. The parent reads and writes frames with this file, the
 * worker with its twin worker-native/src/wire/frame.c; test/vectors/frames.json holds both to the same answers.
 *
 * All integers are unsigned and little-endian:
 *
 *   offset  size  field
 *        0     4  length: bytes of everything after this field
 *        4     1  type: a row of `messages.ts`
 *        5     1  flags: bit 0 = the value's text is devalue text, else JSON; every other bit is 0
 *        6     2  attachment count
 *        8     4  text length
 *       12     n  text: UTF-8; one line of JSON (the header), then, if there is a value, "\n" and the value's text
 *     12+n        attachments, each a length of 4 bytes and that many bytes; the last one ends the frame
 *
 * Checks, in this order on both sides, all of 1–9 on the first twelve bytes, before anything is allocated or skipped:
 *   1 short_length          length < 8
 *   2 unknown_type          no row has this type
 *   3 wrong_sender          the row belongs to the other side
 *   4 unexpected_message    the row does not list the present phase, or wants to be first in it and is not
 *   5 repeated_message      the row wants to be alone in its phase and is not
 *   6 unknown_flags         a bit other than 0, or bit 0 on a message that never carries a value
 *   7 too_long              length beyond what the row allows under the present limits
 *   8 too_many_attachments, missing_attachments
 *   9 text_too_long, then length_mismatch if text and attachment headers exceed the length
 *  10 length_mismatch       an attachment reaches beyond the frame, or bytes are left after the last one
 *  11 attachments_too_long  the attachments' bytes together exceed what the row allows
 *  12 not_utf8              the text has an overlong form, a surrogate, a value above U+10FFFF or a cut sequence
 * and at the end of the stream: truncated, if it ends inside a frame.
 *
 * TRUST: every byte that `FrameDecoder` reads from a worker is chosen by a hostile script that may have taken the engine
 * over. It keeps no more than one frame, never allocates more than the present caps, and is dead after its first error.
 */

import { isUtf8 } from "node:buffer";
import {
  attachmentHeaderBytes,
  flagDevalue,
  frameCountedHeaderBytes,
  frameHeaderBytes,
  frameLengthMost,
  type MessageName,
  type MessageRow,
  type MessageType,
  messageNames,
  messageRow,
  messageTypesEnd,
  type Sender,
  type SizeLimits,
  sizeCeilings,
  sizeOf,
  type WorkerPhase,
} from "./messages.js";
import { ProtocolError } from "./protocol-error.js";
import { type Untrusted, untrusted } from "./untrusted.js";
import type { EncodedValue } from "./value.js";

/** What `encodeFrame` writes. `attachments` come before those of `value`, `trailer` after them. */
export interface FrameSpec {
  readonly type: MessageType;
  /** One line of JSON. */
  readonly header: string;
  readonly value?: EncodedValue | undefined;
  readonly attachments?: readonly Uint8Array[] | undefined;
  readonly trailer?: Uint8Array | undefined;
}

const noBytes: readonly Uint8Array[] = Object.freeze([]);

/** Texts of up to so many characters are written before they are measured: a buffer of thrice the size is cheap then. */
const shortText = 1000;

/** One frame as one buffer. The caller keeps to the message table: this is our own side speaking. */
export function encodeFrame(spec: FrameSpec): Buffer {
  const { header, value } = spec;
  const text = value === undefined ? header : `${header}\n${value.text}`;
  const parts = attachmentsOf(spec);
  let partBytes = 0;
  for (const part of parts) partBytes += attachmentHeaderBytes + part.byteLength;
  const short = text.length <= shortText;
  const textRoom = short ? text.length * 3 : Buffer.byteLength(text);
  const buffer = Buffer.allocUnsafe(frameHeaderBytes + textRoom + partBytes);
  const textBytes = buffer.write(text, frameHeaderBytes, textRoom, "utf8");
  const total = frameHeaderBytes + textBytes + partBytes;
  const frame = short ? buffer.subarray(0, total) : buffer;
  writeU32(frame, 0, total - 4);
  frame[4] = spec.type;
  frame[5] = value?.devalue === true ? flagDevalue : 0;
  frame[6] = parts.length;
  frame[7] = parts.length >>> 8;
  writeU32(frame, 8, textBytes);
  let at = frameHeaderBytes + textBytes;
  for (const part of parts) {
    writeU32(frame, at, part.byteLength);
    frame.set(part, at + attachmentHeaderBytes);
    at += attachmentHeaderBytes + part.byteLength;
  }
  return frame;
}

function attachmentsOf({ attachments, value, trailer }: FrameSpec): readonly Uint8Array[] {
  const own = value?.attachments ?? noBytes;
  if (attachments === undefined && trailer === undefined) return own;
  const all = [...(attachments ?? noBytes), ...own];
  if (trailer !== undefined) all.push(trailer);
  return all;
}

/** Stores truncate to a byte each; the checked writers of Buffer cost more than the frame. */
function writeU32(bytes: Buffer, at: number, value: number): void {
  bytes[at] = value;
  bytes[at + 1] = value >>> 8;
  bytes[at + 2] = value >>> 16;
  bytes[at + 3] = value >>> 24;
}

/**
 * One frame that passed every check of the head comment. Text and attachments are views of the chunk that was pushed
 * (or of the decoder's own buffer, if the frame was split over chunks): they are read on first use.
 */
export class Frame {
  readonly type: MessageType;
  readonly devalue: boolean;
  readonly attachments: readonly Uint8Array[];
  #bytes: Buffer | undefined;
  #text = "";
  readonly #from: number;
  readonly #to: number;

  /** For `FrameDecoder` alone: `bytes[from, to)` is known to be UTF-8. */
  constructor(
    type: MessageType,
    devalue: boolean,
    bytes: Buffer,
    from: number,
    to: number,
    attachments: readonly Uint8Array[],
  ) {
    this.type = type;
    this.devalue = devalue;
    this.attachments = attachments;
    this.#bytes = bytes;
    this.#from = from;
    this.#to = to;
  }

  /** The whole text. */
  get text(): Untrusted<string> {
    return untrusted(this.#decoded());
  }

  /** The first line. */
  get header(): Untrusted<string> {
    const text = this.#decoded();
    const end = text.indexOf("\n");
    return untrusted(end === -1 ? text : text.slice(0, end));
  }

  get hasValue(): boolean {
    return this.#decoded().includes("\n");
  }

  /**
   * The value, still encoded: a worker's value is hostile until `decodeValue` has bounded it. `from` and `to` select the
   * attachments that belong to it (`to` counts from the end when negative, as in `slice`).
   */
  value(from = 0, to?: number): EncodedValue {
    const text = this.#decoded();
    const end = text.indexOf("\n");
    if (end === -1) throw new ProtocolError("missing_value");
    const all = this.attachments;
    const attachments = from === 0 && to === undefined ? all : all.slice(from, to);
    return { text: text.slice(end + 1), devalue: this.devalue, attachments };
  }

  #decoded(): string {
    if (this.#bytes !== undefined) {
      this.#text = this.#bytes.toString("utf8", this.#from, this.#to);
      this.#bytes = undefined;
    }
    return this.#text;
  }
}

/** What the decoder needs of a row under the present limits. */
interface TypeRule {
  readonly name: MessageName;
  readonly type: MessageType;
  readonly row: MessageRow;
  lengthMost: number;
  textMost: number;
  attachmentBytesMost: number;
}

const phaseBit: { readonly [phase in WorkerPhase]: number } = { starting: 1, idle: 2, running: 4 };

/**
 * Reads one direction of one worker's pipe. `push` a chunk, then call `next` until it returns undefined. Between two calls
 * of `next` the owner acts on the frame and may `enter` another phase: the next frame is judged by it.
 *
 * Views in frames stay valid as long as the pushed chunk's memory does; once `next` has returned undefined the decoder
 * itself holds no reference to the chunk any more.
 */
export class FrameDecoder {
  readonly #sender: Sender;
  readonly #rules: (TypeRule | undefined)[] = new Array(messageTypesEnd).fill(undefined);
  #phase: WorkerPhase;
  /** Types seen since the phase was entered, one bit each. */
  #seen = 0;
  #failed: ProtocolError | undefined;

  #chunk: Buffer | undefined;
  #at = 0;

  /** Fixed fields of a frame that is split over chunks. */
  readonly #head = Buffer.allocUnsafeSlow(frameHeaderBytes);
  #headFilled = 0;
  /** The whole split frame, once its fixed fields have been checked. */
  #body: Buffer | undefined;
  #bodyFilled = 0;

  constructor(options: {
    readonly sender: Sender;
    readonly phase?: WorkerPhase;
    readonly limits?: SizeLimits;
  }) {
    this.#sender = options.sender;
    this.#phase = options.phase ?? "starting";
    for (const name of messageNames) {
      const row = messageRow(name);
      const type = row.type as MessageType; // rows of the table are what MessageType is made of
      this.#rules[type] = { name, type, row, lengthMost: 0, textMost: 0, attachmentBytesMost: 0 };
    }
    this.#setLimits(options.limits ?? sizeCeilings);
  }

  get phase(): WorkerPhase {
    return this.#phase;
  }

  /** Bytes of a frame that has begun and is not complete. */
  get pending(): number {
    const rest = this.#chunk === undefined ? 0 : this.#chunk.byteLength - this.#at;
    return rest + (this.#body === undefined ? this.#headFilled : this.#bodyFilled);
  }

  /** The owner's view of the worker changed. Limits hold until the next call that gives some. */
  enter(phase: WorkerPhase, limits?: SizeLimits): void {
    this.#phase = phase;
    this.#seen = 0;
    if (limits !== undefined) this.#setLimits(limits);
  }

  /** Takes the next chunk of the stream. Every frame of the chunk before must have been taken out. */
  push(chunk: Uint8Array): void {
    if (this.#failed !== undefined) throw this.#failed;
    if (this.#chunk !== undefined) throw new Error("FrameDecoder.push: the chunk before has frames left");
    if (chunk.byteLength === 0) return;
    this.#chunk = Buffer.isBuffer(chunk)
      ? chunk
      : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    this.#at = 0;
  }

  /** The next complete frame, undefined when more bytes are needed. Throws ProtocolError, then always the same one. */
  next(): Frame | undefined {
    if (this.#failed !== undefined) throw this.#failed;
    try {
      return this.#next();
    } catch (error) {
      if (error instanceof ProtocolError) {
        this.#failed = error;
        this.#chunk = undefined;
        this.#body = undefined;
      }
      throw error;
    }
  }

  /** The stream ended: throws `truncated` if that was inside a frame. */
  end(): void {
    if (this.#failed !== undefined) throw this.#failed;
    if (this.pending > 0) {
      this.#failed = new ProtocolError("truncated");
      throw this.#failed;
    }
  }

  #setLimits(limits: SizeLimits): void {
    for (const rule of this.#rules) {
      if (rule === undefined) continue;
      rule.lengthMost = frameLengthMost(rule.row, limits);
      rule.textMost = sizeOf(rule.row.text, limits);
      rule.attachmentBytesMost = sizeOf(rule.row.attachments.bytes, limits);
    }
  }

  #next(): Frame | undefined {
    const chunk = this.#chunk;
    if (chunk === undefined) return undefined;
    if (this.#headFilled === 0) {
      // The common case: the frame lies in the chunk as a whole and is read in place.
      const rest = chunk.byteLength - this.#at;
      if (rest >= frameHeaderBytes) {
        const start = this.#at;
        const total = 4 + this.#checkHeader(chunk, start);
        if (total <= rest) {
          this.#at = start + total;
          if (this.#at === chunk.byteLength) this.#chunk = undefined;
          return this.#frame(chunk, start, total);
        }
        this.#beginBody(chunk, start, total);
        return undefined;
      }
    }
    return this.#continueSplit(chunk);
  }

  #continueSplit(chunk: Buffer): Frame | undefined {
    if (this.#body === undefined) {
      const wanted = Math.min(frameHeaderBytes - this.#headFilled, chunk.byteLength - this.#at);
      chunk.copy(this.#head, this.#headFilled, this.#at, this.#at + wanted);
      this.#headFilled += wanted;
      this.#at += wanted;
      if (this.#headFilled < frameHeaderBytes) {
        this.#chunk = undefined;
        return undefined;
      }
      const total = 4 + this.#checkHeader(this.#head, 0);
      this.#body = Buffer.allocUnsafeSlow(total);
      this.#head.copy(this.#body, 0);
      this.#bodyFilled = frameHeaderBytes;
    }
    const body = this.#body;
    const wanted = Math.min(body.byteLength - this.#bodyFilled, chunk.byteLength - this.#at);
    chunk.copy(body, this.#bodyFilled, this.#at, this.#at + wanted);
    this.#bodyFilled += wanted;
    this.#at += wanted;
    if (this.#at === chunk.byteLength) this.#chunk = undefined;
    if (this.#bodyFilled < body.byteLength) return undefined;
    this.#body = undefined;
    this.#headFilled = 0;
    this.#bodyFilled = 0;
    return this.#frame(body, 0, body.byteLength);
  }

  #beginBody(chunk: Buffer, start: number, total: number): void {
    const body = Buffer.allocUnsafeSlow(total);
    chunk.copy(body, 0, start);
    this.#body = body;
    this.#bodyFilled = chunk.byteLength - start;
    this.#headFilled = frameHeaderBytes;
    this.#chunk = undefined;
  }

  /** Checks 1–9 of the head comment; returns the length field. */
  #checkHeader(bytes: Buffer, at: number): number {
    const length = bytes.readUInt32LE(at);
    if (length < frameCountedHeaderBytes) throw new ProtocolError("short_length");
    const type = bytes.readUInt8(at + 4);
    const rule = this.#rules[type];
    if (rule === undefined) throw new ProtocolError("unknown_type");
    const { row, name } = rule;
    if (row.sender !== this.#sender) throw new ProtocolError("wrong_sender", name);
    if (!row.phases.includes(this.#phase))
      throw new ProtocolError("unexpected_message", `${name} while ${this.#phase}`);
    if (row.occurs === "first" && this.#seen !== 0 && (this.#seen & (1 << type)) === 0) {
      throw new ProtocolError("unexpected_message", `${name} after other messages`);
    }
    if (row.occurs !== "often" && (this.#seen & (1 << type)) !== 0)
      throw new ProtocolError("repeated_message", name);
    const flags = bytes.readUInt8(at + 5);
    if (flags > (row.value === "never" ? 0 : flagDevalue)) throw new ProtocolError("unknown_flags", name);
    if (length > rule.lengthMost) throw new ProtocolError("too_long", name);
    const count = bytes.readUInt16LE(at + 6);
    if (count > row.attachments.most) throw new ProtocolError("too_many_attachments", name);
    if (count < row.attachments.least) throw new ProtocolError("missing_attachments", name);
    const textLength = bytes.readUInt32LE(at + 8);
    if (textLength > rule.textMost) throw new ProtocolError("text_too_long", name);
    if (frameCountedHeaderBytes + textLength + count * attachmentHeaderBytes > length) {
      throw new ProtocolError("length_mismatch", name);
    }
    return length;
  }

  /** Checks 10–12 on a whole frame whose fixed fields passed. */
  #frame(bytes: Buffer, start: number, total: number): Frame {
    const type = bytes.readUInt8(start + 4);
    const rule = this.#rules[type];
    if (rule === undefined) throw new Error("FrameDecoder: a checked frame lost its row");
    const from = start + frameHeaderBytes;
    const to = from + bytes.readUInt32LE(start + 8);
    const count = bytes.readUInt16LE(start + 6);
    const attachments = count === 0 ? noBytes : [];
    if (count === 0) {
      if (to !== start + total) throw new ProtocolError("length_mismatch", rule.name);
    } else {
      this.#readAttachments(bytes, to, start + total, count, rule, attachments as Uint8Array[]); // fresh when count > 0
    }
    if (!isUtf8(bytes.subarray(from, to))) throw new ProtocolError("not_utf8", rule.name);
    this.#seen |= 1 << type;
    return new Frame(rule.type, bytes[start + 5] === flagDevalue, bytes, from, to, attachments);
  }

  #readAttachments(
    bytes: Buffer,
    from: number,
    end: number,
    count: number,
    rule: TypeRule,
    into: Uint8Array[],
  ): void {
    let at = from;
    let sum = 0;
    for (let index = 0; index < count; index++) {
      if (end - at < attachmentHeaderBytes) throw new ProtocolError("length_mismatch", rule.name);
      const size = bytes.readUInt32LE(at);
      at += attachmentHeaderBytes;
      if (size > end - at) throw new ProtocolError("length_mismatch", rule.name);
      into.push(bytes.subarray(at, at + size));
      at += size;
      sum += size;
    }
    if (at !== end) throw new ProtocolError("length_mismatch", rule.name);
    if (sum > rule.attachmentBytesMost) throw new ProtocolError("attachments_too_long", rule.name);
  }
}

/** Phases as bits, as C has them. */
export function phaseBits(phases: readonly WorkerPhase[]): number {
  return phases.reduce((bits, phase) => bits | phaseBit[phase], 0);
}
