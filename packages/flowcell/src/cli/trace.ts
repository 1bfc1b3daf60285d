/**
 * `--trace`: what happens during a run, one line per step on standard error with the time since the process started. It looks on
 * from the outside (runtime parts, the request on its way to the pool) and changes nothing.
 */

import type { Script } from "@flowcell/bundle";
import { printable } from "@flowcell/bundle";
import type { ActivationRequest, HostCall, PoolEvent } from "@flowcell/pool";
import type { CallOutcome, EncodedValue } from "@flowcell/protocol";
import {
  describePlan,
  type PreparedPlan,
  preparePlan,
  type SandboxPlan,
  type SandboxPolicy,
} from "@flowcell/sandbox";
import type { RuntimeOptions } from "../options.js";
import type { RunResult } from "../result.js";
import { openPool, type RuntimeParts, type RuntimePool } from "../runtime.js";
import { bytesText, msText } from "./human.js";

export class Trace implements RuntimeParts {
  readonly #write: (text: string) => void;

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  readonly prepare = (policy: SandboxPolicy): PreparedPlan => {
    const prepared = preparePlan(policy);
    const { result } = prepared;
    if (!result.ok) this.#line("plan", "refused: this system cannot give what the policy requires");
    else this.#plan(result.plan);
    return prepared;
  };

  readonly createPool = (plan: SandboxPlan, options: RuntimeOptions): RuntimePool => {
    const pool = openPool(plan, {
      ...options,
      onEvent: (event) => {
        for (const line of poolEventText(event).split("\n")) this.#line("pool", `${event.kind}: ${line}`);
      },
    });
    this.#line("pool", "starting a worker");
    return pool;
  };

  readonly onScript = (script: Script): void => {
    const { label, text, inputs, sha256 } = script;
    const files = inputs.length === 1 ? "1 file" : `${inputs.length} files`;
    this.#line(
      "script",
      `${label}: ${files}, ${bytesText(Buffer.byteLength(text))}, sha256 ${sha256.slice(0, 12)}`,
    );
  };

  readonly onRequest = (request: ActivationRequest): ActivationRequest => {
    const { names, input, limits } = request;
    this.#line("run", `input ${valueText(input)}; host functions: ${names.join(", ")}`);
    this.#line(
      "run",
      `limits ${Object.entries(limits)
        .map(([name, value]) => `${name}=${value}`)
        .join(" ")}`,
    );
    const { onHostCall } = request;
    return {
      ...request,
      ...(onHostCall === undefined
        ? {}
        : { onHostCall: (call: HostCall) => this.#call((own) => onHostCall.call(request, own), call) }),
      onConsole: (line) => {
        this.#line("log", `${line.level}, ${bytesText(Buffer.byteLength(line.text))}`);
        request.onConsole?.(line);
      },
    };
  };

  finish(result: RunResult): void {
    const { usage, confinement } = result;
    if (confinement !== null) {
      this.#line(
        "worker",
        `${confinement.backend} ${confinement.os}-${confinement.arch}, tier ${confinement.tier}`,
      );
      for (const { layer, detail } of confinement.layers) this.#line("worker", `  ${layer}: ${detail}`);
      for (const note of confinement.notes) this.#line("worker", `  note: ${note}`);
    }
    const code = result.ok ? "" : ` (${result.error.code})`;
    this.#line(
      "end",
      `${result.status}${code}; waited ${msText(usage.queuedMs)} for the worker, ran ${msText(usage.wallMs)}`,
    );
    const wire = `${bytesText(usage.bytesIn)} to the worker, ${bytesText(usage.bytesOut)} back`;
    this.#line("end", `${msText(usage.cpuMs)} CPU, ${bytesText(usage.heapPeakBytes)} heap, ${wire}`);
  }

  #plan(plan: SandboxPlan): void {
    const { backend, kernelRelease, landlock, landlockAbi, buildId, required } = describePlan(plan);
    const kernel = `Linux ${kernelRelease}, Landlock ABI ${landlockAbi} (${landlock})`;
    this.#line("plan", `${backend}; ${kernel}; worker build ${buildId.slice(0, 12)}`);
    this.#line("plan", `requires ${required.map(({ control }) => control).join(", ")}`);
  }

  async #call(answer: NonNullable<ActivationRequest["onHostCall"]>, call: HostCall): Promise<CallOutcome> {
    const begun = performance.now();
    this.#line("call", `${call.position} ${call.name} ${valueText(call.args)}`);
    const outcome = await answer(call);
    const took = msText(performance.now() - begun);
    const how = outcome.ok ? `answered ${valueText(outcome.value)}` : `failed: ${outcome.error.code}`;
    this.#line("call", `${call.position} ${call.name} ${how} after ${took}`);
    return outcome;
  }

  #line(part: string, text: string): void {
    // The clock's origin is the start of the process.
    const at = performance.now().toFixed(1).padStart(8);
    this.#write(`${at} ms  ${part.padEnd(6)} ${printable(text)}\n`);
  }
}

/** One line, or several for a bug. */
export function poolEventText(event: PoolEvent): string {
  switch (event.kind) {
    case "start_refused":
      return event.refusal.message;
    case "violation": {
      const { pid, verdict } = event;
      return `worker ${pid}: ${verdict.status} (${verdict.reason}): ${verdict.message}`;
    }
    case "lost":
      return `worker ${event.pid}: ${event.message}`;
    case "bug": {
      const { pid, error } = event;
      return `worker ${pid}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
    }
  }
}

function valueText(value: EncodedValue): string {
  const binary = value.attachments.reduce((sum, bytes) => sum + bytes.byteLength, 0);
  const text = bytesText(Buffer.byteLength(value.text));
  return binary === 0 ? text : `${text} + ${bytesText(binary)} binary`;
}
