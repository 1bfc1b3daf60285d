// Guests that mean well: values, errors, promises, language and the web platform set must work as an author expects.
import { completed, exceeded, type GuestCase, scriptError } from "./case.js";

export const honest: readonly GuestCase[] = [
  { name: "returns a value", body: "return 1 + 1", expect: [completed(2)] },
  { name: "returns nothing as undefined", body: "", expect: [completed(undefined)] },
  {
    name: "keeps lone surrogates and NUL through a host call",
    body: String.raw`const s='\ud800x\u0000y'; const r=await t.echo(s); return [r===s, r.length]`,
    expect: [completed([true, 4])],
  },
  {
    name: "carries BigInt, Map, Date and bytes faithfully",
    body: "return [10n**30n, new Map([[1,2]]), new Date(0), new Uint8Array([1])]",
    expect: [completed([10n ** 30n, new Map([[1, 2]]), new Date(0), new Uint8Array([1])])],
  },
  {
    name: "carries Set, RegExp, undefined, NaN, infinities and minus zero faithfully",
    body: "return {s:new Set([1,'a']), r:/a+/gi, u:undefined, n:NaN, p:Infinity, m:-Infinity, z:-0}",
    expect: [
      completed({
        s: new Set([1, "a"]),
        r: /a+/gi,
        u: undefined,
        n: Number.NaN,
        p: Number.POSITIVE_INFINITY,
        m: Number.NEGATIVE_INFINITY,
        z: -0,
      }),
    ],
  },
  {
    name: "a host call is a promise before it settles",
    body: "const x=t.echo(5); return [typeof x.then, await x]",
    expect: [completed(["function", 5])],
  },
  {
    name: "a returned rejected promise is the script's error",
    body: "return Promise.reject(new Error('no'))",
    expect: [scriptError("Error", "no")],
  },
  {
    name: "bytes survive a host call",
    body: "const r = await t.echo(new Uint8Array([0,255,128])); return [r instanceof Uint8Array, Array.from(r)]",
    expect: [completed([true, [0, 255, 128]])],
  },
  { name: "every argument arrives", body: "return await t.two(1,{a:2},undefined)", expect: [completed(3)] },
  {
    name: "dunder keys stay own properties",
    body: "const r = await t.echo({constructor:1,prototype:2,['__proto__']:5,hasOwnProperty:3}); return Reflect.ownKeys(r).sort().concat([Object.getPrototypeOf(r)===Object.prototype])",
    expect: [completed(["__proto__", "constructor", "hasOwnProperty", "prototype", true])],
  },
  {
    name: "Promise.race takes the faster host call",
    body: "return await Promise.race([t.slow(),t.echo('fast')])",
    expect: [completed("fast", ["call_not_awaited"])],
  },
  {
    name: "Promise.any takes the first success",
    body: "return await Promise.any([t.boom(),t.slow(),t.echo('fast')])",
    expect: [completed("fast")],
  },
  {
    name: "Promise.all over many calls queues at the in-flight limit",
    body: "const r = await Promise.all(Array.from({length:500},(_, i)=>t.echo(i))); return r.reduce((a,b)=>a+b,0)",
    expect: [completed(124750)],
  },
  {
    name: "Promise.allSettled sees both kinds",
    body: "const r = await Promise.allSettled([t.echo(1),t.boom()]); return [r[0].value, r[1].status, r[1].reason.code]",
    expect: [completed([1, "rejected", "E_BOOM"])],
  },
  {
    name: "a thousand sequential calls",
    body: "for(let i=0;i<1000;i++) await t.echo(i); return 1",
    limits: { hostCalls: 1000 },
    expect: [completed(1)],
  },
  {
    name: "one call beyond the limit is named",
    body: "for(let i=0;i<1000;i++) await t.echo(i); return 1",
    limits: { hostCalls: 100 },
    expect: [exceeded("host_calls")],
  },
  {
    name: "a call that is never awaited is a warning",
    body: "t.slow(); return 1",
    expect: [completed(1, ["call_not_awaited"])],
  },
  {
    name: "a lost rejection is a warning",
    body: "Promise.reject(new Error('lost')); return 'ok'",
    expect: [completed("ok", ["unhandled_rejection"])],
  },
  {
    name: "a rejection handled late is none",
    body: "const p=t.boom(); await null; await null; try{await p}catch{}; return 'ok'",
    expect: [completed("ok", [])],
  },
  {
    name: "stacks of host errors that a script sees hold its own frames and none of the runtime's",
    body: `const stacks = [];
      const seen = (error) => { stacks.push(String(error.stack)); };
      await t.boom().catch(seen);
      await Promise.all([t.boom().catch(seen), new Promise((resolve) => setTimeout(() => { seen(new Error("timer")); resolve(); }, 1))]);
      try { host.nothing.there(); } catch (error) { seen(error); }
      return [stacks.length, stacks.filter((text) => /prelude|flowcell/.test(text)), stacks.every((text) => text.includes("script.js"))];`,
    expect: [completed([4, [], true])],
  },
  {
    name: "a host error carries name of its code and no host frames",
    body: "try{await t.boom()}catch(e){return [e.code, /node:|\\.ts|\\.js:\\d+:\\d+\\)?$/.test(String(e.stack).replace(/script\\.js/g,'')), e instanceof Error]}",
    expect: [completed(["E_BOOM", false, true])],
  },
  {
    name: "an unknown host function is an error that names it",
    body: "return await t.nope()",
    expect: [{ status: "denied", reason: "denied", errorMessage: /t\.nope is not granted/ }],
  },
  {
    name: "inherited names are not host functions",
    body: "try{return [await t.toString(), await t.constructor('x')]}catch(e){return 'no'}",
    expect: [completed("no")],
  },
  {
    name: "a throwing getter in a host result is a catchable error",
    body: "try{return await t.badGetter()}catch(e){return 'caught'}",
    expect: [completed("caught")],
  },
  {
    name: "a host result that cannot cross is a catchable error",
    body: "const out=[]; for (const f of ['fn','cls']) try{out.push(await t[f]())}catch(e){out.push(e.code ?? e.name)} return out.map(x => typeof x)",
    expect: [completed(["string", "string"])],
  },
  {
    name: "functions and symbols out name their path",
    body: "return {rows:[{f(){return 'secret source'}}]}",
    expect: [{ status: "script_error", errorMessage: /cannot send a function.*\.rows\[0\]\.f/ }],
  },
  {
    name: "errors point at the right line",
    body: "const a = 1;\n\n\nnull.foo;",
    expect: [
      {
        status: "script_error",
        reason: "uncaught",
        errorName: "TypeError",
        errorAt: /guest\.js:5:(?:1|5|6)\b/,
      },
    ],
  },
  {
    name: "errors point at the right line of TypeScript",
    body: "type T={\n a:string;\n b:number;\n};\nconst x:T={a:'',b:1};\n(null as any).foo;",
    typescript: true,
    expect: [
      { status: "script_error", reason: "uncaught", errorName: "TypeError", errorAt: /guest\.ts:7:\d+/ },
    ],
  },
  {
    name: "type words in values are left alone",
    body: "const s='a as b: c<d>'; const o={as:1,type:2,satisfies:3}; return [s,o.as,o.type<3]",
    typescript: true,
    expect: [completed(["a as b: c<d>", 1, true])],
  },
  {
    name: "TypeScript enums and namespaces run",
    body: "enum E { A = 1, B } namespace N { export const x = E.B } export default () => N.x",
    typescript: true,
    module: true,
    expect: [completed(2)],
  },
  {
    name: "a missing name keeps its message",
    body: "nope()",
    expect: [scriptError("ReferenceError", /nope is not defined|'nope' is not defined/)],
  },
  {
    name: "a thrown object is described",
    body: "throw {code:42,message:'m'}",
    expect: [{ status: "script_error", errorMessage: /42|m/ }],
  },
  {
    name: "a thrown null is described",
    body: "throw null",
    expect: [{ status: "script_error", errorMessage: /null/ }],
  },
  {
    name: "a thrown string is described",
    body: "throw 'boom'",
    expect: [{ status: "script_error", errorMessage: /boom/ }],
  },
  {
    name: "an error without a message is a failure",
    body: "throw new Error('')",
    expect: [scriptError("Error")],
  },
  {
    name: "cause and aggregate survive",
    body: "throw new AggregateError([new TypeError('a'), new RangeError('b')], 'many', {cause: new Error('root')})",
    expect: [{ ...scriptError("AggregateError", "many"), errorInside: ["Error", "TypeError", "RangeError"] }],
  },
  {
    name: "a race with a timer leaves nothing behind",
    body: "return await Promise.race([t.echo(1),new Promise((_,j)=>setTimeout(()=>j(new Error('late')),50))])",
    settleMs: 100,
    expect: [completed(1)],
  },
  {
    name: "the web basics are right",
    body: "return [structuredClone({d:new Date(0)}).d.getTime(),new URL('https://a/b?c=1').searchParams.get('c'),new TextEncoder().encode('é').length,atob('YQ==')]",
    expect: [completed([0, "1", 2, "a"])],
  },
  {
    name: "Intl is absent and a foreign locale is refused, never silently wrong",
    body: "const out=[]; for (const f of [()=>Intl.DateTimeFormat(), ()=>new Date(0).toLocaleString('en-US',{timeZone:'America/New_York'}), ()=>(1234.5).toLocaleString('de-DE')]) try{f(); out.push('value')}catch(e){out.push('thrown')} return out",
    expect: [completed(["thrown", "thrown", "thrown"])],
  },
  {
    name: "timers fire in order of time",
    body: "const out=[]; await new Promise(r=>{setTimeout(()=>{out.push('b');r()},20); setTimeout(()=>out.push('a'),10)}); return out",
    expect: [completed(["a", "b"])],
  },
  {
    name: "setInterval can be cleared",
    body: "let n=0; await new Promise(r=>{const id=setInterval(()=>{if(++n===3){clearInterval(id);r()}},1)}); return n",
    expect: [completed(3)],
  },
  {
    name: "the clock stands still inside an activation",
    body: "const a=Date.now(); let s=0; for(let i=0;i<2e5;i++) s+=i; return Date.now()-a",
    expect: [completed(0)],
  },
  {
    name: "many objects in a job are no limit",
    body: "await 0; const a=[]; for(let i=0;i<2e5;i++) a.push({i}); return a.length",
    expect: [completed(200000)],
  },
  {
    name: "an error in an error class of the script's own keeps its name",
    body: "class E extends Error { constructor(m) { super(m); this.name = 'E' } } throw new E('mine')",
    expect: [scriptError("E", "mine")],
  },
  {
    name: "a promise that nothing can settle is an error that says so",
    body: "await new Promise(()=>{})",
    expect: [{ status: "script_error", errorMessage: /never/ }],
  },
  {
    name: "input arrives as it was given",
    body: "return [input.n, input.m.get('k'), input.d.getTime(), input.b[1], Object.is(input.z,-0)]",
    input: { n: 1, m: new Map([["k", 2]]), d: new Date(3), b: new Uint8Array([0, 4]), z: -0 },
    expect: [completed([1, 2, 3, 4, true])],
  },
  {
    name: "shared references and cycles survive both ways",
    body: "const a={}; a.self=a; const r=await t.echo([a,a]); return [r[0]===r[1], r[0].self===r[0], r[0]!==a]",
    expect: [completed([true, true, true])],
  },
  {
    name: "holes and lengths of arrays survive",
    body: "const a=[1,,3]; a.length=5; const r=await t.echo(a); return [r.length, 1 in r, 2 in r, 4 in r]",
    expect: [completed([5, false, true, false])],
  },
  {
    name: "errors are values too",
    body: "const e=new TypeError('inner'); e.code='E_MINE'; const r=await t.echo(e); return [r instanceof TypeError, r.message, r.code]",
    expect: [completed([true, "inner", "E_MINE"])],
  },
  {
    name: "every typed array survives a host call",
    body: "const out=[]; for (const C of [Int8Array,Uint8Array,Uint8ClampedArray,Int16Array,Uint16Array,Int32Array,Uint32Array,Float32Array,Float64Array]) { const r=await t.echo(new C([1,2,3])); out.push(r.constructor===C && r.length===3 && r[2]===3) } const b=await t.echo(new BigInt64Array([-1n])); out.push(b[0]===-1n); return out.every(Boolean)",
    expect: [completed(true)],
  },
  {
    name: "an argument that cannot be sent is refused with its path",
    body: "try{await t.echo({a:[()=>1]})}catch(e){return [e.name,e.code,e.message]}",
    expect: [
      completed([
        "HostError",
        "invalid_arguments",
        "host.t.echo: cannot send a function: [0].a[0] of the arguments",
      ]),
    ],
  },
  {
    name: "a failed call can be tried again",
    body: "let n=0; for(;;) try{ if(++n<3) await t.boom(); return n }catch{}",
    expect: [completed(3)],
  },
  {
    name: "a large value comes back whole",
    body: "const s='ab\u00e9\ud83d\ude00'.repeat(5e4); const r=await t.echo(s); return r===s",
    expect: [completed(true)],
  },
  {
    name: "a megabyte of bytes comes back whole",
    body: "const b=new Uint8Array(1<<20); for(let i=0;i<b.length;i++)b[i]=i*31; const r=await t.echo(b); return r.length===b.length && r.every((x,i)=>x===b[i])",
    limits: { cpuMs: 5000 },
    expect: [completed(true)],
  },
  {
    name: "console keeps levels, order and values",
    body: "console.log('a', 1); console.error({b:1},[1n]); console.warn('w'); console.info('i'); console.debug('d'); return 1",
    logs: ["log: a 1", "error: { b: 1 } [ 1n ]", "warn: w", "info: i", "debug: d"],
    expect: [completed(1, [])],
  },
  {
    name: "what was logged before a failure is kept",
    body: "console.log('a');console.error({b:1},[1n]);throw new Error('x')",
    logs: ["log: a", "error: { b: 1 } [ 1n ]"],
    expect: [scriptError("Error", "x")],
  },
  {
    name: "sleep and timers agree on the time",
    body: "const a=Date.now(); await host.sleep(30); const b=Date.now(); await new Promise(r=>setTimeout(r,30)); return [b-a>=30, Date.now()-b>=30]",
    expect: [completed([true, true])],
  },
  {
    name: "a cancelled call rejects with the signal's reason",
    body: "const c=new AbortController(); const p=t.never({signal:c.signal}); c.abort(new Error('enough')); try{await p}catch(e){return e.message}",
    expect: [completed("enough", [])],
  },
  {
    name: "an error thrown by a timer is the script's",
    body: "setTimeout(()=>{throw new Error('timer')},1); await t.never()",
    expect: [scriptError("Error", "timer")],
  },
  {
    name: "an error from a called function points at the caller's line",
    body: "const call = async () => {\n  await t.boom();\n};\nawait call();",
    expect: [
      { status: "script_error", errorName: "TypeError", errorMessage: "boom", errorAt: /guest\.js:3:\d+/ },
    ],
  },
  {
    name: "classes, private members, generators and destructuring work",
    body: "class A { #x=1; static #n=0; static make(){ A.#n++; return new A() } get x(){ return this.#x } static get n(){ return A.#n } } const {x, ...rest} = {x: A.make().x, y: 2, z: 3}; function* g(){ const r = yield 1; yield r*2 } const i=g(); i.next(); return [x, rest, A.n, i.next(21).value, [...'a\u{1f600}'].length]",
    expect: [completed([1, { y: 2, z: 3 }, 1, 42, 2])],
  },
  {
    name: "newer library functions work",
    body: "return [Object.groupBy([1,2,3],x=>x%2?'odd':'even').odd.length, [3,1,2].toSorted(), [1,2,3].at(-1), new Set([1,2]).union(new Set([3])).size, 'x'.isWellFormed(), [1,2].with(0,9)]",
    expect: [completed([2, [1, 2, 3], 3, 3, true, [9, 2]])],
  },
  {
    name: "a script without a default export is told so",
    body: "const x = 1;",
    module: true,
    expect: [{ status: "script_error", reason: "no_entry" }],
  },
  {
    name: "a default export that is no function is told so",
    body: "export default 42;",
    module: true,
    expect: [{ status: "script_error", reason: "no_entry" }],
  },
  {
    name: "a syntax error names the line",
    body: "const a = 1;\nconst = 2;",
    expect: [{ status: "script_error", reason: "syntax", errorMessage: /guest\.js:3:\d+/ }],
  },
];
