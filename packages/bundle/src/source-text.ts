/**
 * Positions in source text. Lines and columns are 1-based as people and QuickJS count them; offsets are 0-based UTF-16
 * indices. QuickJS counts columns in code points and esbuild in UTF-8 bytes, so both directions are converted here.
 */

export interface Place {
  /** As the author knows it: the typed path, or relative to the flow's folder. */
  readonly file: string;
  readonly line: number;
  /** In UTF-16 units, as editors count. */
  readonly column: number;
}

export function renderPlace(place: Place): string {
  return `${place.file}:${place.line}:${place.column}`;
}

/** Offsets at which lines begin; all four line terminators of ECMAScript end a line, as the engine counts them. */
export class LineIndex {
  readonly text: string;
  readonly #starts: readonly number[];

  constructor(text: string) {
    this.text = text;
    const starts = [0];
    const ends = /\r\n|[\n\r\u2028\u2029]/g;
    while (ends.exec(text) !== null) starts.push(ends.lastIndex);
    this.#starts = starts;
  }

  /** The text of a line without its terminator, "" for a line that does not exist. */
  line(line: number): string {
    const start = this.#starts[line - 1];
    if (start === undefined) return "";
    const end = this.#starts[line] ?? this.text.length;
    return this.text.slice(start, end).replace(/[\r\n\u2028\u2029]+$/, "");
  }

  offset(line: number, column: number): number | undefined {
    const start = this.#starts[line - 1];
    return start === undefined ? undefined : start + column - 1;
  }

  position(offset: number): { readonly line: number; readonly column: number } {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.#starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (this.#starts[low] ?? 0) + 1 };
  }
}

/** The UTF-16 column of the n-th code point (both 1-based). Beyond the end of the line it counts on. */
export function columnFromCodePoints(line: string, column: number): number {
  let units = 0;
  let points = 1;
  while (points < column && units < line.length) {
    const unit = line.charCodeAt(units);
    units += unit >= 0xd800 && unit <= 0xdbff && units + 1 < line.length ? 2 : 1;
    points++;
  }
  return units + 1 + (column - points);
}

/** The UTF-16 column (1-based) of a 0-based offset in UTF-8 bytes. */
export function columnFromBytes(line: string, bytes: number): number {
  return Buffer.from(line, "utf8").subarray(0, bytes).toString("utf8").length + 1;
}

/** Of an `import()` whose file nobody can know before the script runs. */
export const computedImportText =
  "import() of a computed name finds nothing: a script is one bundle; write the name as a text in the import";

const frameWidth = 100;

/** Two lines: the source line, cut around the column when it is long, and a caret under the column. */
export function renderFrame(place: Place, sourceLine: string): string {
  const start = place.column > frameWidth ? place.column - Math.floor(frameWidth / 2) : 0;
  const cut = sourceLine.slice(start, start + frameWidth);
  const shown = printable(cut);
  const gutter = `${place.line} | `.padStart(8);
  const lead = printable(cut.slice(0, Math.max(0, place.column - 1 - start))).replace(/[^\t]/g, " ");
  return `${gutter}${shown}\n${" ".repeat(gutter.length)}${lead}^`;
}

/**
 * What no text of a script, a manifest, a file name or a server may bring to a reader as it is: what steers a terminal
 * (Cc), what turns the direction of text or has no width (Cf), what ends a line elsewhere (Zl, Zp), halves of characters
 * (Cs), and letters that look like nothing. Marks that only choose a form of the character before them stay.
 */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u115f\u1160\u3164\uffa0]/gu;

/** Text of a script as it may be shown on a terminal: each such character but tab becomes one visible character. */
export function printable(text: string): string {
  return text.replace(unseen, (character) => (character === "\t" ? character : "\ufffd"));
}

/** The same for who has to know what stands there: each becomes its number, `\u{202e}`; tab too. */
export function spelledOut(text: string): string {
  return text.replace(unseen, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** JSON text that means the same and holds no such character but the line feeds of its layout. */
export function visibleJson(json: string): string {
  return json.replace(unseen, (character) => (character === "\n" ? character : jsonEscape(character)));
}

function jsonEscape(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}
