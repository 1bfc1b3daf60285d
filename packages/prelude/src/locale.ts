/**
 * The locale methods of the language. The engine has no locale data: its own print code points in order, ungrouped numbers
 * and US dates for every locale asked for. Here they are right for en-US and UTC, and refuse anything else by name.
 * Ordinary code that runs when a script calls it; nothing of the core depends on it.
 */

import { defineMethods } from "./define.js";
import { compareTexts } from "./locale-collate.js";
import { type DateMethod, formatDate } from "./locale-date.js";
import { formatBigint, formatNumber } from "./locale-number.js";
import { checkLocale, optionsObject } from "./locale-options.js";
import {
  ArrayPrototype,
  BigIntPrototype,
  BigIntPrototypeValueOf,
  DatePrototype,
  DatePrototypeGetTime,
  NumberPrototype,
  NumberPrototypeValueOf,
  StringPrototype,
  StringPrototypeToLowerCase,
  StringPrototypeToUpperCase,
  TypedArrayPrototype,
  TypedArrayPrototypeGetLength,
} from "./primordials.js";

function textOf(value: unknown, method: string): string {
  if (value === undefined || value === null)
    throw new TypeError(`String.prototype.${method} called on null or undefined`);
  return `${value as string}`; // converted, as the language does
}

function dateMethod(method: DateMethod): object {
  return {
    [method](this: unknown, locales?: unknown, options?: unknown): string {
      const time = DatePrototypeGetTime(this);
      checkLocale(method, locales);
      return formatDate(time, method, optionsObject(options));
    },
  };
}

/** Elements of arrays get the locale and options, as ECMA-402 says. */
function joinLocaleStrings(
  elements: ArrayLike<unknown>,
  length: number,
  args: readonly [unknown, unknown],
): string {
  let text = "";
  for (let at = 0; at < length; at++) {
    if (at > 0) text += ",";
    const element = elements[at];
    if (element !== undefined && element !== null) {
      text += String(
        (element as { toLocaleString(...of: readonly unknown[]): unknown }).toLocaleString(...args),
      ); // every object has one
    }
  }
  return text;
}

export function installLocale(): void {
  defineMethods(NumberPrototype, {
    toLocaleString(this: unknown, locales?: unknown, options?: unknown): string {
      const value = NumberPrototypeValueOf(this);
      checkLocale("toLocaleString", locales);
      return formatNumber(value, optionsObject(options));
    },
  });
  defineMethods(BigIntPrototype, {
    toLocaleString(this: unknown, locales?: unknown, options?: unknown): string {
      const value = BigIntPrototypeValueOf(this);
      checkLocale("toLocaleString", locales);
      return formatBigint(value, optionsObject(options));
    },
  });
  defineMethods(DatePrototype, {
    ...dateMethod("toLocaleString"),
    ...dateMethod("toLocaleDateString"),
    ...dateMethod("toLocaleTimeString"),
  });
  defineMethods(StringPrototype, {
    localeCompare(this: unknown, that: unknown, locales?: unknown, options?: unknown): number {
      const text = textOf(this, "localeCompare");
      checkLocale("localeCompare", locales);
      return compareTexts(text, `${that as string}`, optionsObject(options)); // converted, as the language does
    },
    toLocaleLowerCase(this: unknown, locales?: unknown): string {
      const text = textOf(this, "toLocaleLowerCase");
      checkLocale("toLocaleLowerCase", locales);
      return StringPrototypeToLowerCase(text);
    },
    toLocaleUpperCase(this: unknown, locales?: unknown): string {
      const text = textOf(this, "toLocaleUpperCase");
      checkLocale("toLocaleUpperCase", locales);
      return StringPrototypeToUpperCase(text);
    },
  });
  defineMethods(ArrayPrototype, {
    toLocaleString(this: unknown, locales?: unknown, options?: unknown): string {
      const list = Object(this) as ArrayLike<unknown>; // array-like, as the language reads it
      return joinLocaleStrings(
        list,
        Math.min(Math.max(Math.trunc(Number(list.length)) || 0, 0), Number.MAX_SAFE_INTEGER),
        [locales, options],
      );
    },
  });
  defineMethods(TypedArrayPrototype, {
    toLocaleString(this: unknown, locales?: unknown, options?: unknown): string {
      return joinLocaleStrings(this as ArrayLike<unknown>, TypedArrayPrototypeGetLength(this), [
        locales,
        options,
      ]); // the getter checked
    },
  });
}
