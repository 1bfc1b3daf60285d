// A runtime for tests: the library as it is, with a look at which process served each run and what the pool noticed.
//
// Used by the guest, survival and soak tests. Runs may be given the flow that they belong to, so that scripts of different
// texts meet in one worker, one after the other: that is the worker whose cleanliness is in question.
import type { ActivationRequest, ActivationResult, PoolEvent, PoolHealth } from "@flowcell/pool";
import type { WorkerConfinement } from "@flowcell/sandbox";
import type { RunOptions, RuntimeOptions } from "../../packages/flowcell/src/options.js";
import type { RunResult } from "../../packages/flowcell/src/result.js";
import { openPool, PooledRuntime, type RuntimeParts } from "../../packages/flowcell/src/runtime.js";
import { type GuestCase, labelOf, sourceOf } from "./case.js";
import { testHost } from "./host.js";

export interface Observed {
  readonly result: RunResult;
  /** The process that ran it and how many activations it had had, this one included; null if none did. */
  readonly worker: ActivationResult<WorkerConfinement>["worker"];
  readonly evidence: readonly string[];
}

export class Laboratory {
  readonly host = testHost();
  readonly events: PoolEvent[] = [];
  readonly runtime: PooledRuntime;
  #flow: string | undefined;
  #last: ActivationResult<WorkerConfinement> | undefined;

  /** `open` makes another pool than the library's. */
  constructor(options: RuntimeOptions = {}, open: NonNullable<RuntimeParts["createPool"]> = openPool) {
    this.runtime = new PooledRuntime(
      { hostFunctions: this.host.functions, onEvent: (event) => this.events.push(event), ...options },
      {
        onRequest: (request: ActivationRequest) =>
          this.#flow === undefined ? request : { ...request, flow: this.#flow },
        createPool: (plan, poolOptions) => {
          const pool = open(plan, poolOptions);
          return {
            activate: async (request) => {
              const result = await pool.activate(request);
              this.#last = result;
              return result;
            },
            health: () => pool.health(),
            close: () => pool.close(),
          };
        },
      },
    );
  }

  get health(): PoolHealth {
    const health = this.runtime.health();
    if (health === null) throw new Error("nothing has run in this laboratory yet");
    return health;
  }

  /** One run at a time: what was observed is that of the last. */
  async observe(options: RunOptions, flow?: string): Promise<Observed> {
    this.#flow = flow;
    this.#last = undefined;
    const result = await this.runtime.run(options);
    const last = this.#seen();
    return { result, worker: last?.worker ?? null, evidence: last?.evidence ?? [] };
  }

  /** A function of its own, because the compiler takes the field for unchanged since it was cleared. */
  #seen(): ActivationResult<WorkerConfinement> | undefined {
    return this.#last;
  }

  /** Runs a case; in the given flow, or in one of its own as any script is. */
  guest(guest: Omit<GuestCase, "name" | "expect">, flow?: string): Promise<Observed> {
    return this.observe(
      {
        source: sourceOf(guest),
        label: labelOf(guest),
        ...(guest.input === undefined ? {} : { input: guest.input }),
        ...(guest.limits === undefined ? {} : { limits: guest.limits }),
      },
      flow,
    );
  }

  /** What the pool saw that no script may bring about by JavaScript alone: "" if nothing. */
  get misconduct(): string {
    const events = this.events.map((event) =>
      event.kind === "violation"
        ? `${event.kind}: ${event.verdict.reason}: ${event.verdict.message}`
        : describe(event),
    );
    return events.join("; ");
  }

  close(): Promise<void> {
    return this.runtime.close();
  }
}

function describe(event: Exclude<PoolEvent, { kind: "violation" }>): string {
  if (event.kind === "start_refused") return `start refused: ${event.refusal.fact}: ${event.refusal.message}`;
  return event.kind === "lost" ? `lost: ${event.message}` : `bug: ${String(event.error)}`;
}

/** A plain script, to show that a pool (or a worker) is as good as new. */
export const plain: Pick<GuestCase, "body"> = {
  body: "console.log('plain'); const r = await t.echo({n: 20}); return [r.n + 22, ({}).x, typeof y, [1].push(2), await Promise.all([t.two(1,2), 5])]",
};
export const plainValue: readonly unknown[] = [42, undefined, "undefined", 2, [2, 5]];
