// Nothing survives an activation: whatever a script did, the next one in the same process sees what the first one in a
// fresh process sees, bit for bit where a script can look, and no byte of the last is left in the process's memory.
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { decodeValue } from "@flowcell/protocol";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { show } from "../guests/case.js";
import { Laboratory } from "../guests/laboratory.js";
import { capacityBody, fingerprintBody } from "./fingerprint.js";
import { pollutions } from "./pollution.js";
import { planForTests, type RawResult, RawWorker } from "./raw-worker.js";

const MiB = 1024 * 1024;
const generous = { cpuMs: 30_000, wallMs: 60_000, resultBytes: 16 * MiB };

function endOf(result: RawResult): string {
  return result.reason === undefined ? result.status : `${result.status}/${result.reason}`;
}

function returned(result: RawResult): unknown {
  if (result.value === undefined) throw new Error(`${endOf(result)}: ${result.error?.message}`);
  return decodeValue(result.value, { textBytes: 16 * MiB, nodes: 16 * MiB });
}

/** What a script can see, what it logged of it, and what the run itself shows from outside. */
async function fingerprint(worker: RawWorker): Promise<readonly string[]> {
  const result = await worker.run({ body: fingerprintBody, limits: generous });
  const lines = returned(result);
  if (!Array.isArray(lines)) throw new Error("no lines");
  const { heapPeakBytes, hostCalls, bytesOut } = result.usage;
  return [
    ...lines.map(String),
    ...result.logs.map(({ level, text, seq, timeMs }) => `${seq} ${timeMs} ${level} ${text}`),
    `heapPeakBytes ${heapPeakBytes}, hostCalls ${hostCalls}, bytesOut ${bytesOut}, warnings ${result.warnings.length}`,
  ];
}

/** Lines in which two fingerprints differ, the first few; a whole one has tens of thousands. */
function differences(one: readonly string[], other: readonly string[]): readonly string[] {
  const found: string[] = [];
  for (let at = 0; at < Math.max(one.length, other.length) && found.length < 10; at++) {
    if (one[at] !== other[at])
      found.push(`line ${at}: ${one[at]?.slice(0, 300)} → ${other[at]?.slice(0, 300)}`);
  }
  return found;
}

const plan = planForTests();
const engineStackBytes = 64 * MiB;

describe("in one process", () => {
  let worker: RawWorker;
  let first: readonly string[];
  let capacity: unknown;

  beforeAll(async () => {
    worker = await RawWorker.start(plan);
    first = await fingerprint(worker);
    capacity = returned(await worker.run({ body: capacityBody, limits: generous }));
  });

  afterAll(() => worker.close());

  test("a script sees a realm of some size, and itself change it", async () => {
    expect(first.length).toBeGreaterThan(3000);
    const changed = await worker.run({ body: `Object.prototype.x=1;\n${fingerprintBody}`, limits: generous });
    const lines = returned(changed);
    expect(Array.isArray(lines) && differences(first, lines.map(String)).length).toBeGreaterThan(0);
  });

  test("another fresh process looks the same", async () => {
    const other = await RawWorker.start(plan);
    try {
      expect(differences(first, await fingerprint(other))).toEqual([]);
    } finally {
      other.close();
    }
  });

  test.each(pollutions)("after $name the realm is as it was", async (pollution) => {
    const before = worker.activations;
    const result = await worker.run({ ...pollution, limits: { ...generous, ...pollution.limits } });
    expect(endOf(result), result.error?.message).toBe(pollution.end);
    expect(differences(first, await fingerprint(worker))).toEqual([]);
    expect(worker.activations).toBe(before + 2);
  });

  test("after all of that there is as much memory to be had as at first", async () => {
    expect(returned(await worker.run({ body: capacityBody, limits: generous }))).toEqual(capacity);
    expect(returned(await worker.run({ body: capacityBody, limits: generous }))).toEqual(capacity);
  });
});

/** Sixteen bytes that the script makes from its input, so that they were never in a frame. */
const marker = Buffer.from("f1c2a59c3e87d4b60f5a916be2704dc8", "hex");
const hidden = Buffer.from(marker.map((byte) => byte ^ 0x5c));

/** Writes the marker into buffers, texts, objects and the stack, and ends in a way of its own. */
const marking = `
const bytes = input.map((byte) => byte ^ 0x5c);
globalThis.kept = [];
const text = String.fromCharCode(...bytes);
const deep = (n, b) => n === 0 ? b.length : deep(n - 1, b.slice()) + b[0] - b[0];
const fill = (size) => { const b = new Uint8Array(size); for (let at = 0; at + 16 <= size; at += 16) b.set(bytes, at); kept.push(b) };
for (let i = 0; i < 100; i++) { fill(65536); kept.push(text.repeat(500) + i, { [text + i]: text, d: new DataView(bytes.slice().buffer) }) }
fill(4e6);
deep(500, bytes);
`;

/** Looks for anything but zero in memory that was never written to, got in every way there is. */
const scanning = `
let found = 0, scanned = 0;
const look = (view) => { scanned += view.length; for (let at = 0; at < view.length; at++) if (view[at] !== 0) found++ };
const kept = [];
const keep = (buffer) => { kept.push(buffer); look(new Uint8Array(buffer)) };
for (let i = 0; i < 40; i++) keep(new ArrayBuffer(65536));
for (const C of [Uint8Array, Float64Array, BigInt64Array]) keep(new C(20000).buffer);
const b = new ArrayBuffer(8, { maxByteLength: 3e6 }); b.resize(3e6); keep(b);
if (b.transfer) keep(new ArrayBuffer(8).transfer(1e6));
keep(new DataView(new ArrayBuffer(5e5)).buffer);
const holes = new Array(1e5); for (let at = 0; at < holes.length; at++) if (at in holes) found++;
keep(new ArrayBuffer(8e6));
return [found, scanned > 1e7];
`;

interface Mapping {
  readonly from: number;
  readonly to: number;
  readonly rights: string;
  readonly name: string;
}

function mappingsOf(pid: number): readonly Mapping[] {
  return readFileSync(`/proc/${pid}/maps`, "utf8")
    .split("\n")
    .flatMap((line) => {
      const [, from, to, rights, name] =
        /^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+\s*(.*)$/.exec(line) ?? [];
      if (from === undefined || to === undefined || rights === undefined) return [];
      return [{ from: Number.parseInt(from, 16), to: Number.parseInt(to, 16), rights, name: name ?? "" }];
    });
}

const pageBytes = 4096;

/** The pages of a range that exist, in memory or swapped out; what was never written, or was given back, does not. */
function presentPages(pid: number, from: number, to: number): readonly Buffer[] {
  const memory = openSync(`/proc/${pid}/mem`, "r");
  const table = openSync(`/proc/${pid}/pagemap`, "r");
  const entries = Buffer.alloc(1024 * 8);
  const found: Buffer[] = [];
  try {
    for (let at = from; at < to; at += 1024 * pageBytes) {
      const count = Math.min(1024, (to - at) / pageBytes);
      readSync(table, entries, 0, count * 8, (at / pageBytes) * 8);
      for (let page = 0; page < count; page++) {
        // Bits 62 and 63 of an entry: swapped, present.
        if ((entries.readUInt8(page * 8 + 7) & 0xc0) === 0) continue;
        const bytes = Buffer.alloc(pageBytes);
        readSync(memory, bytes, 0, pageBytes, at + page * pageBytes);
        found.push(bytes);
      }
    }
  } finally {
    closeSync(memory);
    closeSync(table);
  }
  return found;
}

/** Mappings of a process in which the bytes are. What crosses from one page to the next is not seen; they are many. */
function findInMemory(pid: number, wanted: Buffer): readonly string[] {
  return mappingsOf(pid).flatMap(({ from, to, rights, name }) => {
    if (name === "[vvar]" || name === "[vsyscall]" || name === "[vvar_vclock]") return [];
    const pages = presentPages(pid, from, to);
    return pages.some((page) => page.includes(wanted)) ? [`${from.toString(16)} ${rights} ${name}`] : [];
  });
}

/** Private memory that the process occupies, as anybody may see it. */
function privateBytes(pid: number): number {
  const [, kilobytes] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  if (kilobytes === undefined) throw new Error("the kernel does not say how much memory a process occupies");
  return Number(kilobytes) * 1024;
}

/** Reading another process's memory takes a capability; ordinary users see that it cannot be read at all. */
const maySeeMemory = process.geteuid?.() === 0;

describe("memory", () => {
  const ends: Readonly<Record<string, string>> = {
    completed: "return 1",
    "script_error/uncaught": "throw new Error(text)",
    "budget_exceeded/memory": "for(;;) kept.push(text.repeat(5000)+kept.length)",
    "budget_exceeded/stack": "const f = (b) => f(b.slice()); f(bytes)",
  };

  test.each(Object.entries(ends))(
    "of an activation that ended as %s holds nothing a script could find",
    async (end, tail) => {
      const worker = await RawWorker.start(plan);
      try {
        for (let round = 0; round < 2; round++) {
          const marked = await worker.run({
            body: marking + tail,
            input: new Uint8Array(marker),
            limits: generous,
          });
          expect(endOf(marked), marked.error?.message).toBe(end);
          expect(returned(await worker.run({ body: scanning, limits: generous }))).toEqual([0, true]);
        }
      } finally {
        worker.close();
      }
    },
  );

  /** Deep in script and, by way of native functions that call back, deep in the engine itself. */
  const recursing =
    "const f=()=>[2,1].sort(f); try{f()}catch{} const g=()=>JSON.parse('[1]',g); try{g()}catch{} const h=()=>'x'.replace('x',h); try{h()}catch{} return 1";

  test("that an activation took beyond the engine's image is given back", async () => {
    const worker = await RawWorker.start(plan);
    try {
      const small = await worker.run({ body: "return 1", limits: generous });
      expect(endOf(small)).toBe("completed");
      // Pages of the image that were written to stay the process's own, and so do its tables and buffers. The scripts take
      // eleven megabytes and more beyond the image.
      const most = small.usage.heapPeakBytes + 4 * MiB;
      const hungry = `${marking}for(;;) kept.push(text.repeat(5000)+kept.length)`;
      for (const body of [recursing, `${marking}return 1`, hungry]) {
        const { usage } = await worker.run({ body, input: new Uint8Array(marker), limits: generous });
        expect(usage.heapPeakBytes).toBeGreaterThan(0);
        await worker.idle();
        expect(privateBytes(worker.pid), body).toBeLessThan(most);
      }
    } finally {
      worker.close();
    }
  });

  if (maySeeMemory) {
    test("of the engine's own stack is zero when a worker is idle", async () => {
      const worker = await RawWorker.start(plan);
      try {
        const stack = mappingsOf(worker.pid).filter(
          ({ from, to, rights }) => to - from === engineStackBytes && rights === "rw-p",
        );
        expect(stack.length).toBe(1);
        expect(endOf(await worker.run({ body: recursing, limits: generous }))).toBe("completed");
        await worker.idle();
        const [{ from, to } = { from: 0, to: 0 }] = stack;
        expect(presentPages(worker.pid, from, to).filter((page) => page.some((byte) => byte !== 0))).toEqual(
          [],
        );
      } finally {
        worker.close();
      }
    });

    test("of an idle worker holds no byte that a script made", async () => {
      const worker = await RawWorker.start(plan);
      try {
        // The control: while a script that made the marker waits for an answer, the marker is found.
        let during: readonly string[] = [];
        const held = worker.run({
          body: `${marking}await t.echo(1); return 1`,
          input: new Uint8Array(marker),
          limits: generous,
          onHostCall: () => {
            during = findInMemory(worker.pid, hidden);
          },
        });
        expect(endOf(await held)).toBe("completed");
        expect(during.length).toBeGreaterThan(0);
        await worker.idle();
        expect(findInMemory(worker.pid, hidden)).toEqual([]);
        for (const [end, tail] of Object.entries(ends)) {
          const marked = await worker.run({
            body: marking + tail,
            input: new Uint8Array(marker),
            limits: generous,
          });
          expect(endOf(marked)).toBe(end);
          await worker.idle();
          expect(findInMemory(worker.pid, hidden), end).toEqual([]);
        }
      } finally {
        worker.close();
      }
    });
  }
});

describe("through the library", () => {
  const open: Laboratory[] = [];
  const laboratory = (): Laboratory => {
    const made = new Laboratory();
    open.push(made);
    return made;
  };

  afterEach(async () => {
    for (const one of open.splice(0)) await one.close();
  });

  test("what one run did to its globals, the next does not see", async () => {
    const lab = laboratory();
    const pids = new Set<number | undefined>();
    for (let round = 0; round < 5; round++) {
      const a = await lab.guest(
        {
          body: "Object.prototype.x=1;Array.prototype.push=()=>{};globalThis.y=1;Symbol.for('k');Math.random=()=>1; return [({}).x,typeof y]",
        },
        "shared",
      );
      expect(a.result, show(a.result)).toMatchObject({ ok: true, value: [1, "number"] });
      const b = await lab.guest({ body: "return [({}).x,typeof y,[1].push(2)]" }, "shared");
      expect(b.result, show(b.result)).toMatchObject({ ok: true, value: [undefined, "undefined", 2] });
      pids.add(a.worker?.pid);
      pids.add(b.worker?.pid);
      expect(b.worker?.activations).toBe((round + 1) * 2);
    }
    expect(pids.size).toBe(1);
  });

  test("a process for one activation ends by itself when that has ended", async () => {
    const worker = await RawWorker.start(planForTests());
    const result = await worker.run({ body: "return 1 + 1", isolation: "process" });
    expect(returned(result)).toBe(2);
    expect(await worker.exit()).toMatchObject({ code: 0, signal: null });
    worker.close();
  });

  test("random numbers follow the seed and nothing else", async () => {
    const lab = laboratory();
    const source =
      "export default () => [Math.random(), Math.random(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(40))]]";
    const draw = async (seed?: Uint8Array): Promise<string> => {
      const { result } = await lab.observe({
        source,
        label: "r.js",
        ...(seed === undefined ? {} : { seed }),
      });
      if (!result.ok) throw new Error(show(result));
      return JSON.stringify(result.value);
    };
    const one = new Uint8Array(32).fill(1);
    const other = new Uint8Array(32).fill(1);
    other[31] = 2;
    const drawn = await draw(one);
    expect(await draw(one)).toBe(drawn);
    const all = [drawn, await draw(other), await draw(), await draw()];
    expect(new Set(all).size).toBe(all.length);
    // A value of one stream tells none of another: nothing is shared between seeds that differ in one bit.
    const numbers = all.flatMap((text) => text.match(/\d+\.\d+|"[^"]+"/g) ?? []);
    expect(new Set(numbers).size).toBe(numbers.length);
  });
});
