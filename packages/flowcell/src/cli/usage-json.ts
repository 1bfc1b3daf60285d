/** The object that `--json` prints for a mistake that was found before there was a run. */

import { notStarted } from "../result.js";
import { objectText } from "./human.js";
import type { UsageError } from "./usage.js";

export function usageJson(error: UsageError): string {
  return objectText(notStarted("", "invalid_input", { code: error.code, message: error.message }));
}
