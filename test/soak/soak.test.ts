// Twenty thousand activations over one pool, of every kind that there is: nothing grows. Not this process, not its workers,
// not descriptors, not processes, once everything that is kept on purpose has been made.
//
// Growth is measured between the same points of equal rounds, after garbage collection; a single figure says nothing,
// because allocators keep what they had. The tolerances are stated where they are used. Latency is not looked at.
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import type { RunOptions } from "../../packages/flowcell/src/options.js";
import type { RunResult } from "../../packages/flowcell/src/result.js";
import { labelOf, show, sourceOf } from "../guests/case.js";
import { Laboratory } from "../guests/laboratory.js";
import { childrenOf } from "../parent/processes.js";
import { collectGarbage } from "./garbage.js";

const activations = 20_000;
const rounds = 10;
const KiB = 1024;
const MiB = 1024 * KiB;

/** A kind of activation, how many of a thousand are of it, and how each must end. */
interface Kind {
  readonly share: number;
  readonly options: Omit<RunOptions, "hostFunctions">;
  readonly end: string;
}

const kind = (share: number, body: string, end: string, more: Partial<RunOptions> = {}): Kind => ({
  share,
  end,
  options: { source: sourceOf({ body }), label: labelOf({}), ...more },
});

const kinds: readonly Kind[] = [
  kind(400, "return input", "completed", { input: { n: 1, list: [1, 2, 3] } }),
  kind(150, "return await t.echo(input)", "completed", { input: [new Date(0), new Map([[1, 2]])] }),
  kind(100, "const r = await Promise.all([t.echo(1), t.two(1, 2), t.echo(3)]); return r", "completed"),
  kind(100, "for (let i = 0; i < 3; i++) console.log('line', i, { i }); return 1", "completed"),
  kind(80, "throw new TypeError('x', { cause: new Error('y') })", "script_error/uncaught"),
  kind(40, "t.echo(1); Promise.reject(new Error('lost')); return 1", "completed"),
  kind(40, "try { await t.boom() } catch (e) { return e.code }", "completed"),
  kind(20, "await new Promise((r) => setTimeout(r, 5)); return Date.now()", "completed", {
    clock: "virtual",
  }),
  kind(20, "globalThis.kept = new Uint8Array(1e6).fill(1); return kept.length", "completed"),
  kind(15, "return () => 1", "script_error/unsendable"),
  kind(10, "await new Promise(() => {})", "script_error/deadlock"),
  kind(10, "return await t.echo(new Uint8Array(1e5))", "completed"),
  kind(5, "for (;;);", "budget_exceeded/cpu", { limits: { cpuMs: 2 } }),
  kind(3, "(function f() { f() })()", "budget_exceeded/stack"),
  kind(2, "const a = []; for (;;) a.push(new Uint8Array(1e6))", "budget_exceeded/memory", {
    limits: { heapBytes: 16 * MiB },
  }),
  kind(2, "await t.never()", "budget_exceeded/wall", { limits: { wallMs: 5 } }),
  kind(2, "return 1", "completed", { isolation: "process" }),
  kind(1, "const = 1", "script_error/syntax"),
];

interface Measured {
  /** Of this process, in bytes. */
  readonly heap: number;
  readonly rss: number;
  readonly external: number;
  readonly descriptors: number;
  readonly workers: number;
  /** The largest resident size of one worker, in bytes. */
  readonly workerRss: number;
}

function rssOf(pid: number): number {
  try {
    const pages = Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]);
    return pages * 4 * KiB;
  } catch {
    return 0; // it was retired a moment ago
  }
}

function measure(): Measured {
  collectGarbage();
  const { heapUsed, rss, external } = process.memoryUsage();
  const workers = childrenOf(process.pid).filter(({ name }) => name === "worker");
  return {
    heap: heapUsed,
    rss,
    external,
    descriptors: readdirSync("/proc/self/fd").length,
    workers: workers.length,
    workerRss: Math.max(...workers.map(({ pid }) => rssOf(pid))),
  };
}

/** Every kind in its share, thinly mixed: the k-th of n activations of a kind comes at about k/n of the round. */
function schedule(count: number): readonly Kind[] {
  const placed = kinds.flatMap((one, row) => {
    const times = Math.max(1, Math.round((one.share * count) / 1000));
    return Array.from({ length: times }, (_, k) => ({
      one,
      at: (k + (row + 1) / (kinds.length + 1)) / times,
    }));
  });
  return placed.sort((a, b) => a.at - b.at).map(({ one }) => one);
}

function endOf(result: RunResult): string {
  return result.ok ? result.status : `${result.status}/${result.error.code}`;
}

describe("twenty thousand activations", () => {
  // Workers are retired often, so that starting and ending them is part of what is repeated.
  const lab = new Laboratory({ workersMax: 6, spares: 1, activationsMax: 100 });
  const ends = new Map<string, number>();

  afterAll(() => lab.close());

  async function round(): Promise<void> {
    const queue = schedule(activations / rounds);
    let next = 0;
    // Four at a time: two processors, and a queue that is never empty.
    const consume = async (): Promise<void> => {
      for (let one = queue[next++]; one !== undefined; one = queue[next++]) {
        const result = await lab.runtime.run(one.options);
        if (endOf(result) !== one.end) throw new Error(`${one.end} expected: ${show(result)}`);
        ends.set(one.end, (ends.get(one.end) ?? 0) + 1);
      }
    };
    await Promise.all([consume(), consume(), consume(), consume()]);
  }

  test("leave memory, descriptors and processes as they were after the warm-up", {
    timeout: 300_000,
  }, async () => {
    const figures: Measured[] = [];
    for (let at = 0; at < rounds; at++) {
      await round();
      figures.push(measure());
    }
    const total = [...ends.values()].reduce((sum, count) => sum + count, 0);
    expect(total).toBeGreaterThanOrEqual(activations);
    expect(ends.size).toBe(new Set(kinds.map(({ end }) => end)).size);

    // The first three rounds are warm-up: code is compiled, buffers and caches get their size.
    const warm = figures.slice(2, 5);
    const last = figures.slice(-3);
    const most = (list: readonly Measured[], name: keyof Measured): number =>
      Math.max(...list.map((figure) => figure[name]));
    const least = (list: readonly Measured[], name: keyof Measured): number =>
      Math.min(...list.map((figure) => figure[name]));
    const table = JSON.stringify(figures, null, 1);

    // 12,000 activations lie between the two: 100 bytes kept of each would be 1.2 MB.
    expect(least(last, "heap") - most(warm, "heap"), table).toBeLessThan(1 * MiB);
    expect(least(last, "external") - most(warm, "external"), table).toBeLessThan(2 * MiB);
    // The allocators' own fragmentation is in this one.
    expect(least(last, "rss") - most(warm, "rss"), table).toBeLessThan(24 * MiB);
    expect(most(last, "workers"), table).toBeLessThanOrEqual(6);
    // Three pipe ends and a pidfd for each worker that is there at the moment; dying ones may still have theirs.
    const beyondWorkers = ({ descriptors, workers }: Measured): number => descriptors - 4 * workers;
    expect(Math.min(...last.map(beyondWorkers)), table).toBeLessThanOrEqual(
      Math.max(...warm.map(beyondWorkers)),
    );
    expect(most(last, "workerRss") - most(warm, "workerRss"), table).toBeLessThan(1 * MiB);

    const { activations: served, retired, violations, startsRefused, waiting } = lab.health;
    // What cannot be parsed is refused before a worker is asked for.
    expect(served).toBe(total - (ends.get("script_error/syntax") ?? 0));
    expect(retired).toBeGreaterThan(total / 100 - 10);
    expect({ violations, startsRefused, waiting }).toEqual({ violations: {}, startsRefused: {}, waiting: 0 });
    expect(lab.misconduct).toBe("");
  });
});
