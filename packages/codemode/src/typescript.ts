/**
 * TypeScript, and what only esbuild can read: the script goes through the fenced bundler as the inside of an async function, or
 * as the module that it is, and comes back as JavaScript that is treated like any other.
 *
 * Kept true: what was put around the script is still around all of it when it comes back. A mark that no script can know stands
 * at the end of the function, and must stand at the end of that very function afterwards; text that closes the function
 * early and goes on outside is refused.
 */

import { randomBytes } from "node:crypto";
import {
  type BundleFailure,
  bundleSource,
  type Edit,
  EditedText,
  type Place,
  renderFrame,
  renderPlace,
  type Script,
} from "@flowcell/bundle";
import { type AnyNode, type BlockStatement, type FunctionDeclaration, parse, type Statement } from "acorn";
import type { Surround } from "./guest-names.js";
import { bodyForm } from "./script-forms.js";
import { CallerText, ChainedMap } from "./source-places.js";

export interface TypedSource {
  /** The caller's whole text. */
  readonly text: string;
  /** The stretch of it that is the script; `start` begins a line. */
  readonly start: number;
  readonly end: number;
  readonly label: string;
  readonly sourceBytes: number;
}

export interface TypedScript {
  readonly text: string;
  readonly map: ChainedMap;
  readonly warnings: readonly string[];
}

export type TypedResult =
  | { readonly ok: true; readonly script: TypedScript }
  | { readonly ok: false; readonly failure: BundleFailure };

const opening = "export default async function () {";
/** Words of a module. They may stand in a text or a comment of a body, which is tried then. */
const moduleWord =
  /(?:^|[;}\s])(?:export\s*(?:default\b|\{|async\b|function\b|const\b|let\b|class\b|\*)|import\s*(?:["'{*]|type\b|\w+\s*(?:,|from\b)))/;

export async function typedScript(source: TypedSource, surround: Surround): Promise<TypedResult> {
  const script = source.text.slice(source.start, source.end);
  const isModule = moduleWord.test(script);
  const first = isModule ? await asModule(source, surround) : await asBody(source, surround);
  if (first.ok || !isModule) return first;
  // The word may stand in a text of a body.
  const second = await asBody(source, surround);
  return second.ok ? second : first;
}

async function asModule(source: TypedSource, surround: Surround): Promise<TypedResult> {
  const caller = new CallerText(source.label, source.text, { line: 1, columns: 0 });
  const bundled = await bundle(source, caller, linesBefore(source), "");
  if (!bundled.ok) return bundled;
  const { script } = bundled;
  const run = "()=>{const m=(";
  const call = ')().default;return typeof m==="function"?m():m}';
  return finished(script, caller, [], { before: surround.before + run, after: call + surround.after });
}

async function asBody(source: TypedSource, surround: Surround): Promise<TypedResult> {
  const mark = `__flowcell_${randomBytes(16).toString("hex")}`;
  const before = linesBefore(source);
  // With lines to spare before the script, the words stand on one of them.
  const lead = before === "" ? opening : `${before.slice(1)}${opening}\n`;
  const columns = before === "" ? opening.length : 0;
  const caller = new CallerText(source.label, source.text, { line: 1, columns });
  const bundled = await bundle(source, caller, lead, `\n;${mark}();}\n`);
  if (!bundled.ok) return bundled;
  const { script } = bundled;
  const body = markedBody(script.text, mark);
  if (body === undefined) {
    const what = "a bracket is closed here that the script did not open";
    return { ok: false, failure: { code: "syntax_error", message: `${source.label}: ${what}` } };
  }
  const statements = body.body.slice(0, -1);
  const marked = body.body.at(-1);
  const { edits, ending, warning } = bodyForm(statements);
  const all = [
    ...edits,
    ...(marked === undefined ? [] : [{ start: marked.start, end: marked.end, text: ending }]),
  ];
  const wrapped = { before: `${surround.before}()=>(`, after: `)().default()${surround.after}` };
  return finished(script, caller, all, wrapped, warning);
}

function finished(
  script: Script,
  caller: CallerText,
  edits: readonly Edit[],
  { before, after }: Surround,
  warning?: string,
): TypedResult {
  const { length } = script.text;
  const edited = new EditedText(caller.label, script.text, [
    { start: 0, end: 0, text: before },
    ...edits,
    { start: length, end: length, text: after },
  ]);
  return {
    ok: true,
    script: {
      text: edited.text,
      map: new ChainedMap(edited, script.text, script.map, caller),
      warnings: warning === undefined ? script.warnings : [...script.warnings, warning],
    },
  };
}

/** As many line ends as the caller's text has before the script. */
function linesBefore({ text, start }: TypedSource): string {
  return "\n".repeat(text.slice(0, start).split(/\r\n|[\n\r\u2028\u2029]/).length - 1);
}

type Bundled =
  | { readonly ok: true; readonly script: Script }
  | { readonly ok: false; readonly failure: BundleFailure };

async function bundle(
  source: TypedSource,
  caller: CallerText,
  before: string,
  after: string,
): Promise<Bundled> {
  const text = `${before}${source.text.slice(source.start, source.end)}${after}`;
  const sourceBytes = source.sourceBytes + Buffer.byteLength(before) + Buffer.byteLength(after);
  // What is sent is limited by the pool; types and comments are gone by then, lowered syntax may be longer.
  const result = await bundleSource(text, { label: typedLabel(source.label), sourceBytes: sourceBytes * 4 });
  if (result.ok) return result;
  return { ok: false, failure: atCaller(result.failure, source, caller) };
}

/** The bundler reads by the name's ending. */
function typedLabel(label: string): string {
  return /\.m?ts$/.test(label) ? label : "script.ts";
}

/** The failure with its place in the caller's text; one behind its end is put there. */
function atCaller(failure: BundleFailure, source: TypedSource, caller: CallerText): BundleFailure {
  const { place, message, code } = failure;
  if (place === undefined)
    return { ...failure, message: message.replace(/^script\.ts\b/, () => caller.label) };
  const what = message.startsWith(renderPlace(place))
    ? message.slice(renderPlace(place).length).replace(/^: /, "")
    : message;
  const last = caller.position(source.text.slice(0, source.end).trimEnd().length);
  const moved = caller.place(place);
  const isBehind = moved !== undefined && isAfter(moved, last);
  const known = moved === undefined || isBehind ? last : moved;
  return {
    code,
    message: `${renderPlace(known)}: ${isBehind ? behindText(what) : what}`,
    place: known,
    frame: renderFrame(known, caller.line(known.line)),
  };
}

/** What is missed or too much at the end is told of the script, not of the words that stand behind it. */
function behindText(what: string): string {
  return what.startsWith('Unexpected "}"')
    ? "a bracket is closed here that the script did not open"
    : "unexpected end of the script; a bracket or text is not closed";
}

function isAfter(one: Place, other: Place): boolean {
  return one.line > other.line || (one.line === other.line && one.column > other.column);
}

/** The body of the default function, when the mark is its last statement; undefined when it is anywhere else. */
function markedBody(text: string, mark: string): BlockStatement | undefined {
  const program = parse(text, { ecmaVersion: 2025, sourceType: "script", preserveParens: true });
  const functions: FunctionDeclaration[] = [];
  let exported: string | undefined;
  walk(program, (node) => {
    if (isNamedFunction(node) && endsWithMark(node.body.body, mark)) functions.push(node);
    else if (node.type === "Property" && exported === undefined) exported = defaultName(node);
  });
  const [only, second] = functions;
  if (only === undefined || second !== undefined || only.id.name !== exported) return undefined;
  return only.body;
}

function isNamedFunction(node: AnyNode): node is FunctionDeclaration {
  return node.type === "FunctionDeclaration" && node.id !== null;
}

function endsWithMark(statements: readonly Statement[], mark: string): boolean {
  const last = statements.at(-1);
  if (last?.type !== "ExpressionStatement" || last.expression.type !== "CallExpression") return false;
  const { callee } = last.expression;
  return callee.type === "Identifier" && callee.name === mark;
}

/** `default: () => name`, which esbuild writes before anything of the script. */
function defaultName(node: AnyNode): string | undefined {
  if (node.type !== "Property" || node.key.type !== "Identifier" || node.key.name !== "default")
    return undefined;
  const { value } = node;
  if (value.type !== "ArrowFunctionExpression" || value.body.type !== "Identifier") return undefined;
  return value.body.name;
}

/** Every node, in the order of the text. Deep texts were refused by the bundler. */
function walk(program: AnyNode, visit: (node: AnyNode) => void): void {
  const open: unknown[] = [program];
  while (open.length > 0) {
    const node = open.pop();
    if (Array.isArray(node)) open.push(...node.toReversed());
    else if (isNode(node)) {
      visit(node);
      open.push(...Object.values(node).toReversed());
    }
  }
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}
