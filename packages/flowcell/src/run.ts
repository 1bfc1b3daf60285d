/** `run`: one script in the default runtime of this process, for programs that need no runtime of their own. */

import type { RunOptions } from "./options.js";
import type { RunResult } from "./result.js";
import { createRuntime, type Runtime } from "./runtime.js";

let shared: Runtime | undefined;

/**
 * Runs a script in a confined worker. Never rejects: `ok` says whether it completed. Workers stay for the next call and
 * never keep the process alive.
 */
export async function run<Value = unknown>(options: RunOptions): Promise<RunResult<Value>> {
  shared ??= createRuntime();
  return await shared.run<Value>(options);
}
