/**
 * What Request and Response have in common: a body of bytes that can be read once. Bodies are whole; there are no streams.
 */

import { trimming } from "../boundary.js";
import { DOMException } from "./dom-exception.js";
import type { Headers } from "./headers.js";

export type BodyInit = string | ArrayBuffer | ArrayBufferView | URLSearchParams | null | undefined;

export interface ExtractedBody {
  readonly bytes: Uint8Array;
  /** The content type that goes with it, null if none does. */
  readonly type: string | null;
}

const encoder = (): TextEncoder => new TextEncoder();

/** The bytes of what a script passes as body; null for no body. */
export function extractBody(body: unknown): ExtractedBody | null {
  if (body === null || body === undefined) return null;
  if (body instanceof URLSearchParams) {
    return { bytes: encoder().encode(`${body}`), type: "application/x-www-form-urlencoded;charset=UTF-8" };
  }
  if (body instanceof ArrayBuffer) return { bytes: new Uint8Array(body.slice(0)), type: null };
  if (ArrayBuffer.isView(body)) {
    return {
      bytes: new Uint8Array(body.buffer.slice(body.byteOffset, body.byteOffset + body.byteLength)),
      type: null,
    };
  }
  return { bytes: encoder().encode(`${body as string}`), type: "text/plain;charset=UTF-8" }; // converted, as the web does
}

export class Body {
  #bytes: Uint8Array | null;
  #used = false;

  constructor(bytes: Uint8Array | null) {
    this.#bytes = bytes;
  }

  get used(): boolean {
    return this.#used;
  }

  get isNull(): boolean {
    return this.#bytes === null;
  }

  /** The bytes, once. A null body is empty and can be read any number of times. */
  take(what: string): Uint8Array {
    if (this.#used) throw new TypeError(`${what}: the body was read already`);
    if (this.#bytes === null) return new Uint8Array(0);
    this.#used = true;
    return this.#bytes;
  }

  clone(what: string): Body {
    if (this.#used) throw new TypeError(`${what}: the body was read already`);
    return new Body(this.#bytes === null ? null : this.#bytes.slice());
  }
}

/** The body of a request or response. */
export let bodyOf: (reader: BodyReader) => Body;

/** The reading methods; `Request` and `Response` derive from it, which scripts see only as their common prototype. */
export abstract class BodyReader {
  abstract readonly headers: Headers;
  #body: Body;

  constructor(body: Body) {
    this.#body = body;
  }

  static {
    bodyOf = (reader) => reader.#body;
  }

  get bodyUsed(): boolean {
    return this.#body.used;
  }

  get body(): null {
    if (this.#body.isNull) return null;
    throw new TypeError("body: there are no streams here; use text(), json(), bytes() or arrayBuffer()");
  }

  async text(): Promise<string> {
    return trimming(() => new TextDecoder().decode(this.#body.take("text()")));
  }

  async json(): Promise<unknown> {
    return trimming(() => JSON.parse(new TextDecoder().decode(this.#body.take("json()"))) as unknown); // any by the library
  }

  async bytes(): Promise<Uint8Array> {
    return trimming(() => this.#body.take("bytes()").slice());
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    return trimming(() => this.#body.take("arrayBuffer()").slice().buffer as ArrayBuffer); // freshly made, not shared
  }

  async blob(): Promise<never> {
    throw new DOMException(
      "blob(): there is no Blob here; use bytes() or arrayBuffer()",
      "NotSupportedError",
    );
  }

  async formData(): Promise<never> {
    throw new DOMException(
      "formData(): there is no FormData here; use text() and URLSearchParams",
      "NotSupportedError",
    );
  }
}
