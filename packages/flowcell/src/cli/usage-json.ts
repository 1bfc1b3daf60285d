/** The object that `--json` prints for a mistake that was found before there was a run. */

import { notStarted } from "../result.js";
import type { UsageError } from "./usage.js";

export function usageJson(error: UsageError): string {
  return JSON.stringify(
    notStarted("", "invalid_input", { code: error.code, message: error.message }),
    null,
    2,
  );
}
