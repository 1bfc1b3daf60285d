/**
 * Secrets in requests. A script never holds a value. It writes a reference as the value of the header that the grant names:
 *
 *   headers: { authorization: "{{secret:github}}" }          the grant's scheme, if any, is put before the value
 *   headers: { authorization: "Bearer {{secret:github}}" }   the same, when the grant's scheme is Bearer
 *
 * The reference is the whole value, or all that follows the grant's scheme and one space. The value takes its place here,
 * on the way to a host that the grant names, in the header that it names, over HTTPS. In any other header, in the URL (also
 * percent-encoded), in the body (plain or form-encoded) or in the idempotency key, a reference is `invalid_arguments`:
 * whoever wrote it meant to send the secret, and a server would get the text.
 *
 * Kept true: values are read when a call starts, so that a rotated one is used by the next call; they are in no argument, so
 * in no journal entry, and in no error text. Every value that the grants name is masked in what comes back (`mask.ts`),
 * whether or not this request sent it: a server may remember.
 */

import { hostMatches, type SecretGrant } from "@flowcell/manifest";
import { HostError } from "@flowcell/protocol";
import type { FetchRequest, HeaderList, RequestProblem } from "./arguments.js";

interface Reference {
  readonly name: string;
  readonly scheme: string | undefined;
}

/** The reference in plain text or percent-encoded, anywhere. */
const anywhere = /(?:\{|%7b){2}secret(?::|%3a)[^{}%\s]{1,64}(?:\}|%7d){2}/i;
const whole = /^(?:([!#$%&'*+\-.^_`|~0-9A-Za-z]+) )?\{\{secret:([^{}%\s]{1,64})\}\}$/;
/** As much as a reference has before and after its first letter, percent-encoded. */
const before = 6;
const after = 6 + 3 + 64 + 6;

/** Whether a header's value is a reference; after the check of the arguments, no value merely holds one. */
export function isReference(value: string): boolean {
  return whole.test(value);
}

/** What is wrong with the references in a request, or undefined. */
export function referenceProblem(
  request: FetchRequest,
  grants: readonly SecretGrant[],
): RequestProblem | undefined {
  const message = "holds a reference to a secret, which can only stand in the header that its grant names";
  if (anywhere.test(request.url)) return { path: ["url"], message };
  if (anywhere.test(request.idempotencyKey ?? "")) return { path: ["idempotencyKey"], message };
  if (request.body !== undefined && bytesHoldReference(request.body)) return { path: ["body"], message };
  for (const [index, [name, value]] of request.headers.entries()) {
    if (!anywhere.test(value)) continue;
    const problem = headerProblem(name, value, new URL(request.url), grants);
    if (problem !== undefined) return { path: ["headers", index], message: problem };
  }
  return undefined;
}

function bytesHoldReference(body: Uint8Array): boolean {
  const view = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  for (let at = view.indexOf("secret"); at >= 0; at = view.indexOf("secret", at + 1)) {
    if (anywhere.test(view.toString("latin1", Math.max(0, at - before), at + after))) return true;
  }
  return false;
}

function headerProblem(
  header: string,
  value: string,
  url: URL,
  grants: readonly SecretGrant[],
): string | undefined {
  const reference = parseReference(value);
  if (reference === undefined) {
    return `a reference to a secret must be the whole value of ${JSON.stringify(header)}, or follow its scheme`;
  }
  const named = grants.filter((grant) => grant.name === reference.name);
  // Without any grant of that name the call is denied when it is made; that names what to add.
  if (named.length === 0 || named.some((grant) => mismatch(grant, header, reference, url) === undefined)) {
    return undefined;
  }
  return named.map((grant) => mismatch(grant, header, reference, url)).find((text) => text !== undefined);
}

function parseReference(value: string): Reference | undefined {
  const [, scheme, name] = whole.exec(value) ?? [];
  return name === undefined ? undefined : { name, scheme };
}

/** Why a grant does not let this secret go there. */
function mismatch(
  { name, hosts, header, scheme }: SecretGrant,
  asked: string,
  reference: Reference,
  url: URL,
): string | undefined {
  const secret = `the secret ${JSON.stringify(name)}`;
  if (asked.toLowerCase() !== header.toLowerCase())
    return `${secret} is granted for the header ${header} only`;
  if (!hosts.some((pattern) => hostMatches(pattern, url.hostname))) {
    return `${secret} is not granted for the host ${url.hostname}`;
  }
  if (url.protocol !== "https:") return `${secret} is only sent over https:`;
  if (reference.scheme === undefined || reference.scheme.toLowerCase() === scheme?.toLowerCase())
    return undefined;
  const right = scheme === undefined ? "no scheme" : `the scheme ${scheme}`;
  return `${secret} is granted with ${right}, not ${reference.scheme}`;
}

/** What `createFetchFunction` is given. */
export interface SecretSource {
  readonly grants: readonly SecretGrant[];
  /** Undefined when there is none by that name. */
  readonly read: (name: string) => string | undefined;
}

/** The secrets as they are for one call. */
export interface CallSecrets {
  /** The headers to send to a URL. Throws HostError. */
  fill(headers: HeaderList, url: URL): HeaderList;
  /** Every value, for masking. */
  readonly values: readonly string[];
}

/** What can stand in a header without a doubt about its bytes; a line end at the end of a file is the usual mistake. */
const usableValue = /^[\x21-\x7e](?:[\x20-\x7e]{0,8190}[\x21-\x7e])?$/;

export function readSecrets({ grants, read }: SecretSource): CallSecrets {
  const values = new Map<string, string>();
  for (const { name } of grants) {
    const value = readValue(name, read);
    if (value !== undefined && value !== "") values.set(name, value);
  }
  return {
    values: [...new Set(values.values())],
    fill: (headers, url) => headers.map(([name, value]) => [name, filled(name, value, url)]),
  };

  function filled(header: string, value: string, url: URL): string {
    const reference = parseReference(value);
    if (reference === undefined) return value;
    const named = grants.filter(({ name }) => name === reference.name);
    if (named.length === 0) throw notGranted(reference.name, header, url);
    const grant = named.find((candidate) => mismatch(candidate, header, reference, url) === undefined);
    if (grant === undefined)
      throw new HostError("denied", `fetch: the secret is not granted for ${url.host}`);
    const secret = usable(reference.name, values.get(reference.name));
    return grant.scheme === undefined ? secret : `${grant.scheme} ${secret}`;
  }
}

/** The source's own error may hold a path or the value itself. */
function readValue(name: string, read: (name: string) => string | undefined): string | undefined {
  try {
    return read(name);
  } catch {
    throw new HostError("unavailable", `fetch: the secret ${JSON.stringify(name)} cannot be read`);
  }
}

function usable(name: string, value: string | undefined): string {
  const secret = `fetch: the secret ${JSON.stringify(name)}`;
  if (value === undefined) {
    throw new HostError("unavailable", `${secret} has no value; the operator has to set it`);
  }
  if (usableValue.test(value)) return value;
  const what = "holds a character that cannot stand in a header, a space at an end, or too much";
  throw new HostError("unavailable", `${secret} ${what}; the operator has to correct it`, {
    retryable: false,
  });
}

function notGranted(name: string, header: string, url: URL): HostError {
  const grant = JSON.stringify({ name, hosts: [url.hostname], header });
  const message = `fetch: the secret ${JSON.stringify(name)} is not granted: add ${grant} to grants.secrets of the manifest`;
  return new HostError("denied", message, { detail: { secret: name, host: url.hostname } });
}
