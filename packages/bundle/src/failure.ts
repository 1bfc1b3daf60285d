/**
 * Why a script could not be turned into what a worker loads: a value, never an exception, because every cause here is
 * something that a script or its author can bring about. Callers show `message` (and `frame`, where a person reads) and
 * branch on `code`. Messages name files as the author typed them or relative to the flow's folder, never by host path.
 */

import { type Place, renderFrame, renderPlace } from "./source-text.js";

/** Append-only. */
export type BundleCode =
  | "not_found"
  | "unreadable"
  | "unsupported_file"
  | "source_too_large"
  | "nesting_too_deep"
  | "not_javascript"
  | "syntax_error"
  | "no_default_export"
  | "top_level_await"
  | "import_not_found"
  | "import_refused"
  | "node_module"
  | "bundler_deadline"
  | "bundler_failed";

export interface BundleFailure {
  readonly code: BundleCode;
  /** One line: `file:line:column: what, and what to do`. */
  readonly message: string;
  readonly place?: Place;
  /** The source line with a caret, several lines of text. */
  readonly frame?: string;
}

/** Carries a failure through code that cannot return one (callbacks of esbuild); never leaves this package. */
export class BundleStop extends Error {
  readonly failure: BundleFailure;

  constructor(failure: BundleFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

export function failAt(code: BundleCode, place: Place, what: string, sourceLine?: string): BundleFailure {
  const message = `${renderPlace(place)}: ${what}`;
  if (sourceLine === undefined) return { code, message, place };
  return { code, message, place, frame: renderFrame(place, sourceLine) };
}

export function fail(code: BundleCode, message: string): BundleFailure {
  return { code, message };
}
