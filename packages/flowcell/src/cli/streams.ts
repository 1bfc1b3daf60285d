/**
 * The streams that every command writes to. Whatever a command forgot, nothing that steers a terminal gets through: what
 * goes to standard error or to a person always, what goes to standard output where that is a terminal. To a file or a pipe
 * standard output brings what was printed, byte for byte.
 */

import { safeLines } from "./human.js";
import type { Streams } from "./typed.js";

export function guarded({ out, err, outIsTerminal, ask }: Streams): Streams {
  return {
    out: outIsTerminal ? (text) => out(safeLines(text)) : out,
    err: (text) => err(safeLines(text)),
    outIsTerminal,
    ...(ask === undefined ? {} : { ask: (question: string) => ask(safeLines(question)) }),
  };
}
