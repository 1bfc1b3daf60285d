// Guests that mean harm: they poison what they share with the runtime, forge what they send, reach for the host and try
// to leave something behind. None gets further than its own realm, and the next run on the pool is normal.
import { completed, exceeded, type GuestCase, scriptError, timeout } from "./case.js";

const small = { heapBytes: 32 * 1024 * 1024, cpuMs: 300, wallMs: 2000 };

/** Replaces every property of every intrinsic that can be reached from the global object. */
export const poisonEverything = `
const seen = new Set(); const queue = [globalThis];
const G = globalThis; const own = Reflect.ownKeys, desc = Object.getOwnPropertyDescriptor, def = Object.defineProperty, proto = Object.getPrototypeOf;
const evil = function(){ throw 'poisoned' };
const found = [];
while (queue.length) { const o = queue.pop(); if ((typeof o !== 'object' && typeof o !== 'function') || o === null || seen.has(o)) continue; seen.add(o);
  for (const k of own(o)) { const d = desc(o, k); if (!d) continue; found.push([o, k, d]); if ('value' in d) queue.push(d.value); else { queue.push(d.get); queue.push(d.set) } }
  queue.push(proto(o)); }
const call = t.echo, log = console.log;
for (const [o, k, d] of found) { if (o === t || o === host || k === 'then' && o === Promise) continue; try { if (d.configurable) def(o, k, { get: evil, set: evil, configurable: true }); else if (d.writable) o[k] = evil } catch {} }
`;

export const hostile: readonly GuestCase[] = [
  {
    name: "every intrinsic replaced, then a host call",
    body: `${poisonEverything} log('still here'); const r = await call({a:[1,'x',null]}); return r.a.length`,
    limits: { ...small, cpuMs: 2000, wallMs: 4000 },
    expect: [completed(3), { status: "script_error" }],
  },
  {
    name: "Promise.prototype.then replaced",
    body: "Promise.prototype.then=function(){return 42}; return await t.echo(7)",
    expect: [completed(7), completed(42)],
  },
  {
    name: "Array iteration replaced",
    body: "Array.prototype[Symbol.iterator]=function(){throw 1}; Array.prototype.push=()=>{}; return t.echo([1,2])",
    expect: [completed([1, 2])],
  },
  {
    name: "toJSON on every object",
    body: "Object.prototype.toJSON=function(){return 'forged'}; return await t.echo({a:1})",
    expect: [completed({ a: 1 })],
  },
  {
    name: "setters on the shared prototype see nothing",
    body: "const got=[]; for (const k of ['position','name','text','ok','value','error','status','0','1','2']) Object.defineProperty(Object.prototype,k,{configurable:true,set(v){got[got.length]=k},get(){return undefined}}); const r = await t.echo({z:1}); return [r.z, got.length]",
    expect: [completed([1, 0])],
  },
  {
    name: "constructors reach no further than the guest's realm",
    body: "return [Function('return typeof process')(), (0,eval)('typeof require'), await (async()=>{}).constructor('return typeof globalThis.__flowcell_native')(), (function*(){}).constructor('yield 1')().next().value]",
    expect: [
      completed(["undefined", "undefined", "undefined", 1]),
      completed(["function", "function", "undefined", 1]),
      { status: "script_error" },
    ],
  },
  {
    name: "no shared memory, weak references or finalisers",
    body: "return [typeof SharedArrayBuffer, typeof Atomics, typeof WeakRef, typeof FinalizationRegistry]",
    expect: [completed(["undefined", "undefined", "undefined", "undefined"])],
  },
  {
    name: "the runtime's own objects cannot be reached",
    body: "return Reflect.ownKeys(globalThis).filter(k => typeof k === 'string' && /flowcell|native|core-js|^self$/i.test(k))",
    expect: [completed([])],
  },
  {
    name: "the host object cannot be changed",
    body: "'use strict'; try { host.t = 1; } catch {} try { delete host.t } catch {} return typeof t.echo",
    expect: [completed("function")],
  },
  {
    name: "an evil thenable from a host result position",
    body: "const p = t.echo(1); p.then = () => { throw 1 }; return 'ok'",
    expect: [completed("ok", ["call_not_awaited"]), completed("ok", [])],
  },
  {
    name: "a species that steals promises",
    body: "class P extends Promise { static get [Symbol.species]() { while(true){} } } return await P.resolve(1)",
    limits: small,
    expect: [completed(1), ...timeout],
  },
  {
    name: "proxies as arguments",
    body: "try { return await t.echo(new Proxy({a:1}, { ownKeys(){ throw new Error('trap') } })) } catch (e) { return 'refused' }",
    expect: [completed("refused")],
  },
  {
    name: "a proxy that answers for ever",
    body: "return await t.echo(new Proxy([], { get(o,k){ return k==='length' ? 4294967295 : o[k] }, getOwnPropertyDescriptor(){ return {value:1,configurable:true,enumerable:true,writable:true} } }))",
    limits: small,
    expect: [...timeout, { status: "script_error" }, exceeded("memory"), completed([])],
  },
  {
    name: "an array that claims four billion elements",
    body: "const a=[]; a.length=4294967295; return a",
    limits: small,
    expect: [...timeout, { status: "script_error" }, exceeded("memory"), exceeded("result_size")],
  },
  {
    name: "a typed array over a detached buffer",
    body: "const u=new Uint8Array(8); structuredClone(u.buffer,{transfer:[u.buffer]}); return u.length",
    expect: [completed(0)],
  },
  {
    name: "a shell command is not a script",
    body: "ls -la /tmp",
    module: true,
    expect: [{ status: "invalid_input", errorMessage: /JavaScript/ }],
  },
  {
    name: "imports of other files are refused",
    body: "import x from '../../etc/passwd'; export default () => x",
    module: true,
    expect: [{ status: "invalid_input" }],
  },
  {
    name: "imports by URL are refused",
    body: "import x from 'data:text/javascript,export default 1'; export default () => x",
    module: true,
    expect: [{ status: "invalid_input" }],
  },
  {
    name: "Node's modules are refused with what to use",
    body: "import fs from 'node:fs'; export default () => fs",
    module: true,
    expect: [{ status: "invalid_input", errorMessage: /node:fs|Node/ }],
  },
  {
    name: "a dynamic import finds nothing",
    body: "return await import('os')",
    expect: [{ status: "script_error" }, { status: "invalid_input" }],
  },
  {
    name: "a run that ends while calls are open crashes nothing",
    body: "t.slow(); t.boom(); throw new Error('end')",
    settleMs: 400,
    expect: [scriptError("Error", "end")],
  },
  {
    name: "a script that throws in every callback",
    body: "setTimeout(()=>{throw new Error('timer')},1); queueMicrotask(()=>{throw new Error('task')}); await new Promise(r=>setTimeout(r,5)); return 1",
    expect: [completed(1), { status: "script_error" }],
  },
];
