/** What all parts of one simulated run share: its draws, its time, the world, the store and what is known to be in it. */

import { MemoryStore, type NewRun, type OperationResult, type RunOperation } from "@flowcell/journal";
import { type CallName, callNames, type Node, ProgramMaker } from "./program.js";
import { type Action, Queue } from "./queue.js";
import { Random } from "./random.js";
import { Broken, Record } from "./record.js";
import { World } from "./world.js";

export const runId = "run_simulated";
export const failuresMost = 3;
const startMs = 1_000_000;

/** What a run is and went through: for the checks of its end, and for counting what a simulation covers. */
export interface Story {
  readonly seed: number;
  readonly program: Node;
  readonly guestSeed: number;
  readonly inFlight: number;
  readonly deadlineMs: number;
  readonly startMs: number;
  readonly virtualTime: boolean;
  /** What it may have on record. */
  readonly recordedBytesMost: number;
  readonly timersMost: number;
  /** The guest is another one after the first crash. */
  readonly drifts: boolean;
  /** So is the engine. */
  readonly newEngine: boolean;
  /** Its workers die, and nothing else does. */
  readonly fragile: boolean;
  /** Processes that died, or lost the run. */
  crashes: number;
  /** Activations that failed for no fault of the script. */
  failures: number;
  cancelled: boolean;
  endedAt: number;
  status: string;
  steps: number;
  suspensions: number;
  unknowns: number;
  quarantined: number;
}

export class Stage {
  readonly random: Random;
  readonly queue = new Queue();
  readonly store = new MemoryStore();
  readonly world: World;
  readonly record = new Record();
  readonly story: Story;
  readonly tell: ((line: string) => void) | null;
  now = startMs;
  /** Mishaps that may still come; none: the world is calm. */
  mishapsLeft: number;
  over = false;
  readonly #names = new Map<number, CallName>();
  readonly #begun = new Map<number, number>();
  readonly #unknowns = new Map<number, number>();

  constructor(seed: number, tell: ((line: string) => void) | null) {
    const random = new Random(seed);
    this.random = random;
    this.tell = tell;
    this.world = new World(random);
    this.mishapsLeft = random.percent(20) ? 0 : random.between(1, 6);
    this.story = {
      seed,
      program: new ProgramMaker(random).make(),
      guestSeed: random.below(0x7fff_ffff),
      inFlight: random.pick([1, 2, 3, 8]),
      deadlineMs: random.percent(6) ? random.between(20, 20_000) : 1e12,
      startMs,
      virtualTime: random.percent(10),
      drifts: random.percent(3),
      fragile: random.percent(3),
      newEngine: random.percent(10),
      recordedBytesMost: random.percent(2) ? random.between(20, 400) : 1e9,
      timersMost: random.percent(2) ? random.between(0, 2) : 1e9,
      crashes: 0,
      failures: 0,
      cancelled: false,
      endedAt: 0,
      status: "",
      steps: 0,
      suspensions: 0,
      unknowns: 0,
      quarantined: 0,
    };
    if (this.story.fragile) this.mishapsLeft = 8;
  }

  later(delay: number, act: Action): void {
    this.queue.put(this.now + delay, act);
  }

  newRun(): NewRun {
    const { guestSeed, deadlineMs } = this.story;
    return {
      runId,
      flow: "simulated",
      versionHash: "hash",
      trigger: { kind: "manual", by: "simulator" },
      deduplicationKey: null,
      concurrencyKey: "",
      input: { text: "null", devalue: false, attachments: [] },
      seed: String(guestSeed),
      guestStartMs: startMs,
      createdAt: startMs,
      notBefore: startMs,
      deadlineMs,
      attempt: 1,
    };
  }

  // ------------------------------------------------------------------------------------------------------------ calls

  name(position: number, given: string): CallName {
    const name = callNames.find((one) => one === given);
    if (name === undefined) throw new Broken(`call ${position} has the unknown name ${given}`);
    this.#names.set(position, name);
    return name;
  }

  nameOf(position: number): CallName {
    const name = this.#names.get(position);
    if (name === undefined) throw new Broken(`call ${position} is begun and was never classified`);
    return name;
  }

  /** An effect is about to begin: its intent is stored, and one for each time. How many there are; 0 for what is no effect. */
  checkIntent(position: number): number {
    if (!isEffect(this.nameOf(position))) return 0;
    const attempts = this.record.calls.get(position)?.attempts ?? 0;
    const times = (this.#begun.get(position) ?? 0) + 1;
    this.#begun.set(position, times);
    if (times > attempts)
      throw new Broken(`call ${position} was begun ${times} times, with ${attempts} intents stored`);
    return attempts;
  }

  checkDeed(position: number): void {
    const deed = this.world.deeds.get(position);
    if (deed !== undefined && deed.applied > 1)
      throw new Broken(`the effect of call ${position} (${deed.name}) happened ${deed.applied} times`);
  }

  // ------------------------------------------------------------------------------------------------------------ store

  /** A unit was committed; `working`: the holder of the run has a worker. */
  committed(
    operations: readonly RunOperation[],
    results: readonly OperationResult[],
    working: boolean,
  ): void {
    this.record.apply(operations, results);
    for (const operation of operations) {
      if (operation.kind === "unknown" && operation.reason !== null) this.#checkUnknown(operation.position);
      else if (operation.kind === "run") this.#checkState(operation, working);
    }
  }

  #checkUnknown(position: number): void {
    const name = this.nameOf(position);
    const attempts = this.record.calls.get(position)?.attempts ?? 0;
    this.story.unknowns += 1;
    const times = (this.#unknowns.get(position) ?? 0) + 1;
    this.#unknowns.set(position, times);
    if (times > this.story.crashes)
      throw new Broken(`an operator is asked ${times} times about call ${position}`);
    if (this.story.crashes === 0 || (name !== "once" && name !== "proven") || attempts === 0)
      throw new Broken(`call ${position} is said to be unknown, and is not`);
  }

  #checkState({ patch: { state, status } }: RunOperation & { readonly kind: "run" }, working: boolean): void {
    if (state !== "suspended" && state !== "finished") return;
    if (working) throw new Broken(`a ${state} run holds a worker`);
    if (state === "suspended") {
      this.story.suspensions += 1;
      return;
    }
    this.story.status = status ?? "";
    this.story.endedAt = this.now;
    this.over = true;
  }
}

export function isEffect(name: CallName): boolean {
  return name === "keyed" || name === "once" || name === "proven";
}
