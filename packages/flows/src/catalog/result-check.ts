/**
 * The pool as the engine has it: a script that completed with a result that its manifest does not declare did not complete.
 * It ends as `script_error` with the reason `output`, before anything is recorded of the end.
 *
 * TRUST: the result is a script's; it is decoded within the version's limits, and the message names places and parts of the
 * schema, not the result.
 */

import type { CellPool, CellRequest, CellResult } from "../ports.js";
import type { VersionPlan } from "./version-plan.js";

export interface PlansByNames {
  /** The version whose names these very ones are. */
  planOfNames(names: readonly string[]): VersionPlan | undefined;
}

export function checkedPool(pool: CellPool, plans: PlansByNames): CellPool {
  return {
    health: () => pool.health(),
    activate: async (request) => checkResult(request, await pool.activate(request), plans),
  };
}

function checkResult(request: CellRequest, result: CellResult, plans: PlansByNames): CellResult {
  if (result.status !== "completed" || result.value === undefined) return result;
  const plan = plans.planOfNames(request.names);
  if (plan === undefined) throw new Error("an activation of a version that is in no catalog");
  const problem = plan.resultProblem(result.value);
  if (problem === null) return result;
  const { value: _value, ...rest } = result;
  const message = `${problem} (output of the manifest)`;
  return {
    ...rest,
    status: "script_error",
    reason: "output",
    error: { code: "output", name: "TypeError", message },
  };
}
