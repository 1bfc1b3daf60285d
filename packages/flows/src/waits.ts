/**
 * Which runs wait for which others, in memory: filled from the store when the service opens and from every unit that is
 * committed after that. The service asks when a run finishes.
 */

import type { OpenWait, Unit } from "@flowcell/journal";

export interface Waiter {
  readonly runId: string;
  readonly position: number;
}

export class RunWaits {
  /** Run that waits → position → run that is awaited. */
  readonly #byWaiter = new Map<string, Map<number, string>>();
  /** Run that is awaited → runs that wait for it. */
  readonly #byTarget = new Map<string, Set<string>>();

  fill(waits: readonly OpenWait[]): void {
    for (const { runId, position, wait } of waits) {
      if (wait.kind === "run") this.#add(runId, position, wait.runId);
    }
  }

  /** A unit that was committed. */
  observe({ fence, operations }: Unit): void {
    if (fence === undefined) return;
    const { runId } = fence;
    for (const operation of operations) {
      if (operation.kind === "call") {
        const { wait, position } = operation.call;
        if (wait?.kind === "run") this.#add(runId, position, wait.runId);
      } else if (operation.kind === "deliver" || operation.kind === "cancelCall") {
        this.#remove(runId, operation.position);
      }
    }
  }

  waitersOf(target: string): readonly Waiter[] {
    const waiters: Waiter[] = [];
    for (const runId of this.#byTarget.get(target) ?? []) {
      for (const [position, awaited] of this.#byWaiter.get(runId) ?? []) {
        if (awaited === target) waiters.push({ runId, position });
      }
    }
    return waiters;
  }

  /** A finished run waits for nothing. */
  finished(runId: string): void {
    for (const position of [...(this.#byWaiter.get(runId)?.keys() ?? [])]) this.#remove(runId, position);
  }

  #add(runId: string, position: number, target: string): void {
    const targets = this.#byWaiter.get(runId) ?? new Map<number, string>();
    targets.set(position, target);
    this.#byWaiter.set(runId, targets);
    const waiters = this.#byTarget.get(target) ?? new Set<string>();
    waiters.add(runId);
    this.#byTarget.set(target, waiters);
  }

  #remove(runId: string, position: number): void {
    const targets = this.#byWaiter.get(runId);
    const target = targets?.get(position);
    if (targets === undefined || target === undefined) return;
    targets.delete(position);
    if (targets.size === 0) this.#byWaiter.delete(runId);
    if ([...targets.values()].includes(target)) return;
    const waiters = this.#byTarget.get(target);
    waiters?.delete(runId);
    if (waiters?.size === 0) this.#byTarget.delete(target);
  }
}
