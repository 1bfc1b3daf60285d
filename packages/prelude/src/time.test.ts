/** Time and randomness: virtual, standing still, repeating exactly. */
import { createCipheriv } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { Guest } from "../testing/guest.js";

let guest: Guest;
beforeAll(async () => {
  guest = await Guest.create();
});

const clock = Date.UTC(2025, 0, 2, 3, 4, 5, 678);

describe("the clock", () => {
  test("stands still inside an activation", async () => {
    const run = await guest.run(
      "const a = Date.now(); for (let i = 0; i < 1e5; i++); return [Date.now() - a, performance.now()]",
    );
    expect(run.value).toEqual([0, 0]);
  });

  test("is the activation's in every form of Date", async () => {
    const run = await guest.run(
      "return [Date.now(), +new Date(), Date(), new Date().toString(), performance.timeOrigin, new Date().getTimezoneOffset(), +new (class extends Date {})()]",
      { clock },
    );
    expect(run.value).toEqual([
      clock,
      clock,
      "Thu Jan 02 2025 03:04:05 GMT+0000",
      "Thu Jan 02 2025 03:04:05 GMT+0000",
      clock,
      0,
      clock,
    ]);
  });

  test("Date is otherwise the language's own", async () => {
    const run = await guest.run(
      `const d = new Date(2024, 1, 29, 12); class D extends Date { twice() { return 2 * this } }
       return [d.toISOString(), +new Date('1970-01-01'), +new Date(5), Date.UTC(2000, 0), Date.parse('1970-01-02'), new D(5).twice(), new D(1) instanceof Date,
         Date.length, Date.name, Date.prototype.constructor === Date, Object.getOwnPropertyNames(Date).sort().join(), typeof Date.prototype.getTime,
         Object.prototype.toString.call(new Date()), String(new Date(NaN)), Reflect.construct(Date, [0], class {}) instanceof Date]`,
    );
    expect(run.value).toEqual([
      "2024-02-29T12:00:00.000Z",
      0,
      5,
      946_684_800_000,
      86_400_000,
      10,
      true,
      7,
      "Date",
      true,
      "UTC,length,name,now,parse,prototype",
      "function",
      "[object Date]",
      "Invalid Date",
      false,
    ]);
  });

  test("moves with what is delivered, never back", () => {
    guest.start(
      "await t.echo(1); const a = Date.now(); await t.echo(2); return [a, Date.now(), performance.now()]",
      {
        names: ["echo"],
        clock,
      },
    );
    guest.deliverTimer(clock + 500);
    guest.deliverOutcome(0, { value: 1 });
    guest.deliverTimer(clock + 100);
    guest.deliverOutcome(1, { value: 1 });
    expect(guest.frames.at(-1)?.text.split("\n")[1]).toBe(`[${clock + 500},${clock + 500},500]`);
  });

  test("the engine's own clock is out of reach", async () => {
    const run = await guest.run(
      "return [new Date().constructor, Date.prototype.constructor, Object.getPrototypeOf(class extends Date {})].map(D => D.now())",
      { clock },
    );
    expect(run.value).toEqual([clock, clock, clock]);
  });
});

describe("timers", () => {
  test("fire in order of time, then of creation, each with what it started", async () => {
    const run = await guest.run(
      `const out = []; const at = (name, ms) => setTimeout(() => { out.push(name); Promise.resolve().then(() => out.push(name + '!')) }, ms);
       at('c', 20); at('a', 10); at('b', 10); at('z', 0); at('y'); at('n', -5); at('nan', 'x');
       await new Promise(r => setTimeout(r, 30)); return out.join(' ')`,
    );
    expect(run.value).toBe("z z! y y! n n! nan nan! a a! b b! c c!");
  });

  test("get their arguments and no others, and no receiver", async () => {
    const run = await guest.run(
      "return await new Promise(r => setTimeout(function () { 'use strict'; r([[...arguments], this === undefined]) }, 1, 'a', 2))",
    );
    expect(run.value).toEqual([["a", 2], true]);
  });

  test("are told to the parent: when the next is due, and how many calls are open", () => {
    guest.start("t.echo(1); setTimeout(() => {}, 250); await new Promise(() => {})", {
      names: ["echo"],
      clock,
    });
    expect(guest.frames.at(-1)).toMatchObject({
      name: "blocked",
      text: `{"nextTimerAt":${clock + 250},"openCalls":1,"delivered":0}`,
    });
  });

  test("one fires for each delivery, and none before its time", () => {
    guest.start(
      "setTimeout(() => console.log('a'), 5); setTimeout(() => console.log('b'), 5); await new Promise(() => {})",
      {
        names: ["echo"],
        clock,
      },
    );
    const names = (): string[] => guest.take().map(({ name }) => name);
    expect(names()).toEqual(["blocked"]);
    guest.deliverTimer(clock + 4);
    expect(names()).toEqual(["blocked"]);
    guest.deliverTimer(clock + 5);
    expect(names()).toEqual(["console", "blocked"]);
    guest.deliverTimer(clock + 5);
    expect(names()).toEqual(["console", "finished0"]);
  });

  test("are cleared by either function, also while they fire", async () => {
    const run = await guest.run(
      `let n = 0; const a = setTimeout(() => n++, 1); clearInterval(a); clearTimeout(a); clearTimeout(999); clearTimeout('x'); clearTimeout();
       const i = setInterval(() => { if (++n === 3) clearTimeout(i) }, 1);
       await new Promise(r => setTimeout(r, 100)); return n`,
    );
    expect(run.value).toBe(3);
  });

  test("intervals repeat from the time they fired", async () => {
    const run = await guest.run(
      "const at = []; const start = Date.now(); await new Promise(r => { const i = setInterval(() => { at.push(Date.now() - start); if (at.length === 3) { clearInterval(i); r() } }, 10) }); return at",
    );
    expect(run.value).toEqual([10, 20, 30]);
  });

  test("an interval of nothing lets the clock move", async () => {
    const run = await guest.run(
      "const start = Date.now(); let n = 0; await new Promise(r => { const i = setInterval(() => { if (++n === 5) { clearInterval(i); r() } }, 0) }); return Date.now() - start",
    );
    expect(run.value).toBe(5);
  });

  test("are limited in number; cleared ones do not count", async () => {
    const run = await guest.run(
      `for (let i = 0; i < 3000; i++) clearTimeout(setTimeout(() => {}, 1000));
       const ids = []; try { for (;;) ids.push(setTimeout(() => {}, 1)) } catch (e) { return [ids.length, e.name, e.message] }`,
    );
    expect(run.value).toEqual([1000, "RangeError", "setTimeout: more than 1000 timers are set"]);
  });

  test.each([
    ["setTimeout('code', 1)", "TypeError", "setTimeout: the callback must be a function"],
    ["setTimeout(() => {}, 1e12)", "RangeError", "setTimeout: the delay must not exceed 2147483647 ms"],
    ["queueMicrotask('code')", "TypeError", "queueMicrotask: the callback must be a function"],
  ])("%s is refused", async (call, name, message) => {
    expect((await guest.run(`try { ${call} } catch (e) { return [e.name, e.message] }`)).value).toEqual([
      name,
      message,
    ]);
  });

  test("a thousand in random order fire in order of time", async () => {
    const run = await guest.run(
      `const out = []; const due = Array.from({length: 900}, (_, i) => (i * 7919) % 911); const ids = due.map(ms => setTimeout(() => out.push(ms), ms));
       for (let i = 0; i < 900; i += 3) clearTimeout(ids[i]);
       await new Promise(r => setTimeout(r, 1000)); return [out.length, out.every((ms, i) => i === 0 || out[i - 1] <= ms)]`,
    );
    expect(run.value).toEqual([600, true]);
  });
});

describe("randomness", () => {
  const script =
    "return [Math.random(), Math.random(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(100))]]";

  test("repeats with its seed and differs with another", async () => {
    const seed = "0123456789abcdef".repeat(4);
    const first = await guest.run(script, { seed });
    expect((await guest.run(script, { seed })).value).toEqual(first.value);
    const other = (await guest.run(script, { seed: `1${seed.slice(1)}` })).value as unknown[];
    for (const [index, value] of (first.value as unknown[]).entries())
      expect(other[index]).not.toEqual(value);
  });

  test("crypto is ChaCha20 keyed with the seed", async () => {
    const seed = "0123456789abcdef".repeat(4);
    const run = await guest.run("return crypto.getRandomValues(new Uint8Array(200))", { seed });
    // Counter 0, then the nonce whose last word is the stream's number.
    const nonce = Buffer.alloc(16);
    nonce.writeUInt32LE(2, 12);
    const stream = createCipheriv("chacha20", Buffer.from(seed, "hex"), nonce).update(Buffer.alloc(200));
    expect(Buffer.from(run.value as Uint8Array).equals(stream)).toBe(true);
  });

  test("what crypto hands out does not move Math.random, and the other way", async () => {
    const alone = await guest.run("return Math.random()");
    const mixed = await guest.run("crypto.randomUUID(); const r = Math.random(); return r");
    expect(mixed.value).toBe(alone.value);
  });

  test("Math.random is spread over [0, 1)", async () => {
    const run = await guest.run(
      "const bins = Array(10).fill(0); let low = 1, high = 0; for (let i = 0; i < 20000; i++) { const r = Math.random(); bins[Math.floor(r * 10)]++; low = Math.min(low, r); high = Math.max(high, r) } return [bins, low, high]",
    );
    const [bins, low, high] = run.value as [number[], number, number];
    for (const count of bins) expect(Math.abs(count - 2000)).toBeLessThan(250);
    expect(low).toBeGreaterThanOrEqual(0);
    expect(high).toBeLessThan(1);
  });

  test("randomUUID is a version 4 UUID", async () => {
    const run = await guest.run("return Array.from({length: 50}, () => crypto.randomUUID())");
    for (const uuid of run.value as string[]) {
      expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    }
    expect(new Set(run.value as string[]).size).toBe(50);
  });

  test("getRandomValues fills views of integers in place and refuses the rest", async () => {
    const run = await guest.run(
      `const b = new Uint8Array(8); const part = new Uint16Array(b.buffer, 2, 2); const same = crypto.getRandomValues(part) === part;
       const fails = [new Float64Array(1), [1], new Uint8Array(65537), new DataView(new ArrayBuffer(1))].map(v => { try { crypto.getRandomValues(v); return 'filled' } catch (e) { return e.name } });
       return [same, b[0], b[1], b[6], b[7], part.some(x => x !== 0), fails]`,
    );
    expect(run.value).toEqual([
      true,
      0,
      0,
      0,
      0,
      true,
      ["TypeMismatchError", "TypeMismatchError", "QuotaExceededError", "TypeMismatchError"],
    ]);
  });
});
