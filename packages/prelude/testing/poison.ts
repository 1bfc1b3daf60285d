/**
 * Script text that replaces every property of every intrinsic that can be reached, and puts accessors for the runtime's own
 * field names and for indices on the shared prototypes. Afterwards the script works with what it kept in `mine`;
 * `when(promise, f, g)` is `promise.then(f, g)` without looking anything up, and `hits` counts accessors that were met.
 */

/** Names that the runtime's records have: none of them may be looked up on a shared prototype. */
const fieldNames = [
  "then get set value writable enumerable configurable constructor toJSON position name text ok error status message code",
  "kind clock detail retryable activation limits names signal stack cause errors length next prev due id proxy target apply",
  "bind call done return throw prefix made more site settled resolve reject devalue attachments count callback args every",
  "place what path aborted reason steps flags source method key digits point used fields",
  "0 1 2 3 10 32",
].join(" ");

export const poison = `
const own = Reflect.ownKeys, desc = Object.getOwnPropertyDescriptor, def = Object.defineProperty, proto = Object.getPrototypeOf;
const owners = [], keys = [], kinds = []; let count = 0;
{
  const seen = new Set(), queue = [globalThis, async function(){}, function*(){}, async function*(){}, [].values(),
    new Map().entries(), new Set().values(), 'x'[Symbol.iterator](), 'x'.matchAll(/x/g), (function*(){})(), Iterator.from([])];
  while (queue.length > 0) {
    const o = queue.pop();
    if ((typeof o !== 'object' && typeof o !== 'function') || o === null || seen.has(o)) continue;
    seen.add(o);
    for (const k of own(o)) {
      const d = desc(o, k);
      if (!d) continue;
      owners[count] = o; keys[count] = k; kinds[count] = d.configurable ? 2 : d.writable ? 1 : 0; count++;
      if ('value' in d) queue.push(d.value); else queue.push(d.get, d.set);
    }
    queue.push(proto(o));
  }
}
let hits = 0;
const NativeError = Error;
const evil = function () { hits++; throw new NativeError('poisoned') };
const quiet = function () { hits++; return undefined };
const accessor = { __proto__: null, get: evil, set: evil, configurable: true };
const mine = { then: Promise.prototype.then, apply: Reflect.apply, log: console.log, setTimeout, queueMicrotask, Promise, call: host.echo, boom: host.boom };
const fields = '${fieldNames}'.split(' '), fieldCount = fields.length;
const shared = [proto({}), proto([]), proto(function(){}), proto(''), proto(0), proto(true), proto(new Promise(() => {})), proto(new Error()), proto(new Map()), proto(new Set())];
for (let i = 0; i < count; i++) {
  try { if (kinds[i] === 2) def(owners[i], keys[i], accessor); else if (kinds[i] === 1) owners[i][keys[i]] = evil } catch {}
}
const quietAccessor = { __proto__: null, get: quiet, set: evil, configurable: true };
for (let i = 0; i < fieldCount; i++) for (let j = 0; j < 10; j++) { try { def(shared[j], fields[i], quietAccessor) } catch {} }
const when = (promise, ok, no) => new mine.Promise((resolve) => {
  mine.apply(mine.then, promise, [(value) => resolve(ok(value)), (reason) => resolve(no(reason))]);
});
hits = 0;
`;
