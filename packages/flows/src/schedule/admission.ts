/**
 * Which runs may begin now: pure bookkeeping in memory. The service tells it of every unfinished run and of what becomes of
 * it, and begins what `next` names.
 *
 * Kept true: of the runs of one flow with one concurrency key, no more than the limit hold a place when another begins (a
 * suspended run holds one, a run that waits for an operator to reconcile it holds none); the oldest goes first, one that is
 * not due yet lets others pass; over all flows no more than `activeMost` are active when another begins, and flows take
 * turns, so that a flow with a thousand waiting runs delays another by one run. Runs that had begun before are never held up:
 * a run that goes on after a suspension is counted, not asked.
 */

export interface AdmissionRun {
  readonly runId: string;
  readonly flow: string;
  readonly key: string;
  /** How many runs of this flow and key may hold a place. */
  readonly limit: number;
  readonly notBefore: number;
  readonly deduplicationKey: string | null;
}

/** `active` holds a place and counts for all flows, `suspended` holds a place, `stuck` holds none. */
export type PlaceState = "waiting" | "active" | "suspended" | "stuck";

interface Entry extends AdmissionRun {
  readonly order: number;
  state: PlaceState;
  /** False while it is not committed: it counts, and does not begin. */
  ready: boolean;
}

interface Lane {
  /** Oldest first. */
  readonly waiting: Entry[];
  /** Oldest first: by the order in which they began. */
  readonly begun: Set<Entry>;
}

interface FlowLanes {
  readonly lanes: Map<string, Lane>;
  waiting: number;
  held: boolean;
}

export class Admission {
  readonly #activeMost: number;
  readonly #entries = new Map<string, Entry>();
  /** In the order of their turns. */
  readonly #flows = new Map<string, FlowLanes>();
  #active = 0;
  #added = 0;

  constructor(activeMost: number) {
    this.#activeMost = activeMost;
  }

  /** Takes a place in the order for a run that is about to be committed; `confirm` or `remove` follows. */
  reserve(run: AdmissionRun): void {
    this.add(run);
    const entry = this.#entries.get(run.runId);
    if (entry !== undefined) entry.ready = false;
  }

  confirm(runId: string): void {
    const entry = this.#entries.get(runId);
    if (entry !== undefined) entry.ready = true;
  }

  /** Runs are added oldest first. */
  add(run: AdmissionRun, state: PlaceState = "waiting"): void {
    if (this.#entries.has(run.runId)) return;
    const entry: Entry = { ...run, order: this.#added++, state, ready: true };
    this.#entries.set(run.runId, entry);
    const flow = this.#flow(run.flow);
    const lane = laneOf(flow, run.key);
    if (state === "waiting") {
      lane.waiting.push(entry);
      flow.waiting += 1;
    } else {
      lane.begun.add(entry);
      if (state === "active") this.#active += 1;
    }
  }

  /** What became of a run that had begun. */
  set(runId: string, state: Exclude<PlaceState, "waiting">): void {
    const entry = this.#entries.get(runId);
    if (entry === undefined || entry.state === "waiting") return;
    this.#count(entry, -1);
    entry.state = state;
    this.#count(entry, 1);
  }

  remove(runId: string): void {
    const entry = this.#entries.get(runId);
    if (entry === undefined) return;
    this.#entries.delete(runId);
    const flow = this.#flow(entry.flow);
    const lane = laneOf(flow, entry.key);
    if (entry.state === "waiting") {
      lane.waiting.splice(lane.waiting.indexOf(entry), 1);
      flow.waiting -= 1;
    } else {
      lane.begun.delete(entry);
      this.#count(entry, -1);
    }
    if (lane.waiting.length === 0 && lane.begun.size === 0) flow.lanes.delete(entry.key);
    if (flow.lanes.size === 0 && !flow.held) this.#flows.delete(entry.flow);
  }

  /** Runs of a held flow that have not begun wait. */
  hold(name: string, held: boolean): void {
    const flow = this.#flow(name);
    flow.held = held;
    if (flow.lanes.size === 0 && !held) this.#flows.delete(name);
  }

  state(runId: string): PlaceState | undefined {
    return this.#entries.get(runId)?.state;
  }

  /** The unfinished run that has this deduplication key. */
  withKey(flow: string, deduplicationKey: string): string | undefined {
    for (const lane of this.#flows.get(flow)?.lanes.values() ?? []) {
      for (const entry of [...lane.begun, ...lane.waiting]) {
        if (entry.deduplicationKey === deduplicationKey) return entry.runId;
      }
    }
    return undefined;
  }

  /** Runs of a flow that have not begun. */
  waiting(flow: string): number {
    return this.#flows.get(flow)?.waiting ?? 0;
  }

  /** Whether one more run would go beyond the limit, counting those that have not begun. */
  full(flow: string, key: string, limit: number): boolean {
    const lane = this.#flows.get(flow)?.lanes.get(key);
    return lane !== undefined && holding(lane) + lane.waiting.length >= limit;
  }

  /** The runs of a flow and key that have to go so that there are at most `most`, oldest first. */
  oldest(flow: string, key: string, most: number): readonly string[] {
    const lane = this.#flows.get(flow)?.lanes.get(key);
    if (lane === undefined) return [];
    const holders = [...lane.begun].filter(({ state }) => state !== "stuck");
    const all = [...holders, ...lane.waiting];
    return all.slice(0, Math.max(0, all.length - most)).map(({ runId }) => runId);
  }

  /** Runs that begin now; they are active from here on. */
  next(now: number): readonly string[] {
    const begun: string[] = [];
    let idle = 0;
    while (this.#active < this.#activeMost && idle < this.#flows.size) {
      const [name, flow] = this.#flows.entries().next().value ?? [];
      if (name === undefined || flow === undefined) break;
      // Whoever had a turn stands at the end.
      this.#flows.delete(name);
      this.#flows.set(name, flow);
      const entry = flow.held || flow.waiting === 0 ? undefined : firstOf(flow, now);
      if (entry === undefined) {
        idle += 1;
        continue;
      }
      idle = 0;
      const lane = laneOf(flow, entry.key);
      lane.waiting.splice(lane.waiting.indexOf(entry), 1);
      flow.waiting -= 1;
      lane.begun.add(entry);
      entry.state = "active";
      this.#active += 1;
      begun.push(entry.runId);
    }
    return begun;
  }

  /** When a run that is not due yet will be; null for none. */
  nextDue(now: number): number | null {
    let due: number | null = null;
    for (const flow of this.#flows.values()) {
      if (flow.waiting === 0 || flow.held) continue;
      for (const lane of flow.lanes.values()) {
        for (const { notBefore } of lane.waiting) {
          if (notBefore > now && (due === null || notBefore < due)) due = notBefore;
        }
      }
    }
    return due;
  }

  get active(): number {
    return this.#active;
  }

  #count(entry: Entry, by: 1 | -1): void {
    if (entry.state === "active") this.#active += by;
  }

  #flow(name: string): FlowLanes {
    let flow = this.#flows.get(name);
    if (flow === undefined) {
      flow = { lanes: new Map(), waiting: 0, held: false };
      this.#flows.set(name, flow);
    }
    return flow;
  }
}

function laneOf(flow: FlowLanes, key: string): Lane {
  let lane = flow.lanes.get(key);
  if (lane === undefined) {
    lane = { waiting: [], begun: new Set() };
    flow.lanes.set(key, lane);
  }
  return lane;
}

function holding(lane: Lane): number {
  let places = 0;
  for (const { state } of lane.begun) if (state !== "stuck") places += 1;
  return places;
}

/** The oldest run of the flow that may begin. */
function firstOf(flow: FlowLanes, now: number): Entry | undefined {
  let first: Entry | undefined;
  for (const lane of flow.lanes.values()) {
    const entry = lane.waiting.find(({ notBefore, ready }) => ready && notBefore <= now);
    if (entry === undefined || (first !== undefined && first.order < entry.order)) continue;
    if (holding(lane) < entry.limit) first = entry;
  }
  return first;
}
