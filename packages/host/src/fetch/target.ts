/**
 * Where a request may go: the manifest's rules first, then the addresses. Called before the first request and before every
 * redirect is followed.
 *
 * Kept true: a name is resolved once and every address that it resolves to must be allowed; the connection is made to
 * those addresses and to no others (`connect.ts`), so an answer that changes later changes nothing. An IP literal, which no
 * resolver is ever asked about, is judged itself. What a denied name resolves to is not said.
 */

import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { evaluateNet, type NetRule } from "@flowcell/manifest";
import { HostError } from "@flowcell/protocol";
import { isOpenableAddress, isPublicAddress } from "./address.js";
import { FetchFailure } from "./failure.js";
import { Lookups } from "./lookups.js";
import type { PrivateHosts } from "./private-hosts.js";

/** All addresses of a name. Rejects when it has none. The signal aborts when nobody waits for them any more. */
export type Resolve = (host: string, signal: AbortSignal) => Promise<readonly string[]>;

export interface Reach {
  readonly rules: readonly NetRule[];
  readonly privateHosts: PrivateHosts;
  readonly resolve: Resolve;
  readonly connectMs: number;
}

export interface Target {
  readonly url: URL;
  /** Without the brackets of IPv6. */
  readonly host: string;
  readonly port: number;
  /** At least one; all allowed. */
  readonly addresses: readonly string[];
}

/** More are checked but not tried. */
const triedAddresses = 8;

/** Half of the threads that the operating system's resolver and files share, unless somebody set another number. */
const lookupsAtOnce = 2;

const lookups = new Lookups(async (host) => {
  const found = await lookup(host, { all: true, verbatim: true });
  return found.map(({ address }) => address);
}, lookupsAtOnce);

/**
 * By the operating system, so that the hosts file and the operator's resolver hold for flows as for other programs. One for
 * each flow: they take turns.
 */
export function systemResolver(): Resolve {
  const owner = {};
  return (host, signal) => lookups.ask(owner, host, signal);
}

/** "GET api.example.com:443". */
export function describeRequest(method: string, url: URL): string {
  return `${method} ${url.hostname}:${portOf(url)}`;
}

function portOf({ port, protocol }: URL): number {
  if (port !== "") return Number(port);
  return protocol === "https:" ? 443 : 80;
}

/** Throws HostError `denied`, or FetchFailure. */
export async function findTarget(
  url: URL,
  method: string,
  reach: Reach,
  signal: AbortSignal,
): Promise<Target> {
  const port = portOf(url);
  const decision = evaluateNet(reach.rules, { host: url.hostname, port, method });
  if (!decision.allowed) throw denied(url, method, decision.reason);
  const host = url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
  const literal = isIP(host) !== 0;
  const opened = reach.privateHosts.has(host, port);
  if (literal) {
    if (!opened && !isPublicAddress(host)) throw denied(url, method, notPublic(url, "is no public address"));
    return { url, host, port, addresses: [host] };
  }
  const addresses = await inTime(reach.resolve, host, reach.connectMs, signal);
  if (addresses.length === 0)
    throw new FetchFailure("unavailable", "the name does not resolve to an address");
  const allowed = opened ? isOpenableAddress : isPublicAddress;
  if (!addresses.every(allowed)) {
    throw denied(url, method, notPublic(url, "has an address that is not public"));
  }
  return { url, host, port, addresses: [...new Set(addresses)].slice(0, triedAddresses) };
}

function notPublic(url: URL, what: string): string {
  const entry = `${url.hostname}:${portOf(url)}`;
  return `${url.hostname} ${what}; only the operator can open it, as the private host "${entry}"`;
}

function denied(url: URL, method: string, reason: string): HostError {
  const detail = { host: url.hostname, port: portOf(url), method };
  return new HostError("denied", `fetch: ${reason}`, { detail });
}

/** A resolver that is at it cannot be stopped; its answer is left behind when the time or the call is over. */
async function inTime(
  resolve: Resolve,
  host: string,
  ms: number,
  signal: AbortSignal,
): Promise<readonly string[]> {
  let timer: NodeJS.Timeout | undefined;
  let stop: (() => void) | undefined;
  const given = new AbortController();
  const end = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new FetchFailure("timeout", `the name ${host} was not resolved within ${ms} ms`));
    }, ms);
    stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
  });
  try {
    return await Promise.race([resolve(host, given.signal).catch(unresolved), end]);
  } finally {
    given.abort();
    clearTimeout(timer);
    if (stop !== undefined) signal.removeEventListener("abort", stop);
  }
}

function unresolved(error: unknown): never {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const known = typeof code === "string" && /^[A-Z_]{1,32}$/.test(code) ? ` (${code})` : "";
  throw new FetchFailure("unavailable", `the name cannot be resolved${known}`);
}
