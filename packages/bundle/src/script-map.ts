/**
 * From a position in the text that the worker evaluates back to the author's file. Two kinds: edits of one file that the
 * plain path makes (`EditedText`, exact for every character), and esbuild's source map. The parent keeps maps; a worker
 * never sees one.
 */

import { TraceMap, traceSegment } from "@jridgewell/trace-mapping";
import { columnFromCodePoints, LineIndex, type Place } from "./source-text.js";

export interface ScriptMap {
  /** Line and column as QuickJS reports them (1-based, code points); undefined for text that the author did not write. */
  toSource(line: number, column: number): Place | undefined;
  /** The text of one line of an author's file, for code frames. */
  sourceLine(place: Place): string | undefined;
}

export interface Edit {
  readonly start: number;
  /** End of the replaced text; equal to `start` for an insertion. */
  readonly end: number;
  readonly text: string;
}

/** One source with a few edits. `edits` are sorted and do not overlap. */
export class EditedText implements ScriptMap {
  readonly text: string;
  readonly edits: readonly Edit[];
  readonly #file: string;
  readonly #source: LineIndex;
  #generated: LineIndex | undefined;
  /** Kept stretches: [offset in the generated text, offset in the source, length]. */
  readonly #kept: (readonly [number, number, number])[] = [];

  constructor(file: string, source: string, edits: readonly Edit[]) {
    const parts: string[] = [];
    let at = 0;
    let length = 0;
    const keep = (end: number): void => {
      if (end > at) this.#kept.push([length, at, end - at]);
      parts.push(source.slice(at, end));
      length += end - at;
    };
    for (const edit of edits) {
      keep(edit.start);
      parts.push(edit.text);
      length += edit.text.length;
      at = edit.end;
    }
    keep(source.length);
    this.text = parts.join("");
    this.edits = edits;
    this.#file = file;
    this.#source = new LineIndex(source);
  }

  toSource(line: number, column: number): Place | undefined {
    this.#generated ??= new LineIndex(this.text);
    const units = columnFromCodePoints(this.#generated.line(line), column);
    const offset = this.#generated.offset(line, units);
    if (offset === undefined) return undefined;
    const stretch = this.#kept.findLast(([start]) => start <= offset);
    if (stretch === undefined) return undefined;
    const [start, sourceStart, length] = stretch;
    if (offset >= start + length) return undefined;
    return { file: this.#file, ...this.#source.position(sourceStart + offset - start) };
  }

  sourceLine(place: Place): string | undefined {
    return place.file === this.#file ? this.#source.line(place.line) : undefined;
  }
}

/** What an author's file is called in messages, its text, and its bytes when it is a file. */
export interface AuthorFile {
  readonly label: string;
  readonly text: string;
  readonly bytes?: Uint8Array;
}

/** esbuild's map over one bundled text. */
export class BundleMap implements ScriptMap {
  /** The map as esbuild wrote it. */
  readonly mapText: string;
  readonly #map: TraceMap;
  readonly #generated: LineIndex;
  readonly #linesBefore: number;
  readonly #files: readonly (AuthorFile | undefined)[];
  readonly #lines = new Map<AuthorFile, LineIndex>();

  /**
   * `generated` is what the worker evaluates; `linesBefore` of it stand before the text that the map describes. `files`
   * holds every author's file by the name that the map uses for it.
   */
  constructor(
    mapText: string,
    generated: string,
    linesBefore: number,
    files: ReadonlyMap<string, AuthorFile>,
  ) {
    this.mapText = mapText;
    this.#map = new TraceMap(mapText);
    this.#generated = new LineIndex(generated);
    this.#linesBefore = linesBefore;
    this.#files = this.#map.sources.map((name) => (name === null ? undefined : files.get(name)));
  }

  toSource(line: number, column: number): Place | undefined {
    if (line <= this.#linesBefore) return undefined;
    const generatedLine = this.#generated.line(line);
    const at = columnFromCodePoints(generatedLine, column) - 1;
    const segment = traceSegment(this.#map, line - this.#linesBefore - 1, at);
    if (segment === null || segment.length === 1) return undefined;
    const [start, sourceIndex, sourceLine, sourceColumn] = segment;
    const file = this.#files[sourceIndex];
    if (file === undefined) return undefined;
    // Maps have one segment per expression, the engine points into it (at the `.` of `null.foo`). Where the text from
    // the segment's start to the position stands unchanged in the source, the position moves along. The first segment
    // of a line begins before esbuild's indentation.
    const between = generatedLine.slice(start, at).trimStart();
    const source = this.#linesOf(file).line(sourceLine + 1);
    const shift = source.startsWith(between, sourceColumn) ? between.length : 0;
    return { file: file.label, line: sourceLine + 1, column: sourceColumn + 1 + shift };
  }

  sourceLine(place: Place): string | undefined {
    const file = this.#files.find((candidate) => candidate?.label === place.file);
    return file === undefined ? undefined : this.#linesOf(file).line(place.line);
  }

  #linesOf(file: AuthorFile): LineIndex {
    const known = this.#lines.get(file);
    if (known !== undefined) return known;
    const index = new LineIndex(file.text);
    this.#lines.set(file, index);
    return index;
  }
}
