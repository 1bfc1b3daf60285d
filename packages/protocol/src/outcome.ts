/**
 * How an activation or a run can end: one closed table of statuses, each with its reasons. Exit codes of the command line,
 * HTTP statuses, log levels, retry advice and the outcome tables of the documentation are derived from it.
 *
 * `reason` is what callers see as `error.code`. A script_error may also carry the code of an uncaught HostError
 * (`host-error.ts`) as its reason. Rows are append-only.
 */

export type Fault = "nobody" | "script" | "caller" | "operator" | "host" | "flowcell";
export type LogLevel = "debug" | "info" | "warn" | "error";

export interface StatusRow {
  readonly fault: Fault;
  /** Whether the same request may succeed later without anybody changing anything. */
  readonly retryable: boolean;
  readonly exitCode: number;
  readonly httpStatus: number;
  readonly logLevel: LogLevel;
  readonly meaning: string;
  readonly reasons: { readonly [reason: string]: string };
}

export const outcomeTable = {
  completed: {
    fault: "nobody",
    retryable: false,
    exitCode: 0,
    httpStatus: 200,
    logLevel: "info",
    meaning: "the script returned a value",
    reasons: {},
  },
  suspended: {
    fault: "nobody",
    retryable: false,
    exitCode: 8,
    httpStatus: 202,
    logLevel: "info",
    meaning: "the run waits for something outside and holds no worker",
    reasons: {
      waiting: "every open call waits for something outside",
      calls: "its calls go on without a worker",
    },
  },
  script_error: {
    fault: "script",
    retryable: false,
    exitCode: 1,
    httpStatus: 422,
    logLevel: "info",
    meaning: "the script cannot be loaded, threw, or returned what cannot be sent",
    reasons: {
      uncaught: "the script threw",
      syntax: "the script cannot be loaded; nothing of it ran",
      no_entry: "the script has no default export that is a function",
      unsendable: "the result holds a value that cannot be sent",
      deadlock: "the script waits for something that can never happen",
      output: "the result is not what the manifest declares",
    },
  },
  budget_exceeded: {
    fault: "script",
    retryable: false,
    exitCode: 4,
    httpStatus: 422,
    logLevel: "info",
    meaning: "a limit of the activation was reached",
    reasons: {
      cpu: "JavaScript CPU time (cpuMs)",
      wall: "time on the parent's clock (wallMs)",
      memory: "engine memory (heapBytes)",
      stack: "JavaScript stack (stackBytes)",
      host_calls: "host calls (hostCalls)",
      result_size: "size of the result (resultBytes, bodyBytes)",
      record_size: "what one run may have on record: 256 MiB of arguments and outcomes, 100,000 timers",
    },
  },
  denied: {
    fault: "script",
    retryable: false,
    exitCode: 3,
    httpStatus: 403,
    logLevel: "warn",
    meaning: "the script asked for what it was not granted, or may not run at all",
    reasons: {
      denied: "a host call needed a grant that the script does not have",
      not_approved: "the flow's version is not approved, or unknown",
    },
  },
  violation: {
    fault: "script",
    retryable: false,
    exitCode: 5,
    httpStatus: 500,
    logLevel: "error",
    meaning: "the worker did what no correct worker does; it was killed",
    reasons: {
      syscall: "a system call outside the filter (SIGSYS)",
      protocol: "bytes on the pipe that are no valid message",
      unexpected_message: "a message that may not be sent in this phase",
      too_many_calls: "more unanswered calls than inFlight, or more calls than hostCalls",
      bad_position: "a call position out of order or not open",
      not_granted: "a host call by a name that the activation was not given",
      not_reading: "the worker stopped reading its pipe",
      idle_cpu: "an idle worker used CPU time",
      memory: "the process grew beyond what its engine may use",
    },
  },
  worker_lost: {
    fault: "flowcell",
    retryable: true,
    exitCode: 5,
    httpStatus: 500,
    logLevel: "error",
    meaning: "the worker died without an answer",
    reasons: {
      engine_trap: "the engine hit a trap",
      signal: "a signal that the parent did not send",
      exit: "an exit code that no table has, or one that is not expected here",
      closed: "the worker closed its pipe",
    },
  },
  sandbox_unavailable: {
    fault: "operator",
    retryable: true,
    exitCode: 6,
    httpStatus: 503,
    logLevel: "error",
    meaning: "no confined worker could be had; nothing of the script ran",
    reasons: {
      blocked: "this host cannot enforce what the policy requires",
      spawn_failed: "the worker process could not be started",
      start_failed: "the worker refused to start: one of its startup checks failed",
      welcome_late: "the worker did not attest itself in time",
      welcome_refused: "a fact that the worker attested does not satisfy the plan",
      observation_failed: "what the parent sees of the worker contradicts what it attested",
      backing_off: "workers failed to start repeatedly; the next try is due later",
    },
  },
  cancelled: {
    fault: "caller",
    retryable: false,
    exitCode: 7,
    httpStatus: 409,
    logLevel: "info",
    meaning: "somebody asked for it to stop",
    reasons: {
      caller: "the caller cancelled",
      closing: "the pool was closed",
      revoked: "the approval of the flow's version was revoked",
      superseded: "a newer run with the same concurrency key took its place",
    },
  },
  timed_out: {
    fault: "script",
    retryable: false,
    exitCode: 4,
    httpStatus: 504,
    logLevel: "info",
    meaning: "the run's deadline passed",
    reasons: { deadline: "the run's deadline passed" },
  },
  replay_diverged: {
    fault: "script",
    retryable: false,
    exitCode: 10,
    httpStatus: 409,
    logLevel: "error",
    meaning: "a replayed run did something else than its journal says",
    reasons: {
      call: "a call with another name or other arguments than the recorded one",
      end: "the script ended or waits where its journal goes on",
    },
  },
  needs_reconcile: {
    fault: "host",
    retryable: false,
    exitCode: 8,
    httpStatus: 409,
    logLevel: "error",
    meaning: "whether an effect happened is unknown; an operator must say",
    reasons: { outcome_unknown: "a call was sent and its outcome is unknown" },
  },
  engine_mismatch: {
    fault: "operator",
    retryable: false,
    exitCode: 10,
    httpStatus: 409,
    logLevel: "error",
    meaning: "the run was recorded by an engine that behaves differently",
    reasons: { fingerprint: "the replay fingerprint differs and the recorded prefix does not match" },
  },
  invalid_input: {
    fault: "caller",
    retryable: false,
    exitCode: 2,
    httpStatus: 400,
    logLevel: "info",
    meaning: "the request itself is wrong; nothing of the script ran",
    reasons: {
      limits: "an unknown limit, or one outside its range",
      input_too_large: "the input exceeds inputBytes or bodyBytes",
      source_too_large: "the script exceeds sourceBytes",
      input: "the input holds a value that cannot be sent, or is not what the script declares",
      request: "another field of the request is wrong",
    },
  },
  overloaded: {
    fault: "operator",
    retryable: true,
    exitCode: 9,
    httpStatus: 503,
    logLevel: "warn",
    meaning: "no worker became free in time; nothing of the script ran",
    reasons: {
      queue_full: "the queue is full",
      queue_timeout: "the wait in the queue reached its deadline",
      draining: "no new work is taken",
      skipped: "a run with the same concurrency key is going on and the manifest says skip",
    },
  },
  internal: {
    fault: "flowcell",
    retryable: true,
    exitCode: 70,
    httpStatus: 500,
    logLevel: "error",
    meaning: "a bug in flowcell",
    reasons: { bug: "an exception that nobody expects; the log has it" },
  },
} as const satisfies Record<string, StatusRow>;

export type Status = keyof typeof outcomeTable;
export type ReasonOf<S extends Status> = keyof (typeof outcomeTable)[S]["reasons"] & string;
/** Every reason of the table. */
export type Reason = { [S in Status]: ReasonOf<S> }[Status];
/** The limits that an activation can exhaust, as `error.code`. */
export type BudgetReason = ReasonOf<"budget_exceeded">;

export const statuses: readonly Status[] = Object.freeze(
  Object.keys(outcomeTable) as Status[], // Object.keys of a literal table gives exactly its names
);

export function statusRow(status: Status): StatusRow {
  return outcomeTable[status];
}

export function isStatus(name: string): name is Status {
  return Object.hasOwn(outcomeTable, name);
}

export function isReasonOf<S extends Status>(status: S, reason: string): reason is ReasonOf<S> {
  return Object.hasOwn(outcomeTable[status].reasons, reason);
}

/** Where the documentation explains a status: a fragment of docs/PROTOCOL.md. */
export function outcomeAnchor(status: Status): string {
  return `outcome-${status.replaceAll("_", "-")}`;
}

/** Exit codes of the command line that no outcome has. */
export const exitCodes = {
  usage: 2,
  unsupportedSystem: 69,
  internal: 70,
  store: 75,
  configuration: 78,
} as const;
