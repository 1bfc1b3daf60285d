// The compute set: nine small programs, each run in a cell and in quickjs-emscripten (the same QuickJS as WebAssembly in
// V8), turn by turn in one process, so that whatever else the machine does hits both. The ratio is of the sums of medians.
import { getQuickJS } from "quickjs-emscripten";
import { makePool, request, run, scriptOf } from "./cell.mjs";
import { median, timed } from "./statistics.mjs";

/** Name → body of a function without arguments. */
export const computeSet = {
  fib: "const fib = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2)); return fib(27)",
  loop: "let s = 0; for (let i = 0; i < 5e6; i++) s = (s + i * 3) | 0; return s",
  objects:
    "class P { constructor(x, y) { this.x = x; this.y = y } add(o) { return new P(this.x + o.x, this.y + o.y) } } let p = new P(0, 0); const q = new P(1, 2); for (let i = 0; i < 3e5; i++) p = p.add(q); return p.x",
  arrays:
    "const a = []; for (let i = 0; i < 3e5; i++) a.push((i * 7) % 1000); a.sort((x, y) => x - y); return a.map((x) => x + 1).filter((x) => x & 1).reduce((x, y) => x + y, 0)",
  strings: "let s = ''; for (let i = 0; i < 150000; i++) s += 'ab' + i; return s.length",
  json: "const o = { a: [1, 2, 3, { b: 'hello world', c: null, d: [true, false] }], e: { f: 1.5, g: 'x'.repeat(50) } }; let n = 0; for (let i = 0; i < 20000; i++) n += JSON.parse(JSON.stringify(o)).a.length; return n",
  regexp:
    "let c = 0; const s = 'foo123bar456 the quick brown fox jumps '.repeat(50); for (let i = 0; i < 60; i++) c += s.match(/([a-z]+)(\\d+)/g).length; return c",
  floats: "let x = 0; for (let i = 1; i < 1e6; i++) x += Math.sqrt(i) / i; return Math.round(x)",
  maps: "const m = new Map(); for (let i = 0; i < 250000; i++) m.set('k' + (i % 5000), i); return m.size",
};

/** Medians in milliseconds per program and engine, and the ratio of the sums. */
export async function compareCompute(rounds) {
  const QuickJS = await getQuickJS();
  const pool = makePool({ spares: 0, workersMax: 1, activationsMax: 1_000_000 });
  const programs = {};
  let cells = 0;
  let peers = 0;
  for (const [name, body] of Object.entries(computeSet)) {
    const wanted = request("compute", scriptOf(body));
    const source = `(() => {${body}})()`;
    const inCell = [];
    const inPeer = [];
    let fromCell;
    let fromPeer;
    for (let round = 0; round < rounds + 2; round += 1) {
      const cell = await timed(async () => {
        fromCell = JSON.parse((await run(pool, wanted)).value.text);
      });
      const peer = await timed(() => {
        const context = QuickJS.newContext();
        const handle = context.unwrapResult(context.evalCode(source));
        fromPeer = context.dump(handle);
        handle.dispose();
        context.dispose();
      });
      if (fromCell !== fromPeer)
        throw new Error(`${name}: ${fromCell} in a cell, ${fromPeer} in quickjs-emscripten`);
      if (round < 2) continue; // V8 has tiered up and the worker is warm
      inCell.push(cell);
      inPeer.push(peer);
    }
    programs[name] = { cellMs: median(inCell), quickjsEmscriptenMs: median(inPeer) };
    cells += programs[name].cellMs;
    peers += programs[name].quickjsEmscriptenMs;
  }
  await pool.close();
  return { ratio: cells / peers, programs };
}
