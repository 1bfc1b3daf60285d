/**
 * The value of `--input` or `--value`: JSON text, `@x.json` for a file of JSON, any other `@file` for a file's text, `@-`
 * for the text of standard input.
 */

import { limitCeilings } from "@flowcell/protocol";
import { FileProblem, readBounded, readStandardInput } from "./read-file.js";
import { UsageError } from "./usage.js";

/** `bytesMax`: no more than this is read. */
export function readInput(argument: string | undefined, bytesMax: number, option = "--input"): unknown {
  if (argument === undefined) return undefined;
  if (!argument.startsWith("@")) return parseInput(argument, option, wordHint(argument, option));
  const path = argument.slice(1);
  const text = readText(path, bytesMax, option);
  return path.endsWith(".json") ? parseInput(text, path, "") : text;
}

function parseInput(text: string, where: string, hint: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/\s+/g, " ").slice(0, 200) : "";
    throw new UsageError("input", `${where} is not JSON: ${reason}${hint}`);
  }
}

/** A bare word most likely was meant as a text or as a file. */
function wordHint(argument: string, option: string): string {
  if (argument === "-") return ". For the text of standard input write @-";
  if (/^[\w ./-]{1,200}$/.test(argument))
    return `. For a text write '${JSON.stringify(argument)}', for a file @${argument}`;
  return `. In a shell put JSON between single quotes: ${option} '{"n": 1}'`;
}

function readText(path: string, bytesMax: number, option: string): string {
  if (path === "")
    throw new UsageError("input", `${option} @ needs the name of a file, for example @data.json`);
  const name = path === "-" ? "standard input" : path;
  const bytes = readBytes(path, name, bytesMax, option);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new UsageError("input", `${option} ${name}: not UTF-8 text; convert it to UTF-8 or to JSON`);
  }
}

function readBytes(path: string, name: string, bytesMax: number, option: string): Uint8Array {
  try {
    return path === "-" ? readStandardInput(bytesMax) : readBounded(path, { bytesMax, pipes: true });
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    if (error.kind !== "too_large") throw new UsageError("input", `${option} ${name}: ${error.message}`);
    const more = bytesMax < limitCeilings.inputBytes ? " (--limit inputBytes=N asks for more)" : "";
    const message = `${option} ${name}: ${error.message}; the limit is ${bytesMax}${more}`;
    throw new UsageError("input_too_large", message);
  }
}
