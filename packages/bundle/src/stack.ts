/**
 * Stack text as the engine writes it (`    at name (script.js:3:14)`), rewritten to the author's files. The result layer
 * calls it for an error, its cause and its aggregated errors, and for lines of the console that are frames.
 *
 * TRUST: the text comes from a script, which can assign anything to `stack`. It is cut before it is read, read line by
 * line without backtracking patterns, and only positions that the map knows become file names: a frame that names another
 * file (the prelude, a host path that a script made up) is dropped.
 */

import type { ScriptMap } from "./script-map.js";
import { type Place, printable, renderPlace } from "./source-text.js";

/** The name under which the worker evaluates a script. */
export const scriptFileName = "script.js";

/** What the worker calls its own part of the guest. */
const preludeFileName = "prelude.js";

/** A longer line of a console is no frame. */
const frameLineMax = 1000;
const stackTextMax = 64 * 1024;
const framesMax = 50;
const nameMax = 120;

export interface MappedStack {
  /** Frames one per line, without a heading; "" when no frame is the author's. */
  readonly stack: string;
  /** The innermost frame that is the author's. */
  readonly place?: Place;
}

export function mapStack(stackText: string, map: ScriptMap): MappedStack {
  const frames: string[] = [];
  let place: Place | undefined;
  let native: string[] = [];
  for (const line of stackText.slice(0, stackTextMax).split("\n")) {
    if (frames.length >= framesMax) break;
    const frame = parseFrame(line);
    if (frame === undefined) continue;
    if (frame.position === undefined) {
      // Frames of built-in functions are shown only between frames of the author.
      if (frame.where === "native" && place !== undefined) native.push(`    at ${frame.name} (native)`);
      continue;
    }
    const found = map.toSource(frame.position.line, frame.position.column);
    if (found === undefined) continue;
    place ??= found;
    frames.push(...native, renderMapped(frame.name, found));
    native = [];
  }
  const stack = frames.join("\n");
  return place === undefined ? { stack } : { stack, place };
}

/**
 * What a script wrote to its console, for people: lines that are frames of a stack name the author's files, those of text
 * that no author wrote are left out. Every other line is as it was.
 */
export function mapConsoleText(text: string, map: ScriptMap): string {
  if (!text.includes(`${scriptFileName}:`) && !text.includes(`${preludeFileName}:`)) return text;
  return text
    .split("\n")
    .flatMap((line) => {
      const frame = line.length <= frameLineMax ? parseFrame(line) : undefined;
      if (frame === undefined) return [line];
      if (frame.position === undefined) return frame.where.startsWith(`${preludeFileName}:`) ? [] : [line];
      const found = map.toSource(frame.position.line, frame.position.column);
      const indent = /^\s*/.exec(line)?.[0] ?? "";
      return found === undefined ? [] : [`${indent}${renderMapped(frame.name, found).trimStart()}`];
    })
    .join("\n");
}

function renderMapped(name: string, place: Place): string {
  const shown = functionName(name, place.file);
  return shown === "" ? `    at ${renderPlace(place)}` : `    at ${shown} (${renderPlace(place)})`;
}

/** esbuild calls an anonymous default export `<file>_default`; the author calls it the default export. */
function functionName(name: string, file: string): string {
  if (name === "<anonymous>") return "";
  const base = (file.split("/").pop() ?? "").replace(/\.[^.]*$/, "").replace(/[^A-Za-z0-9_$]/g, "_");
  return name === `${base}_default` ? "default" : name;
}

interface Frame {
  readonly name: string;
  readonly where: string;
  readonly position?: { readonly line: number; readonly column: number };
}

/** `    at name (where)` or, in a syntax error, `    at where`. */
function parseFrame(line: string): Frame | undefined {
  const text = line.trim();
  if (!text.startsWith("at ")) return undefined;
  const open = text.lastIndexOf(" (");
  const parenthesised = open > 2 && text.endsWith(")");
  const name = parenthesised ? printable(text.slice(3, open)).slice(0, nameMax) : "";
  const where = parenthesised ? text.slice(open + 2, -1) : text.slice(3);
  if (!where.startsWith(`${scriptFileName}:`)) return { name, where };
  const numbers = /^:(\d{1,9})(?::(\d{1,9}))?$/.exec(where.slice(scriptFileName.length));
  if (numbers === null) return { name, where };
  return { name, where, position: { line: Number(numbers[1]), column: Number(numbers[2] ?? 1) } };
}
