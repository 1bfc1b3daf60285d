/** What the locale methods have in common: which locale is asked for, options read as the language reads them, refusals. */

/** The one locale there is. */
const known = /^en(?:-US)?$/i;

/** Throws for any locale but en-US; none asked for means en-US here. */
export function checkLocale(method: string, locales: unknown): void {
  if (locales === undefined) return;
  if (locales === null) throw new TypeError(`${method}: the locale must be text or a list of texts`);
  const list: readonly unknown[] =
    typeof locales === "string" ? [locales] : Array.from(locales as ArrayLike<unknown>); // as the language reads it
  const [first] = list;
  if (first === undefined) return;
  if (typeof first !== "string") throw new TypeError(`${method}: the locale must be text or a list of texts`);
  if (!known.test(first)) {
    throw new RangeError(
      `${method}: the locale "${first}" is not available here, only en-US is; build the text yourself`,
    );
  }
}

export function optionsObject(options: unknown): object | undefined {
  if (options === undefined) return undefined;
  if (options === null) throw new TypeError("Cannot convert undefined or null to object");
  return Object(options) as object; // of whatever it is
}

export function optionOf(options: object | undefined, name: string): unknown {
  return options === undefined ? undefined : (Reflect.get(options, name) as unknown); // any by the library
}

export function refuseOption(method: string, what: string): never {
  throw new RangeError(`${method}: the option ${what} is not available here; build the text yourself`);
}
