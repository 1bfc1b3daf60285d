/** Request of the Fetch standard, without streams; what makes no sense outside a browser has its default and stays there. */

import { isAbortSignal } from "./abort.js";
import { Body, BodyReader, bodyOf, extractBody } from "./body.js";
import { Headers, type HeadersInit } from "./headers.js";

export interface RequestInit {
  readonly method?: string;
  readonly headers?: HeadersInit;
  readonly body?: unknown;
  readonly redirect?: string;
  readonly signal?: unknown;
  /** Not of the standard: makes a request that changes something safe to send again. */
  readonly idempotencyKey?: string;
}

const normalised: readonly string[] = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"];
const forbidden: readonly string[] = ["CONNECT", "TRACE", "TRACK"];
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const redirects: readonly string[] = ["follow", "error", "manual"];

export class Request extends BodyReader {
  readonly #url: string;
  readonly #method: string;
  readonly #headers: Headers;
  readonly #redirect: string;
  readonly #signal: AbortSignal;
  readonly #idempotencyKey: string | undefined;

  constructor(input: unknown, init: RequestInit = {}) {
    const options = init ?? {};
    const source = input instanceof Request ? input : undefined;
    const extracted = extractBody(options.body);
    const method = methodOf(options.method, source);
    const hasOwnBody = options.body !== undefined && options.body !== null;
    if (hasOwnBody && (method === "GET" || method === "HEAD"))
      throw new TypeError(`Request: a ${method} request has no body`);
    super(hasOwnBody || source === undefined ? new Body(extracted?.bytes ?? null) : takeBody(source));
    this.#method = method;
    this.#url = source === undefined ? urlOf(input) : source.#url;
    this.#headers = new Headers(options.headers ?? source?.headers);
    if (extracted !== null && extracted.type !== null && !this.#headers.has("content-type")) {
      this.#headers.append("content-type", extracted.type);
    }
    const redirect = options.redirect ?? source?.redirect ?? "follow";
    if (!redirects.includes(redirect))
      throw new TypeError(`Request: redirect must be one of ${redirects.join(", ")}`);
    this.#redirect = redirect;
    this.#signal = signalOf(options, source);
    const key = options.idempotencyKey ?? source?.idempotencyKey;
    this.#idempotencyKey = key === undefined ? undefined : `${key}`;
  }

  get url(): string {
    return this.#url;
  }

  get method(): string {
    return this.#method;
  }

  override get headers(): Headers {
    return this.#headers;
  }

  get redirect(): string {
    return this.#redirect;
  }

  get signal(): AbortSignal {
    return this.#signal;
  }

  get idempotencyKey(): string | undefined {
    return this.#idempotencyKey;
  }

  get mode(): string {
    return "cors";
  }

  get credentials(): string {
    return "same-origin";
  }

  get cache(): string {
    return "default";
  }

  get destination(): string {
    return "";
  }

  get referrer(): string {
    return "about:client";
  }

  get referrerPolicy(): string {
    return "";
  }

  get integrity(): string {
    return "";
  }

  get keepalive(): boolean {
    return false;
  }

  get duplex(): string {
    return "half";
  }

  clone(): Request {
    const body = bodyOf(this).clone("Request.clone");
    const bytes = body.isNull ? undefined : body.take("Request.clone");
    const copy: RequestInit = {
      method: this.#method,
      headers: this.#headers,
      redirect: this.#redirect,
      signal: this.#signal,
      ...(bytes === undefined ? {} : { body: bytes }),
      ...(this.#idempotencyKey === undefined ? {} : { idempotencyKey: this.#idempotencyKey }),
    };
    return new Request(this.#url, copy);
  }
}

function urlOf(input: unknown): string {
  const text = `${input as string}`; // converted, as the web does
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new TypeError(`Request: ${JSON.stringify(text)} is not an absolute URL`);
  }
  if (url.username !== "" || url.password !== "")
    throw new TypeError("Request: the URL must not hold a user name or password");
  return url.href;
}

function methodOf(method: unknown, source: Request | undefined): string {
  if (method === undefined) return source?.method ?? "GET";
  const text = `${method as string}`; // converted, as the web does
  if (!token.test(text)) throw new TypeError(`Request: ${JSON.stringify(text)} is not a method`);
  const upper = text.toUpperCase();
  if (forbidden.includes(upper)) throw new TypeError(`Request: the method ${upper} is not allowed`);
  return normalised.includes(upper) ? upper : text;
}

function takeBody(source: Request): Body {
  const body = bodyOf(source);
  if (body.used) throw new TypeError("Request: the body was read already");
  return body.isNull ? new Body(null) : new Body(body.take("Request"));
}

function signalOf(init: RequestInit, source: Request | undefined): AbortSignal {
  const given = init.signal ?? source?.signal;
  if (given !== undefined && given !== null && !isAbortSignal(given)) {
    throw new TypeError("Request: signal must be an AbortSignal");
  }
  const controller = new AbortController();
  return isAbortSignal(given) ? AbortSignal.any([given as unknown as AbortSignal]) : controller.signal; // the same class
}
