/**
 * The options of the library, checked by name and type before anything happens: an option that is not known is a mistake
 * to report, never one to ignore. `createRuntime` throws for its own; a run answers `invalid_input`.
 */

import type { HostFunction } from "@flowcell/host";
import type { PoolEvent } from "@flowcell/pool";
import {
  type Limits,
  type OptionTable,
  optionChecks,
  optionProblem,
  type ProfileName,
} from "@flowcell/protocol";
import type { LogLine } from "./result.js";

export interface RuntimeOptions {
  /** Which default limits runs get. "flow" unless given. */
  readonly profile?: ProfileName;
  /** Limits of runs that ask for nothing, over those of the profile. */
  readonly limits?: Partial<Limits>;
  /**
   * The most that a run may ask for. Unless given: heapBytes 256 MiB and cpuMs 60,000 (or what `limits` says, if that is
   * more), the others what the machinery can hold.
   */
  readonly ceilings?: Partial<Limits>;
  /** Host functions that every run is given, beside the built-in ones. */
  readonly hostFunctions?: readonly HostFunction[];
  /**
   * What confinement is required, as data: the format that `flowcell doctor --json` prints. The default requires all that
   * this system can give and takes its heap and CPU ceilings from `ceilings`.
   */
  readonly policy?: unknown;
  /** Workers kept ready. Default 1. */
  readonly spares?: number;
  /** Processes at any time. Default four for each processor. */
  readonly workersMax?: number;
  /** Runs of one script that may wait for a worker. Default 256. */
  readonly queueMax?: number;
  /** How long a run waits for a worker when it does not say. Default 60 s. */
  readonly queueDeadlineMs?: number;
  /** Runs after which a worker is retired. Default 256. */
  readonly activationsMax?: number;
  /** Idle time after which a worker is retired. Default ten minutes. */
  readonly idleMs?: number;
  /** Told of what operators should see: refused starts, killed and lost workers. Must not throw. */
  readonly onEvent?: (event: PoolEvent) => void;
}

export interface RunOptions {
  /** The script's file (.ts, .mts, .js, .mjs), relative to the working directory. Either this or `source`. */
  readonly path?: string;
  /** The script's text; it cannot import. TypeScript unless `label` ends in .js or .mjs. */
  readonly source?: string;
  /** What messages and stacks call the script. Default: the path if it is relative, else its last part; "script.ts". */
  readonly label?: string;
  /** The first argument of the script's function. Any value that can be sent. */
  readonly input?: unknown;
  readonly limits?: Partial<Limits>;
  /** Host functions for this run alone, beside the runtime's. */
  readonly hostFunctions?: readonly HostFunction[];
  /** Aborting it ends the run as `cancelled`. */
  readonly signal?: AbortSignal;
  /** How long to wait for a worker, in milliseconds. */
  readonly queueDeadlineMs?: number;
  /** Whose script it is: two owners never share a process, even for the same text. At most 200 characters. */
  readonly owner?: string;
  /** `process`: a process that has run nothing before and runs nothing after. Default `reset`. */
  readonly isolation?: "reset" | "process";
  /** `virtual`: timers and sleeps do not wait. Default `real`. */
  readonly clock?: "real" | "virtual";
  /** Where the script's clock starts, epoch milliseconds. Default now. */
  readonly startMs?: number;
  /** 32 bytes that seed the script's random numbers. Default random. */
  readonly seed?: Uint8Array;
  /** Whether `eval` and `Function` work in the script. Default true. */
  readonly codeGeneration?: boolean;
  /** Each console line as it comes. */
  readonly onLog?: (line: LogLine) => void;
}

const { isFlag, isFunction, isObject, isOneOf, isPositive, isText, isWhole } = optionChecks;

const runtimeTable: OptionTable<RuntimeOptions> = {
  profile: { check: isOneOf("flow", "codemode"), wanted: '"flow" or "codemode"' },
  limits: { check: isObject, wanted: "an object of limit names and numbers" },
  ceilings: { check: isObject, wanted: "an object of limit names and numbers" },
  hostFunctions: { check: Array.isArray, wanted: "an array of what defineHostFunction returns" },
  policy: { check: isObject, wanted: "a policy object" },
  spares: { check: isWhole, wanted: "a whole number, 0 or more" },
  workersMax: { check: isPositive, wanted: "a whole number, 1 or more" },
  queueMax: { check: isWhole, wanted: "a whole number, 0 or more" },
  queueDeadlineMs: { check: isWhole, wanted: "a whole number of milliseconds" },
  activationsMax: { check: isPositive, wanted: "a whole number, 1 or more" },
  idleMs: { check: isPositive, wanted: "a whole number of milliseconds, 1 or more" },
  onEvent: { check: isFunction, wanted: "a function" },
};

const runTable: OptionTable<RunOptions> = {
  path: { check: isText, wanted: "a text" },
  source: { check: isText, wanted: "a text" },
  label: { check: isText, wanted: "a text" },
  input: { check: () => true, wanted: "any value" },
  limits: { check: isObject, wanted: "an object of limit names and numbers" },
  hostFunctions: { check: Array.isArray, wanted: "an array of what defineHostFunction returns" },
  signal: { check: (value) => value instanceof AbortSignal, wanted: "an AbortSignal" },
  queueDeadlineMs: { check: isWhole, wanted: "a whole number of milliseconds" },
  owner: {
    check: (value) => typeof value === "string" && value.length <= 200,
    wanted: "a text of at most 200 characters",
  },
  isolation: { check: isOneOf("reset", "process"), wanted: '"reset" or "process"' },
  clock: { check: isOneOf("real", "virtual"), wanted: '"real" or "virtual"' },
  startMs: { check: isWhole, wanted: "a whole number of milliseconds since 1970" },
  seed: { check: (value) => value instanceof Uint8Array && value.length === 32, wanted: "32 bytes" },
  codeGeneration: { check: isFlag, wanted: "true or false" },
  onLog: { check: isFunction, wanted: "a function" },
};

/** Names that other runtimes use for the same thing. */
const foreignNames: ReadonlyMap<string, keyof RunOptions> = new Map<string, keyof RunOptions>([
  ["file", "path"],
  ["filename", "path"],
  ["code", "source"],
  ["script", "source"],
  ["args", "input"],
  ["params", "input"],
  ["timeout", "limits"],
  ["memoryLimit", "limits"],
  ["tools", "hostFunctions"],
  ["functions", "hostFunctions"],
  ["onConsole", "onLog"],
  ["tenant", "owner"],
]);

/** What is wrong with the options of a runtime, or undefined. */
export function runtimeProblem(options: object): string | undefined {
  return optionProblem(options, runtimeTable);
}

/** What is wrong with the options of a run, or undefined. */
export function runProblem(options: object): string | undefined {
  const problem = optionProblem(options, runTable, foreignNames);
  if (problem !== undefined) return problem;
  const given = (name: "path" | "source"): boolean =>
    Object.entries(options).some(([key, value]) => key === name && value !== undefined);
  if (given("path") && given("source")) return "give a path or a source, not both";
  return given("path") || given("source") ? undefined : "give the script: path or source";
}

export { ceilingDefaults as defaultCeilings } from "@flowcell/pool";
