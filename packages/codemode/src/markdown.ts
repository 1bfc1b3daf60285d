/**
 * Finds the code in what a model wrote around it: one Markdown fence, with or without prose before and after. normalize.ts asks
 * when the text begins with a fence or is no JavaScript by itself.
 *
 * Kept true: the code is a stretch of the text, unchanged, so that its positions are the caller's.
 */

export interface CodeBlock {
  /** The stretch of the text between the fences; `start` is the beginning of a line. */
  readonly start: number;
  readonly end: number;
  /** As the fence says it, lower case; "" when it says none. */
  readonly language: string;
}

export type BlockResult =
  | { readonly kind: "none" }
  | { readonly kind: "block"; readonly block: CodeBlock }
  /** Several of them; which one is meant is not to be guessed. */
  | { readonly kind: "several"; readonly count: number };

const fenceLine = /^ {0,3}(`{3,}|~{3,})[ \t]*([A-Za-z0-9+#.-]{0,32})[^`\n\r]*$/;
const blocksMost = 100;

/** What fences call languages that this package runs. */
export const scriptLanguages: ReadonlySet<string> = new Set([
  "",
  "cjs",
  "javascript",
  "js",
  "jsx",
  "mjs",
  "mts",
  "ts",
  "tsx",
  "typescript",
]);

export function beginsWithFence(text: string): boolean {
  return /^\s*(?:`{3}|~{3})/.test(text);
}

export function findBlock(text: string): BlockResult {
  const blocks = allBlocks(text);
  const scripts = blocks.filter(({ language }) => scriptLanguages.has(language));
  // A script beside the output or the data that it is about is still one script.
  const [first, second] = scripts.length > 0 ? scripts : blocks;
  if (first === undefined) return { kind: "none" };
  if (second === undefined) return { kind: "block", block: first };
  const named = scripts.filter(({ language }) => language !== "");
  const [only] = named;
  if (named.length === 1 && only !== undefined) return { kind: "block", block: only };
  return { kind: "several", count: Math.max(scripts.length, blocks.length) };
}

/** A fence that is not closed goes on to the end, as Markdown has it. */
function allBlocks(text: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let open: { readonly mark: string; readonly start: number; readonly language: string } | undefined;
  for (let at = 0; at < text.length && blocks.length < blocksMost; ) {
    const newline = text.indexOf("\n", at);
    const next = newline < 0 ? text.length : newline + 1;
    const line = text.slice(at, newline < 0 ? text.length : newline).replace(/\r$/, "");
    const match = line.length <= 200 ? fenceLine.exec(line) : null;
    const mark = match?.[1] ?? "";
    if (match !== null && open === undefined) {
      open = { mark, start: next, language: (match[2] ?? "").toLowerCase() };
    } else if (open !== undefined && closes(mark, open.mark, line)) {
      blocks.push({ start: open.start, end: at, language: open.language });
      open = undefined;
    }
    at = next;
  }
  if (open !== undefined) blocks.push({ start: open.start, end: text.length, language: open.language });
  return blocks;
}

function closes(mark: string, opened: string, line: string): boolean {
  return mark.startsWith(opened) && line.trim() === mark;
}
