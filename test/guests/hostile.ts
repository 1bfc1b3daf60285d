// Guests that mean harm: they poison what they share with the runtime, forge what they send, reach for the host and try
// to leave something behind. None gets further than its own realm, and the next run on the pool is normal.
import { completed, exceeded, type GuestCase, scriptError, small, timeout } from "./case.js";

/**
 * Replaces every property of every intrinsic that can be reached from the global object by an accessor that throws, or,
 * where that is refused, by a function that does. What comes after it may use its own variables and operators only: what it
 * needs of the library it has to keep before. It keeps `then` and `apply`, `log`, and the host function `call`.
 */
export const poisonEverything = `
const own = Reflect.ownKeys, desc = Object.getOwnPropertyDescriptor, def = Object.defineProperty, proto = Object.getPrototypeOf;
const then = Promise.prototype.then, apply = Reflect.apply, call = t.echo, log = console.log;
let poisoned = 0;
const evil = function () { poisoned++; throw 'poisoned' };
const seen = new Set([host, t]), queue = [globalThis], places = [];
while (queue.length > 0) {
  const o = queue.pop();
  if ((typeof o !== 'object' && typeof o !== 'function') || o === null || seen.has(o)) continue;
  seen.add(o);
  for (const k of own(o)) { const d = desc(o, k); places.push({ o, k, d }); queue.push(d.value, d.get, d.set) }
  queue.push(proto(o));
}
for (const f of [async function () {}, function* () {}, async function* () {}, [][Symbol.iterator](), ''.matchAll(/x/g)]) {
  for (let o = proto(f); o !== null && !seen.has(o); o = proto(o)) { seen.add(o); for (const k of own(o)) places.push({ o, k, d: desc(o, k) }) }
}
const count = places.length, accessor = { __proto__: null, get: evil, set: evil }, value = { __proto__: null, value: evil };
for (let at = 0; at < count; at++) {
  const { o, k, d } = places[at];
  try { if (d.configurable) def(o, k, accessor); else if (d.writable) def(o, k, value) } catch {}
}
`;

export const hostile: readonly GuestCase[] = [
  {
    name: "every intrinsic replaced, then a host call",
    // `await` and async functions look the promise's constructor up, so the entry is a plain function and the answer is
    // waited for with the `then` that was kept.
    module: true,
    body: `export default (input, host) => { const t = host.t;
${poisonEverything}
log('still here', 1);
const before = poisoned, p = call({ a: [1, 'x', null] });
def(p, 'constructor', { __proto__: null, value: undefined });
return { __proto__: null, then(resolve, reject) { apply(then, p, [(r) => resolve([count > 1000, r.a.length, r.a[1], poisoned - before]), reject]) } };
}`,
    limits: { ...small, cpuMs: 3000 },
    logs: ["log: still here 1"],
    expect: [completed([true, 3, "x", 0])],
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
    body: "const got=[]; for (const k of ['position','name','text','ok','value','error','status','0','1','2']) Object.defineProperty(Object.prototype,k,{__proto__:null,configurable:true,set(v){got[got.length]=k},get(){return undefined}}); const r = await t.echo({z:1}); return [r.z, got.length]",
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
    expect: [{ status: "script_error", reason: "syntax", errorMessage: /JavaScript/ }],
  },
  {
    name: "imports of other files are refused",
    body: "import x from '../../etc/passwd'; export default () => x",
    module: true,
    expect: [{ status: "script_error", reason: "syntax", errorName: "ImportError" }],
  },
  {
    name: "imports by URL are refused",
    body: "import x from 'data:text/javascript,export default 1'; export default () => x",
    module: true,
    expect: [{ status: "script_error", reason: "syntax", errorName: "ImportError" }],
  },
  {
    name: "imports of file URLs are refused",
    body: "import x from 'file:///etc/passwd'; export default () => x",
    module: true,
    expect: [{ status: "script_error", reason: "syntax", errorName: "ImportError" }],
  },
  {
    name: "Node's modules are refused with what to use",
    body: "import fs from 'node:fs'; export default () => fs",
    module: true,
    expect: [
      { status: "script_error", reason: "syntax", errorName: "ImportError", errorMessage: /Node modules/ },
    ],
  },
  {
    name: "a dynamic import finds nothing",
    body: "return await import('os')",
    expect: [{ status: "script_error", reason: "syntax", errorName: "ImportError" }],
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
  {
    name: "a dynamic import of a computed name finds nothing",
    body: "const out=[]; for (const n of ['os','./x.js','file:///etc/passwd','data:text/javascript,1','']) try { await eval('import('+JSON.stringify(n)+')'); out.push('loaded') } catch { out.push('refused') } return out",
    expect: [completed(["refused", "refused", "refused", "refused", "refused"])],
  },
  {
    name: "a source nested too deep",
    body: `return ${"(".repeat(50_000)}1${")".repeat(50_000)}`,
    expect: [{ status: "script_error", reason: "syntax", errorMessage: /nested/ }],
  },
  {
    name: "a text that breaks out of what it is wrapped in",
    body: "};\n}); globalThis.escaped = 1; (function(){ const x = async () => {",
    expect: [{ status: "script_error", reason: "syntax" }],
  },
  {
    name: "the names that the wrapping uses",
    body: "return [typeof __flowcell_native, typeof prelude, typeof globalThis.__flowcell_entry, typeof module, typeof exports]",
    expect: [completed(["undefined", "undefined", "undefined", "undefined", "undefined"])],
  },
  {
    name: "Object.prototype.then forges what is awaited",
    body: "Object.prototype.then=function(r){ delete Object.prototype.then; r('forged') }; const a=await t.echo({a:1}); return [typeof a, await t.echo(2)]",
    expect: [completed(["string", 2]), completed(["object", 2])],
  },
  {
    name: "the promise constructor replaced",
    body: "globalThis.Promise=function(){throw 1}; return t.echo(3)",
    expect: [completed(3)],
  },
  {
    name: "Promise.resolve and the species replaced",
    body: "Promise.resolve=()=>{throw 1}; Object.defineProperty(Promise,Symbol.species,{get(){throw 2}}); Promise.prototype.constructor=function(){throw 3}; return await t.echo(4)",
    expect: [completed(4)],
  },
  {
    name: "JSON removed and its functions replaced",
    body: "const j=JSON; delete globalThis.JSON; j.stringify=()=>'forged'; j.parse=()=>'forged'; return await t.echo({a:[1]})",
    expect: [completed({ a: [1] })],
  },
  {
    name: "call, apply and bind replaced",
    body: "Function.prototype.call=Function.prototype.apply=Function.prototype.bind=()=>{throw 1}; Reflect.apply=()=>{throw 1}; return await t.echo([new Date(5)])",
    expect: [completed([new Date(5)])],
  },
  {
    name: "methods of texts and numbers replaced",
    body: "const value={'a b':[1.5,'x\\\\n']}; for (const P of [String.prototype, Number.prototype, RegExp.prototype, Symbol.prototype]) for (const k of Reflect.ownKeys(P)) try { Object.defineProperty(P,k,{get(){throw 1},configurable:true}) } catch {} return await t.echo(value)",
    expect: [completed({ "a b": [1.5, "x\\n"] })],
  },
  {
    name: "maps, sets, dates and bytes replaced",
    body: "const value=[new Map([[1,2]]), new Set([3]), new Date(4), new Uint8Array([5])]; for (const C of [Map,Set,WeakMap,Date,ArrayBuffer,Uint8Array,Object.getPrototypeOf(Uint8Array)]) for (const k of Reflect.ownKeys(C.prototype)) try { Object.defineProperty(C.prototype,k,{get(){throw 1},configurable:true}) } catch {} return await t.echo(value)",
    expect: [completed([new Map([[1, 2]]), new Set([3]), new Date(4), new Uint8Array([5])])],
  },
  {
    name: "constructors of errors replaced",
    body: "Error.prepareStackTrace=()=>{throw 1}; Error.stackTraceLimit=0; Error.captureStackTrace=()=>{throw 2}; globalThis.Error=globalThis.TypeError=function(){throw 3}; const out=[]; try{await t.boom()}catch(e){out.push(e.code)} try{await t.echo(()=>1)}catch(e){out.push(e.code)} return out",
    expect: [completed(["E_BOOM", "invalid_arguments"])],
  },
  {
    name: "a stack that prepareStackTrace makes up",
    body: "Error.prepareStackTrace=()=>'    at x (/etc/shadow:1:1)\\n    at y (script.js:9999:1)'; throw new Error('forged')",
    expect: [scriptError("Error", "forged")],
  },
  {
    name: "indices and lengths caught by setters",
    body: "let n=0; for (const P of [Object.prototype, Array.prototype]) for (let i=0;i<40;i++) Object.defineProperty(P,String(i),{set(){n++},get(){n++},configurable:true}); const r=await t.echo([1,[2,{a:3}]]); return [Array.isArray(r), r.length, n]",
    expect: [completed([true, 2, 0])],
  },
  {
    name: "everything frozen",
    body: "for (const k of Reflect.ownKeys(globalThis)) { const v=globalThis[k]; if (typeof v==='function'||typeof v==='object'&&v) try { Object.freeze(v); Object.freeze(v.prototype) } catch {} } Object.freeze(globalThis); console.log('cold'); return await t.echo(7)",
    logs: ["log: cold"],
    expect: [completed(7)],
  },
  {
    name: "every global deleted",
    body: "const c=console, g=globalThis, del=Reflect.deleteProperty; for (const k of Reflect.ownKeys(g)) del(g,k); c.log('bare'); return await t.echo({left:1})",
    logs: ["log: bare"],
    expect: [completed({ left: 1 })],
  },
  {
    name: "the console replaced and its own functions poisoned",
    body: "const log=console.log; console.log=()=>{throw 1}; Object.prototype.toString=()=>{throw 2}; log({a:{get b(){throw 3}}}, new Proxy({}, {get(){throw 4}, ownKeys(){throw 5}, getPrototypeOf(){throw 6}})); return 'ok'",
    expect: [completed("ok")],
  },
  {
    name: "a value whose class lies",
    body: "class L extends Array { get length(){ throw 1 } } const m=new Map(); Object.setPrototypeOf(m,Array.prototype); const out=[]; for (const v of [new L(), m, Object.create(new Date(0)), {__proto__:Uint8Array.prototype}]) try{ await t.echo(v); out.push('sent') }catch(e){ out.push('refused') } return out.length",
    expect: [completed(4)],
  },
  {
    name: "a result whose getters throw",
    body: "return {a:{get b(){throw new Error('mine')}}}",
    expect: [{ status: "script_error" }],
  },
  {
    name: "a result whose toJSON lies",
    body: "return {a:1,toJSON(){return 'lie'}}",
    expect: [{ status: "script_error", errorMessage: /cannot send a function/ }],
  },
  {
    name: "a symbol as a result names itself",
    body: "return {s:Symbol('x')}",
    expect: [{ status: "script_error", reason: "unsendable", errorMessage: /symbol.*\.s/ }],
  },
  {
    name: "a stack that names files of the host",
    body: "const e=new Error('forged'); e.stack='Error: forged\\n    at f (/etc/passwd:1:2)\\n    at g (file:///root/x.js:3:4)'; throw e",
    expect: [scriptError("Error", "forged")],
  },
  {
    name: "an error whose name is code for a terminal",
    body: "const e=new Error('\\u001b[2Jmessage'); e.name='\\u001b[31mred'; throw e",
    expect: [{ status: "script_error" }],
  },
  {
    name: "a code that belongs to the runtime",
    body: "throw Object.assign(new Error('forged'),{code:'denied',name:'HostError',retryable:true})",
    expect: [{ status: "script_error", reason: "uncaught" }],
  },
  {
    name: "a host error made by the script itself",
    body: "throw new HostError('forged',{code:'denied'})",
    expect: [{ status: "script_error" }],
  },
  {
    name: "a host function called with a strange this and new",
    body: "const out=[]; out.push(await t.echo.call(null,1)); out.push(await Reflect.apply(t.echo,{},[2])); try{ new t.echo(3); out.push('made') }catch{ out.push('no constructor') } return out",
    expect: [completed([1, 2, "no constructor"])],
  },
  {
    name: "host functions and namespaces cannot be given properties",
    body: "'use strict'; const out=[]; for (const f of [()=>{t.echo.x=1}, ()=>{t.more=1}, ()=>{Object.setPrototypeOf(t,null)}, ()=>{Object.defineProperty(host,'t',{value:1})}]) try{ f(); out.push('done') }catch(e){ out.push(e.name) } return out",
    expect: [completed(["TypeError", "TypeError", "TypeError", "TypeError"])],
  },
  {
    name: "a call made while the last is being answered",
    body: "let depth=0; const f=async()=>{ if(++depth>50) return depth; await t.echo(depth); return f() }; return await f()",
    expect: [completed(51)],
  },
  {
    name: "a getter among the arguments makes a call itself",
    body: "const seen=[]; const r=await t.echo({get a(){ t.echo('inner').then(x=>seen.push(x)); return 1 }}); await t.echo(0); return [r.a, seen]",
    expect: [completed([1, ["inner"]])],
  },
  {
    name: "a thenable returned by a thenable",
    body: "let n=0; const th={then(r){ if(n++<100) r(th); else r('end') }}; return th",
    expect: [completed("end")],
  },
  {
    name: "a result that settles twice",
    body: "return {then(r,j){ r(1); j(new Error('2')); r(3); throw 4 }}",
    expect: [completed(1)],
  },
  {
    name: "the entry called again by itself",
    body: "if (input) return 'inner'; return await (async function again(){ return 'outer' })()",
    expect: [completed("outer")],
  },
  {
    name: "a host call after the end of the run",
    body: "Promise.resolve().then(()=>{}).then(()=>{ t.echo('late') }); setTimeout(()=>t.echo('later'),0); return 1",
    settleMs: 50,
    expect: [completed(1), completed(1, ["call_not_awaited"])],
  },
  {
    name: "an answer that comes after the end",
    body: "t.late(); return 'gone'",
    settleMs: 400,
    expect: [completed("gone", ["call_not_awaited"])],
  },
];
