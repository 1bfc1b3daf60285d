/**
 * `flowcell:test`: what a flow's own tests import. It runs inside the worker, bundled with the test and the flow; the
 * command `flowcell test` hands its text to the bundler. types/flowcell-test.d.ts says the same for editors.
 *
 * Kept true: a test fails when its function throws or rejects, and when it waits for what never happens; a fake host has
 * what the test gave it and a working kv and sleep, everything else is denied, as for a flow without the grant. Time is
 * virtual: nothing waits.
 */

declare class HostError extends Error {
  constructor(message: string, options: { code: string });
}

type Fake = (...args: readonly unknown[]) => unknown;
type Tree = { [name: string]: Tree | Fake };

// ------------------------------------------------------------------------------------------------------------------ tests

interface Registered {
  readonly name: string;
  readonly run: (() => unknown) | null;
}

const registered: Registered[] = [];
let only = false;

function add(name: unknown, run: unknown, skip: boolean): void {
  if (typeof name !== "string" || name === "")
    throw new TypeError("test(name, function): the name is a text");
  if (!skip && typeof run !== "function")
    throw new TypeError(`test(${show(name)}, function): the second argument is a function`);
  registered.push({ name, run: skip ? null : (run as () => unknown) }); // a function, by the line above
}

/** Registers a test; it runs when the file has been read. */
export function test(name: string, run: () => unknown): void {
  add(name, run, only);
}

/** Not run, and counted. */
test.skip = (name: string, run?: () => unknown): void => add(name, run, true);

/** From the first of these on, only tests of this kind run. */
test.only = (name: string, run: () => unknown): void => {
  if (!only)
    for (const [index, { name: earlier }] of registered.entries())
      registered[index] = { name: earlier, run: null };
  only = true;
  add(name, run, false);
};

interface Report {
  readonly name: string;
  readonly state: "passed" | "failed" | "skipped";
  readonly error?: { readonly name: string; readonly message: string; readonly stack: string };
}

interface Flow {
  readonly default?: unknown;
}

let flowModule: Flow = {};
let outside: { recording?: { replay(recording: unknown): Promise<unknown> } } = {};

/** The entry of the bundle: runs what was registered. */
export async function run(
  flow: Flow,
  input: { readonly only?: string } | undefined,
  host: typeof outside,
): Promise<readonly Report[]> {
  flowModule = flow;
  outside = host;
  const reports: Report[] = [];
  for (const { name, run: body } of registered) {
    const named = input?.only === undefined || name.includes(input.only);
    reports.push(body === null || !named ? { name, state: "skipped" } : await runOne(name, body));
    restoreFetch();
  }
  return reports;
}

/** Timers hold no longer delay; in virtual time it passes at once when nothing else can happen. */
const neverMs = 2_147_483_647;

async function runOne(name: string, body: () => unknown): Promise<Report> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stuck = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("the test waits for something that never happens")), neverMs);
  });
  try {
    await Promise.race([(async () => await body())(), stuck]);
    return { name, state: "passed" };
  } catch (error) {
    return { name, state: "failed", error: errorReport(error) };
  } finally {
    clearTimeout(timer);
  }
}

const textMax = 8192;

function errorReport(error: unknown): NonNullable<Report["error"]> {
  if (!(error instanceof Error)) return { name: "Uncaught", message: show(error), stack: "" };
  return {
    name: String(error.name),
    message: String(error.message).slice(0, textMax),
    stack: String(error.stack ?? "").slice(0, textMax),
  };
}

// ------------------------------------------------------------------------------------------------------------- fake hosts

const callsOf = new WeakMap<object, (readonly unknown[])[]>();
const realFetch: unknown = globalThis.fetch;

function restoreFetch(): void {
  setFetch(realFetch);
}

function setFetch(value: unknown): void {
  Object.defineProperty(globalThis, "fetch", {
    value,
    writable: true,
    configurable: true,
    enumerable: false,
  });
}

/**
 * A host of the test's own functions: `{ fetch: … }`, `{ "fs.read": … }` or `{ fs: { read: … } }`. Arguments and results are
 * copied, as they are between a flow and its host. `fetch` also becomes the global one until the test ends.
 */
export function fakeHost(functions: Tree = {}): unknown {
  const tree: Tree = {
    log: console.log,
    sleep: (ms: unknown) => new Promise((resolve) => setTimeout(resolve, Number(ms))),
    kv: memoryKv(),
  };
  for (const [name, given] of Object.entries(functions)) place(tree, name.split("."), given, name);
  if (typeof tree["fetch"] === "function") setFetch(tree["fetch"]);
  return guarded(tree, "");
}

function place(tree: Tree, path: readonly string[], given: Tree | Fake, name: string): void {
  const [first = "", ...rest] = path;
  if (rest.length > 0) {
    const inner = tree[first];
    const next: Tree = typeof inner === "object" ? inner : {};
    tree[first] = next;
    place(next, rest, given, name);
  } else if (typeof given === "function") {
    tree[first] = name === "fetch" ? fakeFetch(given) : fake(name, given);
  } else if (typeof given === "object" && given !== null) {
    for (const [key, inner] of Object.entries(given)) place(tree, [first, key], inner, `${name}.${key}`);
  } else {
    throw new TypeError(`fakeHost: ${name} is no function`);
  }
}

function fake(name: string, given: Fake): Fake {
  const calls: (readonly unknown[])[] = [];
  const wrapped = async (...args: readonly unknown[]): Promise<unknown> => {
    const sent = args.map((one) => copied(name, withoutSignal(one)));
    calls.push(sent);
    return copied(name, await given(...sent));
  };
  callsOf.set(wrapped, calls);
  return wrapped;
}

function copied(name: string, value: unknown): unknown {
  try {
    return structuredClone(value);
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    throw new HostError(`${name}: ${what}`, { code: "invalid_arguments" });
  }
}

/** A signal stays with the caller; it is never sent. */
function withoutSignal(value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("signal" in value)) return value;
  const { signal: _signal, ...rest } = value;
  return rest;
}

function fakeFetch(given: Fake): Fake {
  const calls: (readonly unknown[])[] = [];
  const wrapped = async (target: unknown, init?: unknown): Promise<Response> => {
    const url = target instanceof Request ? target.url : String(target);
    const args = init === undefined ? [url] : [url, withoutSignal(init)];
    calls.push(args);
    const answer = await given(...args);
    if (answer instanceof Response) return answer;
    if (typeof answer === "string") return new Response(answer);
    return new Response(JSON.stringify(answer ?? null), { headers: { "content-type": "application/json" } });
  };
  callsOf.set(wrapped, calls);
  return wrapped;
}

function memoryKv(): Tree {
  const values = new Map<string, unknown>();
  return {
    get: fake("kv.get", (key) => values.get(String(key))),
    set: fake("kv.set", (key, value) => void values.set(String(key), value)),
    delete: fake("kv.delete", (key) => values.delete(String(key))),
    list: fake("kv.list", (options) => {
      const {
        prefix = "",
        after,
        limit = 1000,
      } = (options ?? {}) as { prefix?: string; after?: string; limit?: number }; // as the real one takes them
      const keys = [...values.keys()].filter(
        (key) => key.startsWith(prefix) && (after === undefined || key > after),
      );
      return keys.sort().slice(0, limit);
    }),
    compareAndSet: fake("kv.compareAndSet", (key, expected, value) => {
      if (!equal(values.get(String(key)), expected)) return false;
      if (value === undefined) values.delete(String(key));
      else values.set(String(key), value);
      return true;
    }),
  };
}

/** Names that any object is asked for are no host functions. */
const ordinary = new Set(["then", "toJSON", "constructor", "toString", "valueOf", "inspect"]);

function guarded(tree: Tree, path: string): unknown {
  return new Proxy(tree, {
    get(target, key) {
      if (typeof key === "symbol" || ordinary.has(key)) return Reflect.get(target, key);
      const name = path === "" ? key : `${path}.${key}`;
      const inner = Object.hasOwn(target, key) ? target[key] : undefined;
      if (typeof inner === "function") return inner;
      return typeof inner === "object" ? guarded(inner, name) : absent(name);
    },
  });
}

/** Callable, and so is everything below it. */
function absent(name: string): unknown {
  const refuse = async (): Promise<never> => {
    const remedy = `give it one: fakeHost({ ${show(name)}: async (…) => … })`;
    throw new HostError(`fakeHost has no ${name}; ${remedy}`, { code: "denied" });
  };
  return new Proxy(refuse, {
    get: (target, key) =>
      typeof key === "symbol" || ordinary.has(key) ? Reflect.get(target, key) : absent(`${name}.${key}`),
  });
}

// ----------------------------------------------------------------------------------------------------------------- replay

/** Runs the flow over a recording (`flowcell journal RUN --export FILE`) and fails at the first difference. */
export async function replay(recording: unknown): Promise<unknown> {
  if (typeof flowModule.default !== "function") throw new Error("the flow has no default export to replay");
  const { recording: port } = outside;
  if (port === undefined) throw new Error("replay works in flowcell test only");
  return await port.replay(recording);
}

// ----------------------------------------------------------------------------------------------------------------- expect

class AssertionError extends Error {
  override readonly name = "AssertionError";
}

type Matcher = (
  actual: unknown,
  ...expected: readonly unknown[]
) => { readonly ok: boolean; readonly text: string };

/** A value that decides for itself whether it equals another. */
class Asymmetric {
  readonly matches: (value: unknown) => boolean;
  readonly text: string;

  constructor(text: string, matches: (value: unknown) => boolean) {
    this.text = text;
    this.matches = matches;
  }
}

const compare =
  (sign: string, holds: (one: number | bigint, other: number | bigint) => boolean): Matcher =>
  (actual, expected) => ({
    ok: isNumeric(actual) && isNumeric(expected) && holds(actual, expected),
    text: `to be ${sign} ${show(expected)}`,
  });

const matchers = {
  toBe: (actual, expected) => ({ ok: Object.is(actual, expected), text: `to be ${show(expected)}` }),
  toEqual: (actual, expected) => ({ ok: equal(actual, expected), text: `to equal ${show(expected)}` }),
  toMatchObject: (actual, expected) => ({
    ok: equal(actual, expected, true),
    text: `to match ${show(expected)}`,
  }),
  toBeUndefined: (actual) => ({ ok: actual === undefined, text: "to be undefined" }),
  toBeDefined: (actual) => ({ ok: actual !== undefined, text: "to be defined" }),
  toBeNull: (actual) => ({ ok: actual === null, text: "to be null" }),
  toBeTruthy: (actual) => ({ ok: Boolean(actual), text: "to be truthy" }),
  toBeFalsy: (actual) => ({ ok: !actual, text: "to be falsy" }),
  toBeGreaterThan: compare(">", (one, other) => one > other),
  toBeGreaterThanOrEqual: compare("≥", (one, other) => one >= other),
  toBeLessThan: compare("<", (one, other) => one < other),
  toBeLessThanOrEqual: compare("≤", (one, other) => one <= other),
  toBeCloseTo: (actual, expected, digits = 2) => ({
    ok: Math.abs(Number(actual) - Number(expected)) < 10 ** -Number(digits) / 2,
    text: `to be close to ${show(expected)}`,
  }),
  toBeInstanceOf: (actual, expected) => ({
    ok: typeof expected === "function" && actual instanceof expected,
    text: `to be an instance of ${typeof expected === "function" ? expected.name : show(expected)}`,
  }),
  toContain: (actual, expected) => ({ ok: contains(actual, expected), text: `to contain ${show(expected)}` }),
  toHaveLength: (actual, expected) => ({
    ok: lengthOf(actual) === expected,
    text: `to have length ${show(expected)}`,
  }),
  toHaveProperty: (actual, key, ...expected) => ({
    ok: hasProperty(actual, String(key), expected),
    text: `to have the property ${show(key)}${expected.length === 0 ? "" : ` of ${show(expected[0])}`}`,
  }),
  toMatch: (actual, expected) => ({
    ok:
      typeof actual === "string" &&
      (expected instanceof RegExp ? expected.test(actual) : actual.includes(String(expected))),
    text: `to match ${show(expected)}`,
  }),
  toHaveBeenCalled: (actual) => ({ ok: recordedCalls(actual).length > 0, text: "to have been called" }),
  toHaveBeenCalledTimes: (actual, expected) => ({
    ok: recordedCalls(actual).length === expected,
    text: `to have been called ${show(expected)} times; it was called ${recordedCalls(actual).length} times`,
  }),
  toHaveBeenCalledWith: (actual, ...expected) => ({
    ok: recordedCalls(actual).some((args) => equal(args, expected)),
    text: `to have been called with ${show(expected)}; its calls: ${show(recordedCalls(actual))}`,
  }),
} satisfies Record<string, Matcher>;

type Matchers = { readonly [name in keyof typeof matchers]: (...expected: readonly unknown[]) => void };
type LateMatchers = {
  readonly [name in keyof typeof matchers]: (...expected: readonly unknown[]) => Promise<void>;
};

interface Expectation extends Matchers {
  readonly not: Matchers & { toThrow(expected?: unknown): void };
  toThrow(expected?: unknown): void;
  readonly resolves: LateMatchers;
  readonly rejects: LateMatchers & { toThrow(expected?: unknown): Promise<void> };
}

export function expect(actual: unknown): Expectation {
  return {
    ...bound(actual, false),
    toThrow: (expected) => judge(thrown(actual, expected), "the function", false),
    not: {
      ...bound(actual, true),
      toThrow: (expected) => judge(thrown(actual, expected), "the function", true),
    },
    resolves: late(async () => await actual),
    rejects: {
      ...late(async () => await rejection(actual)),
      toThrow: async (expected) =>
        judge(errorMatches(await rejection(actual), expected), "the rejection", false),
    },
  };
}

expect.any = (type: unknown): unknown =>
  new Asymmetric(`any ${typeof type === "function" ? type.name : show(type)}`, (value) => isOf(value, type));
expect.anything = (): unknown => new Asymmetric("anything", (value) => value !== null && value !== undefined);
expect.stringContaining = (part: string): unknown =>
  new Asymmetric(`a text with ${show(part)}`, (value) => typeof value === "string" && value.includes(part));
expect.objectContaining = (part: object): unknown =>
  new Asymmetric(`an object with ${show(part)}`, (value) => equal(value, part, true));

function judge(verdict: ReturnType<Matcher>, what: string, negated: boolean): void {
  if (verdict.ok === negated)
    throw new AssertionError(`expected ${what} ${negated ? "not " : ""}${verdict.text}`);
}

function bound(actual: unknown, negated: boolean): Matchers {
  const pairs = Object.entries(matchers).map(([name, matcher]: [string, Matcher]) => [
    name,
    (...expected: readonly unknown[]) => judge(matcher(actual, ...expected), show(actual), negated),
  ]);
  return Object.fromEntries(pairs) as Matchers; // made of every entry of the table
}

function late(value: () => Promise<unknown>): LateMatchers {
  const pairs = Object.entries(matchers).map(([name, matcher]: [string, Matcher]) => [
    name,
    async (...expected: readonly unknown[]) => {
      const actual = await value();
      judge(matcher(actual, ...expected), show(actual), false);
    },
  ]);
  return Object.fromEntries(pairs) as LateMatchers; // made of every entry of the table
}

async function rejection(actual: unknown): Promise<unknown> {
  let value: unknown;
  try {
    value = await (typeof actual === "function" ? actual() : actual);
  } catch (error) {
    return error;
  }
  throw new AssertionError(`expected a rejection, not ${show(value)}`);
}

function thrown(actual: unknown, expected: unknown): ReturnType<Matcher> {
  if (typeof actual !== "function")
    throw new TypeError("expect(function).toThrow(): pass a function; for promises use rejects");
  try {
    actual();
  } catch (error) {
    return errorMatches(error, expected);
  }
  return { ok: false, text: "to throw" };
}

function errorMatches(error: unknown, expected: unknown): ReturnType<Matcher> {
  const message = error instanceof Error ? error.message : String(error);
  const seen = `; it threw ${show(error)}`;
  if (expected === undefined) return { ok: true, text: `to throw${seen}` };
  if (typeof expected === "string")
    return { ok: message.includes(expected), text: `to throw ${show(expected)}${seen}` };
  if (expected instanceof RegExp)
    return { ok: expected.test(message), text: `to throw ${show(expected)}${seen}` };
  if (typeof expected === "function")
    return { ok: error instanceof expected, text: `to throw a ${expected.name}${seen}` };
  return { ok: equal(error, expected, true), text: `to throw ${show(expected)}${seen}` };
}

// ----------------------------------------------------------------------------------------------------------------- values

function isNumeric(value: unknown): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

function isOf(value: unknown, type: unknown): boolean {
  const names = new Map<unknown, string>([
    [String, "string"],
    [Number, "number"],
    [Boolean, "boolean"],
    [BigInt, "bigint"],
    [Function, "function"],
  ]);
  const primitive = names.get(type);
  if (primitive !== undefined) return typeof value === primitive;
  return type === Object
    ? typeof value === "object" && value !== null
    : typeof type === "function" && value instanceof type;
}

function contains(actual: unknown, expected: unknown): boolean {
  if (typeof actual === "string") return actual.includes(String(expected));
  if (Array.isArray(actual) || actual instanceof Set) return [...actual].some((one) => equal(one, expected));
  return actual instanceof Map && actual.has(expected);
}

function lengthOf(actual: unknown): unknown {
  if (typeof actual === "string") return actual.length;
  return typeof actual === "object" && actual !== null && "length" in actual ? actual.length : undefined;
}

function hasProperty(actual: unknown, path: string, expected: readonly unknown[]): boolean {
  let at: unknown = actual;
  for (const key of path.split(".")) {
    if (typeof at !== "object" || at === null || !(key in at)) return false;
    at = Reflect.get(at, key);
  }
  return expected.length === 0 || equal(at, expected[0]);
}

function recordedCalls(value: unknown): readonly (readonly unknown[])[] {
  const calls = typeof value === "function" ? callsOf.get(value) : undefined;
  if (calls === undefined) throw new TypeError("only functions of a fakeHost remember their calls");
  return calls;
}

/** `part`: objects of `expected` may name fewer keys. Cycles are equal when they are in the same places. */
function equal(
  actual: unknown,
  expected: unknown,
  part = false,
  open: (readonly [unknown, unknown])[] = [],
): boolean {
  if (expected instanceof Asymmetric) return expected.matches(actual);
  if (Object.is(actual, expected)) return true;
  if (typeof actual !== "object" || typeof expected !== "object" || actual === null || expected === null)
    return false;
  if (open.some(([one, other]) => one === actual && other === expected)) return true;
  const inner = [...open, [actual, expected] as const];
  const same = (one: unknown, other: unknown): boolean => equal(one, other, part, inner);
  if (Array.isArray(expected)) {
    return (
      Array.isArray(actual) &&
      actual.length === expected.length &&
      expected.every((one, index) => same(actual[index], one))
    );
  }
  if (Array.isArray(actual)) return false;
  if (expected instanceof Date)
    return actual instanceof Date && Object.is(actual.getTime(), expected.getTime());
  if (expected instanceof RegExp) return actual instanceof RegExp && String(actual) === String(expected);
  if (expected instanceof Map) {
    return (
      actual instanceof Map &&
      actual.size === expected.size &&
      [...expected].every(([key, one]) => actual.has(key) && same(actual.get(key), one))
    );
  }
  if (expected instanceof Set) {
    return (
      actual instanceof Set &&
      actual.size === expected.size &&
      [...expected].every((one) => [...actual].some((other) => same(other, one)))
    );
  }
  if (ArrayBuffer.isView(expected))
    return ArrayBuffer.isView(actual) && equal(bytesOf(actual), bytesOf(expected));
  if (expected instanceof Error) {
    return actual instanceof Error && actual.name === expected.name && actual.message === expected.message;
  }
  return sameKeys(actual, expected, part, same);
}

function bytesOf(view: ArrayBufferView): readonly number[] {
  return [...new Uint8Array(view.buffer, view.byteOffset, view.byteLength)];
}

function sameKeys(
  actual: object,
  expected: object,
  part: boolean,
  same: (one: unknown, other: unknown) => boolean,
): boolean {
  const defined = (value: object): string[] =>
    Object.keys(value).filter((key) => Reflect.get(value, key) !== undefined);
  if (!part && defined(actual).length !== defined(expected).length) return false;
  const keys = part ? Object.keys(expected) : defined(expected);
  return keys.every(
    (key) =>
      (part || Object.hasOwn(actual, key)) && same(Reflect.get(actual, key), Reflect.get(expected, key)),
  );
}

const shownMax = 600;

function show(value: unknown): string {
  const text = shown(value, 0, []);
  return text.length <= shownMax ? text : `${text.slice(0, shownMax - 1)}…`;
}

function shown(value: unknown, depth: number, open: readonly unknown[]): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return value.name === "" ? "a function" : `function ${value.name}`;
  if (Object.is(value, -0)) return "-0";
  if (typeof value !== "object" || value === null) return String(value);
  if (value instanceof Asymmetric) return value.text;
  if (value instanceof Date)
    return Number.isNaN(value.getTime()) ? "Invalid Date" : `Date ${value.toISOString()}`;
  if (value instanceof RegExp) return String(value);
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (open.includes(value)) return "[cycle]";
  if (depth > 4) return "…";
  const each = (one: unknown): string => shown(one, depth + 1, [...open, value]);
  if (Array.isArray(value)) return `[${value.map(each).join(", ")}]`;
  if (value instanceof Map)
    return `Map {${[...value].map(([key, one]) => `${each(key)} => ${each(one)}`).join(", ")}}`;
  if (value instanceof Set) return `Set {${[...value].map(each).join(", ")}}`;
  if (ArrayBuffer.isView(value)) return `${value.constructor.name} [${bytesOf(value).join(", ")}]`;
  const keys = Object.keys(value).map(
    (key) =>
      `${/^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key)}: ${each(Reflect.get(value, key))}`,
  );
  return keys.length === 0 ? "{}" : `{ ${keys.join(", ")} }`;
}
