/**
 * Text for generated TypeScript: comments and literals that hold any text, and indentation. Called by the printers of types here and in
 * codemode.
 *
 * TRUST: descriptions are anybody's: a flow's author, or the author of a tool on some other server. Whatever the text is, it
 * stays inside its comment or literal, says nothing to the compiler (`@ts-ignore` would) and hides nothing from an eye.
 */

/** Control, format and tag characters, halves of pairs, and selectors of variants, which can carry text that no eye sees. */
const hidden = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Cs}\p{Variation_Selector}]/gu;

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

/** A literal: as in JSON, with what ends a line in JavaScript alone and what no eye sees written out. */
export function quotedText(text: string): string {
  return JSON.stringify(text).replace(/[\u2028\u2029]|[\p{Cf}\p{Variation_Selector}]/gu, (character) => {
    const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
    return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
  });
}
