/**
 * TypeScript declarations of the globals that scripts find beside the language's: the text that `flowcell types` writes
 * after a flow's own types. docs/GUEST.md describes them; a test compares the names with the prelude's list.
 *
 * Only what works is declared: `require`, `process` and `Intl`'s members exist to say what to use instead, and an editor
 * says it earlier. Nothing here depends on TypeScript's DOM library, which must not be loaded beside it.
 */

/** Declared for every script. Sorted by what they are for, as in docs/GUEST.md. */
export const guestGlobals = `interface URL {
  hash: string;
  host: string;
  hostname: string;
  href: string;
  readonly origin: string;
  password: string;
  pathname: string;
  port: string;
  protocol: string;
  search: string;
  readonly searchParams: URLSearchParams;
  username: string;
  toJSON(): string;
  toString(): string;
}
declare var URL: {
  new (url: string | URL, base?: string | URL): URL;
  readonly prototype: URL;
  canParse(url: string | URL, base?: string | URL): boolean;
  parse(url: string | URL, base?: string | URL): URL | null;
};

interface URLSearchParams extends Iterable<[string, string]> {
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  entries(): IterableIterator<[string, string]>;
  forEach(callback: (value: string, name: string, parent: URLSearchParams) => void, thisArg?: unknown): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  keys(): IterableIterator<string>;
  set(name: string, value: string): void;
  sort(): void;
  toString(): string;
  values(): IterableIterator<string>;
}
declare var URLSearchParams: {
  new (init?: string | Iterable<readonly [string, string]> | Record<string, string> | URLSearchParams): URLSearchParams;
  readonly prototype: URLSearchParams;
};

interface TextEncoder {
  readonly encoding: string;
  encode(text?: string): Uint8Array<ArrayBuffer>;
  encodeInto(text: string, target: Uint8Array): { read: number; written: number };
}
declare var TextEncoder: { new (): TextEncoder; readonly prototype: TextEncoder };

interface TextDecoder {
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(bytes?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
}
declare var TextDecoder: {
  new (label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean }): TextDecoder;
  readonly prototype: TextDecoder;
};

declare function atob(base64: string): string;
declare function btoa(text: string): string;

interface Uint8ArrayConstructor {
  fromBase64(
    text: string,
    options?: { alphabet?: "base64" | "base64url"; lastChunkHandling?: "loose" | "strict" | "stop-before-partial" },
  ): Uint8Array<ArrayBuffer>;
  fromHex(text: string): Uint8Array<ArrayBuffer>;
}
interface Uint8Array<TArrayBuffer extends ArrayBufferLike> {
  toBase64(options?: { alphabet?: "base64" | "base64url"; omitPadding?: boolean }): string;
  toHex(): string;
  setFromBase64(
    text: string,
    options?: { alphabet?: "base64" | "base64url"; lastChunkHandling?: "loose" | "strict" | "stop-before-partial" },
  ): { read: number; written: number };
  setFromHex(text: string): { read: number; written: number };
}

declare function structuredClone<T>(value: T, options?: { transfer?: unknown[] }): T;

/** Virtual time: it moves when an outcome or a timer is delivered. */
declare function setTimeout<Arguments extends unknown[]>(
  callback: (...args: Arguments) => unknown,
  ms?: number,
  ...args: Arguments
): number;
declare function setInterval<Arguments extends unknown[]>(
  callback: (...args: Arguments) => unknown,
  ms?: number,
  ...args: Arguments
): number;
declare function clearTimeout(id: number | undefined): void;
declare function clearInterval(id: number | undefined): void;
declare function queueMicrotask(callback: () => void): void;

interface ArrayConstructor {
  fromAsync<T>(items: AsyncIterable<T> | Iterable<T | PromiseLike<T>> | ArrayLike<T | PromiseLike<T>>): Promise<T[]>;
  fromAsync<T, R>(
    items: AsyncIterable<T> | Iterable<T | PromiseLike<T>> | ArrayLike<T | PromiseLike<T>>,
    map: (item: T, index: number) => R | PromiseLike<R>,
    thisArg?: unknown,
  ): Promise<R[]>;
}

interface Event {
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  readonly composed: boolean;
  readonly currentTarget: EventTarget | null;
  readonly defaultPrevented: boolean;
  readonly eventPhase: number;
  readonly target: EventTarget | null;
  readonly timeStamp: number;
  readonly type: string;
  composedPath(): EventTarget[];
  preventDefault(): void;
  stopImmediatePropagation(): void;
  stopPropagation(): void;
}
declare var Event: {
  new (type: string, init?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean }): Event;
  readonly prototype: Event;
};

interface CustomEvent<T = unknown> extends Event {
  readonly detail: T;
}
declare var CustomEvent: {
  new <T>(
    type: string,
    init?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean; detail?: T },
  ): CustomEvent<T>;
  readonly prototype: CustomEvent;
};

type EventListener = ((event: Event) => void) | { handleEvent(event: Event): void };
interface EventTarget {
  addEventListener(
    type: string,
    listener: EventListener | null,
    options?: boolean | { capture?: boolean; once?: boolean; passive?: boolean; signal?: AbortSignal },
  ): void;
  dispatchEvent(event: Event): boolean;
  removeEventListener(type: string, listener: EventListener | null, options?: boolean | { capture?: boolean }): void;
}
declare var EventTarget: { new (): EventTarget; readonly prototype: EventTarget };

interface AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}
declare var AbortController: { new (): AbortController; readonly prototype: AbortController };

interface AbortSignal extends EventTarget {
  readonly aborted: boolean;
  onabort: ((event: Event) => void) | null;
  readonly reason: unknown;
  throwIfAborted(): void;
}
declare var AbortSignal: {
  readonly prototype: AbortSignal;
  abort(reason?: unknown): AbortSignal;
  any(signals: Iterable<AbortSignal>): AbortSignal;
  timeout(ms: number): AbortSignal;
};

interface DOMException extends Error {
  readonly code: number;
}
declare var DOMException: {
  new (message?: string, name?: string): DOMException;
  readonly prototype: DOMException;
};

type HeadersInit = Headers | Iterable<readonly [string, string]> | Record<string, string>;
interface Headers extends Iterable<[string, string]> {
  append(name: string, value: string): void;
  delete(name: string): void;
  entries(): IterableIterator<[string, string]>;
  forEach(callback: (value: string, name: string, parent: Headers) => void, thisArg?: unknown): void;
  get(name: string): string | null;
  getSetCookie(): string[];
  has(name: string): boolean;
  keys(): IterableIterator<string>;
  set(name: string, value: string): void;
  values(): IterableIterator<string>;
}
declare var Headers: { new (init?: HeadersInit): Headers; readonly prototype: Headers };

/** Bodies are whole: there are no streams. */
interface Body {
  readonly bodyUsed: boolean;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
  json(): Promise<any>;
  text(): Promise<string>;
}
type BodyInit = string | ArrayBuffer | ArrayBufferView | URLSearchParams;
interface RequestInit {
  body?: BodyInit | null;
  headers?: HeadersInit;
  /** The same for every attempt at the same thing: makes a request that changes something safe to send again. */
  idempotencyKey?: string;
  method?: string;
  redirect?: "follow" | "error" | "manual";
  signal?: AbortSignal | null;
}
interface Request extends Body {
  readonly headers: Headers;
  readonly idempotencyKey: string | undefined;
  readonly method: string;
  readonly redirect: string;
  readonly signal: AbortSignal;
  readonly url: string;
  clone(): Request;
}
declare var Request: {
  new (input: string | URL | Request, init?: RequestInit): Request;
  readonly prototype: Request;
};
interface ResponseInit {
  headers?: HeadersInit;
  status?: number;
  statusText?: string;
}
interface Response extends Body {
  readonly headers: Headers;
  readonly ok: boolean;
  readonly redirected: boolean;
  readonly status: number;
  readonly statusText: string;
  readonly type: string;
  readonly url: string;
  clone(): Response;
}
declare var Response: {
  new (body?: BodyInit | null, init?: ResponseInit): Response;
  readonly prototype: Response;
  error(): Response;
  json(data: unknown, init?: ResponseInit): Response;
  redirect(url: string | URL, status?: number): Response;
};

/** Seeded by the run: the same again in a replay. */
interface Crypto {
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  randomUUID(): \`\${string}-\${string}-\${string}-\${string}-\${string}\`;
}
declare var Crypto: { readonly prototype: Crypto };
declare var crypto: Crypto;

interface Performance {
  readonly timeOrigin: number;
  now(): number;
  toJSON(): unknown;
}
declare var Performance: { readonly prototype: Performance };
declare var performance: Performance;

/** Every call is one line of the run's log. */
interface Console {
  assert(condition?: unknown, ...data: unknown[]): void;
  clear(): void;
  count(label?: string): void;
  countReset(label?: string): void;
  debug(...data: unknown[]): void;
  dir(item?: unknown, options?: unknown): void;
  dirxml(...data: unknown[]): void;
  error(...data: unknown[]): void;
  group(...data: unknown[]): void;
  groupCollapsed(...data: unknown[]): void;
  groupEnd(): void;
  info(...data: unknown[]): void;
  log(...data: unknown[]): void;
  table(data?: unknown, columns?: string[]): void;
  time(label?: string): void;
  timeEnd(label?: string): void;
  timeLog(label?: string, ...data: unknown[]): void;
  trace(...data: unknown[]): void;
  warn(...data: unknown[]): void;
}
declare var console: Console;
`;

/** Declared for scripts that may make requests: elsewhere a call of it is an error while writing. */
export const fetchGlobal = `/** A request; the same as \`host.fetch\`. */
declare function fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
`;
