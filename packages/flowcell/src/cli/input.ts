/**
 * The value of `--input` or `--value`: JSON text, `@x.json` for a file of JSON, any other `@file` for a file's text.
 */

import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { UsageError } from "./usage.js";

/** `bytesMax`: larger files are refused before they are read. */
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
  if (/^[\w ./-]{1,200}$/.test(argument))
    return `. For a text write '${JSON.stringify(argument)}', for a file @${argument}`;
  return `. In a shell put JSON between single quotes: ${option} '{"n": 1}'`;
}

function readText(path: string, bytesMax: number, option: string): string {
  if (path === "")
    throw new UsageError("input", `${option} @ needs the name of a file, for example @data.json`);
  const bytes = readBytes(path, bytesMax, option);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new UsageError("input", `${option} ${path}: not UTF-8 text; convert it to UTF-8 or to JSON`);
  }
}

function readBytes(path: string, bytesMax: number, option: string): Uint8Array {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, "r");
    const status = fstatSync(descriptor);
    if (status.isDirectory()) throw new UsageError("input", `${option} ${path}: is a folder`);
    if (status.size > bytesMax) {
      const limit = `the limit is ${bytesMax} (--limit inputBytes=N asks for more)`;
      throw new UsageError("input_too_large", `${option} ${path}: has ${status.size} bytes; ${limit}`);
    }
    return readFileSync(descriptor);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
    const reason = code === "ENOENT" ? "no such file" : code === "EACCES" ? "permission denied" : code;
    throw new UsageError("input", `${option} ${path}: ${reason}`);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
