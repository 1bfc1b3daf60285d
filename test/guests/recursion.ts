// Ways into unbounded depth: recursion of the script's own functions through every construct that calls them, and values
// and texts so deep that the engine recurses by itself. None needs anything but the engine.
//
// Each is a body of a case; what it returns if it gets through does not matter. Used by sweeps.test.ts, which runs them
// under stacks of many sizes, left to themselves and with the error caught.

export interface Shape {
  readonly name: string;
  readonly body: string;
}

const nested = (open: string, middle: string, close: string, depth: number): string =>
  `return typeof eval('${open}'.repeat(${depth})+'${middle}'+'${close}'.repeat(${depth}))`;

const deepArray = "let a=[];for(let i=0;i<1e5;i++)a=[a];";
const deepObject = "let o={};for(let i=0;i<1e5;i++)o={o};";

export const shapes: readonly Shape[] = [
  // A function that calls itself, through …
  { name: "a plain call", body: "let n=0; const f=()=>{n++; f()}; f()" },
  {
    name: "a call with many arguments",
    body: "const f=(a,b,c,d,e,g,h,i)=>f(a,b,c,d,e,g,h,i)+1; f(1,2,3,4,5,6,7,8)",
  },
  { name: "a spread call", body: "const f=(...a)=>f(...a,1); f()" },
  { name: "Function.prototype.call", body: "function f(){ f.call(this) } f()" },
  { name: "Function.prototype.apply", body: "function f(){ f.apply(this,arguments) } f(1,2,3)" },
  { name: "a bound function", body: "const f=function(){ f.bind(null)() }; f()" },
  { name: "Reflect.construct", body: "function F(){ Reflect.construct(F,[]) } new F()" },
  { name: "a constructor", body: "class A { constructor(){ new A() } } new A()" },
  { name: "a field's initialiser", body: "class A { x = new A() } new A()" },
  {
    name: "a chain of superclasses",
    body: "let C=class{}; for(let i=0;i<3e4;i++) C=class extends C{}; new C()",
  },
  { name: "toString", body: "const o={toString(){ return ''+o }}; return ''+o" },
  { name: "valueOf", body: "const o={valueOf(){ return +o }}; return +o" },
  {
    name: "Symbol.toPrimitive",
    body: "const o={[Symbol.toPrimitive](){ return String(o) }}; return String(o)",
  },
  { name: "a getter", body: "const o={get x(){ return o.x }}; return o.x" },
  { name: "a setter", body: "const o={set x(v){ o.x=v }}; o.x=1" },
  { name: "a trap of a proxy", body: "const p=new Proxy({},{get(t,k,r){ return r[k] }}); return p.x" },
  {
    name: "a proxy as its own handler's prototype",
    body: "const h={}; const p=new Proxy({},h); Object.setPrototypeOf(h,p); return p.x",
  },
  {
    name: "Symbol.hasInstance",
    body: "class A { static [Symbol.hasInstance](){ return 1 instanceof A } } return 1 instanceof A",
  },
  { name: "toJSON", body: "const o={toJSON(){ return JSON.stringify(o) }}; JSON.stringify(o)" },
  { name: "a reviver", body: "const f=()=>JSON.parse('[1]',f); f()" },
  { name: "a replacer", body: "const f=(k,v)=>JSON.stringify([1],f); JSON.stringify([1],f)" },
  { name: "a comparator", body: "const f=()=>[2,1].sort(f); f()" },
  { name: "Array.prototype.map", body: "const f=()=>[1].map(f); f()" },
  { name: "Array.from", body: "const f=()=>Array.from([1],f); f()" },
  { name: "a typed array's callback", body: "const u=new Uint8Array(1); const f=()=>u.map(f)[0]; f()" },
  { name: "Map.prototype.forEach", body: "const m=new Map([[1,2]]); const f=()=>m.forEach(f); f()" },
  { name: "String.prototype.replace", body: "const f=()=>'x'.replace('x',f); f()" },
  {
    name: "RegExp's exec hook",
    body: "const r=/x/; r.exec=()=>r[Symbol.replace]('x','y'); 'x'.replace(r,'y')",
  },
  { name: "a tagged template", body: "const f=()=>f`a`; f()" },
  { name: "a default of destructuring", body: "const f=({a=f({})}={})=>a; f()" },
  { name: "a computed key", body: "const f=()=>({[f()]:1}); f()" },
  { name: "an iterator", body: "const o={[Symbol.iterator](){ for(const x of o); }}; for(const x of o);" },
  { name: "yield* of itself", body: "function* g(){ yield* g() } [...g()]" },
  { name: "an asynchronous function's start", body: "const f=async()=>{ await f() }; await f()" },
  { name: "an asynchronous generator", body: "async function* g(){ yield* g() } for await(const x of g());" },
  {
    name: "a species",
    body: "class A extends Array { static get [Symbol.species](){ return new A().map(x=>x).constructor } } new A(1).map(x=>x)",
  },
  {
    name: "a thenable's getter",
    body: "const o={get then(){ return Promise.resolve(o), undefined }}; await o",
  },
  { name: "eval", body: "globalThis.f=()=>eval('f()'); f()" },
  { name: "Function", body: "globalThis.f=()=>Function('return f()')(); f()" },
  { name: "a try in each frame", body: "const f=()=>{ try { f() } finally { f() } }; f()" },
  { name: "a catch in each frame", body: "const f=()=>{ try { return f() } catch (e) { return f() } }; f()" },
  {
    name: "two functions by turns with large frames",
    body: "const f=n=>{ let a=n,b=a+1,c=b+1,d=[a,b,c]; return g(d.length)+a+b+c }; const g=n=>{ const {x,y,z}={x:n,y:n,z:n}; return f(x+y+z) }; f(1)",
  },
  {
    name: "structuredClone of a getter",
    body: "const o={get x(){ return structuredClone(o) }}; structuredClone(o)",
  },
  {
    name: "the console's values",
    body: "const p=new Proxy({},{get(){ console.log(p); return p.x }}); console.log(p); return p.x",
  },
  // A value that is deep, walked by …
  { name: "JSON.stringify, arrays", body: `${deepArray} return JSON.stringify(a).length` },
  { name: "JSON.stringify, objects", body: `${deepObject} return JSON.stringify(o).length` },
  {
    name: "Array.prototype.flat",
    body: `let a=[]; a.push(a); for(let i=0;i<1e5;i++)a=[a]; return a.flat(Infinity).length`,
  },
  { name: "Array.prototype.toString", body: `${deepArray} return String(a).length` },
  { name: "structuredClone", body: `${deepObject} structuredClone(o)` },
  { name: "a host call", body: `${deepObject} await t.echo(o)` },
  { name: "the console", body: `${deepObject} console.log(o,[o]); return 'ok'` },
  { name: "the result", body: `${deepArray} return a` },
  {
    name: "an error's causes",
    body: "let e=new Error('0'); for(let i=0;i<1e5;i++) e=new Error(String(i),{cause:e}); throw e",
  },
  { name: "a chain of proxies", body: "let p={}; for(let i=0;i<1e5;i++) p=new Proxy(p,{}); return 'v'+p.x" },
  {
    name: "a chain of proxies, asked for its keys",
    body: "let p={}; for(let i=0;i<1e5;i++) p=new Proxy(p,{}); return Object.keys(p).length",
  },
  {
    name: "a chain of prototypes",
    body: "let p={}; for(let i=0;i<1e5;i++) p=Object.create(p); return String(p.x)",
  },
  {
    name: "a chain of proxies as prototypes",
    body: "let p={}; for(let i=0;i<3e4;i++) p=Object.create(new Proxy(p,{})); return String(p.x)",
  },
  {
    name: "a chain of bound functions",
    body: "let f=()=>0; for(let i=0;i<2e5;i++) f=f.bind(null); return 'r'+f()",
  },
  {
    name: "a chain of promises",
    body: "let p=t.echo(1); for(let i=0;i<1e5;i++) p=Promise.resolve({then(r){ r(p) }}) && p.then(x=>x); return await p",
  },
  {
    name: "a text of many parts",
    body: "let s='';for(let i=0;i<1e4;i++)s='x'+s+'y'; return s.charCodeAt(5)",
  },
  {
    name: "letting go of a long list",
    body: "let l=null;for(let i=0;i<2e5;i++)l={l}; l=null; return 'gone'",
  },
  {
    name: "collecting a long list in a cycle",
    body: "let h={},l=h;for(let i=0;i<2e5;i++){l={l}} h.l=l; h=l=null; const b=[];for(let i=0;i<50;i++)b[i]=new ArrayBuffer(2e5); return 'gone'",
  },
  // A text that is deep, parsed by …
  { name: "JSON.parse, arrays", body: "return JSON.parse('['.repeat(1e5)+']'.repeat(1e5)).length" },
  {
    name: "JSON.parse, objects",
    body: "return typeof JSON.parse('{\"a\":'.repeat(1e5)+'1'+'}'.repeat(1e5))",
  },
  { name: "eval, brackets", body: nested("(", "1", ")", 100_000) },
  { name: "eval, arrays", body: nested("[", "1", "]", 50_000) },
  { name: "eval, blocks", body: nested("{", "1", "}", 50_000) },
  { name: "eval, functions", body: nested("(function(){return ", "1", "})", 20_000) },
  { name: "eval, arrows", body: nested("a=>", "1", "", 50_000) },
  { name: "eval, classes", body: nested("(class{x=", "1", "})", 5_000) },
  { name: "eval, prefixes", body: nested("!", "1", "", 100_000) },
  { name: "eval, conditions", body: nested("1?", "1", ":1", 50_000) },
  { name: "eval, templates", body: nested("`${", "1", "}`", 20_000) },
  { name: "eval, assignments", body: `globalThis.a=1; ${nested("a=", "1", "", 50_000)}` },
  {
    name: "eval, patterns",
    body: "return typeof eval('(('+'['.repeat(20000)+'a'+']'.repeat(20000)+')=>a)')",
  },
  { name: "eval, labels", body: nested("a:{b:", "1", "}", 10_000) },
  { name: "eval, ifs", body: nested("if(1)", "1", "", 50_000) },
  { name: "RegExp, groups", body: "new RegExp('('.repeat(5e4)+')'.repeat(5e4)); return 'ok'" },
  { name: "RegExp, lookaheads", body: "return new RegExp('(?='.repeat(2e4)+'a'+')'.repeat(2e4)).test('a')" },
  { name: "RegExp, backtracking", body: "return /(a+)+$/.test('a'.repeat(24)+'b')" },
  { name: "RegExp, a long match", body: "return /^(?:a|b)*?c/.test('ab'.repeat(2e5))" },
  { name: "RegExp, captures in a loop", body: "return /^(?:(a)|(b)|(c))*$/.test('abc'.repeat(1e5))" },
];

/** The same with whatever is thrown caught, after which the script must be able to go on. */
export function caught(shape: Shape): string {
  return `try { await (async () => { ${shape.body} })() } catch (e) { await null; const r = await t.echo(typeof e); return ['caught', r] }\nreturn ['through', await t.echo('object')]`;
}
