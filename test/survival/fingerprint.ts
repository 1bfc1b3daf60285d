// A script that describes everything it can see: each object that can be reached from the global object, from its arguments
// and from literals, in the order of discovery, with its class, its prototype, its keys in order and their attributes, and
// what can be learnt otherwise about the state of the engine: counters, random numbers, clocks, stack and memory to be had.
//
// Used by survival.test.ts: two activations in which it says the same cannot be told apart by a script. Everything in it
// is computed before the first thing is changed, and nothing of it depends on how fast the machine is.

/** Body of a guest case; its result is a list of lines. */
export const fingerprintBody = `
const ids = new Map(), list = [], lines = [];
const idOf = (o) => { let id = ids.get(o); if (id === undefined) { id = ids.size; ids.set(o, id); list.push(o) } return id };
const show = (v) => {
  switch (typeof v) {
    case 'function': return '#' + idOf(v);
    case 'object': return v === null ? 'null' : '#' + idOf(v);
    case 'string': return JSON.stringify(v);
    case 'symbol': return String(v) + (Symbol.keyFor(v) === undefined ? '' : ' of the registry');
    case 'bigint': return v + 'n';
    default: return Object.is(v, -0) ? '-0' : String(v);
  }
};
const state = (o) => {
  const parts = [];
  const tell = (name, f) => { try { parts.push(name + '=' + f()) } catch {} };
  if (typeof o === 'function') tell('text', () => Function.prototype.toString.call(o));
  tell('date', () => Date.prototype.getTime.call(o));
  tell('regexp', () => Object.getOwnPropertyDescriptor(RegExp.prototype, 'source').get.call(o));
  tell('map', () => [...Map.prototype.entries.call(o)].map(([k, v]) => show(k) + '>' + show(v)).join());
  tell('set', () => [...Set.prototype.values.call(o)].map(show).join());
  tell('bytes', () => ArrayBuffer.prototype.slice.call(o) && new Uint8Array(o).join());
  for (const C of [Number, String, Boolean, BigInt, Symbol]) tell(C.name, () => String(C.prototype.valueOf.call(o)));
  return parts.join(' ');
};
const asyncGenerator = async function* () {};
const roots = {
  globalThis, host, input, t,
  iterators: [[][Symbol.iterator](), ''[Symbol.iterator](), new Map().entries(), new Set().values(), ''.matchAll(/x/g), [].values().map((x) => x), Iterator.from({ next() {} })],
  functions: [function () {}, async function () {}, function* () {}, asyncGenerator, () => {}, class {}, (function () { return arguments })(1)],
  objects: [asyncGenerator(), (function* () {})(), Promise.resolve(1), /a/g, new Error('here'), ((a) => a)\`x\`, Object.create(null), new Proxy({}, {})],
};
for (const name of Object.keys(roots)) lines.push(name + ': ' + show(roots[name]));
for (let at = 0; at < list.length; at++) {
  const o = list[at];
  if (o === roots || o === ids || o === list || o === lines) continue;
  lines.push('#' + at + ' ' + typeof o + ' ' + Object.prototype.toString.call(o) + ' ' + (Object.isExtensible(o) ? '' : 'fixed ') + show(Object.getPrototypeOf(o)) + ' ' + state(o));
  for (const key of Reflect.ownKeys(o)) {
    const d = Object.getOwnPropertyDescriptor(o, key);
    if (d === undefined) { lines.push('  ' + String(key) + ' is listed and not there'); continue }
    const flags = (d.writable ? 'w' : '-') + (d.enumerable ? 'e' : '-') + (d.configurable ? 'c' : '-');
    lines.push('  ' + (typeof key === 'symbol' ? show(key) : key) + ' ' + flags + ' ' + ('value' in d ? show(d.value) : 'get ' + show(d.get) + ' set ' + show(d.set)));
  }
}
const say = (name, value) => lines.push(name + ' ' + show(value));
say('random', Math.random()); say('random again', Math.random());
say('uuid', crypto.randomUUID());
say('bytes', crypto.getRandomValues(new Uint8Array(8)).join());
say('now', Date.now()); say('performance', performance.now() + ' ' + performance.timeOrigin); say('date', String(new Date()));
const timer = setTimeout(() => {}, 1e6); say('timer', timer); clearTimeout(timer);
console.count('c'); console.count(); console.timeEnd('none'); console.log('a line');
say('stack', new Error('x').stack);
try { undefined.x } catch (e) { say('engine error', e.name + e.message + e.stack) }
/(a)(b)?/.exec('xab'); say('statics', [RegExp.$1, RegExp['$&'], RegExp.lastMatch, RegExp.input].map(String).join());
say('well known', [Symbol.for('k') === Symbol.for('k'), Symbol.keyFor(Symbol.for('k'))].join());
let depth = 0; const dive = () => { depth++; dive() }; try { dive() } catch {} say('depth', depth);
let turns = 0; await null; await Promise.resolve().then(() => turns++); say('turns', turns);
const echoed = await t.echo([1, { a: new Date(1) }]); say('echo', JSON.stringify(echoed));
return lines;
`;

/** Body of a case that measures how much memory can be had, in two sizes of pieces, before the engine refuses more. */
export const capacityBody = `
const count = (make) => { const kept = []; try { for (;;) kept.push(make()) } catch {} const n = kept.length; kept.length = 0; return n };
return [count(() => new ArrayBuffer(65536)), count(() => ({ a: 1, b: [2] })), count(() => 'x'.repeat(1000) + Math.random())];
`;
