/**
 * What `FrameDecoder` makes of a stream, as the lines that `wire-test --verdicts` prints for the C twin: tests compare
 * the two, and one decoder with itself under different chunkings.
 */

import { type Frame, FrameDecoder } from "../frame.js";
import type { Sender, SizeLimits, WorkerPhase } from "../messages.js";
import { ProtocolError } from "../protocol-error.js";

export interface StreamCase {
  readonly sender: Sender;
  readonly phase: WorkerPhase;
  readonly limits: SizeLimits;
  readonly stream: Uint8Array;
}

export interface Verdict {
  readonly frames: readonly Frame[];
  /** A line for each frame, then the error's name or "ok". */
  readonly lines: readonly string[];
}

function fnv(hash: number, bytes: Uint8Array): number {
  let result = hash;
  for (const byte of bytes) result = Math.imul(result ^ byte, 16777619) >>> 0;
  return result;
}

function frameLine(frame: Frame): string {
  const text = Buffer.from(String(frame.text), "utf8");
  let hash = 2166136261;
  for (const bytes of frame.attachments) {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.byteLength);
    hash = fnv(fnv(hash, length), bytes);
  }
  const hex = (value: number): string => value.toString(16).padStart(8, "0");
  return `frame ${frame.type} ${frame.devalue ? 1 : 0} ${text.length} ${hex(fnv(2166136261, text))} ${frame.attachments.length} ${hex(hash)}`;
}

/** `nextChunk` says how many bytes the next chunk has; every chunk is a copy that is wiped when it is used up. */
export function judge(input: StreamCase, nextChunk: (left: number) => number): Verdict {
  const decoder = new FrameDecoder(input);
  const frames: Frame[] = [];
  const lines: string[] = [];
  try {
    for (let at = 0; at < input.stream.byteLength; ) {
      const size = Math.max(
        1,
        Math.min(input.stream.byteLength - at, nextChunk(input.stream.byteLength - at)),
      );
      const chunk = Buffer.from(input.stream.subarray(at, at + size));
      at += size;
      decoder.push(chunk);
      for (let frame = decoder.next(); frame !== undefined; frame = decoder.next()) {
        frames.push(frame);
        lines.push(frameLine(frame));
      }
      // Whoever reads into one buffer again and again must not see the decoder look at it later.
      chunk.fill(0xee);
    }
    decoder.end();
    lines.push("ok");
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    lines.push(error.name);
  }
  return { frames, lines };
}

/** The stream in one chunk. */
export function whole(left: number): number {
  return left;
}
