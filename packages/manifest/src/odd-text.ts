/**
 * Characters that make text read differently from what it is. A manifest is shown to a person who approves it, and its
 * names are compared as text: what looks the same must be the same. Called for the text as a whole and for every string.
 */

/** Turns of writing direction: with them, what is shown is not the order of what is there. */
const bidiPattern = /[\u202a-\u202e\u2066-\u2069]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters it looks for
const controlPattern = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;
const loneSurrogatePattern = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

export interface OddCharacter {
  readonly index: number;
  /** Such as "U+202E, which turns the direction of writing". */
  readonly what: string;
}

/** The first character that no text of a manifest may hold; line ends and tabs are allowed here. */
export function oddCharacter(text: string): OddCharacter | undefined {
  const kinds: readonly [RegExp, string][] = [
    [bidiPattern, "which turns the direction of writing"],
    [controlPattern, "a control character"],
    [loneSurrogatePattern, "half of a surrogate pair"],
  ];
  const found = kinds.flatMap(([pattern, why]): OddCharacter[] => {
    const index = text.search(pattern);
    return index === -1 ? [] : [{ index, what: `${codePoint(text, index)}, ${why}` }];
  });
  return found.sort((a, b) => a.index - b.index)[0];
}

function codePoint(text: string, index: number): string {
  return `U+${text.charCodeAt(index).toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Why a key or a string value may not stand in a manifest, or undefined. */
export function textProblem(text: string): { message: string; suggestion?: string } | undefined {
  const odd = oddCharacter(text);
  if (odd !== undefined) return { message: `holds ${odd.what}; remove it` };
  const normal = text.normalize("NFC");
  if (normal === text) return undefined;
  return {
    message: "is not in Unicode normal form C, so that another text may look the same; write it in NFC",
    suggestion: normal,
  };
}
