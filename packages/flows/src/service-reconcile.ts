/**
 * What an operator found out about a call whose outcome is unknown: what was observed, that it did not happen, or that the
 * run shall end. Answered when it is on disk.
 *
 * Kept true: one decision counts, also when two come at the same time, and only the one that counts is in the audit log; what
 * was observed is what the function could have returned.
 *
 * TRUST: values are a caller's; they are held to the schema of the function's results and to the bounds of values.
 */

import { type CallHead, type RunHeads, StoreFailure } from "@flowcell/journal";
import type { CallOutcome, EncodedValue } from "@flowcell/protocol";
import { audit } from "./catalog/decisions.js";
import { commit } from "./commit.js";
import { OnTheWay } from "./on-the-way.js";
import { type FlowService, OperationError } from "./ports.js";
import { encoded, existing, outcomeOf, valueText } from "./service-answers.js";
import type { ServiceCore } from "./service-core.js";

type Options = Parameters<FlowService["reconcile"]>[0];

export class Reconciles {
  readonly #core: ServiceCore;
  readonly #onTheWay = new OnTheWay<void>();

  constructor(core: ServiceCore) {
    this.#core = core;
  }

  async reconcile(options: Options): Promise<void> {
    const { runId, position, decision, value } = options;
    const text = `${decision} ${valueText(encoded("the value", value))}`;
    const what = `call ${position} of run ${runId}`;
    await this.#onTheWay.share(`${runId} ${position}`, text, what, () => this.#reconcile(options));
  }

  async #reconcile({ runId, position, decision, value, by }: Options): Promise<void> {
    const core = this.#core;
    const { flow, versionHash } = await existing(core, runId);
    const call = await this.#unknown(runId, position);
    switch (decision) {
      case "cancel":
        if (!(await core.cancel(runId, by, "caller"))) throw decidedOtherwise(runId, position);
        break;
      case "not_applied":
        await this.#tell(runId, call, null);
        break;
      case "observed":
        await this.#tell(runId, call, await this.#checked({ flow, versionHash, name: call.name }, value));
        break;
    }
    const detail = `call ${position} (${call.name}): ${decision}`;
    await commit(core.store, [audit(core.catalog.now(), by, "run.reconcile", flow, detail, runId)]);
  }

  /** Hands the decision to the run, and makes sure that it is the one that is recorded; null: it has not happened. */
  async #tell(runId: string, { position, attempts }: CallHead, value: EncodedValue | null): Promise<void> {
    const core = this.#core;
    const isTaken = await core.recorded(runId, position, async () => {
      await this.#unknown(runId, position);
      core.drive(runId);
      return core.runner.reconcile(
        runId,
        position,
        value === null ? { kind: "not_applied" } : { kind: "observed", outcome: { ok: true, value } },
      );
    });
    const heads = await core.store.heads(runId);
    const call = heads?.calls.find((one) => one.position === position);
    const outcome = await outcomeOf(core, heads, position);
    if (call !== undefined && call.unknownReason !== null && outcome === undefined && !isTaken)
      throw new OperationError("unavailable", `run ${runId} is not driven now; try again`);
    const counts =
      value === null
        ? call?.unknownReason === null && !(isGivenUp(outcome) && call.attempts === attempts)
        : outcome?.ok === true && valueText(outcome.value) === valueText(value);
    if (!counts) throw decidedOtherwise(runId, position);
  }

  /** Throws OperationError when nobody asks what became of the call. */
  async #unknown(runId: string, position: number): Promise<CallHead> {
    const heads = await this.#core.store.heads(runId);
    if (heads === null || heads.run.state === "finished")
      throw new OperationError("conflict", `run ${runId} is finished already`);
    const call = heads.calls.find((one) => one.position === position);
    if (call !== undefined && call.unknownReason !== null) return call;
    throw notUnknown(heads, position);
  }

  /** The value as the script gets it. Throws OperationError for one that the function does not return. */
  async #checked(
    {
      flow,
      versionHash,
      name,
    }: { readonly flow: string; readonly versionHash: string; readonly name: string },
    value: unknown,
  ): Promise<EncodedValue> {
    const output = await this.#output(flow, versionHash, name);
    if (output === undefined) return encoded("the value", value);
    const checked = await output["~standard"].validate(value);
    if (checked.issues === undefined) return encoded("the value", checked.value);
    const [issue] = checked.issues;
    const path = (issue?.path ?? []).map((part) => String(typeof part === "object" ? part.key : part));
    const where = path.length === 0 ? "" : ` at ${path.join(".").slice(0, 200)}`;
    const what =
      value === undefined
        ? `${name} returns something: say what it returned, with: --value JSON`
        : `this is not what ${name} returns${where}: ${(issue?.message ?? "it is refused").slice(0, 300)}`;
    throw new OperationError("invalid", what);
  }

  async #output(flow: string, hash: string, name: string): Promise<Output> {
    try {
      const { runnable } = await this.#core.catalog.runnable(flow, hash);
      return runnable.functions.find((row) => row.name === name)?.output;
    } catch (error) {
      if (error instanceof StoreFailure) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw new OperationError("unavailable", `what ${name} returns cannot be known now: ${why}`);
    }
  }
}

type Output = Awaited<
  ReturnType<ServiceCore["catalog"]["runnable"]>
>["runnable"]["functions"][number]["output"];

/** The run ended, and nobody will ever know. */
function isGivenUp(outcome: CallOutcome | undefined): boolean {
  return outcome !== undefined && !outcome.ok && outcome.error.code === "outcome_unknown";
}

function decidedOtherwise(runId: string, position: number): OperationError {
  return new OperationError(
    "conflict",
    `call ${position} of run ${runId} was decided otherwise, or its run ended; see: flowcell runs ${runId}`,
  );
}

function notUnknown({ run, calls }: RunHeads, position: number): OperationError {
  const unknown = calls.filter((one) => one.unknownReason !== null).map((one) => one.position);
  const advice = unknown.length === 0 ? "no call of it is" : `unknown are ${unknown.join(", ")}`;
  return new OperationError("conflict", `call ${position} of run ${run.runId} is not unknown; ${advice}`);
}
