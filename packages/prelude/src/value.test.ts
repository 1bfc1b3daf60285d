/** The guest's half of the value codec: the text is the protocol's, both ways, and what JSON would change takes the other form. */
import { readFileSync } from "node:fs";
import { decodeValue, type EncodedValue, encodeValue } from "@flowcell/protocol";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { Guest, joined, sentValue } from "../testing/guest.js";

let guest: Guest;
beforeAll(async () => {
  guest = await Guest.create();
});

const host = { echo: (value: unknown) => value };

/** The frame of `return expression`. */
async function sent(
  expression: string,
): Promise<{ name: string; text: string; attachments: Uint8Array | undefined }> {
  const run = await guest.run(`return ${expression}`, { host });
  expect(run.status, run.error?.message).toBe("completed");
  const frame = run.frames.at(-1);
  if (frame === undefined) throw new Error("nothing was sent");
  return { ...frame, text: frame.text.slice(frame.text.indexOf("\n") + 1) };
}

describe("the form", () => {
  test.each([
    ["1", "1"],
    ["'text'", '"text"'],
    ["null", "null"],
    ["[1, 'x', null, true, {a: []}]", '[1,"x",null,true,{"a":[]}]'],
    ["{b: 1, a: 2, '': 3}", '{"b":1,"a":2,"":3}'],
    ["{['__proto__']: 1}", '{"__proto__":1}'],
    ["'\\ud800x\\u0000y'", '"\\ud800x\\u0000y"'],
    ["1.5e300", "1.5e+300"],
  ])("%s is JSON", async (expression, text) => {
    expect(await sent(expression)).toMatchObject({ name: "finished0", text });
  });

  test.each([
    ["undefined", "-1"],
    ["NaN", "-3"],
    ["Infinity", "-4"],
    ["-Infinity", "-5"],
    ["-0", "-6"],
    ["10n", '[["BigInt","10"]]'],
    ["[undefined, -0, NaN]", "[[-1,-6,-3]]"],
    ["[1,,3]", "[[1,-2,2],1,3]"],
    ["{a: undefined}", '[{"a":-1}]'],
    ["['x', 'x', undefined]", '[[1,1,-1],"x"]'],
    ["[true, true, null, null, undefined]", "[[1,1,2,2,-1],true,null]"],
    ["[5, 5, undefined]", "[[1,2,-1],5,5]"],
    ["new Date(0)", '[["Date","1970-01-01T00:00:00.000Z"]]'],
    ["new Date(NaN)", '[["Date",""]]'],
    ["/a\\/b/gi", '[["RegExp","a\\\\/b","gi"]]'],
    ["/a/", '[["RegExp","a"]]'],
    ["new Map([['a', 1]])", '[["Map",1,2],"a",1]'],
    ["new Set(['a'])", '[["Set",1],"a"]'],
    ["Object.assign(Object.create(null), {a: 1})", '[["null","a",1],1]'],
    ["(() => { const o = {}; o.o = o; return o })()", '[{"o":0}]'],
    ["(() => { const o = {}; return [o, o] })()", "[[1,1],{}]"],
    ["new TypeError('t')", '[["Error",1],[2,3,-2,-2,-2,-2],"TypeError","t"]'],
    ["(() => { const a = []; a.length = 100; a[7] = 'x'; return a })()", '[[-7,100,7,1],"x"]'],
  ])("%s is not", async (expression, text) => {
    expect(await sent(expression)).toMatchObject({ name: "finished1", text });
  });

  test("an object met twice is one object, however many lie between", async () => {
    const run = await guest.run(
      "const o = {}; const a = Array.from({length: 20}, () => ({})); return [o, ...a, {deep: [o]}]",
    );
    const value = run.value as unknown[];
    expect((value[21] as { deep: unknown[] }).deep[0]).toBe(value[0]);
  });

  test("an accessor is read once", async () => {
    const run = await guest.run("let n = 0; return {get x() { return ++n }}");
    expect(run.value).toEqual({ x: 1 });
  });

  test("a toJSON of the script's own is a function like any other", async () => {
    const run = await guest.run("return {a: 1, toJSON() { return 'forged' }}");
    expect(run.error?.message).toBe("the result: cannot send a function: .toJSON");
  });

  test("a proxy of a plain object is read like one, each property once", async () => {
    const run = await guest.run(
      "let gets = ''; const p = new Proxy({a: 1, b: [2]}, {get(o, k) { if (typeof k === 'string') gets += k; return o[k] }}); return [await t.echo(p), gets]",
      { host },
    );
    expect(run.value).toEqual([{ a: 1, b: [2] }, "ab"]);
  });

  test.each([
    "class A {}; return new A()",
    "return new (class extends Array {})()",
    "return new String('x')",
    "return Object.create({})",
    "return new WeakMap()",
    "return (function () { return arguments.callee })()",
    "return new (class extends Map {})()",
  ])("refuses %s", async (body) => {
    expect(await guest.run(body)).toMatchObject({ status: "script_error", code: "unsendable" });
  });
});

describe("bytes", () => {
  test("every kind of view arrives as itself", async () => {
    const run = await guest.run(
      `const r = await t.echo([new Uint8Array([0, 255, 128]), new Float64Array([1.5]), new BigInt64Array([-1n]), new DataView(new ArrayBuffer(3)), new ArrayBuffer(2), new Uint8Array()]);
       return r.map(v => [v.constructor.name, v.byteLength])`,
      { host },
    );
    expect(run.value).toEqual([
      ["Uint8Array", 3],
      ["Float64Array", 8],
      ["BigInt64Array", 8],
      ["DataView", 3],
      ["ArrayBuffer", 2],
      ["Uint8Array", 0],
    ]);
  });

  test("of a part of a buffer only the part is sent", async () => {
    const frame = await sent("new Uint8Array(new ArrayBuffer(1e6), 500, 3)");
    expect(frame.attachments?.length).toBe(7);
    expect(sentValue({ ...frame, text: `\n${frame.text}` })).toEqual(new Uint8Array(3));
  });

  test("views that overlap go on sharing memory, in any order of appearance", async () => {
    const run = await guest.run(
      `const b = new ArrayBuffer(64); const u8 = new Uint8Array(b); for (let i = 0; i < 64; i++) u8[i] = i;
       const [x, y, z] = await t.echo([new Uint8Array(b, 21, 6), new Uint32Array(b, 16, 2), new Uint8Array(b, 40, 2)]);
       x[0] = 200; return [x.length, y.length, y[1] === (200 << 8 | 20 | 22 << 16 | 23 << 24 >>> 0), x.buffer === y.buffer, z.buffer === x.buffer, z[0]]`,
      { host },
    );
    expect(run.value).toEqual([6, 2, true, true, false, 40]);
  });

  test("a view of a buffer that is sent too shares it", async () => {
    const run = await guest.run(
      "const b = new ArrayBuffer(8); const [v, w] = await t.echo([new Uint8Array(b, 2, 3), b]); return [v.buffer === w, v.byteOffset, v.length]",
      { host },
    );
    expect(run.value).toEqual([true, 2, 3]);
  });

  test("a detached buffer is empty", async () => {
    const run = await guest.run(
      "const u = new Uint8Array(8); structuredClone(u.buffer, {transfer: [u.buffer]}); return [u.length, await t.echo(u)]",
      { host },
    );
    expect(run.value).toEqual([0, new Uint8Array()]);
  });

  test("more buffers than a frame may have are refused", async () => {
    const run = await guest.run("return Array.from({length: 1025}, () => new ArrayBuffer(1))");
    expect(run.error?.message).toContain("more than 1024 buffers");
  });
});

describe("bounds", () => {
  test.each([
    ["10n ** 10001n", /bigint of more than 10000 digits/],
    ["[new RegExp('a'.repeat(5000))]", /RegExp of more than 4096 characters/],
    ["new Set(Array.from({length: 5000}, (_, i) => i))", /Set with more than 4096 keys that are numbers/],
    [
      "(() => { const big = Array.from({length: 2000}, () => 1); return [undefined, ...Array.from({length: 2000}, () => big)] })()",
      /more than 1048576 values/,
    ],
  ])("%s is refused", async (expression, message) => {
    const run = await guest.run(`return ${expression}`);
    expect(run).toMatchObject({ status: "script_error", code: "unsendable" });
    expect(run.error?.message).toMatch(message);
  });

  test("what is just inside is accepted by the parent's reader", async () => {
    expect((await guest.run("return 10n ** 9999n")).value).toBe(10n ** 9999n);
    expect((await guest.run("return new Set(Array.from({length: 4096}, (_, i) => i))")).value).toHaveProperty(
      "size",
      4096,
    );
  });

  test("a text of many two-byte characters is measured in bytes", async () => {
    const run = await guest.run("return 'é'.repeat(600)", { limits: { resultBytes: 1000 } });
    expect(run).toMatchObject({ status: "budget_exceeded", reason: "result_size" });
    expect((await guest.run("return 'é'.repeat(400)", { limits: { resultBytes: 1000 } })).value).toBe(
      "é".repeat(400),
    );
  });
});

/** Values of every kind that travels, without what deep equality cannot tell apart. */
const anyValue = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom(undefined, null, true, false, Number.NaN, Number.POSITIVE_INFINITY, -0, 0),
    fc.double(),
    fc.integer(),
    fc.bigInt(),
    fc.string({ unit: "binary" }),
    fc.string({ unit: "grapheme" }),
    fc.date(),
    fc.uint8Array(),
    fc.array(tie("value"), { maxLength: 6 }),
    fc.dictionary(fc.string(), tie("value"), { maxKeys: 6 }),
    fc.array(fc.tuple(fc.string(), tie("value")), { maxLength: 4 }).map((entries) => new Map(entries)),
    fc.array(fc.string(), { maxLength: 4 }).map((items) => new Set(items)),
  ),
}));

describe("round trips", () => {
  test("any value comes back as it went", async () => {
    await fc.assert(
      fc.asyncProperty(anyValue.value, async (value) => {
        const run = await guest.run("return await t.echo(input)", { host, input: value });
        expect(run.value).toEqual(decodeValue(encodeValue(value)));
      }),
      { numRuns: 150 },
    );
  });

  test("the guest writes what the parent writes", async () => {
    await fc.assert(
      fc.asyncProperty(anyValue.value, async (value) => {
        const encoded = encodeValue(value);
        const run = await guest.run("return input", { input: value });
        const frame = run.frames.at(-1);
        expect(frame?.text.slice(frame.text.indexOf("\n") + 1)).toBe(encoded.text);
        expect(frame?.name).toBe(encoded.devalue ? "finished1" : "finished0");
      }),
      { numRuns: 150 },
    );
  });
});

interface Vector {
  readonly name: string;
  readonly js: string;
  readonly devalue: boolean;
  readonly text: string;
  readonly attachments: readonly string[];
  readonly holds: string;
  readonly message: string;
}

// The generator's own format, which its test checks.
const vectors = JSON.parse(
  readFileSync(new URL("../../../test/vectors/values.json", import.meta.url), "utf8"),
) as {
  readonly values: readonly Vector[];
  readonly readable: readonly Vector[];
  readonly unsendable: readonly Vector[];
};

const encodedOf = ({ text, devalue, attachments }: Vector): EncodedValue => ({
  text,
  devalue,
  attachments: attachments.map((hex) => Buffer.from(hex, "hex")),
});

const hex = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString("hex");

describe("the golden vectors", () => {
  test.each(vectors.values)("$name is written as Node writes it", async (vector) => {
    const frame = await sent(`(${vector.js})`);
    expect(frame).toMatchObject({ name: vector.devalue ? "finished1" : "finished0", text: vector.text });
    expect(hex(frame.attachments)).toBe(hex(joined(encodedOf(vector))));
  });

  test.each(vectors.values)("$name is read and written again without a change", async (vector) => {
    const run = await guest.run("return input", { encodedInput: encodedOf(vector) });
    const frame = run.frames.at(-1);
    expect(frame?.text.slice(frame.text.indexOf("\n") + 1)).toBe(vector.text);
    expect(hex(frame?.attachments)).toBe(hex(joined(encodedOf(vector))));
  });

  test.each(vectors.readable)("$name is read", async (vector) => {
    const run = await guest.run(`const v = input; return ${vector.holds}`, {
      encodedInput: encodedOf(vector),
    });
    expect(run).toMatchObject({ status: "completed", value: true });
  });

  test.each(vectors.unsendable)("$name is refused with the same path", async (vector) => {
    const run = await guest.run(`return (${vector.js})`);
    expect(run.status).toBe("script_error");
    expect(run.error?.message).toBe(`the result: ${vector.message.replace(": the value itself", "")}`);
  });
});
