/**
 * Text for generated TypeScript: comments that hold any text, and indentation. Called by the printers of types here and in
 * codemode.
 *
 * TRUST: descriptions are anybody's: a flow's author, or the author of a tool on some other server. Whatever the text is, it
 * stays inside its comment, says nothing to the compiler (`@ts-ignore` would) and hides nothing from an eye.
 */

const hidden = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Cs}]/gu;

/** A JSDoc comment with its line end, or nothing for text that is empty. */
export function docComment(text: string): string {
  const lines = text
    .replaceAll(hidden, "")
    .replaceAll("*/", "*\\/")
    .replaceAll(/@(?=ts-)/gi, "@ ")
    .split(/\r\n|[\r\n\u2028\u2029]/)
    .map((line) => line.trimEnd());
  if (lines.every((line) => line === "")) return "";
  if (lines.length === 1) return `/** ${lines[0]} */\n`;
  return `/**\n${lines.map((line) => ` * ${line}`.trimEnd()).join("\n")}\n */\n`;
}

/** Every line that is not empty, two spaces further in. */
export function indented(text: string): string {
  return text.replace(/^(?=.)/gm, "  ");
}
