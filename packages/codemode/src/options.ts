/**
 * Options of `createCodemode` and of one execution, and what they mean when they are not given. Mistakes in the first throw,
 * mistakes in the second are results: a model may have had a hand in them.
 */

import type { Store } from "@flowcell/journal";
import type { PoolEvent } from "@flowcell/pool";
import { type Limits, type LogLine, type OptionTable, optionChecks, optionProblem } from "@flowcell/protocol";
import type { ToolsGiven } from "./tool-set.js";

export interface CodemodeOptions {
  /**
   * What scripts may call: functions (positional arguments), `{ description, inputSchema, outputSchema?, execute }` (one input,
   * checked), and objects of these, which are namespaces.
   */
  readonly tools?: ToolsGiven;
  /** Limits of executions that ask for nothing, over those of the profile "codemode". */
  readonly limits?: Partial<Limits>;
  /** The most that an execution may ask for. Unless given: heapBytes 256 MiB, cpuMs 60,000, the others what can be held. */
  readonly ceilings?: Partial<Limits>;
  /** Where executions are journaled; then they survive restarts. Without it, only those that can ask for approval are, in memory. */
  readonly store?: Store;
  /** Whose executions these are in the store: a later process goes on with those of the same name. Default "codemode". */
  readonly name?: string;
  /** How long a call waits for its approval before it fails with `timeout`. Default 24 hours. */
  readonly approvalMs?: number;
  /** Finished executions in the store are removed when they ended longer ago than this. Unless given, they stay. */
  readonly keepMs?: number;
  /** Of the finished executions in the store, about so many are kept, the newest. Unless given, all. */
  readonly keepRuns?: number;
  /** `process` (default): a process that has run nothing before and runs nothing after. `reset`: one after the other, from a pristine image. */
  readonly isolation?: "process" | "reset";
  /** Processes at any time. Default eight for each processor. */
  readonly maxWorkers?: number;
  /** Executions that may wait for a worker. Default 1,024. */
  readonly queueMax?: number;
  /** How long an execution waits for a worker when it does not say. Default 60 s. */
  readonly queueDeadlineMs?: number;
  /** Workers kept ready. Default: two for each processor for `process`, one for `reset`. */
  readonly spares?: number;
  /** What confinement is required, as data: the format that `flowcell doctor --json` prints. */
  readonly policy?: unknown;
  /** Told of what operators should see: refused starts, killed and lost workers. Must not throw. */
  readonly onEvent?: (event: PoolEvent) => void;
}

export interface ExecuteOptions {
  /** Aborting it ends the execution as `cancelled` and aborts its calls. */
  readonly signal?: AbortSignal;
  /** A second execution under the same key is not made: it gets the first one's result. Another script under it is refused. */
  readonly idempotencyKey?: string;
  readonly limits?: Partial<Limits>;
  /** How long to wait for a worker, in milliseconds. */
  readonly queueDeadlineMs?: number;
  /** What messages and stacks call the script. Default script.js. */
  readonly label?: string;
  /** Each console line as it comes. */
  readonly onLog?: (line: LogLine) => void;
  /** Told of the execution's id before anything of it happens; tools are given it with each call. Must not throw. */
  readonly onRun?: (runId: string) => void;
}

export interface ResumeOptions {
  /** Aborting it ends the execution as `cancelled` and aborts its calls. */
  readonly signal?: AbortSignal;
}

const { isFunction, isObject, isOneOf, isPositive, isWhole } = optionChecks;
const limitsRow = { check: isObject, wanted: "an object of limit names and numbers" };

const codemodeTable: OptionTable<CodemodeOptions> = {
  tools: { check: isObject, wanted: "an object of tools" },
  limits: limitsRow,
  ceilings: limitsRow,
  store: { check: isObject, wanted: "a store of @flowcell/journal" },
  name: {
    check: (value) => typeof value === "string" && /^[\w.-]{1,100}$/.test(value),
    wanted: "1 to 100 letters, digits, _, . or -",
  },
  approvalMs: { check: isPositive, wanted: "a whole number of milliseconds, 1 or more" },
  keepMs: { check: isPositive, wanted: "a whole number of milliseconds, 1 or more" },
  keepRuns: { check: isPositive, wanted: "a whole number, 1 or more" },
  isolation: { check: isOneOf("process", "reset"), wanted: '"process" or "reset"' },
  maxWorkers: { check: isPositive, wanted: "a whole number, 1 or more" },
  queueMax: { check: isWhole, wanted: "a whole number, 0 or more" },
  queueDeadlineMs: { check: isWhole, wanted: "a whole number of milliseconds" },
  spares: { check: isWhole, wanted: "a whole number, 0 or more" },
  policy: { check: isObject, wanted: "a policy object" },
  onEvent: { check: isFunction, wanted: "a function" },
};

const keyCharsMost = 200;

const signalRow = { check: (value: unknown) => value instanceof AbortSignal, wanted: "an AbortSignal" };

const resumeTable: OptionTable<ResumeOptions> = { signal: signalRow };

const executeTable: OptionTable<ExecuteOptions> = {
  signal: signalRow,
  idempotencyKey: {
    check: (value) => typeof value === "string" && value.length > 0 && value.length <= keyCharsMost,
    wanted: `a text of 1 to ${keyCharsMost} characters`,
  },
  limits: limitsRow,
  queueDeadlineMs: { check: isWhole, wanted: "a whole number of milliseconds" },
  label: {
    check: (value) => typeof value === "string" && /^[^\n\r:()]{1,200}$/.test(value),
    wanted: "a file name of at most 200 characters",
  },
  onLog: { check: isFunction, wanted: "a function" },
  onRun: { check: isFunction, wanted: "a function" },
};

/** Names that others have for these, and limits that belong into `limits`. */
const foreign: ReadonlyMap<string, string> = new Map([
  ["functions", "tools"],
  ["fns", "tools"],
  ["providers", "tools"],
  ["hostFunctions", "tools"],
  ["journal", "store"],
  ["storage", "store"],
  ["workersMax", "maxWorkers"],
  ["poolSize", "maxWorkers"],
  ["concurrency", "maxWorkers"],
  ["maxQueue", "queueMax"],
  ["queueSize", "queueMax"],
  ["queueTimeout", "queueDeadlineMs"],
  ["timeout", "limits.wallMs"],
  ["timeoutMs", "limits.wallMs"],
  ["executionTimeout", "limits.wallMs"],
  ["timeoutSecs", "limits.wallMs"],
  ["wallMs", "limits.wallMs"],
  ["cpuMs", "limits.cpuMs"],
  ["cpuTimeLimitMs", "limits.cpuMs"],
  ["heapBytes", "limits.heapBytes"],
  ["memory", "limits.heapBytes"],
  ["memoryLimit", "limits.heapBytes"],
  ["memoryLimitBytes", "limits.heapBytes"],
  ["maxMemory", "limits.heapBytes"],
  ["maxStackSize", "limits.stackBytes"],
  ["maxStackSizeBytes", "limits.stackBytes"],
  ["maxSourceBytes", "limits.sourceBytes"],
  ["maxResultBytes", "limits.resultBytes"],
  ["max_output_size", "limits.resultBytes"],
  ["maxConsoleOutputBytes", "limits.outputBytes"],
  ["maxBridgeRequests", "limits.hostCalls"],
  ["approvalTimeout", "approvalMs"],
  ["approvalTimeoutMs", "approvalMs"],
  ["retentionMs", "keepMs"],
  ["maxRuns", "keepRuns"],
  ["abortSignal", "signal"],
  ["key", "idempotencyKey"],
  ["filename", "label"],
  ["onConsole", "onLog"],
]);

/** What is wrong with the options of a codemode, or undefined. */
export function codemodeProblem(options: object): string | undefined {
  const problem = optionProblem(options, codemodeTable, foreign);
  if (problem !== undefined) return problem;
  const { store, keepMs, keepRuns } = options as CodemodeOptions; // as its table says, just checked
  if (store !== undefined || (keepMs === undefined && keepRuns === undefined)) return undefined;
  return "options keepMs and keepRuns are for a store: without one, what finished is forgotten in time";
}

/** What is wrong with the options of an execution, or undefined. */
export function executeProblem(options: object): string | undefined {
  return optionProblem(options, executeTable, foreign);
}

/** What is wrong with the options of a resumption, or undefined. */
export function resumeProblem(options: unknown): string | undefined {
  if (typeof options !== "object" || options === null) return "the options of resume must be an object";
  return optionProblem(options, resumeTable, foreign);
}
