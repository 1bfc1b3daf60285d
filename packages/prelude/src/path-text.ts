/** Where in a value something is, as text: `.rows[3].format`, `.get("key")`. Bounded; keys are all it shows of a value. */

import { StringPrototypeCharCodeAt, StringPrototypeSlice } from "./primordials.js";
import { cut, quote } from "./text.js";

/** A place in a Map or Set: `.get(key)`, `.keys()[key]`, `.values()[key]`. A class, so that its fields are its own. */
export class ItemPiece {
  readonly method: "get" | "keys" | "values";
  readonly key: unknown;

  constructor(method: "get" | "keys" | "values", key: unknown) {
    this.method = method;
    this.key = key;
  }
}

/** A key, an index, or a place in a Map or Set. */
export type PathPiece = string | number | ItemPiece;

const charsMost = 200;

/** The first `depth` pieces. A path of a thousand levels is told by its two ends. */
export function pathText(path: { readonly [at: number]: PathPiece | undefined }, depth: number): string {
  let text = "";
  for (let at = 0; at < depth; at++) {
    if (depth > 40 && at === 20) {
      text += "…";
      at = depth - 20;
    }
    const piece = path[at];
    if (piece !== undefined) text += pieceText(piece);
  }
  if (text.length <= charsMost) return text;
  return `${StringPrototypeSlice(text, 0, 100)}…${StringPrototypeSlice(text, text.length - 90)}`;
}

function pieceText(piece: PathPiece): string {
  if (typeof piece === "number") return `[${piece}]`;
  if (typeof piece === "string")
    return isIdentifier(piece) ? `.${piece}` : `[${quote(cut(piece, charsMost))}]`;
  const { method, key } = piece;
  if (method !== "get") return `.${method}()[${key as number}]`; // a count
  switch (typeof key) {
    case "string":
      return `.get(${quote(cut(key, charsMost))})`;
    case "object":
    case "function":
    case "symbol":
      return key === null ? ".get(null)" : ".get(…)";
    default:
      return `.get(${key as undefined | boolean | number | bigint})`; // all that is left
  }
}

/** ASCII identifiers of a length that is worth showing whole. */
export function isIdentifier(text: string): boolean {
  const { length } = text;
  if (length === 0 || length > charsMost) return false;
  for (let at = 0; at < length; at++) {
    const unit = StringPrototypeCharCodeAt(text, at);
    const letter =
      (unit >= 0x61 && unit <= 0x7a) || (unit >= 0x41 && unit <= 0x5a) || unit === 0x5f || unit === 0x24;
    if (!letter && !(at > 0 && unit >= 0x30 && unit <= 0x39)) return false;
  }
  return true;
}
