/**
 * Executions without a journal: from a script's text to its result in one activation, calls dispatched as they come. codemode.ts
 * sends here whatever neither asks for approvals nor has a store.
 *
 * Kept true: never rejects for what a script, a tool or a caller's option did; a second execution under an idempotency key is
 * the first one.
 */

import { createHash } from "node:crypto";
import { assembleResult, bundleFailed, logLine, notStarted } from "@flowcell/bundle";
import { dispatch, type Registry } from "@flowcell/host";
import { type ActivationRequest, type ConfinedPool, freshBytes } from "@flowcell/pool";
import { type EncodedValue, encodeValue, type Limits, limitCeilings, parseLimits } from "@flowcell/protocol";
import { KeyedResults, otherScript } from "./keyed-results.js";
import type { Normalizer, NormalResult, NormalScript } from "./normalize.js";
import { type ExecuteOptions, executeProblem } from "./options.js";
import type { ExecuteResult } from "./result.js";
import { newRunId } from "./run-id.js";
import type { Wording } from "./wording.js";

export interface DirectParts {
  readonly pool: ConfinedPool;
  readonly registry: Registry;
  readonly normalizer: Normalizer;
  readonly limits: Limits;
  readonly ceilings: Limits;
  readonly isolation: "process" | "reset";
  readonly wording: Wording;
  /** Whose scripts may follow each other in a process that is reset. */
  readonly flow: string;
}

/** An execution has no input: what a script works on comes from its tools. */
const noInput: EncodedValue = encodeValue(undefined, { textBytes: 64, attachmentBytes: 0, nodes: 8 });

export class DirectRuns {
  readonly #parts: DirectParts;
  readonly #limits: SentLimits;
  readonly #keyed = new KeyedResults();

  constructor(parts: DirectParts) {
    this.#parts = parts;
    this.#limits = sentLimits(parts.limits, parts.normalizer);
  }

  execute(code: unknown, options: ExecuteOptions): Promise<ExecuteResult> {
    const problem = requestProblem(code, options);
    if (problem !== undefined || typeof code !== "string")
      return Promise.resolve(refuse("request", problem ?? "the code must be a text"));
    const { idempotencyKey } = options;
    return idempotencyKey === undefined
      ? this.#run(code, options)
      : this.#once(code, options, idempotencyKey);
  }

  #once(code: string, options: ExecuteOptions, key: string): Promise<ExecuteResult> {
    // Unguessable without the key, and the same in a second process: tools can tell a call that was made before.
    const prefix = createHash("sha256").update(`${key.length}:${key}${code}`).digest("base64url");
    const run = (): Promise<ExecuteResult> => this.#run(code, options, prefix);
    return (
      this.#keyed.once(key, code, options.signal, run) ?? Promise.resolve(refuse("request", otherScript))
    );
  }

  async #run(code: string, options: ExecuteOptions, callKeyPrefix?: string): Promise<ExecuteResult> {
    const runId = newRunId();
    options.onRun?.(runId);
    const sent = this.#limitsOf(options);
    if (typeof sent === "string")
      return notStarted(runId, "invalid_input", { code: "limits", message: sent });
    const { normalizer, pool } = this.#parts;
    // Opening first lets workers start while a script is read.
    const opened = pool.open();
    const normal = normalizer.normalize(code, {
      sourceBytes: sent.asked.sourceBytes,
      ...(options.label === undefined ? {} : { label: options.label }),
    });
    const settled: NormalResult = normal instanceof Promise ? await normal : normal;
    if (!settled.ok) return bundleFailed(runId, settled.failure);
    if (!opened.ok) return notStarted(runId, "sandbox_unavailable", opened.failure);
    const { script } = settled;
    const request = this.#request(runId, options, script, sent.limits, callKeyPrefix);
    const activation = await opened.pool.activate(request);
    const result = assembleResult(activation, {
      runId,
      map: script.map,
      warnings: script.warnings,
      limits: sent.limits,
      effectOf: (name) => this.#parts.registry.get(name)?.effect,
    });
    return this.#parts.wording.result(result);
  }

  #request(
    runId: string,
    { signal, queueDeadlineMs, onLog }: ExecuteOptions,
    script: NormalScript,
    limits: Limits,
    callKeyPrefix: string | undefined,
  ): ActivationRequest {
    const { registry, isolation, flow } = this.#parts;
    const dispatching = { limits, clock: "real", runId } as const;
    return {
      flow,
      script: script.text,
      input: noInput,
      names: registry.names,
      limits,
      clock: { epochMs: Date.now(), mode: "real" },
      seed: freshBytes(32),
      isolation,
      callKeyPrefix: callKeyPrefix ?? runId,
      onHostCall: (call) => dispatch(registry, call, dispatching),
      ...(onLog === undefined ? {} : { onConsole: (line) => onLog(logLine(line, script.map)) }),
      ...(signal === undefined ? {} : { signal }),
      ...(queueDeadlineMs === undefined ? {} : { queueDeadlineMs }),
    };
  }

  /** The same object for every execution that asks for nothing: the pool keeps what it encoded of it. */
  #limitsOf({ limits: asked }: ExecuteOptions): SentLimits | string {
    if (asked === undefined) return this.#limits;
    const parsed = parseLimits(asked, this.#parts.limits, this.#parts.ceilings);
    return parsed.ok ? sentLimits(parsed.limits, this.#parts.normalizer) : parsed.message;
  }
}

export interface SentLimits {
  readonly asked: Limits;
  /** For the pool: what stands around a script, and what TypeScript becomes, is no fault of the script. */
  readonly limits: Limits;
}

export function sentLimits(asked: Limits, { addedBytes }: Normalizer): SentLimits {
  const sourceBytes = Math.min(limitCeilings.sourceBytes, asked.sourceBytes * 2 + addedBytes);
  return { asked, limits: Object.freeze({ ...asked, sourceBytes }) };
}

export function requestProblem(code: unknown, options: unknown): string | undefined {
  if (typeof code !== "string") return "the code must be a text";
  if (typeof options !== "object" || options === null) return "the options of an execution must be an object";
  return executeProblem(options);
}

export function refuse(code: "request" | "limits", message: string): ExecuteResult {
  return notStarted(newRunId(), "invalid_input", { code, message });
}

export function newFlow(): string {
  return `codemode:${freshBytes(16).toString("hex")}`;
}
