/**
 * From what a model wrote to the text that a worker evaluates: a function body, an async arrow, a named function or a module
 * with a default export, in a Markdown fence or not, JavaScript or TypeScript. execute.ts calls it for every execution.
 *
 * JavaScript is parsed by acorn here and changed by a few insertions, so it costs about a millisecond and every position
 * stays known. Only what is TypeScript, or no JavaScript, goes to the bundler (typescript.ts).
 *
 * Kept true: nothing of a text runs unless all of it could be read; what could not be read is answered with a place in the
 * caller's text, fences and prose counted. The answer for one text is remembered.
 */

import {
  type BundleFailure,
  type Edit,
  EditedText,
  foreignKind,
  type Place,
  renderFrame,
  renderPlace,
  type ScriptMap,
} from "@flowcell/bundle";
import { type AnyNode, type Comment, type Options, type Program, parse, type Token } from "acorn";
import type { Surround } from "./guest-names.js";
import { type BlockResult, beginsWithFence, findBlock, scriptLanguages } from "./markdown.js";
import { formOf } from "./script-forms.js";
import { CallerText } from "./source-places.js";
import { typedScript } from "./typescript.js";

export interface NormalScript {
  readonly text: string;
  readonly map: ScriptMap;
  readonly warnings: readonly string[];
}

export type NormalResult =
  | { readonly ok: true; readonly script: NormalScript }
  | { readonly ok: false; readonly failure: BundleFailure };

export interface NormalizeOptions {
  readonly sourceBytes: number;
  /** What messages and stacks call the script. */
  readonly label?: string;
}

const labelDefault = "script.js";
const cacheEntriesMost = 256;
const cacheCharsMost = 8 * 1024 * 1024;

/** A few words after "write": every message about a text that is no script ends with them. */
const scriptShape = "the body of an async function, for example: return await tools.name({ … })";

/** Scripts of one set of names. */
export class Normalizer {
  readonly #surround: Surround;
  readonly #known = new Map<string, NormalResult>();
  #knownChars = 0;

  /** `surround`: what stands around the expression that becomes the script's function; `before` has no line end. */
  constructor(surround: Surround) {
    this.#surround = surround;
  }

  /** Bytes that a script grows by at most, beside what the bundler does to it. */
  get addedBytes(): number {
    return Buffer.byteLength(this.#surround.before) + Buffer.byteLength(this.#surround.after) + 4096;
  }

  normalize(text: string, options: NormalizeOptions): NormalResult | Promise<NormalResult> {
    const label = options.label ?? labelDefault;
    const key = `${label}\n${text}`;
    const known = this.#known.get(key);
    if (known !== undefined) {
      this.#known.delete(key);
      this.#known.set(key, known);
      return withinLimit(text, label, options.sourceBytes) ?? known;
    }
    const result =
      withinLimit(text, label, options.sourceBytes) ?? this.#read(text, label, options.sourceBytes);
    if (result instanceof Promise) return result.then((one) => this.#remember(key, one));
    return this.#remember(key, result);
  }

  #remember(key: string, result: NormalResult): NormalResult {
    // A limit may be another one next time, and a bundler that failed may work.
    if (!result.ok && result.failure.code !== "syntax_error" && result.failure.code !== "not_javascript")
      return result;
    this.#known.set(key, result);
    const charsOf = (name: string, kept: NormalResult): number =>
      name.length + (kept.ok ? kept.script.text.length : 0);
    this.#knownChars += charsOf(key, result);
    for (const [oldest, dropped] of this.#known) {
      if (this.#known.size <= cacheEntriesMost && this.#knownChars <= cacheCharsMost) break;
      this.#known.delete(oldest);
      this.#knownChars -= charsOf(oldest, dropped);
    }
    return result;
  }

  #read(text: string, label: string, sourceBytes: number): NormalResult | Promise<NormalResult> {
    if (text.trim() === "") return refuse(label, "the code is empty", "not_javascript");
    if (beginsWithFence(text)) return this.#readBlock(text, label, sourceBytes, findBlock(text));
    const whole = { start: 0, end: text.length };
    const program = parseScript(text);
    const fenced = program === undefined || hasFence(program, text);
    if (!fenced && !hasTypeArguments(program, text)) return this.#plain(text, label, whole, program);
    const found = fenced ? findBlock(text) : none;
    if (found.kind !== "none") return this.#readBlock(text, label, sourceBytes, found);
    return this.#typed(text, label, whole, sourceBytes);
  }

  #readBlock(
    text: string,
    label: string,
    sourceBytes: number,
    found: BlockResult,
  ): NormalResult | Promise<NormalResult> {
    if (found.kind === "none") return refuse(label, "the code block is empty", "not_javascript");
    if (found.kind === "several") {
      const what = `the text holds ${found.count} code blocks; send the one that is to run`;
      return refuse(label, what, "not_javascript");
    }
    const { block } = found;
    if (!scriptLanguages.has(block.language)) {
      const what = `the code block is ${block.language}; JavaScript or TypeScript was expected`;
      return refuse(label, what, "not_javascript");
    }
    // Blanks for everything around: acorn's positions are the caller's at once.
    const padded =
      text.slice(0, block.start).replaceAll(/[^\n\r\u2028\u2029]/g, " ") + text.slice(block.start, block.end);
    if (padded.trim() === "") return refuse(label, "the code block is empty", "not_javascript");
    const program = parseScript(padded);
    if (program !== undefined && !hasTypeArguments(program, padded))
      return this.#plain(text, label, block, program);
    return this.#typed(text, label, block, sourceBytes);
  }

  #plain(text: string, label: string, { start, end }: Stretch, program: Program): NormalResult {
    const caller = new CallerText(label, text, noShift);
    const kind = foreignKind(text.slice(start, end));
    if (kind === "a shell command" && isArithmetic(program))
      return notJavaScript(label, text.slice(start, end), kind);
    const imported = dynamicImport(program, text);
    if (imported !== undefined)
      return failAt("import_refused", caller.position(imported), importText, caller);
    const form = formOf(program);
    if (!form.ok) {
      const what =
        form.code === "import_refused"
          ? importText
          : `there is no default export to run; write ${scriptShape}`;
      return failAt(form.code, caller.position(form.at), what, caller);
    }
    const { before, after } = this.#surround;
    // The script sees its own stacks with the lines that the caller sees.
    const lines = "\n".repeat(caller.position(start).line - 1);
    const edits: Edit[] = [
      { start: 0, end: start, text: `${before}async function(){${lines}` },
      ...hashBang(text, start),
      ...[...form.edits, ...htmlComments(text, start, end)].sort((a, b) => a.start - b.start),
      { start: end, end: text.length, text: `${form.ending}\n}${after}` },
    ];
    const edited = new EditedText(label, text, edits);
    const warnings = form.warning === undefined ? [] : [form.warning];
    return { ok: true, script: { text: edited.text, map: edited, warnings } };
  }

  async #typed(
    text: string,
    label: string,
    { start, end }: Stretch,
    sourceBytes: number,
  ): Promise<NormalResult> {
    const result = await typedScript({ text, start, end, label, sourceBytes }, this.#surround);
    if (result.ok) return result;
    const { code } = result.failure;
    const script = text.slice(start, end);
    const kind = code === "syntax_error" || code === "not_javascript" ? foreignKind(script) : undefined;
    if (kind !== undefined) return notJavaScript(label, script, kind);
    if (code !== "import_refused" && code !== "node_module" && code !== "import_not_found") return result;
    const { place } = result.failure;
    const caller = new CallerText(label, text, noShift);
    return place === undefined ? refuse(label, importText, code) : failAt(code, place, importText, caller);
  }
}

interface Stretch {
  readonly start: number;
  readonly end: number;
}

const none: BlockResult = { kind: "none" };
const noShift = { line: 1, columns: 0 };
const importText = "cannot import: a script has no modules; what it can use are the tools and the language";

function withinLimit(text: string, label: string, sourceBytes: number): NormalResult | undefined {
  if (text.length * 3 <= sourceBytes) return undefined;
  const bytes = Buffer.byteLength(text);
  if (bytes <= sourceBytes) return undefined;
  return refuse(label, `has ${bytes} bytes; the limit is ${sourceBytes} (sourceBytes)`, "source_too_large");
}

function refuse(label: string, what: string, code: BundleFailure["code"]): NormalResult {
  return { ok: false, failure: { code, message: `${label}: ${what}` } };
}

function failAt(code: BundleFailure["code"], place: Place, what: string, caller: CallerText): NormalResult {
  const frame = renderFrame(place, caller.line(place.line));
  return { ok: false, failure: { code, message: `${renderPlace(place)}: ${what}`, place, frame } };
}

function notJavaScript(label: string, script: string, kind: string): NormalResult {
  const line = script.trim().split(/\r?\n/, 1)[0] ?? "";
  const seen = `${kind}: ${JSON.stringify(line.slice(0, 60))}`;
  const what = `this is not JavaScript (${seen}); write JavaScript, ${scriptShape}`;
  return refuse(label, what, "not_javascript");
}

const acornOptions = {
  ecmaVersion: 2025,
  sourceType: "module",
  allowHashBang: true,
  allowReturnOutsideFunction: true,
  allowAwaitOutsideFunction: true,
  // Otherwise a node in parentheses begins after them, and an insertion would stand inside.
  preserveParens: true,
} as const satisfies Options;

function parseScript(text: string): Program | undefined {
  try {
    return parse(text, acornOptions);
  } catch {
    // Acorn reports even its own stack exhaustion as a syntax error; the bundler words whatever it was.
    return undefined;
  }
}

/** `ls -la /tmp` is a difference divided by something. */
function isArithmetic({ body }: Program): boolean {
  const [only, second] = body;
  if (only?.type !== "ExpressionStatement" || second !== undefined) return false;
  return only.expression.type === "BinaryExpression";
}

const typeArguments = /<[^<;={}()]{0,500}>+\s*[(`]/;

/** `f<T>(x)` is a comparison of a comparison in JavaScript, which nobody writes, and a call in TypeScript. */
function hasTypeArguments(program: Program, text: string): boolean {
  if (!typeArguments.test(text)) return false;
  return holds(program, isTypedCall);
}

function isTypedCall(node: AnyNode): boolean {
  if (node.type !== "BinaryExpression" || !node.operator.startsWith(">")) return false;
  const { left, right } = node;
  const value = right.type === "ParenthesizedExpression" || right.type === "TemplateLiteral";
  return value && left.type === "BinaryExpression" && left.operator === "<";
}

/** A fence between prose that happens to be JavaScript: three backticks are an empty text used as a function. */
function hasFence(program: Program, text: string): boolean {
  if (!/^ {0,3}```/m.test(text)) return false;
  return holds(program, (node) => node.type === "TaggedTemplateExpression" && node.tag.type !== "Identifier");
}

/** Where the first `import(…)` of a script is. */
function dynamicImport(program: Program, text: string): number | undefined {
  if (!/\bimport\b/.test(text)) return undefined;
  let first: number | undefined;
  holds(program, ({ type, start }) => {
    if (type === "ImportExpression") first = Math.min(first ?? start, start);
    return false;
  });
  return first;
}

function holds(program: Program, wanted: (node: AnyNode) => boolean): boolean {
  const open: unknown[] = [program];
  while (open.length > 0) {
    const node = open.pop();
    if (Array.isArray(node)) open.push(...node);
    else if (isNode(node)) {
      if (wanted(node)) return true;
      open.push(...Object.values(node));
    }
  }
  return false;
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

function hashBang(text: string, start: number): Edit[] {
  if (!text.startsWith("#!", start)) return [];
  const length = text.slice(start).search(/[\n\r\u2028\u2029]|$/);
  return [{ start, end: start + length, text: "" }];
}

/** `a<!--b` and `-->` are operators in a module and comments in what the engine evaluates: a blank keeps them operators. */
function htmlComments(text: string, start: number, end: number): Edit[] {
  const script = text.slice(start, end);
  if (!/<!--|-->/.test(script)) return [];
  const inert: Stretch[] = [];
  const tokens: Token[] = [];
  const comments: Comment[] = [];
  parse(script, { ...acornOptions, onToken: tokens, onComment: comments });
  for (const token of tokens) if (/^(?:string|template|regexp)$/.test(token.type.label)) inert.push(token);
  inert.push(...comments);
  return [...script.matchAll(/<!--|-->/g)]
    .map(({ index }) => index)
    .filter((at) => !inert.some((stretch) => stretch.start <= at && at < stretch.end))
    .map((at) => {
      const middle = start + at + (script.startsWith("<", at) ? 1 : 2);
      return { start: middle, end: middle, text: " " };
    });
}
