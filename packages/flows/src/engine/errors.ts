/**
 * Errors and warnings as they are stored with a run: JSON text for callers, bounded. The error's places were put into the
 * author's files by `Runnable.mapError`; a mapping that fails costs the places, never the run.
 *
 * TRUST: names, messages and stacks are a script's own. They are bounded here and escaped by whoever shows them.
 */

import type { Status, WarningData } from "@flowcell/protocol";
import type { CellResult, RunErrorData, Runnable } from "../ports.js";

type CellError = NonNullable<CellResult["error"]>;

const textCharsMax = 16 * 1024;
const nestedMax = 32;
const jsonCharsMax = 256 * 1024;
const warningsMax = 64;
const warningCharsMax = 2048;

export function errorJsonOf(
  status: Status,
  error: CellError,
  mapError: Runnable["mapError"] | undefined,
): string {
  return runErrorJson(mapped(status, error, mapError));
}

function mapped(status: Status, error: CellError, mapError: Runnable["mapError"] | undefined): RunErrorData {
  if (mapError !== undefined) {
    try {
      return mapError(error);
    } catch {
      // The map of a bundle is data; what is wrong with it must not hide the script's own error.
    }
  }
  const { code, message, name = status, limit, used, fact } = error;
  return {
    code,
    name,
    message,
    ...(limit === undefined ? {} : { limit }),
    ...(used === undefined ? {} : { used }),
    ...(fact === undefined ? {} : { fact }),
  };
}

export function runErrorJson(error: RunErrorData): string {
  const text = JSON.stringify(cutError(error, nestedMax));
  if (text.length <= jsonCharsMax) return text;
  const { code, name, message } = error;
  return JSON.stringify({ code, name: cut(name, 256), message: cut(message, textCharsMax) });
}

function cutError(error: RunErrorData, nestedLeft: number): RunErrorData {
  const { name, message, stack, cause, errors, ...rest } = error;
  return {
    ...rest,
    name: cut(name, 256),
    message: cut(message, textCharsMax),
    ...(stack === undefined ? {} : { stack: cut(stack, textCharsMax) }),
    ...(cause === undefined || nestedLeft === 0 ? {} : { cause: cutError(cause, nestedLeft - 1) }),
    ...(errors === undefined || nestedLeft === 0
      ? {}
      : { errors: errors.slice(0, nestedMax).map((inner) => cutError(inner, 0)) }),
  };
}

export function boundedWarnings(warnings: readonly WarningData[]): readonly WarningData[] {
  if (warnings.length === 0) return warnings;
  const kept = warnings
    .slice(0, warningsMax)
    .map(({ code, message }) => ({ code: cut(code, 256), message: cut(message, warningCharsMax) }));
  const more = warnings.length - kept.length;
  return more === 0 ? kept : [...kept, { code: "more", message: `${more} more warnings` }];
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
