/**
 * What a pool may be told, and what it tells: options with their ranges, events, health. Used by the pool; the types are
 * part of the package's interface.
 */
import { availableParallelism } from "node:os";
import type { FlowDeaths } from "./counters.js";
import type { Verdict } from "./types.js";
import type { Refusal } from "./worker.js";

export interface PoolOptions {
  /** Blank workers kept ready. Default 1. */
  readonly spares?: number;
  /** Processes at any time, of every kind. Default four for each processor. */
  readonly workersMax?: number;
  /** Processes that start at the same time. Default two for each processor. */
  readonly startingMax?: number;
  /** Waiting activations of one flow. Default 256. */
  readonly queueMax?: number;
  /** Waiting activations of all flows. Default 4,096. */
  readonly queueTotalMax?: number;
  /** How long an activation waits for a worker when its request does not say. Default 60 s. */
  readonly queueDeadlineMs?: number;
  /** From the start of a process to its Welcome. Default 5 s. */
  readonly startDeadlineMs?: number;
  /** Activations after which a worker is retired. Default 256. */
  readonly activationsMax?: number;
  /** Idle time after which a worker is retired. Default ten minutes. */
  readonly idleMs?: number;
  /** How often the CPU clocks of idle workers and the memory of running ones are looked at. Default 1 s. */
  readonly inspectMs?: number;
  /** Told of what operators should see: refused starts, killed and lost workers, our own bugs. Must not throw. */
  readonly onEvent?: (event: PoolEvent) => void;
}

export type PoolEvent =
  | {
      readonly kind: "start_refused";
      readonly pid: number | null;
      readonly refusal: Refusal;
      readonly retryInMs: number;
    }
  | {
      readonly kind: "violation";
      readonly pid: number;
      readonly flow: string | null;
      readonly verdict: Verdict;
    }
  | { readonly kind: "lost"; readonly pid: number; readonly flow: string | null; readonly message: string }
  | { readonly kind: "bug"; readonly pid: number; readonly error: unknown };

export interface PoolHealth {
  readonly workers: {
    readonly total: number;
    readonly starting: number;
    readonly spare: number;
    readonly idle: number;
    readonly running: number;
    readonly dying: number;
  };
  readonly waiting: number;
  /** Flows that have a worker or a waiter. */
  readonly flows: Readonly<
    Record<string, { readonly workers: number; readonly idle: number; readonly waiting: number }>
  >;
  /** Since the pool was made. */
  readonly activations: number;
  readonly started: number;
  readonly retired: number;
  /** By reason and fact: `welcome_refused/landlockAbi`. */
  readonly startsRefused: Readonly<Record<string, number>>;
  /** By reason. */
  readonly violations: Readonly<Record<string, number>>;
  /** Results that are not `completed`: `budget_exceeded/wall`. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Workers that ended by themselves, by how. */
  readonly deaths: Readonly<Record<string, number>>;
  readonly deathsByFlow: Readonly<Record<string, FlowDeaths>>;
  readonly starts: {
    readonly failuresInARow: number;
    readonly retryInMs: number;
    readonly lastRefusal: Refusal | null;
  };
  readonly closed: boolean;
}

export interface ResolvedOptions {
  readonly spares: number;
  readonly workersMax: number;
  readonly startingMax: number;
  readonly queueMax: number;
  readonly queueTotalMax: number;
  readonly queueDeadlineMs: number;
  readonly startDeadlineMs: number;
  readonly activationsMax: number;
  readonly idleMs: number;
  readonly inspectMs: number;
}

const optionRanges: { readonly [name in keyof ResolvedOptions]: readonly [least: number, most: number] } = {
  spares: [0, 4096],
  workersMax: [1, 4096],
  startingMax: [1, 4096],
  queueMax: [0, 1_000_000],
  queueTotalMax: [0, 1_000_000],
  queueDeadlineMs: [0, 86_400_000],
  startDeadlineMs: [1, 600_000],
  activationsMax: [1, 1_000_000],
  idleMs: [1, 86_400_000],
  inspectMs: [1, 3_600_000],
};

/** Whole options; throws RangeError for one that is unknown or out of range. */
export function resolveOptions(options: PoolOptions): ResolvedOptions {
  for (const name of Object.keys(options)) {
    if (name !== "onEvent" && !Object.hasOwn(optionRanges, name)) {
      throw new RangeError(
        `unknown pool option ${name}; the options are ${Object.keys(optionRanges).join(", ")}, onEvent`,
      );
    }
  }
  const processors = availableParallelism();
  const workersMax = options.workersMax ?? 4 * processors;
  const resolved: ResolvedOptions = {
    spares: options.spares ?? Math.min(1, workersMax),
    workersMax,
    startingMax: options.startingMax ?? 2 * processors,
    queueMax: options.queueMax ?? 256,
    queueTotalMax: options.queueTotalMax ?? 4096,
    queueDeadlineMs: options.queueDeadlineMs ?? 60_000,
    startDeadlineMs: options.startDeadlineMs ?? 5000,
    activationsMax: options.activationsMax ?? 256,
    idleMs: options.idleMs ?? 600_000,
    inspectMs: options.inspectMs ?? 1000,
  };
  for (const [name, [least, most]] of Object.entries(optionRanges)) {
    const value = resolved[name as keyof ResolvedOptions]; // the table's keys are the options'
    if (!Number.isInteger(value) || value < least || value > most) {
      throw new RangeError(
        `pool option ${name} must be a whole number from ${least} to ${most}, not ${value}`,
      );
    }
  }
  if (resolved.spares > workersMax) {
    throw new RangeError(
      `pool option spares (${resolved.spares}) must not exceed workersMax (${workersMax})`,
    );
  }
  return resolved;
}
