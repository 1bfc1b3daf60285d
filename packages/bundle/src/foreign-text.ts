/**
 * Recognises input that was never meant to be JavaScript: a shell command, a web page, another language, prose. Used only
 * to choose the words of an error that is raised anyway, so a wrong guess costs a less fitting sentence.
 */

const commands =
  /^(?:\$ ?)?(?:sudo |time )?(?:apt|apt-get|awk|brew|cat|cd|chmod|chown|cp|curl|docker|echo|find|git|grep|kubectl|ls|make|mkdir|mv|node|npm|npx|pip|pnpm|python3?|rm|sed|sh|bash|ssh|tar|touch|wget|yarn)(?: +[-~./\w"'$*:@=%]+)+ *(?:[|>&;].*)?$/;

const rows: readonly (readonly [RegExp, string])[] = [
  [/^#!.*\b(?:sh|bash|zsh|python3?|perl|ruby)\b/, "a script for another interpreter"],
  [/^<(?:!doctype|html|\?xml|svg|head|body)\b/i, "a web page or XML"],
  [/^(?:def \w+\(.*\):|from [\w.]+ import |import [\w.]+(?: as \w+)?$|print )/, "Python"],
  [
    /^(?:#include\b|int main\(|package main$|fn main\(|using namespace\b|public class\b)/,
    "another programming language",
  ],
  [/^(?:select|insert into|update|delete from|create table)\s.*\b(?:from|values|set|where|\()/i, "SQL"],
  [/^```/, "Markdown; only the code between the fences is a script"],
  [commands, "a shell command"],
];

/** What the text seems to be, or undefined when it may well be JavaScript. */
export function foreignKind(text: string): string | undefined {
  const first = firstLine(text);
  if (first === undefined) return "an empty file";
  for (const [pattern, kind] of rows) {
    if (pattern.test(first)) return kind;
  }
  return looksLikeProse(first) ? "prose" : undefined;
}

/** The first line that is neither blank nor a comment, cut to what the patterns need. */
export function firstLine(text: string): string | undefined {
  for (const line of text.slice(0, 4096).split(/\r?\n/)) {
    const trimmed = line.trim();
    if (trimmed !== "" && !trimmed.startsWith("//")) return trimmed.slice(0, 200);
  }
  return undefined;
}

/** Four or more words in a row without any of the characters that code has. */
function looksLikeProse(line: string): boolean {
  return (
    !/[=(){};[\]<>`]/.test(line) &&
    /^(?:[\p{L}\p{N}'\u2019,.!?:-]+ +){3,}[\p{L}\p{N}'\u2019,.!?:-]+$/u.test(line)
  );
}
