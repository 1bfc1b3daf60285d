/**
 * Finds imports whose name is put together from texts, `import("./" + name)`, before esbuild sees them. esbuild takes such
 * a name for a pattern and looks through folders for what fits, the fence not being asked: `../` leads it out of the flow's
 * folder, through the whole machine. The fence calls this for every module.
 *
 * TRUST: the text is an author's or a model's. What decides is the text as esbuild itself understands it (types removed,
 * constants folded), read by a second parser; text that this parser does not read is refused.
 */

import { TraceMap, traceSegment } from "@jridgewell/trace-mapping";
import { parse } from "acorn";
import type { TransformOptions, TransformResult } from "esbuild";
import { type BundleFailure, fail, failAt } from "./failure.js";
import { computedImportText, LineIndex } from "./source-text.js";

export type Transform = (text: string, options: TransformOptions) => Promise<TransformResult>;

/** Calls that name one file, as almost every call does: nothing more of the text need be looked at. */
const oneFile = /\b(?:import|require)\s*\(\s*(?:"[^"\\\n]*"|'[^'\\\n]*')\s*\)/g;
/** What may be another call: `import(`, with a comment in between too, or `require` in whatever form. */
const maybeComputed = /\bimport\s*(?:\(|\/[/*])|\brequire\b/;
/** An identifier may be written with escapes. */
const escaped = /\\u(?:\{0*|00)[67][0-9a-fA-F]/;

export async function patternImport(
  label: string,
  text: string,
  loader: "js" | "ts",
  transform: Transform,
  options: TransformOptions,
): Promise<BundleFailure | undefined> {
  if (!maybeComputed.test(text.replace(oneFile, "")) && !escaped.test(text)) return undefined;
  let plain: TransformResult;
  try {
    plain = await transform(text, { ...options, loader, sourcemap: "external", sourcesContent: false });
  } catch {
    // The bundler finds the same mistake in it, and words it; it follows no import of a text that it cannot parse.
    return undefined;
  }
  const found = findPattern(plain.code);
  if (found === undefined) return undefined;
  if (found === "unreadable") {
    const what = "import() or require() stands in code that cannot be looked through; write it simpler";
    return fail("import_refused", `${label}: ${what}`);
  }
  const lines = new LineIndex(plain.code);
  const at = lines.position(found);
  const segment = traceSegment(new TraceMap(plain.map), at.line - 1, at.column - 1);
  if (segment === null || segment.length === 1)
    return fail("import_refused", `${label}: ${computedImportText}`);
  const place = { file: label, line: segment[2] + 1, column: segment[3] + 1 };
  return failAt("import_refused", place, computedImportText, new LineIndex(text).line(place.line));
}

/** The offset of the first such call. */
function findPattern(code: string): number | "unreadable" | undefined {
  const open: unknown[] = [];
  try {
    open.push(parse(code, { ecmaVersion: "latest", sourceType: "module", allowReturnOutsideFunction: true }));
  } catch {
    return "unreadable";
  }
  while (open.length > 0) {
    const node = open.pop();
    if (Array.isArray(node)) open.push(...node);
    else if (isNode(node)) {
      const name = imported(node);
      if (name !== undefined && isPattern(name)) return node.start;
      open.push(...Object.values(node));
    }
  }
  return undefined;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly [key: string]: unknown;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

/** What an `import()` or a `require()` asks for. */
function imported(node: Node): unknown {
  if (node.type === "ImportExpression") return node["source"];
  if (node.type !== "CallExpression" || !isNode(node["callee"])) return undefined;
  const { type, name } = node["callee"];
  if (type !== "Identifier" || name !== "require") return undefined;
  return Array.isArray(node["arguments"]) ? node["arguments"][0] : undefined;
}

/** A computed name that begins with a text that begins with a dot. Any branch of the expression counts. */
function isPattern(expression: unknown): boolean {
  const open: unknown[] = [expression];
  while (open.length > 0) {
    const node = open.pop();
    if (Array.isArray(node)) open.push(...node);
    if (!isNode(node)) continue;
    if (node.type === "TemplateLiteral" || node.type === "BinaryExpression") {
      const { text, whole } = fixedStart(node);
      if (!whole && text.startsWith(".")) return true;
    }
    // Names inside of other calls' arguments do no harm, and are rare enough to be refused with the others.
    open.push(...Object.values(node));
  }
  return false;
}

/** The text that an expression begins with whatever happens, and whether it is all of it. */
function fixedStart(expression: unknown): { readonly text: string; readonly whole: boolean } {
  let text = "";
  const open: unknown[] = [expression];
  while (open.length > 0) {
    const node = open.pop();
    if (!isNode(node)) return { text, whole: false };
    if (node.type === "Literal" && typeof node["value"] === "string") text += node["value"];
    else if (node.type === "TemplateElement") text += cooked(node["value"]);
    else if (node.type === "BinaryExpression" && node["operator"] === "+")
      open.push(node["right"], node["left"]);
    else if (node.type === "TemplateLiteral") open.push(...inOrder(node).reverse());
    else return { text, whole: false };
  }
  return { text, whole: true };
}

function inOrder(template: Node): unknown[] {
  const [quasis, expressions] = [template["quasis"], template["expressions"]];
  if (!Array.isArray(quasis) || !Array.isArray(expressions)) return [undefined];
  return quasis.flatMap((quasi: unknown, index) => [quasi, ...expressions.slice(index, index + 1)]);
}

function cooked(value: unknown): string {
  if (typeof value !== "object" || value === null || !("cooked" in value)) return "";
  return typeof value.cooked === "string" ? value.cooked : "";
}
