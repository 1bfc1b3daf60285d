/**
 * The service of flows: one method for each operation that the command line, the socket and programs ask for. Everything
 * that it keeps is in the store; `createFlowService` takes up what an earlier process left.
 *
 * TRUST: options come from callers that are allowed to ask (roles are decided before); names and values in them are checked
 * here or by what they are handed to. Kept true: what is the caller's mistake is an OperationError with the remedy; anything
 * else that is thrown is the store's failure or a bug.
 */

import type { QuarantineRow, RunHeads, RunHistory, RunQuery, RunRow, RunState } from "@flowcell/journal";
import { didYouMean, isStatus, statuses } from "@flowcell/protocol";
import { approve, disable, enable, reject, revoke } from "./catalog/decisions.js";
import { checkTools } from "./catalog/functions.js";
import { install, show } from "./catalog/install.js";
import { triggerLine } from "./catalog/reach.js";
import type { VersionPlan } from "./catalog/version-plan.js";
import {
  type FlowReport,
  type FlowService,
  type FlowServiceOptions,
  OperationError,
  type ReplayReport,
  type RunReport,
  type VersionReport,
} from "./ports.js";
import { RetentionJob } from "./schedule/retention.js";
import { Answers, encoded, existing, sendSignal } from "./service-answers.js";
import { type ServiceCore, type ServiceParts, systemParts } from "./service-core.js";
import { openCore } from "./service-open.js";
import { Reconciles } from "./service-reconcile.js";
import { replayRun } from "./service-replay.js";
import { runReport } from "./service-report.js";

/** Rejects with StoreFailure when the store cannot be read, with HostFunctionError for functions that cannot be granted. */
export async function createFlowService(
  options: FlowServiceOptions,
  parts: ServiceParts = systemParts,
): Promise<FlowService> {
  checkTools(options.functions);
  return new StoredFlows(await openCore(options, parts));
}

const runStates: readonly RunState[] = ["pending", "running", "suspended", "finished"];
const runsUsual = 50;
const keyChars = 200;
const eventIdChars = 200;
const eventName = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/;
const eventNameChars = 128;

type Options<Name extends keyof FlowService> = FlowService[Name] extends (options: infer Given) => unknown
  ? Given
  : never;

class StoredFlows implements FlowService {
  readonly failed: Promise<unknown>;
  readonly #core: ServiceCore;
  readonly #answers: Answers;
  readonly #reconciles: Reconciles;
  readonly #retention: RetentionJob;
  #closing = false;

  constructor(core: ServiceCore) {
    this.#core = core;
    this.#answers = new Answers(core);
    this.#reconciles = new Reconciles(core);
    this.failed = core.failed;
    this.#retention = new RetentionJob(core);
  }

  // ------------------------------------------------------------------------------------------------------------ versions

  async install(options: Options<"install">): Promise<VersionReport & { readonly added: boolean }> {
    return await install(this.#core.catalog, options);
  }

  async approve(options: Options<"approve">): Promise<void> {
    const { catalog } = this.#core;
    const before = catalog.entry(options.flow).row.approvedHash;
    await catalog.alone(options.flow, () => approve(catalog, options));
    if (before !== null && before !== options.hash) this.#core.released(options.flow, before);
    this.#core.pump();
  }

  async reject(options: Options<"reject">): Promise<void> {
    const { catalog } = this.#core;
    catalog.entry(options.flow);
    await catalog.alone(options.flow, () => reject(catalog, options));
  }

  async revoke(options: Options<"revoke">): Promise<void> {
    const { catalog, store } = this.#core;
    catalog.entry(options.flow);
    const head = await catalog.alone(options.flow, () => revoke(catalog, options));
    if (head === null) return;
    const unfinished = await store.unfinished();
    const runs = unfinished.filter(
      ({ flow, versionHash }) => flow === head.flow && versionHash === head.hash,
    );
    await Promise.all(runs.map(({ runId }) => this.#core.cancel(runId, options.by, "revoked")));
    this.#core.released(head.flow, head.hash);
    this.#core.pump();
  }

  async enable(flow: string, by: string): Promise<void> {
    const { catalog, admission } = this.#core;
    catalog.entry(flow);
    await catalog.alone(flow, () => enable(catalog, flow, by));
    admission.hold(flow, false);
    this.#core.pump();
  }

  async disable(flow: string, by: string, reason: string): Promise<void> {
    const { catalog, admission } = this.#core;
    catalog.entry(flow);
    await catalog.alone(flow, () => disable(catalog, flow, by, reason));
    admission.hold(flow, true);
  }

  async show(flow: string, hash?: string): Promise<VersionReport> {
    if (hash !== undefined && hash.length < 8) {
      throw new OperationError("invalid", "name a version by at least 8 characters of its hash");
    }
    return await show(this.#core.catalog, flow, hash);
  }

  async list(): Promise<readonly FlowReport[]> {
    const { catalog, store } = this.#core;
    const counts = new Map<string, { running: number; waiting: number; stuck: number }>();
    for (const { flow, state, status } of await store.unfinished()) {
      const count = counts.get(flow) ?? { running: 0, waiting: 0, stuck: 0 };
      if (status === "needs_reconcile") count.stuck += 1;
      else if (state === "running") count.running += 1;
      else count.waiting += 1;
      counts.set(flow, count);
    }
    const reports: FlowReport[] = [];
    for (const { row, versions } of catalog.entries()) {
      const { flow, approvedHash } = row;
      const shown = approvedHash ?? [...versions.keys()].at(-1);
      const [last] = await store.runs({ flow, limit: 1 });
      const count = counts.get(flow);
      reports.push({
        flow,
        enabled: row.enabled,
        disabledBy: row.disabledBy,
        disabledReason: row.disabledReason,
        approvedHash,
        trigger: shown === undefined ? "manual" : triggerText(await catalog.readable(flow, shown)),
        nextFireAt: row.nextFireAt,
        lastRun:
          last === undefined
            ? null
            : { runId: last.runId, status: last.status, at: last.finishedAt ?? last.changedAt },
        running: count?.running ?? 0,
        waiting: count?.waiting ?? 0,
        needsReconcile: count?.stuck ?? 0,
        versions: [...versions.values()]
          .reverse()
          .map(({ hash, number, state, installedAt }) => ({ hash, number, state, installedAt })),
      });
    }
    return reports;
  }

  // ---------------------------------------------------------------------------------------------------------------- runs

  async start(options: Options<"start">): Promise<{ readonly runId: string; readonly created: boolean }> {
    this.#core.mustBeOpen();
    const { flow, input, by, deduplicationKey } = options;
    const plan = await this.#core.catalog.approvedPlan(flow);
    return await this.#core.starter.start({
      plan,
      input: { kind: "value", value: input },
      trigger: { kind: "manual", by },
      // A caller's keys are not those of cron times and events: nobody can take a time from a flow.
      deduplicationKey: deduplicationKey === undefined ? null : callerKey(deduplicationKey),
    });
  }

  async wait(
    runId: string,
    {
      signal,
      through = "suspended",
    }: { readonly signal?: AbortSignal; readonly through?: "suspended" | "finished" } = {},
  ): Promise<RunReport> {
    const { watchers } = this.#core;
    for (;;) {
      const { changed, leave } = watchers.watch(runId, signal);
      try {
        const run = await existing(this.#core, runId);
        const ending = signal?.aborted === true || watchers.over;
        if (ending || isOver(run, through)) {
          // What is told is what was judged: a suspended run may be awake again by the time its calls are read.
          const heads = await this.#heads(runId);
          if (ending || isOver(heads.run, through)) return await this.#report(heads);
          continue;
        }
        await changed;
      } finally {
        leave();
      }
    }
  }

  async run(runId: string): Promise<RunReport> {
    return await this.#report(await this.#heads(runId));
  }

  async #report(heads: RunHeads): Promise<RunReport> {
    return runReport(heads, await this.#core.store.logs(heads.run.runId), this.#core.catalog.now());
  }

  async #heads(runId: string): Promise<RunHeads> {
    const heads = await this.#core.store.heads(runId);
    if (heads !== null) return heads;
    await existing(this.#core, runId);
    throw new Error(`run ${runId} is there and has no calls to be read`);
  }

  async history(runId: string): Promise<RunHistory> {
    const history = await this.#core.store.history(runId);
    if (history !== null) return history;
    await existing(this.#core, runId);
    throw new Error(`run ${runId} is there and has no history`);
  }

  async runs({ flow, state, limit = runsUsual, before }: Options<"runs">): Promise<readonly RunRow[]> {
    if (flow !== undefined) this.#core.catalog.entry(flow);
    if (!Number.isInteger(limit) || limit < 1 || limit > 1000) {
      throw new OperationError("invalid", "limit must be a whole number from 1 to 1000");
    }
    return await this.#core.store.runs({
      limit,
      ...(flow === undefined ? {} : { flow }),
      ...(before === undefined ? {} : { before }),
      ...(state === undefined ? {} : stateQuery(state)),
    });
  }

  async quarantined(runId: string | null): Promise<readonly QuarantineRow[]> {
    return await this.#core.store.quarantined(runId);
  }

  async cancel(runId: string, by: string): Promise<boolean> {
    await existing(this.#core, runId);
    return await this.#core.cancel(runId, by, "caller");
  }

  async signal(options: Options<"signal">): Promise<boolean> {
    return await sendSignal(this.#core, options);
  }

  async answer(options: Options<"answer">): Promise<{ readonly runId: string }> {
    return await this.#answers.answer(options);
  }

  async reconcile(options: Options<"reconcile">): Promise<void> {
    await this.#reconciles.reconcile(options);
  }

  async replay(runId: string): Promise<ReplayReport> {
    return await replayRun(this.#core, await this.history(runId));
  }

  async emit({ name, value, eventId }: Options<"emit">): Promise<readonly string[]> {
    this.#core.mustBeOpen();
    if (name.length > eventNameChars || !eventName.test(name)) {
      const rule = "words of a-z, 0-9, - and _ joined by dots, for example order.created";
      throw new OperationError(
        "invalid",
        `${JSON.stringify(name.slice(0, 80))} is no event's name: it has ${rule}`,
      );
    }
    if (eventId === "" || eventId.length > eventIdChars) {
      throw new OperationError("invalid", `an event's id has 1 to ${eventIdChars} characters`);
    }
    return await this.#core.triggers.emit(eventId, name, encoded("the value", value));
  }

  // ------------------------------------------------------------------------------------------------------------- the end

  async drain(patienceMs: number): Promise<void> {
    this.#retention.stop();
    await this.#core.drain(patienceMs);
  }

  async close(): Promise<void> {
    this.#retention.stop();
    if (this.#closing) return;
    this.#closing = true;
    await this.#core.close();
    await this.#retention.once();
  }
}

function callerKey(key: string): string {
  if (key !== "" && key.length <= keyChars) return `key:${key}`;
  throw new OperationError("invalid", `a deduplication key has 1 to ${keyChars} characters`);
}

function triggerText(plan: VersionPlan | string): string {
  return typeof plan === "string" ? `cannot be read: ${plan}` : triggerLine(plan.manifest);
}

/** A run whose calls go on without a worker is not one that waits for somebody. */
function isOver(run: RunRow, through: "suspended" | "finished"): boolean {
  if (run.state === "finished") return true;
  return through === "suspended" && run.state === "suspended" && run.reason !== "calls";
}

/** A state of runs, or a status that they ended with or stand at. */
function stateQuery(state: string): Pick<RunQuery, "states" | "statuses"> {
  const known = runStates.find((one) => one === state);
  if (known !== undefined) return { states: [known] };
  if (isStatus(state)) return { statuses: [state] };
  const near = didYouMean(state, [...runStates, ...statuses]);
  const advice =
    near === undefined ? `it is one of ${[...runStates, ...statuses].join(", ")}` : `did you mean ${near}?`;
  throw new OperationError("invalid", `${JSON.stringify(state.slice(0, 40))} is no state of runs; ${advice}`);
}
