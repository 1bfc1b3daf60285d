// The group `t` of host functions that the guest cases call: well-behaved, slow, silent, failing and ill-mannered ones.
//
// Used by every test that runs guest cases. The handlers are the host's own code and are trusted; their results are not
// meant to be sendable in every case, which is what some of them are for.
import { defineHostFunction, type HostFunction, type Schema } from "@flowcell/host";

/** What the tests look at afterwards. */
export interface HostWitness {
  /** Calls that a handler was given, by name, and calls whose signal fired while the handler waited. */
  readonly started: Map<string, number>;
  readonly aborted: Map<string, number>;
}

export interface TestHost {
  readonly functions: readonly HostFunction[];
  readonly witness: HostWitness;
}

/** Lets every list of arguments through as it was decoded. */
const anyArguments: Schema<readonly unknown[]> = {
  "~standard": {
    version: 1,
    vendor: "flowcell-tests",
    validate: (value) => (Array.isArray(value) ? { value } : { issues: [{ message: "no list" }] }),
  },
};

const slowMs = 200;
/** Beyond every limit on a value; and within the largest limit, but more than a small heap holds. */
const bigChars = 20_000_000;
const largeChars = 12_000_000;

class Thing {
  readonly x = 1;
}

/** An error as other code throws it: a class and a code of its own, a message, a stack with the host's paths. */
function boomError(): Error {
  return Object.assign(new TypeError("boom"), { code: "E_BOOM" });
}

export function testHost(): TestHost {
  const witness: HostWitness = { started: new Map(), aborted: new Map() };
  const count = (counts: Map<string, number>, name: string): void => {
    counts.set(name, (counts.get(name) ?? 0) + 1);
  };

  const row = (
    name: string,
    handler: (args: readonly unknown[], signal: AbortSignal) => unknown,
  ): HostFunction =>
    defineHostFunction({
      name: `t.${name}`,
      doc: "A host function of the guest tests.",
      // The strictest kind: what became of a call that was cut off is unknown.
      effect: "once",
      grant: null,
      input: anyArguments,
      acceptsRegExps: true,
      handler: (args, { signal }) => {
        count(witness.started, name);
        return handler(args, signal);
      },
    });

  /** Settles after `ms` (never, if infinite), or rejects as soon as the call is over. */
  const wait = (name: string, ms: number, value: unknown, signal: AbortSignal): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const timer = Number.isFinite(ms) ? setTimeout(() => resolve(value), ms) : undefined;
      signal.addEventListener(
        "abort",
        () => {
          clearTimeout(timer);
          count(witness.aborted, name);
          reject(new Error("aborted"));
        },
        { once: true },
      );
    });

  return {
    witness,
    functions: [
      row("echo", ([value]) => value),
      row("two", (args) => args.length),
      row("slow", (_, signal) => wait("slow", slowMs, "slow", signal)),
      row("never", (_, signal) => wait("never", Number.POSITIVE_INFINITY, undefined, signal)),
      // Settles long after the run has ended and heeds no signal: what comes then must be dropped.
      row("late", () => new Promise((_, reject) => setTimeout(() => reject(boomError()), slowMs))),
      row("boom", () => Promise.reject(boomError())),
      row("badGetter", () => ({
        get x(): never {
          throw new Error("getter");
        },
      })),
      row("big", () => "x".repeat(bigChars)),
      row("large", () => "x".repeat(largeChars)),
      row("fn", () => ({ f(): void {} })),
      row("cls", () => new Thing()),
    ],
  };
}
