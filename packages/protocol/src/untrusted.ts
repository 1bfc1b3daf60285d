/**
 * The brand for what came out of a worker and that no verifier has looked at. It costs nothing at run time: the brand is
 * in the types alone, so that text or bytes from a worker cannot be passed where verified ones are wanted.
 * `verify` is the only way out; a call to it carries a `TRUST:` comment that says what the verifier established.
 */

declare const unverified: unique symbol;

/** A `T` by shape only: a subverted worker chose every byte of it. */
export interface Untrusted<T> {
  readonly [unverified]: T;
}

/** Marks a value as chosen by a worker. */
export function untrusted<T>(raw: T): Untrusted<T> {
  return raw as Untrusted<T> & T; // the brand has no run-time counterpart
}

/** Hands the raw value to a verifier, which returns what it established or throws. */
export function verify<T, R>(value: Untrusted<T>, verifier: (raw: T) => R): R {
  return verifier(value as Untrusted<T> & T); // undoes `untrusted`, for the verifier alone
}
