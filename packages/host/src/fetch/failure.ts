/**
 * What can go wrong on the way to a server and back, and what a script is told about it. The steps of a fetch throw
 * `FetchFailure`; `fetch-function.ts` makes the HostError of it, since only the whole call knows whether a request that
 * changes something may have been sent.
 *
 * Kept true: texts name the method, host and port that the script asked for, and the name of a system error; never an
 * address that a name resolved to (it would tell a script about the operator's network), never a header. No error has a
 * cause: those of the HTTP library hold bytes of the response, which may repeat a secret.
 */

import { HostError } from "@flowcell/protocol";

export type FailureCode =
  | "timeout"
  | "unavailable"
  | "upstream"
  | "result_too_large"
  | "cancelled"
  | "internal";

export interface FailureFacts {
  readonly retryable?: boolean;
  /** Whether a byte of the request may have left; only then can the server have acted on it. */
  readonly sent?: boolean;
  /** When the head of the response has come. */
  readonly status?: number;
}

export class FetchFailure extends Error {
  override readonly name = "FetchFailure";
  readonly code: FailureCode;
  readonly retryable: boolean | undefined;
  readonly sent: boolean;
  readonly status: number | undefined;

  constructor(code: FailureCode, message: string, facts: FailureFacts = {}) {
    super(message);
    this.code = code;
    this.retryable = facts.retryable;
    this.sent = facts.sent ?? false;
    this.status = facts.status;
  }

  /** The same with what the step that failed knows. */
  at(sent: boolean, status: number | undefined): FetchFailure {
    return new FetchFailure(this.code, this.message, {
      sent,
      ...(this.retryable === undefined ? {} : { retryable: this.retryable }),
      ...(status === undefined ? {} : { status }),
    });
  }
}

export interface CallFacts {
  /** "POST api.example.com:443", of the request that failed. */
  readonly what: string;
  /** Whether a request that changes something may have been sent in this call, this one or one before a redirect. */
  readonly mayHaveActed: boolean;
  /** Whether such a request may be sent again because it carries a key. */
  readonly keyed: boolean;
}

/**
 * The error for the script. When a request that changes something may have been sent, only a response that is too large
 * is a plain failure (its status is known); after every other the outcome is unknown, to be repeated only with a key.
 */
export function hostErrorOfFailure(
  failure: FetchFailure,
  { what, mayHaveActed, keyed }: CallFacts,
): HostError {
  const { code, status, retryable, message } = failure;
  const text = `fetch ${what}: ${message}`;
  const known = status === undefined ? {} : { status };
  const answered = code === "result_too_large" && status !== undefined;
  if (mayHaveActed && !answered) return outcomeUnknown(text, code, known, keyed);
  return new HostError(code, text, {
    ...(retryable === undefined ? {} : { retryable }),
    ...(status === undefined ? {} : { detail: known }),
  });
}

/** Of a request that may have been carried out; `cause` is the code that the failure would have without that. */
export function outcomeUnknown(text: string, cause: string, facts: unknown, keyed: boolean): HostError {
  return new HostError("outcome_unknown", `${text}; the request may have been carried out`, {
    retryable: keyed,
    detail: { ...Object(facts), cause },
  });
}

interface Words {
  readonly code: FailureCode;
  readonly text: string;
  readonly retryable?: boolean;
}

const closedEarly: Words = {
  code: "unavailable",
  text: "the connection was closed before the response was complete",
};

/** Names of system and library errors; what is not here is put by its prefix below. */
const words: ReadonlyMap<string, Words> = new Map<string, Words>([
  ["ECONNREFUSED", { code: "unavailable", text: "the connection was refused" }],
  ["ECONNRESET", closedEarly],
  ["EPIPE", closedEarly],
  ["UND_ERR_SOCKET", closedEarly],
  ["UND_ERR_RES_CONTENT_LENGTH_MISMATCH", closedEarly],
  ["UND_ERR_HEADERS_OVERFLOW", { code: "result_too_large", text: "the head of the response is too large" }],
]);

const connectionErrors = /^E(?:TIMEDOUT|HOSTUNREACH|NETUNREACH|HOSTDOWN|NETDOWN|ADDRNOTAVAIL|AFNOSUPPORT)$/;
const certificateErrors =
  /^(?:ERR_TLS_CERT|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|ERROR_IN_CERT|INVALID_(?:CA|PURPOSE))/;
const systemErrors = /^E[A-Z0-9]+$/;

/**
 * What an error of the network, of TLS or of the HTTP library means. `headCame` tells a body that was cut from a head that
 * contradicts itself, for which the library has one error.
 */
export function failureOf(error: unknown, headCame: boolean): FetchFailure {
  if (error instanceof FetchFailure) return error;
  const { code, text, retryable } = wordsOfError(error, headCame);
  return new FetchFailure(code, text, retryable === undefined ? {} : { retryable });
}

function wordsOfError(error: unknown, headCame: boolean): Words {
  if (!(error instanceof Error)) return wordsOf("");
  const { name, message } = error;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (name === "HTTPParserError") {
    // The parser's own words, in brackets at the end; they hold nothing of the response.
    const [reason = ""] = / \([^()]*\)$/.exec(message) ?? [];
    return reason.includes("EOF") ? closedEarly : against(reason);
  }
  if (code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH" && !headCame) return against("");
  // The library has one code for a connection that closed and for answers such as an upgrade that nobody asked for.
  if (code === "UND_ERR_SOCKET" && message.startsWith("bad ")) return against("");
  return wordsOf(code === "" ? name : code);
}

function wordsOf(code: string): Words {
  const known = words.get(code);
  if (known !== undefined) return known;
  if (connectionErrors.test(code))
    return { code: "unavailable", text: `the host cannot be reached (${code})` };
  if (certificateErrors.test(code)) {
    return { code: "unavailable", text: `the host's certificate is refused (${code})`, retryable: false };
  }
  if (/^(?:ERR_SSL_|ERR_TLS_|EPROTO)/.test(code)) {
    return { code: "unavailable", text: `there is no TLS connection (${code})`, retryable: false };
  }
  if (systemErrors.test(code)) return { code: "unavailable", text: `the connection failed (${code})` };
  return { code: "internal", text: `the request failed for a reason that is not known here (${code})` };
}

function against(reason: string): Words {
  return { code: "upstream", text: `the response breaks the rules of HTTP/1.1${reason}` };
}
