/**
 * `localeCompare` in en-US: the order of the Unicode collation's root for ASCII, typographic punctuation and Latin letters
 * with diacritics, on three levels (letters, accents, case), with the options numeric and sensitivity. The engine's own
 * compares code points, which puts every capital before every small letter: silently wrong for what people sort. Text in
 * other scripts is refused.
 */

import { optionOf, refuseOption } from "./locale-options.js";

/** Characters in primary order; those of one entry differ on a later level only, in this order. */
const order: readonly string[] = [
  ..."\t\n\v\f\r",
  " \u00a0",
  ..."_-–—,;:!¡?¿.…·",
  "'",
  '"',
  ..."«»()[]{}§¶@*/\\&#%`´^¯¨¸°©®+±÷×<=>¬|¦~¤¢$£¥€0123456789",
  ..."abcdefghijklmnopqrstuvwxyz",
];

/** Combining marks in secondary order. */
const marks =
  "\u0301\u0300\u0306\u0302\u030c\u030a\u0308\u030b\u0303\u0307\u0338\u0327\u0328\u0304\u0309\u030f\u0311\u031b\u0323\u0326";

/** Letters that do not decompose, as base, mark, base. `+` is a mark that comes after all others. */
const expansions = new Map<string, string>([
  ["æ", "a+e"],
  ["œ", "o+e"],
  ["ß", "s+s"],
  ["ø", "o\u0338"],
  ["đ", "d\u0338"],
  ["ł", "l\u0338"],
]);

const primaries = new Map<string, number>();
const tertiaries = new Map<string, number>();
order.forEach((entry, index) => {
  [...entry].forEach((char, variant) => {
    primaries.set(char, index + 1);
    tertiaries.set(char, variant === 0 ? commonTertiary : variantTertiary);
  });
});
const secondaries = new Map<string, number>([...marks].map((mark, index) => [mark, index + 2]));
secondaries.set("+", 100);

const commonTertiary = 1;
const variantTertiary = 2;
const upperTertiary = 3;
const zero = primaries.get("0") ?? 0;

interface Keys {
  readonly primary: number[];
  readonly secondary: number[];
  readonly tertiary: number[];
}

function keysOf(text: string, numeric: boolean): Keys {
  const keys: Keys = { primary: [], secondary: [], tertiary: [] };
  const chars = [...text.normalize("NFD")];
  for (let at = 0; at < chars.length; at++) {
    const char = chars[at] ?? "";
    if (numeric && isDigit(char)) {
      let end = at;
      while (end + 1 < chars.length && isDigit(chars[end + 1] ?? "")) end++;
      addNumber(keys, chars.slice(at, end + 1).join(""));
      at = end;
    } else addChar(keys, char);
  }
  return keys;
}

function isDigit(char: string): boolean {
  return char >= "0" && char <= "9";
}

/** Compares as a number: by length without leading zeros, then digit by digit, before any letter. */
function addNumber(keys: Keys, digits: string): void {
  const significant = digits.replace(/^0+/, "");
  keys.primary.push(zero, significant.length);
  for (const digit of significant) keys.primary.push(Number(digit));
  keys.secondary.push(1);
  keys.tertiary.push(commonTertiary);
}

function addChar(keys: Keys, char: string): void {
  const mark = char === "+" ? undefined : secondaries.get(char);
  if (mark !== undefined) {
    keys.secondary.push(mark);
    keys.tertiary.push(commonTertiary);
    return;
  }
  const lower = char.toLowerCase();
  const upper = lower !== char;
  const expansion = expansions.get(lower);
  if (expansion !== undefined) {
    for (const part of expansion) addExpanded(keys, part, upper);
    return;
  }
  const primary = primaries.get(lower);
  if (primary === undefined) {
    throw new RangeError(
      `localeCompare: the text holds ${JSON.stringify(char)}, whose place in the alphabet is not known here; compare with < and >`,
    );
  }
  add(keys, primary, upper ? upperTertiary : (tertiaries.get(char) ?? commonTertiary));
}

function addExpanded(keys: Keys, part: string, upper: boolean): void {
  const mark = secondaries.get(part);
  if (mark === undefined) add(keys, primaries.get(part) ?? 0, upper ? upperTertiary : commonTertiary);
  else {
    keys.secondary.push(mark);
    keys.tertiary.push(commonTertiary);
  }
}

function add(keys: Keys, primary: number, tertiary: number): void {
  keys.primary.push(primary);
  keys.secondary.push(1);
  keys.tertiary.push(tertiary);
}

function compareLists(one: readonly number[], other: readonly number[]): number {
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at++) {
    const difference = (one[at] ?? 0) - (other[at] ?? 0);
    if (difference !== 0) return difference < 0 ? -1 : 1;
  }
  return Math.sign(one.length - other.length);
}

const asciiPrimary = new Uint8Array(128);
for (let code = 0; code < 128; code++) {
  asciiPrimary[code] = primaries.get(String.fromCharCode(code).toLowerCase()) ?? 0;
}

/** Both texts in one pass if they are plain ASCII, which nearly all are; undefined if they are not. */
function compareAscii(one: string, other: string): number | undefined {
  let later = 0;
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at++) {
    const a = one.charCodeAt(at);
    const b = other.charCodeAt(at);
    const difference = (asciiPrimary[a] ?? 0) - (asciiPrimary[b] ?? 0);
    if (a > 127 || b > 127 || asciiPrimary[a] === 0 || asciiPrimary[b] === 0) return undefined;
    if (difference !== 0) {
      // An accent further on still cannot matter, but a character of another script must be refused.
      return isAscii(one, at) && isAscii(other, at) ? Math.sign(difference) : undefined;
    }
    if (later === 0 && a !== b) later = a > b ? -1 : 1;
  }
  if (!isAscii(one, length) || !isAscii(other, length)) return undefined;
  return one.length === other.length ? later : Math.sign(one.length - other.length);
}

function isAscii(text: string, from: number): boolean {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code > 127 || asciiPrimary[code] === 0) return false;
  }
  return true;
}

/** -1, 0 or 1. */
export function compareTexts(one: string, other: string, options: object | undefined): number {
  const numeric = optionOf(options, "numeric") === true;
  const sensitivity = optionOf(options, "sensitivity") ?? "variant";
  if (optionOf(options, "ignorePunctuation")) refuseOption("localeCompare", "ignorePunctuation");
  const caseFirst = optionOf(options, "caseFirst") ?? "false";
  if (caseFirst !== "false" && caseFirst !== "lower")
    refuseOption("localeCompare", `caseFirst "${String(caseFirst)}"`);
  const usage = optionOf(options, "usage") ?? "sort";
  if (usage !== "sort") refuseOption("localeCompare", `usage "${String(usage)}"`);
  if (one === other) return 0;
  if (!numeric && sensitivity === "variant") {
    const quick = compareAscii(one, other);
    if (quick !== undefined) return quick;
  }
  const a = keysOf(one, numeric);
  const b = keysOf(other, numeric);
  const primary = compareLists(a.primary, b.primary);
  switch (sensitivity) {
    case "base":
      return primary;
    case "accent":
      return primary || compareLists(a.secondary, b.secondary);
    case "variant":
      return primary || compareLists(a.secondary, b.secondary) || compareLists(a.tertiary, b.tertiary);
    default:
      return refuseOption("localeCompare", `sensitivity "${String(sensitivity)}"`);
  }
}
