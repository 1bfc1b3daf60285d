/**
 * The argument of the host call `fetch`, as the guest's fetch makes it, and what of it is refused before anything is done.
 *
 * TRUST: a script made it, perhaps a subverted engine: the URL, the method and each header are checked again here.
 * Kept true: no header can end early or begin another one, and none speaks for the connection, for the host that is asked
 * or for flowcell itself. Cookies are refused because they are credentials that no grant names; a response's `set-cookie`
 * is passed on as data, since nothing stores it.
 */

import * as z from "zod/mini";

export type HeaderList = readonly (readonly [name: string, value: string])[];

export interface FetchRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: HeaderList;
  readonly redirect: "follow" | "error" | "manual";
  readonly body?: Uint8Array | undefined;
  readonly idempotencyKey?: string | undefined;
}

/** What is wrong with a request, and where in it. */
export interface RequestProblem {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

export const idempotencyHeader = "idempotency-key";

const urlCharsMax = 16_384;
const methodCharsMax = 32;
const headersMax = 256;
const keyCharsMax = 255;

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/;
const keyValue = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const forbiddenMethods: readonly string[] = ["CONNECT", "TRACE", "TRACK"];

/** Why a script cannot set a header. `proxy-…` is refused by its prefix. */
const refusedHeaders: ReadonlyMap<string, string> = new Map([
  ...["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings"].map(
    (name) => [name, "it is for the connection, which the host makes"] as const,
  ),
  ["host", "it follows from the URL"],
  ["content-length", "it follows from the body"],
  ["expect", "the body is sent at once"],
  ["cookie", "cookies are not supported; use a granted secret"],
  ["cookie2", "cookies are not supported; use a granted secret"],
  [idempotencyHeader, "use the option idempotencyKey"],
]);

/** The schema of the list of arguments, with further checks by the caller's grants. */
export function fetchArguments(
  headBytes: number,
  furtherProblem: (request: FetchRequest) => RequestProblem | undefined,
): z.ZodMiniType<readonly [FetchRequest]> {
  const shape = z.strictObject({
    url: z.string().check(z.maxLength(urlCharsMax, `must have at most ${urlCharsMax} characters`)),
    method: z.string().check(z.maxLength(methodCharsMax, `must have at most ${methodCharsMax} characters`)),
    headers: z
      .array(z.tuple([z.string(), z.string()]))
      .check(z.maxLength(headersMax, `must have at most ${headersMax} headers`)),
    redirect: z.enum(["follow", "error", "manual"]),
    body: z.optional(z.instanceof(Uint8Array)),
    idempotencyKey: z.optional(z.string()),
  });
  const request = shape.check(({ value, issues }) => {
    const problem = requestProblem(value, headBytes) ?? furtherProblem(value);
    if (problem === undefined) return;
    const { path, message } = problem;
    issues.push({ code: "custom", path: [...path], message, input: undefined });
  });
  return z.tuple([request]);
}

function requestProblem(request: FetchRequest, headBytes: number): RequestProblem | undefined {
  const { url, method, headers, body, idempotencyKey } = request;
  const urlText = urlProblem(url);
  if (urlText !== undefined) return { path: ["url"], message: urlText };
  const upper = method.toUpperCase();
  if (!token.test(method) || forbiddenMethods.includes(upper)) {
    return { path: ["method"], message: "is no method that a script may use" };
  }
  if (body !== undefined && (upper === "GET" || upper === "HEAD")) {
    return { path: ["body"], message: `a ${upper} request has no body` };
  }
  if (
    idempotencyKey !== undefined &&
    !(idempotencyKey.length <= keyCharsMax && keyValue.test(idempotencyKey))
  ) {
    const message = `must be 1 to ${keyCharsMax} printable ASCII characters, without space at its ends`;
    return { path: ["idempotencyKey"], message };
  }
  return headersProblem(headers, headBytes);
}

/** Why a script's URL or a redirect's target is none that can be fetched. */
export function urlProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return "is no absolute URL";
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return `only http: and https: can be fetched, not ${url.protocol.slice(0, 20)}`;
  }
  if (url.username !== "" || url.password !== "") return "must not hold a user name or password";
  return undefined;
}

function headersProblem(headers: HeaderList, headBytes: number): RequestProblem | undefined {
  let bytes = 0;
  for (const [index, [name, value]] of headers.entries()) {
    const message = headerProblem(name, value);
    if (message !== undefined) return { path: ["headers", index], message };
    bytes += name.length + value.length;
  }
  if (bytes <= headBytes) return undefined;
  return { path: ["headers"], message: `must have at most ${headBytes} bytes together` };
}

function headerProblem(name: string, value: string): string | undefined {
  if (!token.test(name)) return `${quoted(name)} is no header name`;
  const lower = name.toLowerCase();
  const reason = lower.startsWith("proxy-") ? refusedHeaders.get("connection") : refusedHeaders.get(lower);
  if (reason !== undefined) return `the header ${quoted(lower)} cannot be set: ${reason}`;
  if (headerValue.test(value)) return undefined;
  return `the value of ${quoted(lower)} holds a character that header values must not have`;
}

function quoted(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}
