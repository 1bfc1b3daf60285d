/**
 * Reads the text of a manifest: JSON with comments, into a plain value and a way to find the place of anything in it.
 * Called by parse.ts only.
 *
 * TRUST: the text is whatever somebody wrote or sent. In this order: its size, its encoding, its nesting (a scan without
 * recursion, because the parser recurses), its grammar, then every key and every string.
 * Kept true: a value that this module returns has no key twice at any level, no key `__proto__`, only finite numbers, and
 * only strings that textProblem has nothing against.
 */

import {
  type DocumentNode,
  type MemberNode,
  type ObjectNode,
  parse,
  type ValueNode,
} from "@humanwhocodes/momoa";
import { oddCharacter, textProblem } from "./odd-text.js";
import { type Finding, type ManifestProblem, type Path, pathText, quote } from "./problem.js";

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

export interface JsonDocument {
  readonly value: JsonValue;
  /** Where a finding stands; a path that leads beyond the text stands at the last thing on the way that is in it. */
  place(finding: Finding): ManifestProblem;
}

export type DocumentResult =
  | { readonly ok: true; readonly document: JsonDocument }
  | { readonly ok: false; readonly problems: readonly ManifestProblem[] };

export const manifestBytesMax = 64 * 1024;
/** Containers inside each other. Deep enough for a schema of ten levels of objects inside `input`. */
export const manifestDepthMax = 64;
/** A hostile file could have a problem in every character. */
export const problemsMax = 50;

interface Position {
  readonly line: number;
  readonly column: number;
}

export function parseDocument(source: string | Uint8Array, label: string): DocumentResult {
  const refuse = (message: string, at: Position = { line: 1, column: 1 }): DocumentResult => {
    return { ok: false, problems: [{ label, path: "", ...at, message }] };
  };
  const bytes = typeof source === "string" ? Buffer.byteLength(source, "utf8") : source.byteLength;
  if (bytes > manifestBytesMax) {
    return refuse(`the manifest has ${bytes} bytes; it may have ${manifestBytesMax}`);
  }
  const decoded = typeof source === "string" ? source : decode(source);
  if (decoded === undefined) return refuse("the manifest is not UTF-8 text; save it as UTF-8");
  const text = decoded.startsWith("\ufeff") ? decoded.slice(1) : decoded;
  const odd = oddCharacter(text);
  if (odd !== undefined) return refuse(`the text holds ${odd.what}; remove it`, positionAt(text, odd.index));
  const scanned = scan(text);
  if (scanned !== undefined) return refuse(scanned.message, positionAt(text, scanned.index));
  let root: DocumentNode;
  try {
    root = parse(text, { mode: "jsonc" });
  } catch (error) {
    return syntaxProblem(error, refuse);
  }
  const findings: (Finding & { readonly at: Position })[] = [];
  const value = toValue(root.body, [], findings);
  const problems = findings.map(({ at, ...finding }) => problemAt(label, finding, at));
  if (problems.length > 0) return { ok: false, problems: problems.slice(0, problemsMax) };
  const place = (finding: Finding): ManifestProblem => problemAt(label, finding, locate(root.body, finding));
  return { ok: true, document: { value, place } };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Nesting and line ends inside strings, in one pass that knows strings and comments and nothing else. */
function scan(text: string): { message: string; index: number } | undefined {
  // Each match is a whole string, a whole comment, a bracket, or a string that its line does not end.
  const tokens = /"(?:[^"\\\n\r]|\\.)*(?:"|$|(?=[\n\r]))|\/\/[^\n\r]*|\/\*[\s\S]*?(?:\*\/|$)|[{}[\]]/g;
  let depth = 0;
  for (const match of text.matchAll(tokens)) {
    const [token] = match;
    if (token === "{" || token === "[") depth++;
    else if (token === "}" || token === "]") depth--;
    else if (token.startsWith('"') && (token.length === 1 || !token.endsWith('"'))) {
      return {
        message: "this string has no closing quotation mark on its line; write \\n for a line end",
        index: match.index,
      };
    }
    if (depth > manifestDepthMax) {
      return {
        message: `more than ${manifestDepthMax} levels of { and [ inside each other`,
        index: match.index,
      };
    }
  }
  return undefined;
}

function positionAt(text: string, index: number): Position {
  const lines = text.slice(0, index).split(/\r\n|\r|\n/);
  return { line: lines.length, column: (lines.at(-1) ?? "").length + 1 };
}

function syntaxProblem(
  error: unknown,
  refuse: (message: string, at?: Position) => DocumentResult,
): DocumentResult {
  if (!(error instanceof Error)) throw error;
  const line = "line" in error ? error.line : undefined;
  const column = "column" in error ? error.column : undefined;
  if (typeof line !== "number" || typeof column !== "number") throw error;
  // The parser puts the place behind its message and shows the character, which may be the marker of the text's end.
  const what = error.message
    .replace(/ \(\d+:\d+\)$/, "")
    .replace(/Unexpected character '\uffff'/, "Unexpected end of input")
    .replace(/ found\.$/, "")
    .replace(/[^\x20-\x7e]/g, (unit) => quote(unit).slice(1, -1));
  return refuse(`this is not JSON: ${what.charAt(0).toLowerCase()}${what.slice(1)}`, { line, column });
}

function toValue(node: ValueNode, path: Path, findings: (Finding & { readonly at: Position })[]): JsonValue {
  const at = node.loc.start;
  switch (node.type) {
    case "Null":
      return null;
    case "Boolean":
      return node.value;
    case "Number":
      if (!Number.isFinite(node.value)) findings.push({ path, at, message: "this number is too large" });
      return node.value === 0 ? 0 : node.value;
    case "String": {
      const problem = textProblem(node.value);
      if (problem !== undefined) findings.push({ path, at, ...problem });
      return node.value;
    }
    case "Array":
      return node.elements.map((element, index) => toValue(element.value, [...path, index], findings));
    case "Object":
      return toObject(node, path, findings);
    case "NaN":
    case "Infinity":
      // Only JSON5 has these.
      throw new TypeError(`a ${node.type} node in JSON`);
  }
}

function toObject(
  node: ObjectNode,
  path: Path,
  findings: (Finding & { readonly at: Position })[],
): JsonValue {
  const members = new Map<string, JsonValue>();
  const first = new Map<string, Position>();
  for (const member of node.members) {
    const key = keyOf(member);
    const at = member.name.loc.start;
    const earlier = first.get(key);
    const odd = textProblem(key);
    if (earlier !== undefined) {
      const message = `the key ${quote(key)} is written twice (first at ${earlier.line}:${earlier.column}); keep one`;
      findings.push({ path: [...path, key], at, message });
    } else if (key === "__proto__") {
      findings.push({ path: [...path, key], at, message: 'unknown key "__proto__"; remove it' });
    } else if (odd !== undefined) {
      findings.push({ path: [...path, key], at, ...odd, message: `this key ${odd.message}` });
    }
    first.set(key, at);
    const value = toValue(member.value, [...path, key], findings);
    if (key !== "__proto__") members.set(key, value);
  }
  return Object.fromEntries(members);
}

function keyOf(member: MemberNode): string {
  return member.name.type === "String" ? member.name.value : member.name.name;
}

/** The place of what a path leads to, or of the last step of it that exists. */
function locate(body: ValueNode, finding: Finding): Position {
  let node = body;
  let at: Position = body.loc.start;
  for (const [index, step] of finding.path.entries()) {
    const keyWanted = finding.atKey === true && index === finding.path.length - 1;
    if (node.type === "Object" && typeof step === "string") {
      const member = node.members.find((candidate) => keyOf(candidate) === step);
      if (member === undefined) return at;
      node = member.value;
      at = keyWanted ? member.name.loc.start : node.loc.start;
    } else if (node.type === "Array" && typeof step === "number") {
      const element = node.elements[step];
      if (element === undefined) return at;
      node = element.value;
      at = node.loc.start;
    } else {
      return at;
    }
  }
  return at;
}

function problemAt(label: string, finding: Finding, at: Position): ManifestProblem {
  const { line, column } = at;
  const { message, suggestion } = finding;
  const base = { label, path: pathText(finding.path), line, column, message };
  return suggestion === undefined ? base : { ...base, suggestion };
}
