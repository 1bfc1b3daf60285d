/**
 * Text as the wire and its limits see it: JSON quoting, UTF-8 lengths, cutting. Strings may be ropes of hundreds of
 * megabytes; nothing here touches the characters of one before its length was looked at.
 */

import {
  JSONStringify,
  NativeRegExp,
  RegExpPrototypeExec,
  StringPrototypeCharCodeAt,
  StringPrototypeSlice,
} from "./primordials.js";

/** A JSON string literal. Lone surrogates come out as escapes, so that every text is valid UTF-8. */
export function quote(text: string): string {
  return JSONStringify(text) as string; // a string always has a JSON form
}

const beyondAscii = new NativeRegExp("[^\\x00-\\x7f]");

/** Bytes of `text` in UTF-8. Lone surrogates count as three, as the engine writes them. */
export function utf8Length(text: string): number {
  const { length } = text;
  if (RegExpPrototypeExec(beyondAscii, text) === null) return length;
  let bytes = length;
  for (let at = 0; at < length; at++) {
    const unit = StringPrototypeCharCodeAt(text, at);
    if (unit < 0x80) continue;
    if (unit < 0x800) bytes += 1;
    else if (unit >= 0xd800 && unit < 0xdc00 && isLowSurrogate(text, at + 1, length)) {
      bytes += 2;
      at++;
    } else bytes += 2;
  }
  return bytes;
}

function isLowSurrogate(text: string, at: number, length: number): boolean {
  if (at >= length) return false;
  const unit = StringPrototypeCharCodeAt(text, at);
  return unit >= 0xdc00 && unit < 0xe000;
}

/** Whether `text` has more than `most` bytes in UTF-8; counts only when the length leaves it open. */
export function exceedsUtf8(text: string, most: number): boolean {
  const { length } = text;
  return length > most || (length * 3 > most && utf8Length(text) > most);
}

/** At most `most` UTF-16 units; a cut is marked and never splits a pair. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  let end = most - 1;
  if (end > 0) {
    const last = StringPrototypeCharCodeAt(text, end - 1);
    if (last >= 0xd800 && last < 0xdc00) end--;
  }
  return `${StringPrototypeSlice(text, 0, end)}…`;
}
