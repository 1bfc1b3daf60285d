/**
 * The bounds of one fetch, redirects included. An embedder may ask for others; `createFetchFunction` checks them once.
 *
 * Where the defaults come from: a body is what a frame can carry (16 MiB); a head is four times what servers commonly send;
 * an API that thinks for a minute is served, one that thinks for longer belongs behind a signal.
 */

import { didYouMean } from "@flowcell/protocol";
import { HostFunctionError } from "../registry.js";

export interface FetchLimits {
  /** Of the request, and of the response before and after decoding. */
  readonly bodyBytes: number;
  /** Names and values of the request's headers together, and of the response's. */
  readonly headBytes: number;
  /** To resolve the name; and again to connect, TLS included. */
  readonly connectMs: number;
  /** From the open connection to the end of the response's head; sending the request is within it. */
  readonly headersMs: number;
  /** Everything, redirects included. */
  readonly totalMs: number;
  /** Followed before the call fails; 0 to 5. */
  readonly redirects: number;
}

const MiB = 1024 * 1024;

export const fetchLimits: FetchLimits = Object.freeze({
  bodyBytes: 16 * MiB,
  headBytes: 64 * 1024,
  connectMs: 10_000,
  headersMs: 60_000,
  totalMs: 120_000,
  redirects: 5,
});

/** Node's timers hold 2^31 - 1 ms; a longer time would pass at once. */
const mostMs = 86_400_000;
const most: FetchLimits = {
  bodyBytes: 64 * MiB,
  headBytes: MiB,
  connectMs: mostMs,
  headersMs: mostMs,
  totalMs: mostMs,
  redirects: 5,
};

/** The defaults with what was asked for in their place. Throws HostFunctionError. */
export function checkedFetchLimits(asked: Partial<FetchLimits>): FetchLimits {
  const names = Object.keys(fetchLimits);
  for (const [name, value] of Object.entries(asked)) {
    if (!isLimit(name)) {
      const near = didYouMean(name, names);
      const hint = near === undefined ? `the limits are ${names.join(", ")}` : `did you mean "${near}"?`;
      throw new HostFunctionError(`fetch has no limit "${name}"; ${hint}`);
    }
    const least = name === "redirects" ? 0 : 1;
    if (!Number.isSafeInteger(value) || value < least || value > most[name]) {
      throw new HostFunctionError(
        `fetch: the limit ${name} must be a whole number from ${least} to ${most[name]}`,
      );
    }
  }
  return Object.freeze({ ...fetchLimits, ...asked });
}

function isLimit(name: string): name is keyof FetchLimits {
  return Object.hasOwn(fetchLimits, name);
}
