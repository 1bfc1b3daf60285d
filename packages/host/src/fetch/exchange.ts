/**
 * One request and its response over a connection of its own. Called once per request of a fetch, after the target was
 * checked and secrets were filled in.
 *
 * TRUST: everything that the server sends: the parser is undici's, strict; head, number of interim responses, body before
 * and after decoding, number of chunks and times are bounded here.
 * Kept true: the first verdict wins and closes the socket at once; no byte is read after it. Every failure says whether a
 * byte of the request may have left. The connection serves one request: it says `connection: close` and a second attempt
 * to connect is refused. The response is never paused, since the library's parser must not be stopped halfway.
 */

import type { Socket } from "node:net";
import type { SecureContext } from "node:tls";
import type { Client, Dispatcher } from "undici";
import type { HeaderList } from "./arguments.js";
import { BodyCollector, decodeBody } from "./body.js";
import { type Close, openConnection } from "./connect.js";
import { FetchFailure, failureOf } from "./failure.js";
import type { FetchLimits } from "./limits.js";
import type { Target } from "./target.js";

export interface Exchange {
  readonly target: Target;
  readonly method: string;
  readonly headers: HeaderList;
  readonly body: Uint8Array | undefined;
  /** Whether the body of a response with this head is wanted. */
  readonly wantsBody: (reply: ReplyHead) => boolean;
}

export interface ReplyHead {
  readonly status: number;
  readonly statusText: string;
  /** Names in lower case, values as Latin-1, in the order of the server. */
  readonly headers: HeaderList;
}

export interface Reply extends ReplyHead {
  readonly body: Uint8Array | null;
}

export interface ExchangeSettings {
  readonly limits: FetchLimits;
  /** For https. */
  readonly secureContext: () => SecureContext;
  /** Aborted with a FetchFailure as its reason. */
  readonly signal: AbortSignal;
}

const interimMax = 8;
/** A body of single-byte chunks costs its size many times over; small chunks are fine until there are this many. */
const smallChunks = 65_536;
const smallChunkBytes = 16;
const nullBodyStatuses: readonly number[] = [101, 103, 204, 205, 304];
// What the guest's Headers would refuse.
const forbiddenInValue = /[\0\r\n]/;

/** Throws FetchFailure. */
export async function exchange(request: Exchange, settings: ExchangeSettings): Promise<Reply> {
  // Loaded with the first request: it takes longer than all else that a run without fetch needs.
  const { Client } = await import("undici");
  const running = new RunningExchange(request, settings, Client);
  const { head, body } = await running.done;
  if (body === null) return { ...head, body: null };
  const decoded = await decodeBody(
    body,
    headerOf(head.headers, "content-encoding"),
    settings.limits.bodyBytes,
  );
  if (decoded.ok) return { ...head, body: decoded.bytes };
  throw decoded.problem === "too_large"
    ? bodyTooLarge(settings.limits).at(true, head.status)
    : new FetchFailure("upstream", "the body is not encoded as its head says").at(true, head.status);
}

/** The values of a header, joined as the standard says; "" when there is none. */
export function headerOf(headers: HeaderList, name: string): string {
  return headers
    .filter(([key]) => key === name)
    .map(([, value]) => value)
    .join(", ");
}

function bodyTooLarge({ bodyBytes }: FetchLimits): FetchFailure {
  return new FetchFailure("result_too_large", `the body of the response exceeds ${bodyBytes} bytes`);
}

interface Answer {
  readonly head: ReplyHead;
  readonly body: Uint8Array | null;
}

class RunningExchange implements Dispatcher.DispatchHandler {
  readonly done: Promise<Answer>;
  readonly #request: Exchange;
  readonly #settings: ExchangeSettings;
  readonly #client: Client;
  readonly #body: BodyCollector;
  readonly #onAbort: () => void;
  #resolve: (answer: Answer) => void = () => {};
  #reject: (failure: FetchFailure) => void = () => {};
  #close: Close | undefined;
  #timer: NodeJS.Timeout | undefined;
  #settled = false;
  #sent = false;
  #head: ReplyHead | undefined;
  #interim = 0;
  #chunks = 0;

  constructor(request: Exchange, settings: ExchangeSettings, ClientOf: typeof Client) {
    const { target, method, headers, body } = request;
    const { limits, signal } = settings;
    this.#request = request;
    this.#settings = settings;
    this.#body = new BodyCollector(limits.bodyBytes);
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#onAbort = () => this.#fail(signal.reason);
    this.#client = new ClientOf(target.url.origin, {
      connect: (_, opened) => this.#connect((socket) => opened(null, socket)),
      maxHeaderSize: limits.headBytes,
      allowH2: false,
      // Times are kept here, to the millisecond and from the right moment.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    if (signal.aborted) {
      this.#fail(signal.reason);
      return;
    }
    signal.addEventListener("abort", this.#onAbort, { once: true });
    this.#within(limits.connectMs, "there was no connection");
    this.#client.dispatch(
      {
        method: method as Dispatcher.HttpMethod, // any token; the type names the common ones
        path: `${target.url.pathname}${target.url.search}`,
        headers: headers.flat(),
        body: body ?? null,
        reset: true,
      },
      this,
    );
  }

  #connect(onOpen: (socket: Socket) => void): void {
    if (this.#close !== undefined || this.#settled) {
      this.#fail(new FetchFailure("unavailable", "the connection was closed before the request was sent"));
      return;
    }
    const { target } = this.#request;
    this.#close = openConnection(target, this.#settings.secureContext, {
      onOpen,
      onError: (error) => this.#fail(error),
    });
  }

  /** From here on bytes may leave. */
  onRequestStart(): void {
    this.#sent = true;
    this.#within(this.#settings.limits.headersMs, "the head of the response did not come");
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    _: unknown,
    statusText = "",
  ): void {
    if (this.#settled) return;
    if (status < 200) {
      if (++this.#interim > interimMax)
        this.#fail(new FetchFailure("upstream", "too many interim responses"));
      return;
    }
    clearTimeout(this.#timer);
    const headers = headerList(controller.rawHeaders);
    if (headers === undefined) {
      this.#fail(new FetchFailure("upstream", "a header of the response holds a line end or NUL"));
      return;
    }
    const head = { status, statusText, headers };
    this.#head = head;
    const hasBody = this.#request.method !== "HEAD" && !nullBodyStatuses.includes(status);
    if (!hasBody || !this.#request.wantsBody(head)) {
      this.#finish({ head, body: null });
      return;
    }
    if (Number(headerOf(headers, "content-length")) > this.#settings.limits.bodyBytes) this.#failTooLarge();
  }

  onResponseData(_: unknown, chunk: Buffer): void {
    if (this.#settled) return;
    this.#chunks++;
    if (!this.#body.append(chunk)) this.#failTooLarge();
    else if (this.#chunks > smallChunks && this.#body.length < this.#chunks * smallChunkBytes) {
      this.#fail(new FetchFailure("upstream", "the body comes in too many small chunks"));
    }
  }

  onResponseEnd(): void {
    if (this.#head !== undefined) this.#finish({ head: this.#head, body: this.#body.bytes() });
  }

  onResponseError(_: unknown, error: Error): void {
    this.#fail(error);
  }

  #within(ms: number, what: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fail(new FetchFailure("timeout", `${what} within ${ms} ms`)), ms);
  }

  #failTooLarge(): void {
    this.#fail(bodyTooLarge(this.#settings.limits));
  }

  #fail(error: unknown): void {
    if (this.#end())
      this.#reject(failureOf(error, this.#head !== undefined).at(this.#sent, this.#head?.status));
  }

  #finish(answer: Answer): void {
    if (this.#end()) this.#resolve(answer);
  }

  /** Whether this is the first verdict; closes everything then. */
  #end(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    clearTimeout(this.#timer);
    this.#settings.signal.removeEventListener("abort", this.#onAbort);
    this.#close?.();
    void this.#client.destroy(); // never rejects; what it still reports is ignored above
    return true;
  }
}

/** Undefined when a value holds what the guest would refuse. */
function headerList(raw: Dispatcher.DispatchController["rawHeaders"]): HeaderList | undefined {
  if (!Array.isArray(raw)) return [];
  const texts = raw.map((part) => (typeof part === "string" ? part : part.toString("latin1")));
  if (texts.some((text) => forbiddenInValue.test(text))) return undefined;
  const list: [string, string][] = [];
  for (let at = 0; at + 1 < texts.length; at += 2) {
    list.push([(texts[at] ?? "").toLowerCase(), (texts[at + 1] ?? "").trim()]);
  }
  return list;
}
