/** Sizes and ownership of encoded values, which the pool passes on and never decodes. */
import type { EncodedValue } from "@flowcell/protocol";

export function sumOfBytes(attachments: readonly Uint8Array[]): number {
  let sum = 0;
  for (const bytes of attachments) sum += bytes.byteLength;
  return sum;
}

export function sizeOfValue(value: EncodedValue): number {
  return Buffer.byteLength(value.text) + (value.attachments.length === 0 ? 0 : sumOfBytes(value.attachments));
}

/** Whether the UTF-8 of `text` is longer than `most`. Three bytes a character at most, so most texts need no counting. */
export function isLongerThan(text: string, most: number): boolean {
  return text.length * 3 > most && Buffer.byteLength(text) > most;
}

/** Attachments of a received frame are views of memory that the next read overwrites; these are copies. */
export function ownedValue(value: EncodedValue): EncodedValue {
  if (value.attachments.length === 0) return value;
  const attachments = value.attachments.map((bytes) => new Uint8Array(bytes));
  return { text: value.text, devalue: value.devalue, attachments };
}

/** Three digits after the point, which is what the clocks give. */
export function milliseconds(value: number): number {
  return Math.max(0, Math.round(value * 1000) / 1000);
}
