/**
 * Headers of the Fetch standard: names and values checked, sorted when iterated, several values of one name combined except
 * for set-cookie. Ordinary code, as everything in this folder.
 */

const tokenPattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
// A NUL, a line end, or what is no byte.
const forbiddenInValue = /[\0\r\n]|[^\0-\xff]/;

export type HeadersInit =
  | Headers
  | Iterable<Iterable<string>>
  | { readonly [name: string]: string }
  | undefined
  | null;

/** Lists of pairs, as the wire has them. */
export type HeaderPairs = (readonly [name: string, value: string])[];

function checkedName(name: unknown): string {
  const text = `${name as string}`; // converted, as the web does
  if (!tokenPattern.test(text)) throw new TypeError(`Headers: ${JSON.stringify(text)} is not a header name`);
  return text.toLowerCase();
}

function checkedValue(value: unknown): string {
  const text = `${value as string}`.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, ""); // converted, as the web does
  if (forbiddenInValue.test(text)) {
    throw new TypeError("Headers: a value holds a character that header values must not have");
  }
  return text;
}

/** Makes headers immutable, as those of a response from outside are. */
export let freezeHeaders: (headers: Headers) => void;

export class Headers {
  /** Lower-case name → its values in order. */
  #values = new Map<string, string[]>();
  #immutable = false;

  constructor(init?: HeadersInit) {
    if (init === undefined) return;
    if (init === null || (typeof init !== "object" && typeof init !== "function")) {
      throw new TypeError("Headers: the argument must be a Headers, a list of pairs or an object");
    }
    const iterator: unknown = Reflect.get(init, Symbol.iterator);
    if (iterator !== undefined && iterator !== null) {
      for (const pair of init as Iterable<Iterable<string>>) this.#appendPair(pair); // it says that it can be iterated
    } else {
      for (const key of Reflect.ownKeys(init)) {
        if (Reflect.getOwnPropertyDescriptor(init, key)?.enumerable !== true) continue;
        if (typeof key === "symbol") throw new TypeError("Headers: a header name cannot be a symbol");
        this.append(key, Reflect.get(init, key) as string); // converted there
      }
    }
  }

  #appendPair(pair: Iterable<string>): void {
    if (typeof pair !== "object" || pair === null)
      throw new TypeError("Headers: every item must be a pair of name and value");
    const items = [...pair];
    const [name, value] = items;
    if (items.length !== 2) throw new TypeError("Headers: every item must be a pair of name and value");
    this.append(name as string, value as string); // two items
  }

  #checkMutable(): void {
    if (this.#immutable) throw new TypeError("Headers: these headers cannot be changed");
  }

  append(name: string, value: string): void {
    const key = checkedName(name);
    const text = checkedValue(value);
    this.#checkMutable();
    const values = this.#values.get(key);
    if (values === undefined) this.#values.set(key, [text]);
    else values.push(text);
  }

  delete(name: string): void {
    const key = checkedName(name);
    this.#checkMutable();
    this.#values.delete(key);
  }

  get(name: string): string | null {
    return this.#values.get(checkedName(name))?.join(", ") ?? null;
  }

  has(name: string): boolean {
    return this.#values.has(checkedName(name));
  }

  set(name: string, value: string): void {
    const key = checkedName(name);
    const text = checkedValue(value);
    this.#checkMutable();
    this.#values.set(key, [text]);
  }

  getSetCookie(): string[] {
    return [...(this.#values.get("set-cookie") ?? [])];
  }

  forEach(callback: (value: string, name: string, headers: Headers) => void, receiver?: unknown): void {
    if (typeof callback !== "function")
      throw new TypeError("Headers.forEach: the callback must be a function");
    for (const [name, value] of this) Reflect.apply(callback, receiver, [value, name, this]);
  }

  *entries(): IterableIterator<[string, string]> {
    for (const name of [...this.#values.keys()].sort()) {
      const values = this.#values.get(name) ?? [];
      if (name === "set-cookie") for (const value of values) yield [name, value];
      else if (values.length > 0) yield [name, values.join(", ")];
    }
  }

  *keys(): IterableIterator<string> {
    for (const [name] of this.entries()) yield name;
  }

  *values(): IterableIterator<string> {
    for (const [, value] of this.entries()) yield value;
  }

  static {
    freezeHeaders = (headers) => {
      headers.#immutable = true;
    };
  }

  declare [Symbol.iterator]: () => IterableIterator<[string, string]>;
}

// `Headers.prototype[Symbol.iterator]` is `entries` itself.
Object.defineProperty(Headers.prototype, Symbol.iterator, {
  value: Headers.prototype.entries,
  writable: true,
  configurable: true,
});
