/** What codemode tells its pool: defaults for many short scripts, each in a process of its own unless it is told otherwise. */

import { availableParallelism } from "node:os";
import type { PoolOptions } from "@flowcell/pool";
import type { CodemodeOptions } from "./options.js";

const queueMost = 1024;

export function poolOptions(options: CodemodeOptions): PoolOptions {
  const { queueDeadlineMs, onEvent } = options;
  const processors = availableParallelism();
  const single = options.isolation !== "reset";
  const workersMax = options.maxWorkers ?? 8 * processors;
  const spares = options.spares ?? Math.min(workersMax, single ? 2 * processors : 1);
  return {
    workersMax,
    spares,
    queueMax: options.queueMax ?? queueMost,
    ...(queueDeadlineMs === undefined ? {} : { queueDeadlineMs }),
    ...(onEvent === undefined ? {} : { onEvent }),
  };
}
