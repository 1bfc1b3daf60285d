/**
 * What people tell a run: the answer to an approval, a signal. What became of a call whose outcome is unknown is told by
 * service-reconcile.ts. Each is answered when it is on disk.
 *
 * Kept true: a call id is all that is needed to answer, and nobody can guess one; the same answer again changes nothing,
 * another one is refused, also when both come at the same time.
 *
 * TRUST: values are a caller's; they are encoded within the bounds of values that calls return.
 */

import type { RunHeads, RunRow } from "@flowcell/journal";
import {
  type CallOutcome,
  type EncodedValue,
  encodeValue,
  profileLimits,
  ValueError,
} from "@flowcell/protocol";
import { audit } from "./catalog/decisions.js";
import { commit } from "./commit.js";
import { newSignalId } from "./ids.js";
import { OnTheWay } from "./on-the-way.js";
import { type FlowService, OperationError } from "./ports.js";
import type { ServiceCore } from "./service-core.js";
import { decoded } from "./service-report.js";

type Options<Name extends "answer" | "signal"> = Parameters<FlowService[Name]>[0];

const nameBytes = 128;

export class Answers {
  readonly #core: ServiceCore;
  readonly #onTheWay = new OnTheWay<{ readonly runId: string }>();

  constructor(core: ServiceCore) {
    this.#core = core;
  }

  async answer(options: Options<"answer">): Promise<{ readonly runId: string }> {
    const { callId, approve, value } = options;
    const text = answerText(approve, encoded("the value", value));
    return await this.#onTheWay.share(callId, text, callId, () => this.#answer(options, text));
  }

  async #answer(
    { callId, approve, value, by }: Options<"answer">,
    text: string,
  ): Promise<{ readonly runId: string }> {
    const core = this.#core;
    const found = await core.store.callById(callId);
    if (found?.call.wait?.kind !== "approval") {
      const advice = "see what is asked with: flowcell runs RUN";
      throw new OperationError(
        "not_found",
        `no call is asked under ${JSON.stringify(callId.slice(0, 80))}; ${advice}`,
      );
    }
    const { runId, call } = found;
    const outcome: CallOutcome = { ok: true, value: encodeValue({ approved: approve, value, by }) };
    const isTaken = await core.recorded(runId, call.position, async () => {
      if ((await recordedAnswer(core, runId, call.position)) !== null) return false;
      core.drive(runId);
      return core.runner.waitDone(runId, call.position, outcome);
    });
    // Something else may have ended the wait in the meantime: what is recorded counts.
    const recorded = await recordedAnswer(core, runId, call.position);
    if (recorded === null)
      throw new OperationError("unavailable", `run ${runId} is not driven now; try again`);
    if (recorded !== text) {
      throw new OperationError(
        "conflict",
        `${callId} was answered differently before; the run has taken that answer`,
      );
    }
    if (isTaken) {
      const action = approve ? "approval.approve" : "approval.reject";
      await commit(core.store, [audit(core.catalog.now(), by, action, null, callId, runId)]);
    }
    return { runId };
  }
}

/** The answer that the run has, as text to compare; null while it waits. Throws when nobody's answer counts any more. */
async function recordedAnswer(core: ServiceCore, runId: string, position: number): Promise<string | null> {
  const heads = await core.store.heads(runId);
  const outcome = await outcomeOf(core, heads, position);
  if (outcome === undefined) {
    const call = heads?.calls.find((one) => one.position === position);
    if (call?.cancelled === false && heads?.run.state !== "finished") return null;
    throw new OperationError("conflict", `run ${runId} does not wait for an answer any more`);
  }
  if (!outcome.ok) {
    throw new OperationError(
      "conflict",
      `the call got no answer in time: it ended with ${outcome.error.code}`,
    );
  }
  const answer = decoded(outcome.value);
  if (typeof answer !== "object" || answer === null || !("approved" in answer)) return "";
  return answerText(answer.approved === true, encodeValue("value" in answer ? answer.value : undefined));
}

/** What the call of this position had ended with when the heads were read: that never changes. */
export async function outcomeOf(
  { store }: ServiceCore,
  heads: RunHeads | null,
  position: number,
): Promise<CallOutcome | undefined> {
  const head = heads?.deliveries.find((one) => one.kind === "call" && one.position === position);
  if (heads === null || head?.kind !== "call") return undefined;
  return head.outcome.ok ? ((await store.outcome(heads.run.runId, position)) ?? undefined) : head.outcome;
}

function answerText(approve: boolean, value: EncodedValue): string {
  return `${approve} ${valueText(value)}`;
}

/** The same for the same value. */
export function valueText({ text, devalue, attachments }: EncodedValue): string {
  const bytes = attachments.map((part) => Buffer.from(part).toString("base64")).join(",");
  return `${devalue} ${text} ${bytes}`;
}

/** False when a signal with this id was sent before. */
export async function sendSignal(core: ServiceCore, options: Options<"signal">): Promise<boolean> {
  const { runId, name, value, signalId = newSignalId(), by } = options;
  if (name === "" || Buffer.byteLength(name) > nameBytes) {
    throw new OperationError("invalid", `a signal's name has 1 to ${nameBytes} bytes`);
  }
  const at = core.catalog.now();
  const [result] = await commit(core.store, [
    { kind: "sendSignal", runId, name, value: encoded("the value", value), signalId, at },
  ]);
  if (result?.kind === "sent" && result.sent) {
    await commit(core.store, [audit(at, by, "run.signal", null, `${name} (${signalId})`, runId)]);
    core.runner.signalled(runId, name);
    return true;
  }
  const run = await existing(core, runId);
  if (run.state !== "finished") return false;
  throw new OperationError("conflict", `run ${runId} is finished; it takes no signal any more`);
}

export async function existing(core: ServiceCore, runId: string): Promise<RunRow> {
  const run = await core.store.run(runId);
  if (run !== null) return run;
  throw new OperationError(
    "not_found",
    `there is no run ${JSON.stringify(runId.slice(0, 80))}, or it was removed; see: flowcell runs`,
  );
}

export function encoded(what: string, value: unknown): EncodedValue {
  const { valueBytes, bodyBytes } = profileLimits("flow");
  try {
    return encodeValue(value, { textBytes: valueBytes, attachmentBytes: bodyBytes });
  } catch (error) {
    if (error instanceof ValueError) throw new OperationError("invalid", `${what}: ${error.message}`);
    throw error;
  }
}
