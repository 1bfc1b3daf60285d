/**
 * Random bytes for seeds and ids, drawn from the operating system's generator many at a time: one draw costs several
 * microseconds however small it is, and an execution needs two.
 *
 * Used by whoever asks the pool for activations. Kept true: every byte is given out once and is wiped here as it is; a piece
 * is the caller's own memory.
 */
import { randomBytes, randomFillSync } from "node:crypto";

const drawnBytes = 4096;
/** Larger pieces are drawn by themselves: they would empty the store. */
const pieceBytesMax = 64;

const store = Buffer.allocUnsafeSlow(drawnBytes);
let at = drawnBytes;

export function freshBytes(length: number): Buffer {
  if (length > pieceBytesMax) return randomBytes(length);
  if (at + length > drawnBytes) {
    randomFillSync(store);
    at = 0;
  }
  const end = at + length;
  const piece = Buffer.from(store.subarray(at, end));
  store.fill(0, at, end);
  at = end;
  return piece;
}
