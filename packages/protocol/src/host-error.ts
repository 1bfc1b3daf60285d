/**
 * The errors that a host call can end with and a script can catch. A handler throws `HostError`; the wire carries
 * `HostErrorData` in the header of Deliver; the guest sees an Error of the same name with these fields.
 *
 * A message goes to a script: it holds no path, address or name of the host. What `hostErrorData` is given that is not a
 * HostError becomes `internal` with a fixed text, unless the caller vouches for its message.
 */

export interface HostErrorRow {
  readonly retryable: boolean;
  readonly meaning: string;
}

/** Append-only. */
export const hostErrorTable = {
  denied: { retryable: false, meaning: "a grant is missing; the message names it" },
  invalid_arguments: { retryable: false, meaning: "the arguments are not what the function takes" },
  not_found: { retryable: false, meaning: "what the arguments name does not exist" },
  conflict: { retryable: false, meaning: "what is there is not what the call expected" },
  too_large: { retryable: false, meaning: "the arguments exceed a limit" },
  result_too_large: { retryable: false, meaning: "the result exceeds a limit" },
  timeout: { retryable: true, meaning: "the call took longer than it may" },
  unavailable: { retryable: true, meaning: "what the call needs cannot be reached now" },
  limit: { retryable: false, meaning: "a limit on calls of this kind is reached" },
  cancelled: { retryable: false, meaning: "the call was cancelled" },
  outcome_unknown: { retryable: false, meaning: "whether the call took effect is unknown" },
  io_error: { retryable: false, meaning: "the operating system reported an error" },
  upstream: { retryable: false, meaning: "the function itself failed; the message is its own" },
  internal: { retryable: false, meaning: "a bug in the host function or in flowcell" },
} as const satisfies Record<string, HostErrorRow>;

export type HostErrorCode = keyof typeof hostErrorTable;

export interface HostErrorData {
  readonly code: HostErrorCode;
  readonly message: string;
  /** A JSON value that explains the code: which argument, which limit. */
  readonly detail?: unknown;
  readonly retryable: boolean;
  /** The class name that the guest's error shows, HostError if absent. */
  readonly name?: string;
}

export function isHostErrorCode(code: string): code is HostErrorCode {
  return Object.hasOwn(hostErrorTable, code);
}

export interface HostErrorOptions {
  readonly detail?: unknown;
  readonly retryable?: boolean;
  readonly cause?: unknown;
}

/** Thrown by host functions. `cause` stays on the host. */
export class HostError extends Error {
  override readonly name = "HostError";
  readonly code: HostErrorCode;
  readonly detail: unknown;
  readonly retryable: boolean;

  constructor(code: HostErrorCode, message: string, options: HostErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.detail = options.detail;
    this.retryable = options.retryable ?? hostErrorTable[code].retryable;
  }
}

const nameCharsMax = 256;
// With the longest message, every character of it escaped, the header stays within Deliver's 64 KiB.
const detailCharsMax = 8192;
export const hostErrorMessageChars = 8192;

/**
 * What a thrown value looks like on the wire. `exposeMessage`: the thrower is a tool whose own message and class name are
 * meant for the script (code `upstream`); otherwise an unknown error says nothing about the host.
 */
export function hostErrorData(thrown: unknown, exposeMessage = false): HostErrorData {
  if (thrown instanceof HostError) {
    const { code, message, retryable } = thrown;
    const data = { code, message: cut(message, hostErrorMessageChars), retryable };
    const detail = jsonDetail(thrown.detail);
    return detail === undefined ? data : { ...data, detail };
  }
  if (!exposeMessage) return { code: "internal", message: "the host function failed", retryable: false };
  const { name, message, code } = describeThrown(thrown);
  const data = { code: "upstream", message, retryable: false, name } as const;
  return code === undefined ? data : { ...data, detail: { code } };
}

/** A detail as JSON would carry it; one that JSON cannot carry, or only at length, is left out: the code says enough. */
function jsonDetail(detail: unknown): unknown {
  if (detail === undefined) return undefined;
  try {
    const text: string | undefined = JSON.stringify(detail); // undefined for a function or a symbol
    return text === undefined || text.length > detailCharsMax ? undefined : (JSON.parse(text) as unknown); // any by the library
  } catch {
    return undefined;
  }
}

/** Reads a thrown value without trusting its getters. */
function describeThrown(thrown: unknown): { name: string; message: string; code: string | undefined } {
  try {
    if (thrown instanceof Error) {
      const code: unknown = "code" in thrown ? thrown.code : undefined;
      return {
        name: cut(String(thrown.name), nameCharsMax),
        message: cut(String(thrown.message), hostErrorMessageChars),
        code: typeof code === "string" ? cut(code, nameCharsMax) : undefined,
      };
    }
    return { name: "Error", message: cut(String(thrown), hostErrorMessageChars), code: undefined };
  } catch {
    return {
      name: "Error",
      message: "the function failed with an error that cannot be read",
      code: undefined,
    };
  }
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
