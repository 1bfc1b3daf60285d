/**
 * What can go wrong around a data folder, as the command line and the socket tell it: one line, what to do, an exit code.
 * The classes of @flowcell/journal and @flowcell/flows are told apart here too, so that no other file needs to know which
 * package an error came from.
 */

import { OperationError } from "@flowcell/flows";
import { StoreFailure, StoreHeld, StoreUnreadable } from "@flowcell/journal";
import { exitCodes, outcomeTable } from "@flowcell/protocol";

/** Data folder, settings or installation: the operator's to mend. */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
}

/** The owner of the store went away, or sent what no owner sends. What it was asked may have been done. */
export class OwnerLost extends Error {
  override readonly name: string = "OwnerLost";
}

/** The owner said that it goes, and has not begun what it was asked. */
export class OwnerLeft extends OwnerLost {
  override readonly name = "OwnerLeft";
}

/** The owner has as many connections as it takes, all of them in use. It was asked nothing. */
export class OwnerBusy extends Error {
  override readonly name = "OwnerBusy";
}

export interface Told {
  readonly code: string;
  readonly message: string;
  readonly problems: readonly string[];
  readonly exitCode: number;
}

/** Undefined for what nobody expects: a bug. */
export function tell(error: unknown): Told | undefined {
  if (error instanceof OperationError) {
    const { code, message, problems } = error;
    return { code, message, problems, exitCode: operationExitCode(code) };
  }
  if (error instanceof ConfigurationError) {
    return { code: "configuration", message: error.message, problems: [], exitCode: exitCodes.configuration };
  }
  if (error instanceof OwnerLost) {
    return { code: "owner_lost", message: error.message, problems: [], exitCode: exitCodes.store };
  }
  if (error instanceof OwnerBusy) {
    const { exitCode } = outcomeTable.overloaded;
    return { code: "overloaded", message: error.message, problems: [], exitCode };
  }
  if (error instanceof StoreFailure || error instanceof StoreHeld || error instanceof StoreUnreadable) {
    return { code: "store", message: error.message, problems: [], exitCode: exitCodes.store };
  }
  return undefined;
}

function operationExitCode(code: OperationError["code"]): number {
  switch (code) {
    case "not_found":
    case "conflict":
    case "invalid":
      return exitCodes.usage;
    case "denied":
      return outcomeTable.denied.exitCode;
    case "unavailable":
      return exitCodes.store;
  }
}
