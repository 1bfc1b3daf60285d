/**
 * The host function `fetch`: one call from its checked argument to its result, redirects included. Made once per flow with
 * the grants of its manifest; the order of its steps is
 *   argument (arguments.ts, secrets.ts) → rules and addresses (target.ts) → connection (connect.ts) → request and response
 *   (exchange.ts, body.ts) → next request or result (redirect.ts) → masking (mask.ts).
 * The wire shape stands in the head of the prelude's `web/fetch.ts`.
 *
 * Kept true: GET and HEAD are `read`; with an idempotency key, which is sent as `Idempotency-Key`, a request is `keyed`;
 * every other is `once`. When one that is not `read` may have been sent, a failure is `outcome_unknown`, also one that is
 * decided here: a redirect that is refused came from a server that may have acted. `set-cookie` is passed on as data, like
 * every header: nothing stores it. Nothing is logged.
 */

import type { NetRule, SecretGrant } from "@flowcell/manifest";
import { didYouMean, type Effect, HostError } from "@flowcell/protocol";
import * as z from "zod/mini";
import { type CallContext, defineHostFunction, type HostFunction, HostFunctionError } from "../registry.js";
import { type FetchRequest, fetchArguments, type HeaderList, idempotencyHeader } from "./arguments.js";
import { trust } from "./connect.js";
import { exchange, type Reply, type ReplyHead } from "./exchange.js";
import { FetchFailure, failureOf, hostErrorOfFailure, outcomeUnknown } from "./failure.js";
import { checkedFetchLimits, type FetchLimits } from "./limits.js";
import { maskBytes, maskText } from "./mask.js";
import { privateHosts } from "./private-hosts.js";
import { type HopRequest, isRedirect, redirected } from "./redirect.js";
import { type CallSecrets, readSecrets, referenceProblem } from "./secrets.js";
import { describeRequest, findTarget, type Reach, type Resolve, systemResolver } from "./target.js";

export interface FetchOptions {
  readonly rules: readonly NetRule[];
  readonly secrets: readonly SecretGrant[];
  /** Asked at each call, so that a secret can be rotated. */
  readonly secretValue: (name: string) => string | undefined;
  /** "host" or "host:port": what the operator opens although its addresses are private. */
  readonly privateHosts: readonly string[];
  /** PEM; trusted beside the certificate authorities that Node brings. */
  readonly ca?: string;
  readonly resolve?: Resolve;
  readonly limits?: Partial<FetchLimits>;
}

export interface FetchResult {
  readonly status: number;
  readonly statusText: string;
  readonly headers: HeaderList;
  readonly url: string;
  readonly redirected: boolean;
  readonly body: Uint8Array | null;
}

const optionNames: readonly string[] = [
  "rules",
  "secrets",
  "secretValue",
  "privateHosts",
  "ca",
  "resolve",
  "limits",
];

const output = z.strictObject({
  status: z.number(),
  statusText: z.string(),
  headers: z.array(z.tuple([z.string(), z.string()])),
  url: z.string(),
  redirected: z.boolean(),
  body: z.nullable(z.instanceof(Uint8Array)),
});

/** Throws HostFunctionError for options that are none. */
export function createFetchFunction(options: FetchOptions): HostFunction {
  const settings = readOptions(options);
  return defineHostFunction({
    name: "fetch",
    doc: "Makes an HTTP request to a host that the manifest grants; the same as the global fetch.",
    effect: ([request]) => effectOf(request),
    grant: "net",
    signature: "(input: string | URL | Request, init?: RequestInit): Promise<Response>",
    input: fetchArguments(settings.limits.headBytes, (request) => referenceProblem(request, options.secrets)),
    output,
    handler: ([request], context) => new FetchCall(request, settings).run(context),
  });
}

interface Settings {
  readonly reach: Reach;
  readonly limits: FetchLimits;
  /** Made with the first https request: reading the authorities takes a while. */
  readonly secureContext: () => ReturnType<typeof trust>;
  readonly secrets: () => CallSecrets;
}

function readOptions(options: FetchOptions): Settings {
  for (const name of Object.keys(options)) {
    if (optionNames.includes(name)) continue;
    const near = didYouMean(name, optionNames);
    const hint = near === undefined ? `its options are ${optionNames.join(", ")}` : `did you mean "${near}"?`;
    throw new HostFunctionError(`fetch has no option "${name}"; ${hint}`);
  }
  const { rules, secrets: grants, secretValue: read, ca, resolve = systemResolver() } = options;
  const limits = checkedFetchLimits(options.limits ?? {});
  let context: ReturnType<typeof trust> | undefined;
  return {
    reach: { rules, privateHosts: privateHosts(options.privateHosts), resolve, connectMs: limits.connectMs },
    limits,
    secureContext: () => {
      context ??= trust(ca);
      return context;
    },
    secrets: () => readSecrets({ grants, read }),
  };
}

function effectOf({ method, idempotencyKey }: FetchRequest): Effect {
  if (method === "GET" || method === "HEAD") return "read";
  return idempotencyKey === undefined ? "once" : "keyed";
}

class FetchCall {
  readonly #request: FetchRequest;
  readonly #settings: Settings;
  readonly #secrets: CallSecrets;
  readonly #ending = new AbortController();
  /** A request that changes something was answered by a redirect, followed or not. */
  #acted = false;
  #hop: HopRequest;

  constructor(request: FetchRequest, settings: Settings) {
    this.#request = request;
    this.#settings = settings;
    this.#secrets = settings.secrets();
    const { url, method, body } = request;
    this.#hop = { url: new URL(url), method, headers: sentHeaders(request), body };
  }

  async run({ signal }: CallContext): Promise<FetchResult> {
    const { limits } = this.#settings;
    if ((this.#request.body?.length ?? 0) > limits.bodyBytes) {
      throw new HostError("too_large", `fetch: the body of the request exceeds ${limits.bodyBytes} bytes`);
    }
    const cancel = (): void => this.#ending.abort(new FetchFailure("cancelled", "the call was cancelled"));
    const late = (): void =>
      this.#ending.abort(new FetchFailure("timeout", `there was no result within ${limits.totalMs} ms`));
    const timer = setTimeout(late, limits.totalMs);
    signal.addEventListener("abort", cancel, { once: true });
    if (signal.aborted) cancel();
    try {
      return await this.#follow();
    } catch (error) {
      throw this.#told(error);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", cancel);
    }
  }

  async #follow(): Promise<FetchResult> {
    for (let redirects = 0; ; redirects++) {
      const reply = await this.#exchange();
      if (!this.#leadsOn(reply)) return this.#result(reply, redirects > 0);
      this.#acted ||= changes(this.#hop.method);
      if (this.#request.redirect === "error") {
        throw this.#refused(reply, `the server redirects, and the request says redirect: "error"`);
      }
      if (redirects >= this.#settings.limits.redirects) {
        throw this.#refused(reply, `there were more than ${this.#settings.limits.redirects} redirects`);
      }
      const next = redirected(this.#hop, reply);
      if ("refused" in next) throw this.#refused(reply, `the redirect (${reply.status}) ${next.refused}`);
      this.#hop = next.request;
    }
  }

  /** Anything but a response that the script gets as it is. */
  #leadsOn(reply: ReplyHead): boolean {
    return this.#request.redirect !== "manual" && isRedirect(reply);
  }

  async #exchange(): Promise<Reply> {
    const { reach, limits, secureContext } = this.#settings;
    const { url, method, headers, body } = this.#hop;
    const { signal } = this.#ending;
    const target = await findTarget(url, method, reach, signal);
    const filled = this.#secrets.fill(headers, url);
    const wantsBody = (head: ReplyHead): boolean => !this.#leadsOn(head);
    const request = { target, method, headers: filled, body, wantsBody };
    return await exchange(request, { limits, secureContext, signal });
  }

  #refused({ status }: ReplyHead, what: string): HostError {
    const text = `fetch ${describeRequest(this.#hop.method, this.#hop.url)}: ${what}`;
    return new HostError("upstream", text, { detail: { status } });
  }

  #result(reply: Reply, wasRedirected: boolean): FetchResult {
    const { values } = this.#secrets;
    const url = new URL(this.#hop.url);
    url.hash = "";
    return {
      status: reply.status,
      statusText: maskText(reply.statusText, values),
      headers: reply.headers.map(([name, value]) => [maskText(name, values), maskText(value, values)]),
      url: maskText(url.href, values),
      redirected: wasRedirected,
      // Exactly the body's bytes: a value travels with all of the buffer that it is a view of.
      body: reply.body === null ? null : new Uint8Array(maskBytes(reply.body, values)),
    };
  }

  /** What the script is told. Masked, since a server that knows a secret can put it into the target of a redirect. */
  #told(error: unknown): HostError {
    const shown = error instanceof HostError ? this.#refusal(error) : this.#hostError(error);
    const { code, retryable } = shown;
    const { values } = this.#secrets;
    const detail = shown.detail === undefined ? undefined : maskedDetail(shown.detail, values);
    return new HostError(code, maskText(shown.message, values), { retryable, detail });
  }

  /** What a step refuses says nothing about the request that led to it. */
  #refusal(error: HostError): HostError {
    if (!this.#acted) return error;
    return outcomeUnknown(error.message, error.code, error.detail, this.#keyed);
  }

  get #keyed(): boolean {
    return this.#request.idempotencyKey !== undefined;
  }

  #hostError(error: unknown): HostError {
    const { method, url } = this.#hop;
    // What is no failure of a step is a bug, of which nobody knows when it came; its own text might hold anything.
    const failure = error instanceof FetchFailure ? error : failureOf(error, false).at(true, undefined);
    return hostErrorOfFailure(failure, {
      what: describeRequest(method, url),
      mayHaveActed: this.#acted || (changes(method) && failure.sent),
      keyed: this.#keyed,
    });
  }
}

function changes(method: string): boolean {
  return method !== "GET" && method !== "HEAD";
}

/** The details of this folder's errors are flat. */
function maskedDetail(detail: unknown, values: readonly string[]): unknown {
  return Object.fromEntries(
    Object.entries(Object(detail)).map(([key, value]) => [
      key,
      typeof value === "string" ? maskText(value, values) : value,
    ]),
  );
}

/** The script's headers, and those that every request has. */
function sentHeaders({ headers, idempotencyKey }: FetchRequest): HeaderList {
  const has = (name: string): boolean => headers.some(([given]) => given.toLowerCase() === name);
  const defaults: readonly (readonly [string, string])[] = [
    ["accept", "*/*"],
    // A body that comes as it is needs no decoding; one that comes encoded all the same is decoded within its bound.
    ["accept-encoding", "identity"],
    ["user-agent", "flowcell"],
  ];
  return [
    ...headers,
    ...defaults.filter(([name]) => !has(name)),
    ...(idempotencyKey === undefined ? [] : [[idempotencyHeader, idempotencyKey] as const]),
  ];
}
