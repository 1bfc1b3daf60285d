/**
 * The lines that one activation logged, bounded.
 *
 * TRUST: the guest side cuts output at outputBytes by itself, charging each line its UTF-8 bytes and one, and then sends one
 * mark. A worker that goes on after that is not a correct one.
 */
import { type Frame, parseConsole } from "@flowcell/protocol";
import type { ConsoleLine } from "./types.js";
import { Violation } from "./violation.js";

/** The mark is shorter than this. */
const slackBytes = 1024;
/** Lines kept for the result: many empty lines are little output but many objects. */
const linesMax = 65_536;
/** What the mark ends with. A script that forges it cheats its own reader. */
const truncationMark = /\u2026 output is cut here: it reached \d+ bytes \(limits\.outputBytes\)$/;

export class ConsoleLog {
  readonly lines: ConsoleLine[] = [];
  truncated = false;
  readonly #outputBytes: number;
  #bytes = 0;

  constructor(outputBytes: number) {
    this.#outputBytes = outputBytes;
  }

  take(frame: Frame): ConsoleLine {
    const line = parseConsole(frame.text);
    this.#bytes += Buffer.byteLength(line.text) + 1;
    if (this.#bytes > this.#outputBytes + slackBytes) {
      throw new Violation("unexpected_message", "console output went on beyond outputBytes");
    }
    if (this.lines.length < linesMax) this.lines.push(line);
    else this.truncated = true;
    if (line.level === "warn" && truncationMark.test(line.text)) this.truncated = true;
    return line;
  }
}
