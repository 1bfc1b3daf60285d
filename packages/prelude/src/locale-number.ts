/**
 * Numbers in en-US, as `toLocaleString` of browsers and Node writes them: the plain, percent and currency styles, fraction
 * and integer digits, grouping. Rounding is half away from zero on the shortest decimal form, as theirs is. What is not here
 * is refused by name, never ignored.
 */

import { optionOf, refuseOption } from "./locale-options.js";

/** Currencies whose symbol and digits are the same in every release of the locale data; "" shows the code. */
const currencySymbols = new Map<string, string>([
  ["AED", ""],
  ["AUD", "A$"],
  ["BRL", "R$"],
  ["CAD", "CA$"],
  ["CHF", ""],
  ["CNY", "CN¥"],
  ["CZK", ""],
  ["DKK", ""],
  ["EUR", "€"],
  ["GBP", "£"],
  ["HKD", "HK$"],
  ["ILS", "₪"],
  ["INR", "₹"],
  ["JPY", "¥"],
  ["KRW", "₩"],
  ["MXN", "MX$"],
  ["NOK", ""],
  ["NZD", "NZ$"],
  ["PLN", ""],
  ["SEK", ""],
  ["SGD", ""],
  ["THB", ""],
  ["USD", "$"],
  ["ZAR", ""],
]);
const wholeCurrencies: readonly string[] = ["JPY", "KRW"];

/** Options of Intl.NumberFormat that change the text and are not here, with the one value that changes nothing. */
const unsupported = new Map<string, unknown>([
  ["compactDisplay", undefined],
  ["currencySign", "standard"],
  ["maximumSignificantDigits", undefined],
  ["minimumSignificantDigits", undefined],
  ["notation", "standard"],
  ["numberingSystem", "latn"],
  ["roundingIncrement", 1],
  ["roundingMode", "halfExpand"],
  ["roundingPriority", "auto"],
  ["signDisplay", "auto"],
  ["trailingZeroDisplay", "auto"],
  ["unit", undefined],
  ["unitDisplay", undefined],
]);

interface NumberForm {
  readonly percent: boolean;
  /** What stands before the digits. */
  readonly prefix: string;
  readonly integerDigits: number;
  readonly leastFraction: number;
  readonly mostFraction: number;
  readonly grouping: boolean;
}

function digitOption(
  options: object | undefined,
  name: string,
  least: number,
  most: number,
): number | undefined {
  const value = optionOf(options, name);
  if (value === undefined) return undefined;
  const number = Math.floor(Number(value));
  if (!(number >= least && number <= most)) throw new RangeError(`${name} value is out of range.`);
  return number;
}

function numberForm(options: object | undefined): NumberForm {
  for (const [name, harmless] of unsupported) {
    const value = optionOf(options, name);
    if (value !== undefined && value !== harmless) refuseOption("toLocaleString", name);
  }
  const style = optionOf(options, "style") ?? "decimal";
  if (style !== "decimal" && style !== "percent" && style !== "currency")
    refuseOption("toLocaleString", `style "${String(style)}"`);
  const code = style === "currency" ? currencyCode(optionOf(options, "currency")) : undefined;
  const ownDigits = code !== undefined && wholeCurrencies.includes(code) ? 0 : 2;
  const defaultLeast = code === undefined ? 0 : ownDigits;
  const defaultMost = code !== undefined ? ownDigits : style === "percent" ? 0 : 3;
  const least = digitOption(options, "minimumFractionDigits", 0, 100);
  const most = digitOption(options, "maximumFractionDigits", 0, 100);
  if (least !== undefined && most !== undefined && least > most) {
    throw new RangeError("maximumFractionDigits value is out of range.");
  }
  return {
    percent: style === "percent",
    prefix: code === undefined ? "" : currencyPrefix(code, optionOf(options, "currencyDisplay")),
    integerDigits: digitOption(options, "minimumIntegerDigits", 1, 21) ?? 1,
    leastFraction: least ?? (most === undefined ? defaultLeast : Math.min(defaultLeast, most)),
    mostFraction: most ?? (least === undefined ? defaultMost : Math.max(defaultMost, least)),
    grouping: groupingOption(optionOf(options, "useGrouping")),
  };
}

function groupingOption(value: unknown): boolean {
  if (value === false || value === "false") return false;
  if (value === undefined || value === true || value === "true" || value === "auto" || value === "always")
    return true;
  return refuseOption("toLocaleString", `useGrouping ${JSON.stringify(value)}`);
}

function currencyCode(value: unknown): string {
  if (value === undefined) throw new TypeError("Currency code is required with currency style.");
  const code = String(value).toUpperCase();
  if (!currencySymbols.has(code)) refuseOption("toLocaleString", `currency "${code}"`);
  return code;
}

const noBreakSpace = "\u00a0";

function currencyPrefix(code: string, display: unknown): string {
  if (display !== undefined && display !== "symbol" && display !== "code") {
    refuseOption("toLocaleString", `currencyDisplay ${JSON.stringify(display)}`);
  }
  const symbol = display === "code" ? "" : (currencySymbols.get(code) ?? "");
  return symbol === "" ? code + noBreakSpace : symbol;
}

/** Decimal digits and the number of them before the point, which may be negative or beyond the digits. */
interface Decimal {
  readonly digits: string;
  readonly point: number;
}

/** Of a finite number that is not negative. */
function decimalOf(value: number): Decimal {
  const [mantissa = "", exponent = "0"] = String(value).split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  return { digits: whole + fraction, point: whole.length + Number(exponent) };
}

/** Digits before and after the point, with at most `most` of the latter. */
function rounded(
  { digits, point }: Decimal,
  most: number,
): { readonly whole: string; readonly fraction: string } {
  const padded = point < 0 ? "0".repeat(-point) + digits : digits;
  const at = Math.max(point, 0);
  const all = padded.padEnd(at, "0");
  const keep = at + most;
  if (all.length <= keep) return { whole: all.slice(0, at), fraction: all.slice(at) };
  let kept = all.slice(0, keep);
  let { length } = kept;
  if (all.charCodeAt(keep) >= 0x35) {
    kept = `0${kept}`;
    let place = kept.length - 1;
    while (kept.charCodeAt(place) === 0x39) place--;
    kept =
      kept.slice(0, place) + String(Number(kept.charAt(place)) + 1) + "0".repeat(kept.length - 1 - place);
    length++;
  }
  const end = length - most;
  return { whole: kept.slice(0, end), fraction: kept.slice(end) };
}

function grouped(digits: string): string {
  let text = digits;
  for (let at = digits.length - 3; at > 0; at -= 3) text = `${text.slice(0, at)},${text.slice(at)}`;
  return text;
}

function compose(negative: boolean, decimal: Decimal, form: NumberForm): string {
  const { whole, fraction } = rounded(decimal, form.mostFraction);
  const integer = whole.replace(/^0+/, "").padStart(form.integerDigits, "0");
  let least = fraction.length;
  while (least > form.leastFraction && fraction.charAt(least - 1) === "0") least--;
  const decimals = fraction.slice(0, least).padEnd(form.leastFraction, "0");
  const number = (form.grouping ? grouped(integer) : integer) + (decimals === "" ? "" : `.${decimals}`);
  return `${negative ? "-" : ""}${form.prefix}${number}${form.percent ? "%" : ""}`;
}

export function formatNumber(value: number, options: object | undefined): string {
  const form = numberForm(options);
  // The space behind a currency's code stands between letters and digits only.
  const prefix = form.prefix.replace(noBreakSpace, "");
  if (Number.isNaN(value)) return `${prefix}NaN${form.percent ? "%" : ""}`;
  const negative = value < 0 || Object.is(value, -0);
  if (!Number.isFinite(value)) return `${negative ? "-" : ""}${prefix}∞${form.percent ? "%" : ""}`;
  const { digits, point } = decimalOf(Math.abs(value));
  return compose(negative, { digits, point: form.percent ? point + 2 : point }, form);
}

export function formatBigint(value: bigint, options: object | undefined): string {
  const form = numberForm(options);
  const negative = value < 0n;
  const digits = String(negative ? -value : value);
  return compose(negative, { digits, point: form.percent ? digits.length + 2 : digits.length }, form);
}
