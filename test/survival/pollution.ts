// Guests that leave behind as much as they can, each in another part of a worker, and end in every way in which the
// worker lives on: with a value, with an error, out of memory or stack in the middle of a call, refused at loading.
//
// Used by survival.test.ts: after each of them, in the same process, a script sees what it sees in a fresh one.
import type { GuestCase } from "../guests/case.js";
import { poisonEverything } from "../guests/hostile.js";

export interface Pollution extends Omit<GuestCase, "expect"> {
  /** Status and reason that it must have ended with, or it left nothing behind where it was meant to. */
  readonly end: string;
}

const completed = "completed";
const MiB = 1024 * 1024;

export const pollutions: readonly Pollution[] = [
  {
    name: "globals, prototypes and built-in functions",
    body: "Object.prototype.x=1;Array.prototype.push=()=>{};globalThis.y=1;Symbol.for('k');Math.random=()=>1;Date.now=()=>0;JSON.parse=null;delete globalThis.URL;Object.defineProperty(globalThis,'z',{get:()=>1})",
    end: completed,
  },
  {
    name: "every intrinsic",
    body: `${poisonEverything}\nreturn 1`,
    limits: { cpuMs: 30_000 },
    end: completed,
  },
  {
    name: "frozen and sealed intrinsics",
    body: "for (const k of Reflect.ownKeys(globalThis)) { const v=globalThis[k]; if (typeof v==='function'||typeof v==='object'&&v) try { Object.freeze(v); Object.freeze(v.prototype) } catch {} } Object.preventExtensions(globalThis)",
    end: completed,
  },
  {
    name: "prototype chains",
    body: "Object.setPrototypeOf(Array.prototype,{forged:1}); Object.setPrototypeOf(globalThis,null); Object.setPrototypeOf(Promise,class{})",
    end: completed,
  },
  {
    name: "the registry of symbols",
    body: "for(let i=0;i<5000;i++) Symbol.for('registered'+i); Symbol.for('k').description",
    end: completed,
  },
  {
    name: "pending timers",
    body: "for(let i=0;i<900;i++) setTimeout(()=>{globalThis.fired=1},i); setInterval(()=>{},1); return 1",
    end: completed,
  },
  {
    name: "pending jobs and promises",
    body: "for(let i=0;i<1000;i++) new Promise(()=>{}).then(()=>{}); const f=n=>n&&Promise.resolve(n-1).then(f); f(50); (async()=>{ await new Promise(()=>{}) })(); Promise.reject(new Error('lost')); return 1",
    end: completed,
  },
  {
    name: "open host calls",
    body: "for(let i=0;i<20;i++) t.echo({i}); return 1",
    end: completed,
  },
  {
    name: "the state of random numbers",
    body: "for(let i=0;i<1001;i++) Math.random(); crypto.getRandomValues(new Uint8Array(1001)); crypto.randomUUID(); return 1",
    end: completed,
  },
  {
    name: "counters, groups and timers of the console",
    body: "for(let i=0;i<5;i++){ console.count('c'); console.count(); console.time('none'); console.group('g') } console.log('x'.repeat(70000)); return 1",
    end: completed,
  },
  {
    name: "statics and lastIndex of regular expressions",
    body: "const r=/a/g; r.lastIndex=7; r.exec('aaaaaaaaa'); /(b)(c)/.exec('abcd'); 'x'.replace(/x/,'$&'); RegExp.prototype.lastIndex=3; return 1",
    end: completed,
  },
  {
    name: "settings of Error",
    body: "Error.stackTraceLimit=0; Error.prepareStackTrace=()=>'forged'; Error.prototype.name='F'; return 1",
    end: completed,
  },
  {
    name: "much memory",
    body: "globalThis.kept=[]; for(let i=0;i<150;i++) kept.push(new Uint8Array(1e5).fill(0xa5)); for(let i=0;i<1e4;i++) kept.push({['k'+i]:'v'+i}); return 1",
    end: completed,
  },
  {
    name: "atoms and shapes",
    body: "const o={}; for(let i=0;i<3e4;i++) o['property'+i]=i; for(let i=0;i<300;i++) Function('a'+i,'return a'+i+'.p'+i); return 1",
    end: completed,
  },
  {
    name: "generators and iterators in the middle",
    body: "function* g(){ try { yield 1; yield 2 } finally { globalThis.closed=1 } } globalThis.g=g(); globalThis.g.next(); globalThis.i=new Map([[1,2],[3,4]]).entries(); globalThis.i.next(); return 1",
    end: completed,
  },
  {
    name: "weak collections and proxies",
    body: "globalThis.w=new WeakMap(); for(let i=0;i<1000;i++) w.set({}, new Proxy({}, {})); const {proxy,revoke}=Proxy.revocable({}, {}); revoke(); globalThis.p=proxy; return 1",
    end: completed,
  },
  {
    name: "detached and resized buffers",
    body: "const b=new ArrayBuffer(1e6,{maxByteLength:4e6}); b.resize(3e6); structuredClone(new ArrayBuffer(8),{transfer:[]}); globalThis.b=b.transfer?.(10); return 1",
    end: completed,
  },
  {
    name: "listeners and abort signals",
    body: "const c=new AbortController(); for(let i=0;i<100;i++) c.signal.addEventListener('abort',()=>{globalThis.aborted=i}); AbortSignal.timeout(5); c.abort(); return 1",
    end: completed,
  },
  { name: "an exception", body: "globalThis.y=1; throw new Error('x')", end: "script_error/uncaught" },
  {
    name: "an exception that is no error",
    body: "globalThis.y=1; throw Symbol('x')",
    end: "script_error/uncaught",
  },
  {
    name: "an exception deep in native calls",
    body: "[1].map(()=>JSON.parse('[1]',()=>'x'.replace('x',()=>[2,1].sort(()=>{ throw 1 }))))",
    end: "script_error/uncaught",
  },
  {
    name: "a wait for nothing",
    body: "globalThis.y=1; await new Promise(()=>{})",
    end: "script_error/deadlock",
  },
  {
    name: "a result that cannot be sent",
    body: "globalThis.y=1; return {a:[()=>y]}",
    end: "script_error/unsendable",
  },
  {
    name: "a result that is too large",
    body: "globalThis.y='y'.repeat(5e6); return y",
    limits: { resultBytes: MiB },
    end: "budget_exceeded/result_size",
  },
  {
    name: "one host call too many, inside a native call",
    body: "globalThis.y=1; [1,2,3].forEach(()=>{ t.echo(1) })",
    limits: { hostCalls: 1 },
    end: "budget_exceeded/host_calls",
  },
  {
    name: "no memory left",
    body: "globalThis.c=[]; for(;;) c.push('x'.repeat(1e5)+c.length)",
    limits: { heapBytes: 16 * MiB },
    end: "budget_exceeded/memory",
  },
  {
    name: "no memory left for small things, in a native call",
    body: "globalThis.c=[]; [1].map(()=>JSON.parse('['+'1,'.repeat(1000)+'1]',(k,v)=>{ for(;;) c.push({k,v}) }))",
    limits: { heapBytes: 12 * MiB },
    end: "budget_exceeded/memory",
  },
  {
    name: "no memory beyond what was there",
    body: "globalThis.c=[]; for(;;) c.push('x'.repeat(1e5)+c.length)",
    limits: { heapBytes: 64 * 1024 },
    end: "budget_exceeded/memory",
  },
  { name: "no stack left", body: "globalThis.y=1; (function f(){ f() })()", end: "budget_exceeded/stack" },
  {
    name: "no stack left, in native calls",
    body: "const o={toJSON(){ return JSON.stringify(o) }}; JSON.stringify(o)",
    end: "budget_exceeded/stack",
  },
  {
    name: "a small stack",
    body: "(function f(){ f() })()",
    limits: { stackBytes: 16 * 1024 },
    end: "budget_exceeded/stack",
  },
  {
    name: "a failure that was caught",
    body: "try{ new Array(1e8).fill(0) }catch{} try{ (function f(){ f() })() }catch{} return 1",
    end: completed,
  },
  { name: "a source that cannot be parsed", body: "const = ;", end: "script_error/syntax" },
  {
    name: "a source that is nested too deep",
    body: `return ${"(".repeat(100_000)}1${")".repeat(100_000)}`,
    end: "script_error/syntax",
  },
  {
    name: "input with everything in it",
    body: "globalThis.i=input; return 1",
    input: { m: new Map([[1, new Date(0)]]), b: new Uint8Array(1e6), s: "s".repeat(1e6) },
    end: completed,
  },
];
