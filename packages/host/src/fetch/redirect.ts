/**
 * What a redirect makes of a request: pure. The next request is checked like the first one (`target.ts`), by the caller.
 *
 * Kept true: https never leads to http; a secret and `authorization` do not follow to another origin and do not come back
 * when a later redirect leads home; a body is sent again for 307 and 308 only.
 */

import { type HeaderList, idempotencyHeader, urlProblem } from "./arguments.js";
import type { ReplyHead } from "./exchange.js";
import { isReference } from "./secrets.js";

export interface HopRequest {
  readonly url: URL;
  readonly method: string;
  /** With references in place of secrets. */
  readonly headers: HeaderList;
  readonly body: Uint8Array | undefined;
}

const redirectStatuses: readonly number[] = [301, 302, 303, 307, 308];
/** What describes a body, or belongs to the request that changed something. */
const bodyHeaders: readonly string[] = [
  "content-encoding",
  "content-language",
  "content-location",
  "content-type",
  idempotencyHeader,
];

/** Whether a response asks to go elsewhere. */
export function isRedirect({ status, headers }: ReplyHead): boolean {
  return redirectStatuses.includes(status) && headers.some(([name]) => name === "location");
}

/** The request to make next, or what the redirect does that must not be done. */
export type NextRequest = { readonly request: HopRequest } | { readonly refused: string };

export function redirected(request: HopRequest, { status, headers: given }: ReplyHead): NextRequest {
  const [location = "", ...others] = given.filter(([name]) => name === "location").map(([, value]) => value);
  if (others.length > 0) return { refused: "names several places" };
  if (!URL.canParse(location, request.url.href)) return { refused: "leads to what is no URL" };
  const url = new URL(location, request.url.href);
  const problem = urlProblem(url.href);
  if (problem !== undefined) return { refused: `leads to a URL that a script could not ask for: ${problem}` };
  if (request.url.protocol === "https:" && url.protocol === "http:") {
    return { refused: "leads from https: to http:" };
  }
  const sameOrigin = url.origin === request.url.origin;
  const headers = sameOrigin ? request.headers : request.headers.filter(mayCrossOrigins);
  if (becomesGet(request.method, status)) {
    const without = headers.filter(([name]) => !bodyHeaders.includes(name.toLowerCase()));
    return { request: { url, method: "GET", headers: without, body: undefined } };
  }
  if (request.body !== undefined && status !== 307 && status !== 308) {
    return { refused: `would send the body of a ${request.method} request again` };
  }
  return { request: { ...request, url, headers } };
}

function mayCrossOrigins([name, value]: readonly [string, string]): boolean {
  return name.toLowerCase() !== "authorization" && !isReference(value);
}

function becomesGet(method: string, status: number): boolean {
  if (status === 303) return method !== "GET" && method !== "HEAD";
  return (status === 301 || status === 302) && method === "POST";
}
