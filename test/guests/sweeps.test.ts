// Limits swept in steps: at each step a script either ends as it does with room to spare, or the limit that was hit is named.
// Never another error in the limit's place, never a lost worker, never a wrong value.
import { isDeepStrictEqual } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { RunResult } from "../../packages/flowcell/src/result.js";
import { difference, type Expectation, exceeded, show } from "./case.js";
import { Laboratory, plain, plainValue } from "./laboratory.js";
import { caught, type Shape, shapes } from "./recursion.js";

const KiB = 1024;
const MiB = 1024 * KiB;

const laboratory = new Laboratory();
const flow = "sweeps";

afterAll(() => laboratory.close());

beforeEach(() => {
  laboratory.events.length = 0;
});

afterEach(async () => {
  const { result } = await laboratory.guest(plain, flow);
  expect(result.ok && isDeepStrictEqual(result.value, plainValue), show(result)).toBe(true);
  // An engine that does not survive refused memory has a code of its own, and the outcome is the same.
  const { events } = laboratory;
  expect(events.filter((event) => event.kind !== "lost" || !event.message.includes("engine_memory"))).toEqual(
    [],
  );
});

function range(from: number, to: number, step: number): number[] {
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, index) => from + index * step);
}

interface Swept {
  readonly name: string;
  readonly body: string;
  /** How it ends with room to spare. */
  readonly end: Expectation;
  readonly input?: unknown;
}

const done = (value: unknown): Expectation => ({ status: "completed", value });

/** Scripts that need memory in different ways: for values, texts, buffers, code, errors, calls, logs and results. */
const hungry: readonly Swept[] = [
  { name: "nothing at all", body: "return 1", end: done(1) },
  {
    name: "texts",
    body: "const c=[];for(let i=0;i<100;i++)c.push('x'.repeat(1e5)+i);return c.length",
    end: done(100),
  },
  {
    name: "objects",
    body: "const a=[];for(let i=0;i<1e5;i++)a.push({i});return a.length",
    end: done(100_000),
  },
  {
    name: "buffers",
    body: "const a=[];for(let i=0;i<100;i++)a.push(new Uint8Array(1e5));return a.length",
    end: done(100),
  },
  {
    name: "garbage",
    body: "let o;for(let i=0;i<300;i++){o={b:new ArrayBuffer(1e5)};o.self=o}return 1",
    end: done(1),
  },
  {
    name: "a map",
    body: "const m=new Map();for(let i=0;i<5e4;i++)m.set('k'+i,i);return m.size",
    end: done(50_000),
  },
  {
    name: "code",
    body: "let n=0;for(let i=0;i<300;i++)n+=Function('a','return a+'+'1+'.repeat(2000)+'0')(i);return n",
    end: done(644_850),
  },
  {
    name: "a parsed text",
    body: "return JSON.parse('['+'{\"a\":[1,2,3]},'.repeat(2e4)+'0]').length",
    end: done(20_001),
  },
  {
    name: "a regular expression",
    body: "return 'ab'.repeat(1e5).replace(/(a)(b)/g,'$2$1').length",
    end: done(200_000),
  },
  { name: "a big integer", body: "return (3n**100000n).toString(16).length", end: done(39_625) },
  {
    name: "host calls",
    body: "let s=0;for(let i=0;i<30;i++)s+=(await t.echo('y'.repeat(2e4))).length;return s",
    end: done(600_000),
  },
  {
    name: "host calls at once",
    body: "const r=await Promise.all(Array.from({length:60},(_,i)=>t.echo([i,'z'.repeat(1e4)])));return r.length",
    end: done(60),
  },
  {
    name: "bytes through a host call",
    body: "return (await t.echo(new Uint8Array(5e5).fill(7)))[499999]",
    end: done(7),
  },
  { name: "its input", body: "return input.length", input: "i".repeat(1_000_000), end: done(1_000_000) },
  { name: "its result", body: "return 'r'.repeat(5e5)", end: done("r".repeat(500_000)) },
  {
    name: "its log",
    body: "for(let i=0;i<300;i++)console.log('l'.repeat(100),i,{i});return 1",
    end: done(1),
  },
  {
    name: "an error",
    body: "const e=new RangeError('e'.repeat(5e3),{cause:new Error('c'.repeat(5e3))});throw e",
    end: { status: "script_error", reason: "uncaught", errorName: "RangeError" },
  },
  {
    name: "an error with a huge function name",
    body: "function f(){missing} Object.defineProperty(f,'name',{value:'A'.repeat(1e6)}); f()",
    end: { status: "script_error", reason: "uncaught", errorName: "ReferenceError" },
  },
  {
    name: "rejections",
    body: "for(let i=0;i<300;i++)Promise.reject(new Error('w'.repeat(1e3)));return 1",
    end: done(1),
  },
  {
    name: "a failure that is caught",
    body: "const c=[];try{for(let i=0;i<700;i++)c.push('x'.repeat(1e5)+i)}catch(e){c.length=0;return 'end'}return 'end'",
    end: done("end"),
  },
];

const heapSteps = [
  256 * KiB,
  ...range(MiB, 7 * MiB, MiB),
  // Around what engine and script need to begin: every allocation is the one that fails at some step.
  ...range(7 * MiB + 64 * KiB, 11 * MiB, 96 * KiB),
  ...range(11 * MiB, 20 * MiB, MiB),
  ...[24, 32, 48, 64].map((size) => size * MiB),
];

describe("heapBytes from 256 KiB to 64 MiB", () => {
  let engineBytes = 0;

  beforeAll(async () => {
    const { result } = await laboratory.guest({ body: "return 1" }, flow);
    engineBytes = result.usage.heapPeakBytes;
    expect(engineBytes).toBeLessThan(10 * MiB);
  });

  for (const { name, body, end, input } of hungry) {
    test(`a script that needs memory for ${name} is \`memory\` until it ends as with room to spare`, async () => {
      let completions = 0;
      let refusals = 0;
      for (const heapBytes of heapSteps) {
        const limits = { heapBytes, cpuMs: 5000, wallMs: 60_000 };
        const { result, worker } = await laboratory.guest({ body, input, limits }, flow);
        const where = `heapBytes ${heapBytes} (${worker?.pid}): ${show(result)}`;
        if (difference(result, end) === "") {
          completions += 1;
        } else {
          refusals += 1;
          expect(difference(result, exceeded("memory")), where).toBe("");
          expect(errorOf(result).limit, where).toBe(heapBytes);
        }
        // The input is there before anything is said of limits, and memory grows by a fifth at a time.
        const before = input === undefined ? engineBytes : engineBytes * 1.25;
        expect(result.usage.heapPeakBytes, where).toBeLessThanOrEqual(Math.max(heapBytes, before));
      }
      expect(completions, "it completes with room to spare").toBeGreaterThan(5);
      expect(refusals, "a cap below the engine's own size is too little for any script").toBeGreaterThan(5);
    });
  }
});

function errorOf(result: RunResult): Extract<RunResult, { ok: false }>["error"] {
  if (result.ok) throw new Error("the run completed");
  return result.error;
}

const stackSteps = [16 * KiB, 48 * KiB, 192 * KiB, MiB];
const roomy = { heapBytes: 64 * MiB, cpuMs: 1000, wallMs: 60_000 };

/** What recursion may end in. A text that is nested too deep is a SyntaxError, a walk that is too deep a RangeError. */
function deepEnd(result: RunResult): boolean {
  if (result.status === "completed") return true;
  const { code, name, message } = errorOf(result);
  if (result.status === "budget_exceeded") return ["stack", "memory", "cpu", "result_size"].includes(code);
  if (result.status !== "script_error") return false;
  if (code === "unsendable") return /deep|nest/.test(message);
  // The shape that throws an error of its own, with a hundred thousand causes.
  if (name === "Error") return message === "99999";
  return ["SyntaxError", "RangeError", "HostError"].includes(name);
}

async function sweepStack(shape: Shape): Promise<void> {
  for (const stackBytes of stackSteps) {
    const limits = { ...roomy, stackBytes };
    const alone = await laboratory.guest({ body: shape.body, limits }, flow);
    expect(deepEnd(alone.result), `stackBytes ${stackBytes}: ${show(alone.result)}`).toBe(true);
    const survived = await laboratory.guest({ body: caught(shape), limits }, flow);
    const { result } = survived;
    const went = result.ok
      ? isDeepStrictEqual(result.value, ["caught", "object"]) ||
        isDeepStrictEqual(result.value, ["through", "object"])
      : deepEnd(result);
    expect(went, `stackBytes ${stackBytes}, caught: ${show(result)}`).toBe(true);
  }
}

describe("stackBytes from 16 KiB to 1 MiB", () => {
  for (const shape of shapes) {
    test(`recursion through ${shape.name} ends as a typed outcome, and can be caught`, () =>
      sweepStack(shape));
  }
});

/** Scripts that never end, in the engine's loops and in its own code, in jobs, timers and answers. */
const endless: readonly { readonly name: string; readonly body: string }[] = [
  { name: "a loop", body: "for(;;);" },
  { name: "jobs", body: "const f=()=>Promise.resolve().then(f); f(); await new Promise(()=>{})" },
  { name: "a native function in a loop", body: "const b=new Uint8Array(1e6);for(;;)b.fill(1)" },
  { name: "one native function", body: "Array.prototype.indexOf.call({length:2**53-1},1)" },
  { name: "answers of host calls", body: "for(;;)await t.echo(1)" },
  { name: "failures that are caught", body: "for(;;)try{null.x}catch{}" },
];

describe("cpuMs from 1 to 128", () => {
  for (const { name, body } of endless) {
    test(`an endless script of ${name} is \`cpu\` at each step and used about that much`, async () => {
      for (const cpuMs of [1, 2, 4, 8, 16, 32, 64, 128]) {
        const limits = { cpuMs, wallMs: 60_000, hostCalls: 1_000_000, heapBytes: 32 * MiB };
        const { result } = await laboratory.guest({ body, limits }, flow);
        expect(difference(result, exceeded("cpu")), show(result)).toBe("");
        const { limit, used } = errorOf(result);
        expect(limit).toBe(cpuMs);
        expect(used).toBeGreaterThanOrEqual(cpuMs);
        expect(result.usage.cpuMs).toBeGreaterThanOrEqual(cpuMs);
        // Native functions are ended by the parent, which a busy machine holds up.
        expect(result.usage.cpuMs).toBeLessThan(cpuMs + 5000);
      }
    });
  }
});
