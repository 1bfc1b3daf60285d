/** The flags of a RegExp from its own state: the `flags` accessor asks properties that a script may have replaced. */

import { RegExpPrototype, uncurriedGetter } from "./primordials.js";

type Flag = (self: unknown) => boolean;

const hasIndices = uncurriedGetter<Flag>(RegExpPrototype, "hasIndices");
const global = uncurriedGetter<Flag>(RegExpPrototype, "global");
const ignoreCase = uncurriedGetter<Flag>(RegExpPrototype, "ignoreCase");
const multiline = uncurriedGetter<Flag>(RegExpPrototype, "multiline");
const dotAll = uncurriedGetter<Flag>(RegExpPrototype, "dotAll");
const unicode = uncurriedGetter<Flag>(RegExpPrototype, "unicode");
const unicodeSets = uncurriedGetter<Flag>(RegExpPrototype, "unicodeSets");
const sticky = uncurriedGetter<Flag>(RegExpPrototype, "sticky");

/** In the language's order. Throws for what is no RegExp. */
export function regExpFlags(regExp: unknown): string {
  let flags = hasIndices(regExp) ? "d" : "";
  if (global(regExp)) flags += "g";
  if (ignoreCase(regExp)) flags += "i";
  if (multiline(regExp)) flags += "m";
  if (dotAll(regExp)) flags += "s";
  if (unicode(regExp)) flags += "u";
  if (unicodeSets(regExp)) flags += "v";
  if (sticky(regExp)) flags += "y";
  return flags;
}
