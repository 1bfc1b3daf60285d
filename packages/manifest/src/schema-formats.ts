/**
 * The values of `format` that are checked. A small list on purpose: each is decided in time linear in the text, by a
 * short expression without nested repetition or by the platform's own parser, because the text can be hostile.
 */

import { parseHost } from "./host-pattern.js";

/** No text of these formats is longer; longer ones are refused unseen. */
const formatCharsMax = 8_192;

const datePattern = /^(\d{4})-(\d{2})-(\d{2})$/;
const timePattern = /^(\d{2}):(\d{2}):(\d{2})(?:\.\d{1,9})?(?:[zZ]|[+-](\d{2}):(\d{2}))$/;
const durationPattern =
  /^P(?:\d{1,9}W|(?=[\dT])(?:\d{1,9}Y)?(?:\d{1,9}M)?(?:\d{1,9}D)?(?:T(?=\d)(?:\d{1,9}H)?(?:\d{1,9}M)?(?:\d{1,9}S)?)?)$/;
const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const localPartPattern = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}$/;
const uriPattern = /^[A-Za-z][A-Za-z0-9+.-]*:[!-~]*$/;

const checks: Readonly<Record<string, (text: string) => boolean>> = {
  date: isDate,
  time: isTime,
  "date-time": (text) => {
    const at = text.search(/[tT ]/);
    return at !== -1 && isDate(text.slice(0, at)) && isTime(text.slice(at + 1));
  },
  duration: (text) => durationPattern.test(text),
  email: isEmail,
  hostname: (text) => parseHost(text)?.kind === "name",
  ipv4: (text) => !text.endsWith(".") && parseHost(text)?.kind === "ip" && !text.includes(":"),
  ipv6: (text) => text.includes(":") && !text.startsWith("[") && parseHost(text)?.kind === "ip",
  uri: (text) => uriPattern.test(text) && URL.canParse(text),
  uuid: (text) => uuidPattern.test(text),
  // What a form shows for it, no more.
  password: () => true,
};

export const formatNames: readonly string[] = Object.freeze(Object.keys(checks));

/** Whether a text is of a format of `formatNames`. */
export function matchesFormat(format: string, text: string): boolean {
  const check = Object.hasOwn(checks, format) ? checks[format] : undefined;
  if (check === undefined) throw new RangeError(`no format ${format}`);
  return text.length <= formatCharsMax && check(text);
}

function isDate(text: string): boolean {
  const [, year, month, day] = (datePattern.exec(text) ?? []).map(Number);
  if (year === undefined || month === undefined || day === undefined) return false;
  if (month < 1 || month > 12 || day < 1) return false;
  // Day 0 of the next month is the last of this one. Years below 100 would be read as 19xx; 400 years later is the same.
  return day <= new Date(Date.UTC(year + 400, month, 0)).getUTCDate();
}

function isTime(text: string): boolean {
  const match = timePattern.exec(text);
  if (match === null) return false;
  const [hour = 0, minute = 0, second = 0, offsetHour = 0, offsetMinute = 0] = match
    .slice(1)
    .map((part) => (part === undefined ? 0 : Number(part)));
  return hour <= 23 && minute <= 59 && second <= 60 && offsetHour <= 23 && offsetMinute <= 59;
}

function isEmail(text: string): boolean {
  const at = text.lastIndexOf("@");
  const local = text.slice(0, Math.max(at, 0));
  if (!localPartPattern.test(local) || local.startsWith(".") || local.endsWith(".") || local.includes("..")) {
    return false;
  }
  return parseHost(text.slice(at + 1))?.kind === "name";
}
