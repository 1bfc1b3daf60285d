/**
 * Positions of a script whose text went through other texts before it reached the worker: an edit here, the bundler before it,
 * words on the first line before that. normalize.ts and typescript.ts make them; the result's stacks are mapped by them.
 */

import { type EditedText, LineIndex, type Place, type ScriptMap } from "@flowcell/bundle";

/** Words that were put before the caller's text on one line of what was bundled. */
export interface Shift {
  readonly line: number;
  readonly columns: number;
}

/** The caller's text, and how positions in the bundler's input relate to it: the same lines, some columns moved. */
export class CallerText {
  readonly label: string;
  readonly #lines: LineIndex;
  readonly #shift: Shift;

  constructor(label: string, text: string, shift: Shift) {
    this.label = label;
    this.#lines = new LineIndex(text);
    this.#shift = shift;
  }

  /** Undefined for a position in what was added. */
  place({ line, column }: Place): Place | undefined {
    const moved = line === this.#shift.line ? column - this.#shift.columns : column;
    return moved < 1 ? undefined : { file: this.label, line, column: moved };
  }

  line(line: number): string {
    return this.#lines.line(line);
  }

  position(offset: number): Place {
    return { file: this.label, ...this.#lines.position(offset) };
  }
}

/** From the worker's text through the edits and the bundler's map to the caller's text. */
export class ChainedMap implements ScriptMap {
  readonly #edited: EditedText;
  readonly #bundled: LineIndex;
  readonly #map: ScriptMap;
  readonly #caller: CallerText;

  constructor(edited: EditedText, bundled: string, map: ScriptMap, caller: CallerText) {
    this.#edited = edited;
    this.#bundled = new LineIndex(bundled);
    this.#map = map;
    this.#caller = caller;
  }

  toSource(line: number, column: number): Place | undefined {
    const inner = this.#edited.toSource(line, column);
    if (inner === undefined) return undefined;
    const before = this.#bundled.line(inner.line).slice(0, inner.column - 1);
    const place = this.#map.toSource(inner.line, [...before].length + 1);
    return place === undefined ? undefined : this.#caller.place(place);
  }

  sourceLine(place: Place): string | undefined {
    return place.file === this.#caller.label ? this.#caller.line(place.line) : undefined;
  }
}
