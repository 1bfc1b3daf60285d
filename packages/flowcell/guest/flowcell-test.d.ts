/**
 * Types of `flowcell:test` for a flow's own tests; `flowcell types` writes this file beside the flow. `Host` is that of
 * host.d.ts.
 */
declare module "flowcell:test" {
  export const test: {
    /** Fails when the function throws or rejects, or waits for what never happens. */
    (name: string, run: () => unknown): void;
    skip(name: string, run?: () => unknown): void;
    only(name: string, run: () => unknown): void;
  };

  interface Matchers<Result> {
    toBe(expected: unknown): Result;
    toEqual(expected: unknown): Result;
    toMatchObject(expected: object): Result;
    toBeUndefined(): Result;
    toBeDefined(): Result;
    toBeNull(): Result;
    toBeTruthy(): Result;
    toBeFalsy(): Result;
    toBeGreaterThan(expected: number | bigint): Result;
    toBeGreaterThanOrEqual(expected: number | bigint): Result;
    toBeLessThan(expected: number | bigint): Result;
    toBeLessThanOrEqual(expected: number | bigint): Result;
    toBeCloseTo(expected: number, digits?: number): Result;
    toBeInstanceOf(expected: abstract new (...args: never) => unknown): Result;
    toContain(expected: unknown): Result;
    toHaveLength(expected: number): Result;
    toHaveProperty(key: string, expected?: unknown): Result;
    toMatch(expected: string | RegExp): Result;
    toHaveBeenCalled(): Result;
    toHaveBeenCalledTimes(expected: number): Result;
    toHaveBeenCalledWith(...expected: unknown[]): Result;
  }
  interface Throws<Result> {
    /** A text that the message holds, a pattern, a class, or an object with some of the error's properties. */
    toThrow(expected?: string | RegExp | object): Result;
  }

  export const expect: {
    (
      actual: unknown,
    ): Matchers<void> &
      Throws<void> & {
        readonly not: Matchers<void> & Throws<void>;
        readonly resolves: Matchers<Promise<void>>;
        readonly rejects: Matchers<Promise<void>> & Throws<Promise<void>>;
      };
    any(type: unknown): unknown;
    anything(): unknown;
    stringContaining(part: string): unknown;
    objectContaining(part: object): unknown;
  };

  /**
   * A host of these functions: `{ fetch: … }`, `{ "fs.read": … }` or `{ fs: { read: … } }`. It has a kv of its own and a
   * sleep that does not wait; what it was not given is denied.
   */
  export function fakeHost(functions?: object): Host;

  /** What a replay that matched found. */
  export interface Replayed {
    readonly calls: number;
    readonly deliveries: number;
    readonly status: string | null;
    readonly value: unknown;
  }
  /** Runs this folder's flow over what `flowcell journal RUN --export FILE` wrote; fails at the first difference. */
  export function replay(recording: unknown): Promise<Replayed>;
}
