// Shapes of the two JSON files that this package reads: the policy and the build's worker.json. A shape reads a value into
// its type and collects everything that is wrong, each with its place.
//
// Called by policy.ts and build.ts. They are read at the start of every program that runs a script, which a library for
// schemas would take longer to load than to read.
// Kept true: an object has no key that its shape does not know; nothing of a value is used that no shape has checked.

/** What is wrong at one place. */
export type ShapeIssue = { readonly path: readonly (string | number)[] } & (
  | { readonly code: "unknown_keys"; readonly keys: readonly string[] }
  | { readonly code: "wrong_value"; readonly values: readonly (string | number)[] }
  | { readonly code: "wrong_type"; readonly expected: string }
  | { readonly code: "too_small"; readonly least: number }
  | { readonly code: "too_big"; readonly most: number }
  | { readonly code: "wrong_form" }
);

type Wrong = ShapeIssue extends infer Issue ? (Issue extends unknown ? Omit<Issue, "path"> : never) : never;

/** Where a reading is, and what was wrong so far. */
class Reading {
  readonly path: (string | number)[] = [];
  readonly issues: ShapeIssue[] = [];

  wrong(what: Wrong): undefined {
    // The union distributes over `what`, which the compiler does not follow through the spread.
    this.issues.push({ path: [...this.path], ...what } as ShapeIssue);
    return undefined;
  }

  at<T>(part: string | number, shape: Shape<T>, value: unknown): T | undefined {
    this.path.push(part);
    const read = shape(value, this);
    this.path.pop();
    return read;
  }
}

/** Undefined only where something is wrong or the type itself has it. */
export type Shape<T> = (value: unknown, reading: Reading) => T | undefined;

export type ShapeResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly issues: readonly ShapeIssue[] };

export function readShape<T>(shape: Shape<T>, value: unknown): ShapeResult<T> {
  const reading = new Reading();
  const read = shape(value, reading);
  if (reading.issues.length > 0) return { ok: false, issues: reading.issues };
  return { ok: true, value: read as T }; // nothing was wrong
}

/** A text; its length in characters, and its form if one is wanted. */
export function text(least: number, most: number, form?: RegExp): Shape<string> {
  return (value, reading) => {
    if (typeof value !== "string") return reading.wrong({ code: "wrong_type", expected: "string" });
    if (value.length < least) return reading.wrong({ code: "too_small", least });
    if (value.length > most) return reading.wrong({ code: "too_big", most });
    if (form !== undefined && !form.test(value)) return reading.wrong({ code: "wrong_form" });
    return value;
  };
}

export function whole(least: number, most: number): Shape<number> {
  return (value, reading) => {
    if (typeof value !== "number" || !Number.isFinite(value)) {
      return reading.wrong({ code: "wrong_type", expected: "number" });
    }
    if (!Number.isInteger(value)) return reading.wrong({ code: "wrong_type", expected: "int" });
    if (value < least) return reading.wrong({ code: "too_small", least });
    if (value > most) return reading.wrong({ code: "too_big", most });
    return value;
  };
}

export const flag: Shape<boolean> = (value, reading) =>
  typeof value === "boolean" ? value : reading.wrong({ code: "wrong_type", expected: "boolean" });

export function oneOf<const T extends string | number>(...values: readonly T[]): Shape<T> {
  return (value, reading) =>
    values.find((candidate) => candidate === value) ?? reading.wrong({ code: "wrong_value", values });
}

export function list<T>(element: Shape<T>, most: number): Shape<T[]> {
  return (value, reading) => {
    if (!Array.isArray(value)) return reading.wrong({ code: "wrong_type", expected: "array" });
    if (value.length > most) return reading.wrong({ code: "too_big", most });
    // Where an element is wrong the whole list is not used.
    return Array.from(value, (one: unknown, index) => reading.at(index, element, one) as T);
  };
}

/** Any names, as JSON objects have them. */
export function record<T>(name: Shape<string>, element: Shape<T>): Shape<Record<string, T>> {
  return (value, reading) => {
    if (!isObject(value)) return reading.wrong({ code: "wrong_type", expected: "record" });
    return Object.fromEntries(
      Object.entries(value).map(([key, one]): [string, T] => {
        reading.at(key, name, key);
        return [key, reading.at(key, element, one) as T]; // as in a list
      }),
    );
  };
}

type Fields = Readonly<Record<string, Shape<unknown>>>;
type ValueOf<S> = S extends Shape<infer T> ? T : never;

/** These keys and no others. */
export function object<F extends Fields>(fields: F): Shape<{ [key in keyof F]: ValueOf<F[key]> }> {
  const known = Object.entries(fields);
  return (value, reading) => {
    if (!isObject(value)) return reading.wrong({ code: "wrong_type", expected: "object" });
    const read: Record<string, unknown> = {};
    for (const [key, shape] of known) read[key] = reading.at(key, shape, value[key]);
    const unknown: string[] = [];
    for (const key in value) if (!Object.hasOwn(fields, key)) unknown.push(key);
    if (unknown.length > 0) reading.wrong({ code: "unknown_keys", keys: unknown });
    return read as { [key in keyof F]: ValueOf<F[key]> }; // each key by its own shape
  };
}

export function optional<T>(shape: Shape<T>): Shape<T | undefined> {
  return (value, reading) => (value === undefined ? undefined : shape(value, reading));
}

/** What is not given is read as `instead`. */
export function withDefault<T>(shape: Shape<T>, instead: unknown): Shape<T> {
  return (value, reading) => shape(value === undefined ? instead : value, reading);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
