/**
 * The text of an execution's result: JSON that a model can read to its end. result-view.ts gives it the parts.
 *
 * Kept true: what is measured is what is sent, so a text of quotes or control characters is as long as its escapes; whatever was
 * cut says so; the text is JSON whatever was cut.
 * TRUST: values, errors and lines are a script's, addresses and names a server's.
 */

export type Json = { readonly [key: string]: unknown };

const textCharsMost = 24_000;
const logCharsMost = 6_000;
const valueCharsLeast = 1_000;
const errorCharsLeast = 2_000;
/** Of all pending calls together, but enough of each to know it; those without room are shown when these are answered. */
const pendingCharsMost = 10_000;
const argumentsCharsLeast = 200;
const calledMost = 50;
const warningsMost = 10;
/** Of one name, address or warning. */
const nameCharsMost = 100;
const addressCharsMost = 200;
const warningCharsMost = 400;

export interface Line {
  readonly level: string;
  readonly text: string;
}

export interface PendingView {
  readonly callId: string;
  readonly name: string;
  readonly args: readonly unknown[];
}

/** JSON of about `textCharsMost` characters at most: what else there is comes first, value and error get what is left. */
export function boundedText(text: Json): string {
  const { value, error } = text;
  const whole = JSON.stringify(text);
  if (whole.length <= textCharsMost) return whole;
  const left =
    textCharsMost - JSON.stringify({ ...text, value: undefined, error: undefined, more: "" }).length;
  const cut = {
    ...text,
    ...(value === undefined ? {} : { value: cutJson(value, Math.max(valueCharsLeast, left)) }),
    ...(error === undefined ? {} : { error: cutError(error, Math.max(errorCharsLeast, left)) }),
  };
  return JSON.stringify(cut);
}

export function logText(lines: readonly Line[], truncated: boolean): Json {
  if (lines.length === 0) return {};
  const kept: string[] = [];
  let left = logCharsMost;
  for (const { level, text } of lines) {
    const line = level === "log" ? text : `[${level}] ${text}`;
    left -= encodedLength(line);
    if (left < 0) {
      kept.push(`… (${lines.length - kept.length} more lines; log less)`);
      return { logs: kept };
    }
    kept.push(line);
  }
  return { logs: truncated ? [...kept, "… (more was not kept)"] : kept };
}

export function pendingText(pending: readonly PendingView[]): Json {
  const each = Math.max(argumentsCharsLeast, Math.floor(pendingCharsMost / Math.max(1, pending.length)));
  const shown: Json[] = [];
  let left = pendingCharsMost;
  for (const { callId, name, args } of pending) {
    const view = { callId, name, args: cutJson(args, each) };
    left -= JSON.stringify(view).length;
    if (left < 0 && shown.length > 0) break;
    shown.push(view);
  }
  if (shown.length === pending.length) return { pending: shown };
  return {
    pending: shown,
    morePending: `${pending.length - shown.length} more, shown when these are answered`,
  };
}

export function callsText(calls: readonly { readonly name: string; readonly state: string }[]): Json {
  const shown = calls
    .slice(0, calledMost)
    .map(({ name, state }) => `${cutText(name, nameCharsMost)} ${state}`);
  const more = calls.length - shown.length;
  return { calls: more > 0 ? [...shown, `… (${more} more)`] : shown };
}

export function warningsText(warnings: readonly { readonly message: string }[]): Json {
  if (warnings.length === 0) return {};
  const shown = warnings.slice(0, warningsMost).map(({ message }) => cutText(message, warningCharsMost));
  const more = warnings.length - shown.length;
  return { warnings: more > 0 ? [...shown, `… (${more} more)`] : shown };
}

/** Addresses and names of attachments are as long as a server makes them. */
export function attachmentsText(attachments: readonly Json[]): Json {
  if (attachments.length === 0) return {};
  return {
    attachments: attachments.map((one) =>
      Object.fromEntries(
        Object.entries(one).map(([key, value]) => [
          key,
          typeof value === "string" ? cutText(value, addressCharsMost) : value,
        ]),
      ),
    ),
  };
}

/** Of an error each part gets as much as the others. */
function cutError(error: unknown, most: number): Json {
  const entries: [string, unknown][] = Object.entries(error ?? {});
  const each = Math.floor(most / Math.max(1, entries.length)) - nameCharsMost;
  return Object.fromEntries(
    entries.map(([key, value]) => [key, cutJson(value, Math.max(valueCharsLeast / 4, each))]),
  );
}

/** The value itself, or the beginning of its text. */
function cutJson(value: unknown, most: number): unknown {
  const json = JSON.stringify(value) ?? "null";
  if (json.length <= most) return value;
  return cutText(typeof value === "string" ? value : json, most);
}

function cutText(text: string, most: number): string {
  if (encodedLength(text) <= most) return text;
  const mark = (kept: number): string => `… (cut here, ${text.length - kept} more characters; return less)`;
  const room = Math.max(0, most - encodedLength(mark(0)));
  let least = 0;
  // No character is shorter than itself when it is encoded.
  let above = Math.min(text.length, room) + 1;
  while (above - least > 1) {
    const middle = (least + above) >> 1;
    if (encodedLength(text.slice(0, middle)) <= room) least = middle;
    else above = middle;
  }
  // Half of a character would be shown as an escape.
  const kept = /[\ud800-\udbff]$/.test(text.slice(0, least)) ? least - 1 : least;
  return text.slice(0, kept) + mark(kept);
}

/** In JSON, with its quotes. */
function encodedLength(text: string): number {
  return JSON.stringify(text).length;
}
