/**
 * Applies units inside the transaction of the store's thread, each in a savepoint of its own: a refused unit leaves no trace
 * of itself and the others stay.
 */

import { conflict, Refused } from "../rules.js";
import type { FreeOperation, Operation, OperationResult, Unit, UnitResult } from "../store.js";
import type { Database, Statement } from "./driver.js";
import { sqliteCode } from "./driver.js";
import { FreeWriter } from "./free-writer.js";
import { KeyValues } from "./key-values.js";
import { type FencedRun, RunWriter } from "./run-writer.js";
import type { Values } from "./values.js";

export class Units {
  readonly #begin: Statement;
  readonly #keep: Statement;
  readonly #back: Statement;
  readonly #runs: RunWriter;
  readonly #free: FreeWriter;

  constructor(db: Database, values: Values) {
    this.#begin = db.prepare("SAVEPOINT unit");
    this.#keep = db.prepare("RELEASE unit");
    this.#back = db.prepare("ROLLBACK TO unit");
    this.#runs = new RunWriter(db, values, new KeyValues(db, values));
    this.#free = new FreeWriter(db, values);
  }

  /** Throws only what the store cannot go on after: an error of the disk or of this code. */
  apply(unit: Unit): UnitResult {
    this.#begin.run();
    try {
      const results = this.#applyAll(unit);
      this.#keep.run();
      return { ok: true, results };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.#back.run();
      this.#keep.run();
      return error.result();
    }
  }

  #applyAll({ fence, operations }: Unit): OperationResult[] {
    // Read once for the unit, and again after what can end or move the hold.
    let run = fence === undefined ? null : this.#runs.open(fence);
    return operations.map((operation, at) => {
      try {
        if (isFree(operation)) {
          const result = this.#free.apply(operation);
          if (operation.kind === "claim") run = null;
          return result;
        }
        if (fence === undefined) throw conflict(`operation ${operation.kind} needs a fence`);
        const held: FencedRun = run ?? this.#runs.open(fence);
        const result = this.#runs.apply(held, operation);
        run = operation.kind === "run" ? null : held;
        return result;
      } catch (error) {
        if (error instanceof Refused) throw error.at(at);
        // A rule that only the schema knows: the statement changed nothing.
        const code = sqliteCode(error);
        if (code?.startsWith("SQLITE_CONSTRAINT"))
          throw conflict(`operation ${operation.kind}: ${error instanceof Error ? error.message : code}`).at(
            at,
          );
        throw error;
      }
    });
  }
}

function isFree(operation: Operation): operation is FreeOperation {
  switch (operation.kind) {
    case "createRun":
    case "claim":
    case "sendSignal":
    case "quarantine":
    case "audit":
    case "addVersion":
    case "decideVersion":
    case "flow":
    case "event":
      return true;
    default:
      return false;
  }
}
