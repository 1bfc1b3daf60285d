/**
 * The seams inside this package and towards its users. Types only.
 *
 *   FlowService (service.ts)  what the command line and, later, the HTTP service call: one method for each operation
 *     ├─ catalog/             versions of flows: install, dry run, approve, what a version may do (Runnable)
 *     ├─ schedule/            when runs begin: cron, events, concurrency, retention, automatic disabling
 *     └─ engine/  Runner      runs: one state machine each, its worker, its host calls, its commits
 *          └─ CellPool        workers; packages/pool has it, tests have their own
 */

import type { HostFunction } from "@flowcell/host";
import type { QuarantineRow, RunHistory, RunRow, Store, VersionRow } from "@flowcell/journal";
import type { Manifest } from "@flowcell/manifest";
import type {
  CallOutcome,
  ConsoleLevel,
  EncodedValue,
  Limits,
  ScriptErrorData,
  Status,
  WarningData,
} from "@flowcell/protocol";

// ----------------------------------------------------------------------------------------------------------------- workers

/** A running activation, as `DrivenActivation` of packages/pool. */
export interface CellActivation {
  deliver(position: number, outcome: CallOutcome, guestClockMs: number): void;
  fireTimer(guestClockMs: number): void;
  frontier(): void;
  end(verdict: { readonly status: Status; readonly reason: string; readonly message: string }): void;
}

export interface CellDriver {
  begun(activation: CellActivation): void;
  called(call: { readonly position: number; readonly name: string; readonly args: EncodedValue }): void;
  callCancelled(position: number): void;
  blocked(state: { readonly nextTimerAt: number | null; readonly openCalls: number }): void;
}

export interface CellRequest {
  readonly flow: string;
  readonly script: string;
  readonly input: EncodedValue;
  readonly names: readonly string[];
  readonly limits: Limits;
  readonly clock: { readonly epochMs: number; readonly mode: "driven" };
  readonly seed: Uint8Array;
  readonly driver: CellDriver;
  readonly replayCpuMs: number;
  readonly signal?: AbortSignal;
  readonly queueDeadlineMs?: number;
  onConsole(line: {
    readonly seq: number;
    readonly level: ConsoleLevel;
    readonly timeMs: number;
    readonly text: string;
  }): void;
}

/** What the engine reads of a pool's result. */
export interface CellResult {
  readonly status: Status;
  readonly reason?: string;
  readonly value?: EncodedValue;
  readonly error?: {
    readonly code: string;
    readonly message: string;
    readonly name?: string;
    readonly ownCode?: string;
    readonly stack?: string;
    readonly cause?: ScriptErrorData;
    readonly errors?: readonly ScriptErrorData[];
    readonly limit?: number;
    readonly used?: number;
    readonly fact?: string;
  };
  readonly logsTruncated: boolean;
  readonly warnings: readonly WarningData[];
  readonly usage: {
    readonly cpuMs: number;
    readonly wallMs: number;
    readonly heapPeakBytes: number;
  };
  /** How much of the CPU time came before the frontier. */
  readonly replayCpuMs: number;
  readonly started: boolean;
  /** What was live for the worker; kept as JSON, never interpreted here. */
  readonly confinement: unknown;
}

export interface CellPool {
  activate(request: CellRequest): Promise<CellResult>;
  /** Activations that wait for a worker now. */
  health(): { readonly waiting: number };
}

// ------------------------------------------------------------------------------------------------------------------- runner

/** A version of a flow as the engine runs it. The same object for every run of the version: the pool keeps what it encodes. */
export interface Runnable {
  readonly flow: string;
  readonly hash: string;
  readonly manifest: Manifest;
  /** The stored bundle: never built anew. */
  readonly script: string;
  readonly limits: Limits;
  /** Granted functions; `names` is their names, sorted, frozen. */
  readonly functions: readonly HostFunction[];
  readonly names: readonly string[];
  /** Bytes that the flow's keys and values may have; 0 without the grant. */
  readonly kvMaxBytes: number;
  /** Puts the author's files and lines into an error's stack. */
  mapError(error: NonNullable<CellResult["error"]>): RunErrorData;
}

/** An error as callers get it. */
export interface RunErrorData {
  readonly code: string;
  readonly name: string;
  readonly message: string;
  /** The script's error's own `code`, where it is another one; journals before it was kept have none. */
  readonly ownCode?: string;
  readonly stack?: string;
  readonly place?: { readonly file: string; readonly line: number; readonly column: number };
  readonly cause?: RunErrorData;
  readonly errors?: readonly RunErrorData[];
  readonly limit?: number;
  readonly used?: number;
  readonly fact?: string;
  /** For divergences: what was recorded and what came. */
  readonly expected?: unknown;
  readonly actual?: unknown;
}

/** Whether a run may have an activation now; asked before every one. */
export type Gate =
  | { readonly ok: true; readonly runnable: Runnable }
  /** The run ends: the version was revoked, or is not there. */
  | {
      readonly ok: false;
      readonly end: { readonly status: Status; readonly reason: string; readonly message: string };
    }
  /** Not now: the store or a secret cannot be read. Asked again later. */
  | { readonly ok: false; readonly retryAt: number };

export interface RunnerHooks {
  gate(run: RunRow): Promise<Gate>;
  /** After the commit that finished the run. */
  finished(run: RunRow): void;
  /** After the commit that suspended it (status `suspended` or `needs_reconcile`). */
  suspended(run: RunRow): void;
  /** The store failed: nothing more will be done by this runner. Called once. */
  storeFailed(error: unknown): void;
  /** A bug; the run of it was ended as internal. */
  failed(runId: string, error: unknown): void;
  /** The runner lets go of a run that it has not finished: it was finished before, is not there, or is somebody else's. */
  gone?(runId: string): void;
}

export interface Runner {
  /** Claims the run and drives it from wherever it stands to its end. Twice is a mistake of the caller. */
  adopt(runId: string): void;
  /** False when it is not driven here. */
  cancel(runId: string, by: string, reason: "caller" | "revoked" | "superseded"): boolean;
  /** A signal was stored for the run. */
  signalled(runId: string, name: string): void;
  /** Ends a wait: an approval, or a run that finished. False when it is not driven here. */
  waitDone(runId: string, position: number, outcome: CallOutcome): boolean;
  reconcile(
    runId: string,
    position: number,
    decision: { readonly kind: "observed"; readonly outcome: CallOutcome } | { readonly kind: "not_applied" },
  ): boolean;
  /** Suspends what waits, begins no activation; resolves when no activation runs or after `patienceMs`, which ends the rest. */
  drain(patienceMs: number): Promise<void>;
  /** Lets go of everything: workers are killed, calls are aborted, the store keeps what it has. */
  close(): Promise<void>;
  readonly active: number;
}

// ------------------------------------------------------------------------------------------------------------------ service

/** What `runs RUN`, `start --wait` and the library answer: the one result object, as far as a journal knows it. */
export interface RunReport {
  readonly runId: string;
  readonly flow: string;
  readonly versionHash: string;
  readonly state: RunRow["state"];
  readonly ok: boolean;
  /** Null while it runs. */
  readonly status: Status | null;
  readonly value?: unknown;
  readonly error?: RunErrorData;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly trigger: RunRow["trigger"];
  readonly attempt: number;
  readonly activations: number;
  readonly usage: {
    readonly cpuMs: number;
    readonly wallMs: number;
    readonly heapPeakBytes: number;
    readonly hostCalls: number;
  };
  readonly logs: readonly { readonly level: ConsoleLevel; readonly time: string; readonly text: string }[];
  readonly calls: readonly CallReport[];
  /** When suspended: what it waits for. Timers of the script's own are not listed. */
  readonly pending: readonly PendingReport[];
  /** When suspended: when it goes on by itself, for whichever of waits and timers is first; null when nothing of it has a time. */
  readonly dueAt: number | null;
  readonly warnings: readonly WarningData[];
  readonly confinement: unknown;
}

export interface CallReport {
  readonly position: number;
  readonly name: string;
  readonly effect: string;
  readonly state: "not_started" | "running" | "waiting" | "done" | "failed" | "cancelled" | "unknown";
  readonly code: string | null;
  readonly idempotencyKey: string;
  readonly madeAt: number;
  readonly durationMs: number | null;
  readonly inputBytes: number;
  readonly outputBytes: number;
}

export interface PendingReport {
  readonly callId: string | null;
  readonly position: number;
  readonly name: string;
  readonly waitsFor: string;
  readonly dueAt: number | null;
  /** For approvals: what is asked. */
  readonly title?: string;
  readonly args?: unknown;
}

/** What went wrong with an operation: the caller's mistake, told with the remedy. */
export class OperationError extends Error {
  override readonly name = "OperationError";
  readonly code: "not_found" | "conflict" | "invalid" | "denied" | "unavailable";
  readonly problems: readonly string[];

  constructor(code: OperationError["code"], message: string, problems: readonly string[] = []) {
    super(message);
    this.code = code;
    this.problems = problems;
  }
}

/** What may be reached, for the approval view. */
export interface Reach {
  readonly hosts: readonly string[];
  readonly mounts: readonly string[];
  readonly secrets: readonly string[];
  readonly kvMaxBytes: number;
  readonly flows: readonly string[];
  readonly events: readonly string[];
  readonly tools: readonly string[];
  readonly budgets: Limits;
  readonly trigger: string;
  /** What a reviewer should not overlook: any port, `*`, write access, a secret … */
  readonly remarks: readonly string[];
}

/** What a version may do that the approved one may not, and the other way round; lines for people. */
export interface ReachDifference {
  readonly approvedHash: string;
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

export interface VersionReport {
  readonly flow: string;
  readonly hash: string;
  readonly number: number;
  readonly state: VersionRow["state"];
  readonly installedAt: number;
  readonly installedBy: string;
  readonly decidedAt: number | null;
  readonly decidedBy: string | null;
  readonly decisionReason: string | null;
  readonly reach: Reach;
  /** Against the approved version; null when there is none, or when this is the one. */
  readonly difference: ReachDifference | null;
  readonly manifestText: string;
  readonly sources: readonly { readonly path: string; readonly text: string }[];
  readonly bundle: string;
  /** Calls that the dry run saw, with how it ended. */
  readonly dryRun: DryRun | null;
}

export interface DryRun {
  readonly status: Status;
  readonly message: string | null;
  readonly calls: readonly { readonly name: string; readonly args: string }[];
  readonly logs: readonly string[];
}

export interface FlowReport {
  readonly flow: string;
  readonly enabled: boolean;
  readonly disabledBy: string | null;
  readonly disabledReason: string | null;
  readonly approvedHash: string | null;
  readonly trigger: string;
  readonly nextFireAt: number | null;
  readonly lastRun: { readonly runId: string; readonly status: Status | null; readonly at: number } | null;
  readonly running: number;
  readonly waiting: number;
  readonly needsReconcile: number;
  readonly versions: readonly {
    readonly hash: string;
    readonly number: number;
    readonly state: VersionRow["state"];
    readonly installedAt: number;
  }[];
}

export interface ReplayReport {
  readonly runId: string;
  readonly matched: boolean;
  readonly deliveries: number;
  readonly calls: number;
  /** The first difference, both sides. */
  readonly divergence: {
    readonly where: string;
    readonly expected: unknown;
    readonly actual: unknown;
  } | null;
}

export interface FlowService {
  install(options: {
    readonly folder: string;
    readonly by: string;
    readonly input?: unknown;
  }): Promise<VersionReport & { readonly added: boolean }>;
  approve(options: { readonly flow: string; readonly hash: string; readonly by: string }): Promise<void>;
  reject(options: {
    readonly flow: string;
    readonly hash: string;
    readonly by: string;
    readonly reason: string | null;
  }): Promise<void>;
  /** Cancels its unfinished runs. */
  revoke(options: {
    readonly flow: string;
    readonly hash: string;
    readonly by: string;
    readonly reason: string | null;
  }): Promise<void>;
  enable(flow: string, by: string): Promise<void>;
  disable(flow: string, by: string, reason: string): Promise<void>;
  list(): Promise<readonly FlowReport[]>;
  /** `hash` may be a prefix of at least 8 characters; the newest version without one. */
  show(flow: string, hash?: string): Promise<VersionReport>;

  start(options: {
    readonly flow: string;
    readonly input?: unknown;
    readonly by: string;
    readonly deduplicationKey?: string;
  }): Promise<{ readonly runId: string; readonly created: boolean }>;
  /** Resolves when the run is finished or suspended, or the signal aborts (then with what is known). */
  wait(
    runId: string,
    options?: { readonly signal?: AbortSignal; readonly through?: "suspended" | "finished" },
  ): Promise<RunReport>;
  run(runId: string): Promise<RunReport>;
  runs(query: {
    readonly flow?: string;
    readonly state?: string;
    readonly limit?: number;
    readonly before?: string;
  }): Promise<readonly RunRow[]>;
  history(runId: string): Promise<RunHistory>;
  quarantined(runId: string | null): Promise<readonly QuarantineRow[]>;
  cancel(runId: string, by: string): Promise<boolean>;
  signal(options: {
    readonly runId: string;
    readonly name: string;
    readonly value?: unknown;
    readonly signalId?: string;
    readonly by: string;
  }): Promise<boolean>;
  /** Answers an approval; says whose it was. The same answer again changes nothing; another one is a conflict. */
  answer(options: {
    readonly callId: string;
    readonly approve: boolean;
    readonly value?: unknown;
    readonly by: string;
  }): Promise<{ readonly runId: string }>;
  reconcile(options: {
    readonly runId: string;
    readonly position: number;
    readonly decision: "observed" | "not_applied" | "cancel";
    readonly value?: unknown;
    readonly by: string;
  }): Promise<void>;
  replay(runId: string): Promise<ReplayReport>;
  emit(options: {
    readonly name: string;
    readonly value?: unknown;
    readonly eventId: string;
    readonly by: string;
  }): Promise<readonly string[]>;

  drain(patienceMs: number): Promise<void>;
  close(): Promise<void>;
  /** The store failed, and nothing is done any more. */
  readonly failed: Promise<unknown>;
}

export interface FlowServiceOptions {
  readonly store: Store;
  readonly pool: CellPool;
  /** Of the engine in the workers. */
  readonly fingerprint: string;
  /** Mount name → absolute folder. */
  readonly mounts: ReadonlyMap<string, string>;
  /** Asked at each use. */
  readonly secretValue: (name: string) => string | undefined;
  /** `host` or `host:port` that may be private. */
  readonly privateHosts: readonly string[];
  /** PEM, beside the system's. */
  readonly caPem: string | undefined;
  /** Host paths that no mount reaches: the store, configuration, the installation. */
  readonly deniedPaths: readonly string[];
  /** The most that a manifest may ask for. */
  readonly ceilings: Limits;
  /** The embedder's own host functions, granted as `tools`. */
  readonly functions: readonly HostFunction[];
  /** Runs that are active at the same time over all flows. */
  readonly activeMost: number;
  /** Finished runs are removed, oldest first, while the store is larger than this. Default 4 GiB. */
  readonly storeBytesMost?: number;
  /**
   * What the service does by itself: `all`; `runs`: drives unfinished runs and what they start, fires no trigger; `nothing`: only
   * answers (a command that lists flows must not set runs going). `all` unless given.
   */
  readonly drives?: "all" | "runs" | "nothing";
  readonly now?: () => number;
}
