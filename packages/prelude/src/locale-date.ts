/**
 * Dates in en-US and UTC, as `toLocaleString`, `toLocaleDateString` and `toLocaleTimeString` of browsers and Node write
 * them: the styles, and the combinations of fields that have one obvious order. Any other time zone, combination or option
 * is refused by name, never ignored.
 */

import { optionOf, refuseOption } from "./locale-options.js";

const months = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

export type DateMethod = "toLocaleString" | "toLocaleDateString" | "toLocaleTimeString";

type Width = "numeric" | "2-digit";
type NameWidth = "long" | "short";

interface Fields {
  weekday?: NameWidth | undefined;
  year?: Width | undefined;
  month?: Width | NameWidth | undefined;
  day?: Width | undefined;
  hour?: Width | undefined;
  minute?: Width | undefined;
  second?: Width | undefined;
  zone?: NameWidth | undefined;
}

const unsupported = new Map<string, unknown>([
  ["era", undefined],
  ["dayPeriod", undefined],
  ["fractionalSecondDigits", undefined],
  ["calendar", "gregory"],
  ["numberingSystem", "latn"],
]);

const utcNames: readonly string[] = ["utc", "etc/utc"];

export function formatDate(time: number, method: DateMethod, options: object | undefined): string {
  for (const [name, harmless] of unsupported) {
    const value = optionOf(options, name);
    if (value !== undefined && value !== harmless) refuseOption(method, name);
  }
  const zone = optionOf(options, "timeZone");
  if (zone !== undefined && !utcNames.includes(String(zone).toLowerCase())) {
    throw new RangeError(
      `${method}: the time zone "${String(zone)}" is not available here, only UTC is; add the offset yourself`,
    );
  }
  const clock24 = clockOption(options, method);
  const styled = styleOf(options, method);
  const fields = styled?.fields ?? fieldsOf(options, method);
  if (Number.isNaN(time)) return "Invalid Date";
  const date = new Date(time);
  if (date.getUTCFullYear() < 1)
    throw new RangeError(`${method}: years before 1 are not available here; use toISOString`);
  const day = dateText(date, fields, method);
  const hour = timeText(date, fields, clock24, method);
  if (day === "" || hour === "") return day + hour;
  if (styled === undefined && fields.month === undefined) refuseOption(method, "combination of fields");
  return day + (fields.month === "long" ? " at " : ", ") + hour;
}

/** Whether hours go to 24, and how midnight is written then. */
function clockOption(options: object | undefined, method: DateMethod): "12" | "24" | "23" {
  const hour12 = optionOf(options, "hour12");
  if (hour12 !== undefined) return hour12 ? "12" : "24";
  const cycle = optionOf(options, "hourCycle");
  if (cycle === undefined || cycle === "h12") return "12";
  return cycle === "h23" ? "23" : refuseOption(method, `hourCycle "${String(cycle)}"`);
}

function choice<T extends string>(
  options: object | undefined,
  name: string,
  among: readonly T[],
  method: DateMethod,
): T | undefined {
  const value = optionOf(options, name);
  if (value === undefined) return undefined;
  const text = String(value);
  return among.find((one) => one === text) ?? refuseOption(method, `${name} "${text}"`);
}

const styles = ["full", "long", "medium", "short"] as const;
const widths = ["numeric", "2-digit"] as const;
const nameWidths = ["long", "short"] as const;

function styleOf(options: object | undefined, method: DateMethod): { readonly fields: Fields } | undefined {
  const dateStyle = choice(options, "dateStyle", styles, method);
  const timeStyle = choice(options, "timeStyle", styles, method);
  if (dateStyle === undefined && timeStyle === undefined) return undefined;
  for (const name of ["weekday", "year", "month", "day", "hour", "minute", "second", "timeZoneName"]) {
    if (optionOf(options, name) !== undefined)
      throw new TypeError(`${method}: ${name} cannot be used with dateStyle or timeStyle`);
  }
  if (dateStyle !== undefined && method === "toLocaleTimeString")
    throw new TypeError("Invalid option : dateStyle");
  if (timeStyle !== undefined && method === "toLocaleDateString")
    throw new TypeError("Invalid option : timeStyle");
  const fields: Fields = {};
  if (dateStyle !== undefined) {
    fields.weekday = dateStyle === "full" ? "long" : undefined;
    fields.month = dateStyle === "short" ? "numeric" : dateStyle === "medium" ? "short" : "long";
    fields.day = "numeric";
    fields.year = dateStyle === "short" ? "2-digit" : "numeric";
  }
  if (timeStyle !== undefined) {
    fields.hour = "numeric";
    fields.minute = "2-digit";
    if (timeStyle !== "short") fields.second = "2-digit";
    if (timeStyle === "full") fields.zone = "long";
    if (timeStyle === "long") fields.zone = "short";
  }
  return { fields };
}

function fieldsOf(options: object | undefined, method: DateMethod): Fields {
  const fields: Fields = {
    weekday: choice(options, "weekday", nameWidths, method),
    year: choice(options, "year", widths, method),
    month: choice(options, "month", ["numeric", "2-digit", "long", "short"] as const, method),
    day: choice(options, "day", widths, method),
    hour: choice(options, "hour", widths, method),
    minute: choice(options, "minute", widths, method),
    second: choice(options, "second", widths, method),
    zone: choice(options, "timeZoneName", nameWidths, method),
  };
  const hasDate = (fields.weekday ?? fields.year ?? fields.month ?? fields.day) !== undefined;
  const hasTime = (fields.hour ?? fields.minute ?? fields.second) !== undefined;
  const needsDate =
    method === "toLocaleDateString" ? !hasDate : method === "toLocaleString" && !hasDate && !hasTime;
  const needsTime =
    method === "toLocaleTimeString" ? !hasTime : method === "toLocaleString" && !hasDate && !hasTime;
  if (needsDate) fields.year = fields.month = fields.day = "numeric";
  if (needsTime) fields.hour = fields.minute = fields.second = "numeric";
  return fields;
}

function padded(value: number, width: Width): string {
  return width === "2-digit" ? String(value % 100).padStart(2, "0") : String(value);
}

function dateText(date: Date, { weekday, year, month, day }: Fields, method: DateMethod): string {
  const yearText = year === undefined ? undefined : padded(date.getUTCFullYear(), year);
  const dayText = day === undefined ? undefined : padded(date.getUTCDate(), day);
  const weekdayText = weekday === undefined ? undefined : nameOf(weekdays, date.getUTCDay(), weekday);
  if (month === undefined) {
    const only = [weekdayText, yearText, dayText].filter((text) => text !== undefined);
    if (only.length > 1) refuseOption(method, "combination of fields");
    return only[0] ?? "";
  }
  if (weekdayText !== undefined && dayText === undefined) refuseOption(method, "combination of fields");
  let text: string;
  if (month === "long" || month === "short") {
    text = nameOf(months, date.getUTCMonth(), month);
    if (dayText !== undefined) text += ` ${dayText}`;
    if (yearText !== undefined) text += dayText === undefined ? ` ${yearText}` : `, ${yearText}`;
  } else {
    const parts = [padded(date.getUTCMonth() + 1, month), dayText, yearText];
    text = parts.filter((part) => part !== undefined).join("/");
  }
  return weekdayText === undefined ? text : `${weekdayText}, ${text}`;
}

function nameOf(names: readonly string[], index: number, width: NameWidth): string {
  const name = names[index] ?? "";
  return width === "long" ? name : name.slice(0, 3);
}

function timeText(
  date: Date,
  { hour, minute, second, zone }: Fields,
  clock: "12" | "24" | "23",
  method: DateMethod,
): string {
  if (hour === undefined) {
    if (minute === undefined && second === undefined)
      return zone === undefined ? "" : refuseOption(method, "timeZoneName without a time");
    if (minute === undefined || second === undefined || zone !== undefined)
      refuseOption(method, "combination of fields");
    return `${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`;
  }
  if (minute === undefined && (second !== undefined || clock !== "12"))
    refuseOption(method, "combination of fields");
  const hours = date.getUTCHours();
  const shown = clock === "12" ? ((hours + 11) % 12) + 1 : clock === "24" && hours === 0 ? 24 : hours;
  let text = hour === "2-digit" || clock !== "12" ? two(shown) : String(shown);
  if (minute !== undefined) text += `:${two(date.getUTCMinutes())}`;
  if (second !== undefined) text += `:${two(date.getUTCSeconds())}`;
  if (clock === "12") text += hours < 12 ? " AM" : " PM";
  if (zone !== undefined) text += zone === "long" ? " Coordinated Universal Time" : " UTC";
  return text;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
