/** Response of the Fetch standard, without streams. */

import { Body, BodyReader, bodyOf, extractBody } from "./body.js";
import { freezeHeaders, type HeaderPairs, Headers, type HeadersInit } from "./headers.js";

export interface ResponseInit {
  readonly status?: number;
  readonly statusText?: string;
  readonly headers?: HeadersInit;
}

/** What came from outside, for `responseFrom`. */
export interface ReceivedResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: HeaderPairs;
  readonly url: string;
  readonly redirected: boolean;
  readonly body: Uint8Array | null;
}

const nullBodyStatuses: readonly number[] = [101, 103, 204, 205, 304];
const redirectStatuses: readonly number[] = [301, 302, 303, 307, 308];
const reasonPhrase = /^[\t\x20-\x7e\x80-\xff]*$/;

interface Facts {
  type: "default" | "error" | "basic";
  status: number;
  statusText: string;
  url: string;
  redirected: boolean;
}

/** Given instead of an init, by functions of this file. */
class Made {
  readonly facts: Facts;
  readonly headers: Headers;
  readonly body: Body;

  constructor(facts: Facts, headers: Headers, body: Body) {
    this.facts = facts;
    this.headers = headers;
    this.body = body;
  }
}

export class Response extends BodyReader {
  readonly #facts: Facts;
  readonly #headers: Headers;

  constructor(body?: unknown, init: ResponseInit = {}) {
    if (body instanceof Made) {
      super(body.body);
      this.#facts = body.facts;
      this.#headers = body.headers;
      return;
    }
    const options = init ?? {};
    const extracted = extractBody(body);
    super(new Body(extracted?.bytes ?? null));
    this.#facts = defaultFacts(options);
    this.#headers = new Headers(options.headers);
    if (extracted === null) return;
    if (nullBodyStatuses.includes(this.#facts.status)) {
      throw new TypeError(`Response: status ${this.#facts.status} has no body`);
    }
    if (extracted.type !== null && !this.#headers.has("content-type")) {
      this.#headers.append("content-type", extracted.type);
    }
  }

  get type(): string {
    return this.#facts.type;
  }

  get url(): string {
    return this.#facts.url;
  }

  get redirected(): boolean {
    return this.#facts.redirected;
  }

  get status(): number {
    return this.#facts.status;
  }

  get ok(): boolean {
    return this.#facts.status >= 200 && this.#facts.status <= 299;
  }

  get statusText(): string {
    return this.#facts.statusText;
  }

  override get headers(): Headers {
    return this.#headers;
  }

  clone(): Response {
    const body = bodyOf(this).clone("Response.clone");
    const headers = new Headers(this.#headers);
    if (this.#facts.type !== "default") freezeHeaders(headers);
    return new Response(new Made({ ...this.#facts }, headers, body));
  }

  static error(): Response {
    const headers = new Headers();
    freezeHeaders(headers);
    const facts: Facts = { type: "error", status: 0, statusText: "", url: "", redirected: false };
    return new Response(new Made(facts, headers, new Body(null)));
  }

  static redirect(url: string, status = 302): Response {
    const location = locationOf(url);
    if (!redirectStatuses.includes(status))
      throw new RangeError(`Response.redirect: ${status} is no redirect status`);
    const headers = new Headers({ location });
    freezeHeaders(headers);
    const facts: Facts = { type: "default", status, statusText: "", url: "", redirected: false };
    return new Response(new Made(facts, headers, new Body(null)));
  }

  static json(data: unknown, init: ResponseInit = {}): Response {
    const text = JSON.stringify(data) as string | undefined; // undefined for what JSON cannot say
    if (text === undefined) throw new TypeError("Response.json: the value has no JSON form");
    const headers = new Headers(init.headers);
    if (!headers.has("content-type")) headers.append("content-type", "application/json");
    return new Response(new TextEncoder().encode(text), { ...init, headers });
  }
}

function locationOf(url: unknown): string {
  const text = `${url as string}`; // converted, as the web does
  try {
    return new URL(text).href;
  } catch {
    throw new TypeError(`Response.redirect: ${JSON.stringify(text)} is not an absolute URL`);
  }
}

function defaultFacts({ status = 200, statusText = "" }: ResponseInit): Facts {
  const code = Math.trunc(+status);
  if (!(code >= 200 && code <= 599))
    throw new RangeError(`Response: the status must be from 200 to 599, not ${status}`);
  const phrase = `${statusText}`;
  if (!reasonPhrase.test(phrase))
    throw new TypeError("Response: the status text holds a character that it must not have");
  return { type: "default", status: code, statusText: phrase, url: "", redirected: false };
}

export function responseFrom(received: ReceivedResponse): Response {
  const { status, statusText, url, redirected, body } = received;
  const headers = new Headers(received.headers);
  freezeHeaders(headers);
  return new Response(
    new Made({ type: "basic", status, statusText, url, redirected }, headers, new Body(body)),
  );
}
