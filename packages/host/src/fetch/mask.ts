/**
 * Takes the values of secrets out of what came from a server, and out of error texts.
 *
 * Kept true: every occurrence of a value as it is, wherever chunks began and ended, is taken out: the whole is looked at. Occurrences that overlap, of one value or of several, are taken out together. A mark is never longer than what it
 * stands for. Not recognised: a value in another form (base64, percent-encoded, escaped in JSON or HTML, other letter case,
 * UTF-16, reversed, in pieces, inside a format that is itself compressed).
 */

const mark = "***";

interface Span {
  readonly start: number;
  end: number;
}

/** A copy without the values, or the same bytes when there is nothing to take out. */
export function maskBytes(bytes: Uint8Array, values: readonly string[]): Uint8Array {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const needles = values.map((value) => Buffer.from(value, "latin1"));
  const spans = spansOf(needles, (needle, from) => view.indexOf(needle, from));
  if (spans.length === 0) return bytes;
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (const { start, end } of spans) {
    pieces.push(view.subarray(at, start), Buffer.from(mark.slice(0, end - start), "latin1"));
    at = end;
  }
  pieces.push(view.subarray(at));
  return Buffer.concat(pieces);
}

export function maskText(text: string, values: readonly string[]): string {
  let masked = "";
  let at = 0;
  for (const { start, end } of spansOf(values, (value, from) => text.indexOf(value, from))) {
    masked += text.slice(at, start) + mark.slice(0, end - start);
    at = end;
  }
  return masked + text.slice(at);
}

/** Where the needles are, ascending, what overlaps or touches joined. */
function spansOf<Needle extends { readonly length: number }>(
  needles: readonly Needle[],
  indexOf: (needle: Needle, from: number) => number,
): readonly Span[] {
  const found: Span[] = [];
  for (const needle of needles) {
    if (needle.length === 0) continue;
    for (let start = indexOf(needle, 0); start >= 0; start = indexOf(needle, start + 1)) {
      const last = found.at(-1);
      const end = start + needle.length;
      if (last !== undefined && start >= last.start && start <= last.end) last.end = Math.max(last.end, end);
      else found.push({ start, end });
    }
  }
  if (needles.length > 1) found.sort((one, other) => one.start - other.start);
  const joined: Span[] = [];
  for (const span of found) {
    const last = joined.at(-1);
    if (last !== undefined && span.start <= last.end) last.end = Math.max(last.end, span.end);
    else joined.push(span);
  }
  return joined;
}
