#!/usr/bin/env node
// Makes the golden vectors of the wire: test/vectors/frames.json, which frame.ts and frame.c must judge alike, and
// test/vectors/values.json, which the Node half and the guest half of the value codec must read and write alike.
//
//   node scripts/generate-vectors.mjs [--check]
//
// Streams are put together here byte by byte and what must come of them is written down beside them, so that a
// decoder is not its own judge. Texts of values are the Node encoder's; the tests hold them against devalue.

import process from "node:process";
import { runInThisContext } from "node:vm";
import { settle } from "./lib/generated-files.mjs";
import { loadSources } from "./lib/load-sources.mjs";

const protocol = await loadSources("packages/protocol/src/index.ts");
const TYPE = protocol.messageType;

// ------------------------------------------------------------------------------------------------------------- frames

function u32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
}

/** A frame; `fields` overrides what would be right. */
function frame({ type, text = "{}", attachments = [], ...fields }) {
  const textBytes = Buffer.isBuffer(text) ? text : Buffer.from(text);
  const rest = Buffer.concat([textBytes, ...attachments.flatMap((part) => [u32(part.length), part])]);
  const head = Buffer.alloc(12);
  head.writeUInt32LE(fields.length ?? rest.length + 8, 0);
  head[4] = type;
  head[5] = fields.flags ?? 0;
  head.writeUInt16LE(fields.count ?? attachments.length, 6);
  head.writeUInt32LE(fields.textLength ?? textBytes.length, 8);
  return Buffer.concat([head, rest]);
}

function shown({ type, text = "{}", attachments = [], flags = 0 }) {
  const name = protocol.messageName(type);
  return {
    type: name,
    devalue: flags === 1,
    text,
    attachments: attachments.map((part) => part.toString("hex")),
  };
}

const usage = Buffer.alloc(24, 1);
const budget = protocol.encodeActivateBudget({
  cpuBudgetUs: 1_000_000,
  heapBytes: 32 << 20,
  stackBytes: 1 << 20,
  resultBytes: 1 << 20,
  singleUse: false,
});
const script = Buffer.from("(function(){})");
const call = { type: TYPE.HostCall, text: '{"position":1,"name":"sleep"}\n[10]' };
const small = {
  outputBytes: 10,
  resultBytes: 16,
  inputBytes: 16,
  valueBytes: 16,
  bodyBytes: 8,
  sourceBytes: 16,
};

/** Streams that end well: name, phase, frames as specified, all from one sender. */
const good = [
  ["nothing at all", "running", []],
  ["a Welcome", "starting", [{ type: TYPE.Welcome, text: '{"protocol":1}' }]],
  ["a call with its arguments", "running", [call]],
  [
    "a call whose arguments are devalue text",
    "running",
    [{ ...call, flags: 1, text: '{"position":1,"name":"sleep"}\n-1' }],
  ],
  [
    "a call with an empty and a short attachment",
    "running",
    [{ ...call, attachments: [Buffer.alloc(0), Buffer.from("abc")] }],
  ],
  [
    "several frames in one stream",
    "running",
    [call, { type: TYPE.CancelCall, text: '{"position":1}' }, { type: TYPE.Blocked }, call],
  ],
  ["an empty text", "running", [{ type: TYPE.Console, text: "" }]],
  [
    "text of every UTF-8 length",
    "running",
    [{ type: TYPE.Console, text: "a\u007f\u0080\u07ff\u0800\ud7ff\ue000\uffff\u{10000}\u{10ffff}" }],
  ],
  ["text with NUL and line feeds", "running", [{ type: TYPE.Console, text: "\0\n\n\r" }]],
  [
    "a result and the usage report",
    "running",
    [{ type: TYPE.Finished, text: '{"status":"completed"}\n1', attachments: [usage] }],
  ],
  ["a refusal", "running", [{ type: TYPE.Refused, attachments: [usage] }]],
  ["an activation", "idle", [{ type: TYPE.Activate, text: "{}\n1", attachments: [budget, script] }]],
  ["an outcome for a worker that is idle", "idle", [{ type: TYPE.Deliver }]],
  [
    "an activation and outcomes behind it",
    "idle",
    [
      { type: TYPE.Deliver },
      { type: TYPE.Activate, text: "{}\n1", attachments: [budget, script] },
      { type: TYPE.Deliver },
    ],
  ],
  [
    "outcomes",
    "running",
    [
      { type: TYPE.Deliver, text: "{}\n1", attachments: [Buffer.from("x")] },
      { type: TYPE.Deliver, flags: 1 },
    ],
  ],
].map(([name, phase, frames]) => ({
  name,
  phase,
  frames,
  stream: Buffer.concat(frames.map(frame)),
  error: null,
}));

/** Streams that end in an error, after `before`. */
const bad = [
  ["a length of 7", "short_length", "running", frame({ ...call, length: 7 })],
  ["a length of 0", "short_length", "running", frame({ ...call, length: 0 })],
  ["type 0", "unknown_type", "running", frame({ type: 0 })],
  ["the number between the senders", "unknown_type", "running", frame({ type: 15 })],
  ["type 31", "unknown_type", "running", frame({ type: 31 })],
  ["type 32", "unknown_type", "running", frame({ type: 32 })],
  ["type 34, which is HostCall in five bits", "unknown_type", "running", frame({ type: 34 })],
  ["type 255", "unknown_type", "running", frame({ type: 255 })],
  ["an Activate from the worker", "wrong_sender", "running", frame({ type: TYPE.Activate })],
  ["a Finished from the parent", "wrong_sender", "running", frame({ type: TYPE.Finished }), "parent"],
  ["a call before Welcome", "unexpected_message", "starting", frame(call)],
  ["a call while idle", "unexpected_message", "idle", frame(call)],
  [
    "a Finished while idle",
    "unexpected_message",
    "idle",
    frame({ type: TYPE.Finished, attachments: [usage] }),
  ],
  ["a Welcome while running", "unexpected_message", "running", frame({ type: TYPE.Welcome })],
  ["an Activate while running", "unexpected_message", "running", frame({ type: TYPE.Activate }), "parent"],
  ["a Deliver before Welcome", "unexpected_message", "starting", frame({ type: TYPE.Deliver }), "parent"],
  [
    "a Refused after a call",
    "unexpected_message",
    "running",
    frame({ type: TYPE.Refused, attachments: [usage] }),
    "worker",
    [call],
  ],
  [
    "a second Welcome",
    "repeated_message",
    "starting",
    frame({ type: TYPE.Welcome }),
    "worker",
    [{ type: TYPE.Welcome }],
  ],
  [
    "a second Finished",
    "repeated_message",
    "running",
    frame({ type: TYPE.Finished, attachments: [usage] }),
    "worker",
    [{ type: TYPE.Finished, attachments: [usage] }],
  ],
  [
    "a second Refused",
    "repeated_message",
    "running",
    frame({ type: TYPE.Refused, attachments: [usage] }),
    "worker",
    [{ type: TYPE.Refused, attachments: [usage] }],
  ],
  ["flag bit 1", "unknown_flags", "running", frame({ ...call, flags: 2 })],
  ["flag bit 7", "unknown_flags", "running", frame({ ...call, flags: 0x81 })],
  [
    "devalue on a message without a value",
    "unknown_flags",
    "running",
    frame({ type: TYPE.Blocked, flags: 1 }),
  ],
  ["the largest length", "too_long", "running", frame({ ...call, length: 0xffffffff })],
  [
    "one byte more than a Blocked may have",
    "too_long",
    "running",
    frame({ type: TYPE.Blocked, length: 8 + 128 + 1 }),
  ],
  [
    "one attachment more than a value may have",
    "too_many_attachments",
    "running",
    frame({ ...call, count: 1025, length: 1 << 20 }),
  ],
  [
    "an attachment on a Blocked",
    "too_many_attachments",
    "running",
    frame({ type: TYPE.Blocked, attachments: [Buffer.from("x")] }),
  ],
  [
    "two reports on a refusal",
    "too_many_attachments",
    "running",
    frame({ type: TYPE.Refused, attachments: [Buffer.alloc(1), Buffer.alloc(1)] }),
  ],
  ["a Finished without its report", "missing_attachments", "running", frame({ type: TYPE.Finished })],
  [
    "an Activate without a script",
    "missing_attachments",
    "idle",
    frame({ type: TYPE.Activate, attachments: [budget] }),
    "parent",
  ],
  [
    "more text than the limits allow",
    "text_too_long",
    "running",
    frame({ ...call, textLength: 1024 + 16 + 1, length: 8 + 1024 + 16 + 4 }),
    "worker",
    [],
    small,
  ],
  [
    "more output than the limits allow",
    "too_long",
    "running",
    frame({ type: TYPE.Console, length: 8 + 1024 + 60 + 1 }),
    "worker",
    [],
    small,
  ],
  ["text that is longer than the frame", "length_mismatch", "running", frame({ ...call, textLength: 36 })],
  ["no room for the attachments' lengths", "length_mismatch", "running", frame({ ...call, count: 1 })],
  ["bytes behind the text", "length_mismatch", "running", frame({ ...call, textLength: 5 })],
  [
    "an attachment that reaches beyond the frame",
    "length_mismatch",
    "running",
    frame({
      ...call,
      count: 1,
      text: Buffer.concat([Buffer.from("{}"), u32(5), Buffer.from("abcd")]),
      textLength: 2,
    }),
  ],
  [
    "an attachment of 4 GiB",
    "length_mismatch",
    "running",
    frame({
      ...call,
      count: 1,
      text: Buffer.concat([Buffer.from("{}"), u32(0xffffffff), Buffer.from("abcd")]),
      textLength: 2,
    }),
  ],
  [
    "bytes behind the last attachment",
    "length_mismatch",
    "running",
    frame({
      ...call,
      count: 1,
      text: Buffer.concat([Buffer.from("{}"), u32(2), Buffer.from("abcd")]),
      textLength: 2,
    }),
  ],
  [
    "an attachment's length cut by the frame's end",
    "length_mismatch",
    "running",
    frame({
      ...call,
      count: 2,
      text: Buffer.concat([Buffer.from("{}"), u32(2), Buffer.from("abcd")]),
      textLength: 2,
    }),
  ],
  [
    "attachments beyond the limits",
    "attachments_too_long",
    "running",
    frame({ ...call, attachments: [Buffer.alloc(4), Buffer.alloc(5)] }),
    "worker",
    [],
    small,
  ],
  [
    "a report of 25 bytes",
    "attachments_too_long",
    "running",
    frame({ type: TYPE.Refused, attachments: [Buffer.alloc(25)], text: "" }),
  ],
  ...[
    ["a lone continuation byte", [0x80]],
    ["an overlong NUL", [0xc0, 0x80]],
    ["an overlong slash in three bytes", [0xe0, 0x80, 0xaf]],
    ["a surrogate", [0xed, 0xa0, 0x80]],
    ["a value above U+10FFFF", [0xf4, 0x90, 0x80, 0x80]],
    ["a sequence cut by the text's end", [0x61, 0xe2, 0x82]],
    ["Latin-1", [0xe9, 0x20]],
    ["0xFF", [0xff]],
  ].map(([name, bytes]) => [
    name,
    "not_utf8",
    "running",
    frame({ type: TYPE.Console, text: Buffer.from(bytes) }),
  ]),
  [
    "a byte that is not UTF-8 in a valid attachment's place",
    "not_utf8",
    "running",
    frame({ ...call, text: Buffer.from([0x7b, 0xfe]), attachments: [Buffer.from("x")] }),
  ],
  ["one byte", "truncated", "running", frame(call).subarray(0, 1)],
  ["eleven bytes", "truncated", "running", frame(call).subarray(0, 11)],
  ["the fixed fields alone", "truncated", "running", frame(call).subarray(0, 12)],
  ["all but the last byte", "truncated", "running", frame(call).subarray(0, -1)],
  ["a frame and a byte", "truncated", "running", Buffer.from([9]), "worker", [call]],
  ["an error behind a good frame", "unknown_type", "running", frame({ type: 99 }), "worker", [call]],
].map(([name, error, phase, last, sender = "worker", before = [], limits = null]) => ({
  name,
  sender,
  phase,
  limits,
  frames: before,
  stream: Buffer.concat([...before.map(frame), last]),
  error,
}));

const frameVectors = [...good, ...bad].map(({ name, sender, phase, limits, frames, stream, error }) => ({
  name,
  sender: sender ?? (frames.some(({ type }) => type >= 16) ? "parent" : "worker"),
  phase,
  limits: limits ?? null,
  stream: stream.toString("hex"),
  frames: frames.map(shown),
  error,
}));

// ------------------------------------------------------------------------------------------------------------- values

/** name → expression; each is written by both halves as the text below and read back to the same. */
const values = {
  "a number": "1",
  null: "null",
  "an empty object": "{}",
  "an empty array": "[]",
  "a plain tree": '({ a: 1, b: [true, false, null, "x", -1.5e-7, 1e21], c: { d: {} } })',
  "text that JSON escapes": String.raw`"\0\u001f\"\\/\u007f\u2028\u2029\ud83d\ude00"`,
  "lone surrogates": String.raw`["\ud800", "x\udfff\0y", "\udc00\ud800"]`,
  "keys that JSON escapes": String.raw`({ "": 1, "a b": 2, "\n\ud800": 3, 7: 4, "-1": 5 })`,
  "names of Object.prototype as keys":
    '({ constructor: 1, prototype: 2, ["__proto__"]: 5, hasOwnProperty: 3, toString: 4 })',
  "an own __proto__ beside undefined": '({ ["__proto__"]: { x: undefined } })',
  "an own __proto__ without a prototype":
    '(() => { const o = Object.create(null); Object.defineProperty(o, "__proto__", { value: 1, enumerable: true }); return o; })()',
  undefined: "undefined",
  NaN: "NaN",
  Infinity: "Infinity",
  "-Infinity": "-Infinity",
  "-0": "-0",
  "special numbers in an array": "[NaN, -0, 0, Infinity, -Infinity, undefined]",
  "arguments with a trailing undefined": "[1, { a: 2 }, undefined]",
  "a bigint": "10n ** 30n",
  "a negative bigint": "[-1n, 0n]",
  "numbers met again": "[1, 1, 1.5, 1.5, undefined]",
  "text and null met again": '["x", "x", null, null, true, true, undefined]',
  "a Date": "new Date(0)",
  "an invalid Date": "new Date(NaN)",
  "a Date before the year 0": "new Date(-62198755200000 - 86400000)",
  "a RegExp": "/a+/",
  "a RegExp with flags": String.raw`/^\/[\n"]$/giu`,
  "a Map": '(() => new Map([["a", 1], [{ k: 1 }, new Map()], [NaN, undefined]]))()',
  "a Set": '(() => new Set([1, "1", null, new Set()]))()',
  "an object without a prototype": "Object.assign(Object.create(null), { a: 1, b: { c: 2 } })",
  holes: "[, 1, , undefined, ,]",
  "a hole at the end": "[1, 2, 3, ,]",
  "more holes than elements": "(() => { const a = []; a[9] = 1; a[40] = 'x'; return a; })()",
  "nothing but holes": "new Array(100)",
  "one hole": "new Array(1)",
  "a shared object": "(() => { const o = {}; return [o, { o }]; })()",
  "an array in itself": "(() => { const a = [1]; a.push(a); return a; })()",
  "an object in itself": "(() => { const o = { n: { up: null } }; o.n.up = o; return o; })()",
  "a Map in itself as key": "(() => { const m = new Map(); m.set(m, m); return m; })()",
  "two objects around": "(() => { const a = {}, b = { a }; a.b = b; return [b, a]; })()",
  "an error": 'new TypeError("boom")',
  "an error with code and cause":
    '(() => { const e = new Error("outer", { cause: new RangeError("inner") }); e.code = "E_OUTER"; return e; })()',
  "an error whose cause is undefined": '(() => new Error("x", { cause: undefined }))()',
  "an error that is its own cause":
    '(() => { const e = new Error("x"); e.cause = e; Object.defineProperty(e, "cause", { enumerable: false }); return e; })()',
  "an error of a class of the script":
    '(() => { const e = new Error("x"); Object.defineProperty(e, "name", { value: "ValidationError", enumerable: false }); return { e }; })()',
  "an AggregateError": '(() => new AggregateError([new Error("a"), 1], "both"))()',
  "an ArrayBuffer": "(() => new Uint8Array([0, 255, 128]).buffer)()",
  "a Uint8Array": "new Uint8Array([0, 255, 128])",
  "an empty Uint8Array": "new Uint8Array(0)",
  "every kind of view": `(() => [new DataView(new ArrayBuffer(3)), new Int8Array([-1]), new Uint8Array([1]), new Uint8ClampedArray([255]),
    new Int16Array([-2]), new Uint16Array([2]), new Int32Array([-3]), new Uint32Array([3]), new Float32Array([0.5]), new Float64Array([NaN, -0]),
    new BigInt64Array([-4n]), new BigUint64Array([4n])])()`,
  "views that share a buffer which is there":
    "(() => { const b = new ArrayBuffer(8); return { b, low: new Uint8Array(b, 0, 4), high: new Uint16Array(b, 4, 2) }; })()",
  "one view twice": "(() => { const v = new Uint8Array([1]); return [v, v]; })()",
  "a mixture": `(() => { const shared = { n: 1n }; return { at: new Date(1e12), list: [shared, , shared, -0], map: new Map([[shared, /x/g]]),
    data: new Uint8Array([1, 2]), ["__proto__"]: "own" }; })()`,
};

/** Texts that no encoder of ours writes but that a reader takes: name, text, attachments, what holds of the value `v`. */
const readable = [
  ["JSON with spaces", " [ 1 , 2 ] ", [], "Array.isArray(v) && v.length === 2", false],
  ["a node that nothing refers to", "[[1],5,{}]", [], "v.length === 1 && v[0] === 5"],
  ["nodes in another order", '[{"a":2,"b":1},[2],7]', [], "v.a === 7 && v.b[0] === 7"],
  ["holes in the other form", "[[-7,3,1,1],9]", [], "v.length === 3 && v[1] === 9 && !(0 in v) && !(2 in v)"],
  ["a sparse array of nothing", "[[-7,0]]", [], "Array.isArray(v) && v.length === 0"],
  [
    "a view of a part of its buffer",
    '[["Bytes",1],[2,3,6,7],"Uint16Array",["Bytes",4],[5,8],"ArrayBuffer",2,3,0]',
    ["0001020304050607"],
    "v instanceof Uint16Array && v.length === 3 && v.byteOffset === 2 && v[0] === 0x0302 && v.buffer.byteLength === 8",
  ],
  [
    "two views of one buffer, in which a write to one shows in the other",
    '[[1,8],["Bytes",2],[3,4,7,9],"Uint8Array",["Bytes",5],[6,7],"ArrayBuffer",0,["Bytes",10],2,[3,4,11,9],1]',
    ["010203"],
    "v[0].buffer === v[1].buffer && v[0][1] === v[1][0]",
  ],
  [
    "an error whose stack travels",
    '[["Error",1],[2,3,4,-2,-2,-2],"TypeError","boom","TypeError: boom\\n    at f (script.js:1:1)"]',
    [],
    'v instanceof TypeError && v.message === "boom" && v.stack.endsWith("script.js:1:1)") && !Object.hasOwn(v, "cause")',
  ],
  [
    "an error without a stack has none of the reader's",
    '[["Error",1],[2,3,-2,-2,-2,-2],"RangeError","x"]',
    [],
    'v instanceof RangeError && v.stack === "RangeError: x"',
  ],
  [
    "own properties that look like an attack",
    '[{"__proto__":1,"constructor":2},{"x":3},{},1]',
    [],
    'Object.hasOwn(v, "__proto__") && v.x === undefined && Object.getPrototypeOf(v) === Object.prototype',
  ],
];

/** Texts that every reader refuses: name, code, text, attachments. */
const unreadable = [
  ["nothing", "malformed", ""],
  ["what is not JSON", "malformed", "{a:1}"],
  ["text behind the value", "malformed", "[[],1]x"],
  ["JSON that is cut", "malformed", "[[1,2"],
  ["no nodes", "malformed", "[]"],
  ["an object of nodes", "malformed", "{}"],
  ["text for a node list", "malformed", '"x"'],
  ["a hole as the value", "malformed", "-2"],
  ["an unknown special value", "malformed", "-8"],
  ["a positive number as the value", "malformed", "0"],
  ["the sparse mark as the value", "malformed", "-7"],
  ["a reference beyond the nodes", "malformed", "[[1]]"],
  ["a reference that is no whole number", "malformed", "[[0.5],1]"],
  ["a reference that is text", "malformed", '[[1,"0"],1]'],
  ["an unknown reference in an array", "malformed", "[[-8]]"],
  ["a hole in an object", "malformed", '[{"a":-2}]'],
  ["a reference that is an object", "malformed", '[{"a":{}}]'],
  ["an unknown kind of node", "malformed", '[["URL","http://x/"]]'],
  ["a kind named like a property", "malformed", '[["constructor",1]]'],
  ["a function of the library's", "malformed", '[["Temporal.Instant","2020-01-01T00:00Z"]]'],
  ["a boxed value", "malformed", '[["Object",1],1]'],
  ["base64, which devalue has", "malformed", '[["ArrayBuffer","AAAA"]]'],
  ["a Date in other words", "malformed", '[["Date","tomorrow"]]'],
  ["a Date that is a number", "malformed", '[["Date",0]]'],
  ["a Date with a month 13", "malformed", '[["Date","2020-13-01T00:00:00.000Z"]]'],
  ["a Date with two operands", "malformed", '[["Date","",""]]'],
  ["a bigint in hexadecimal", "malformed", '[["BigInt","0x10"]]'],
  ["a bigint with spaces", "malformed", '[["BigInt"," 1 "]]'],
  ["an empty bigint", "malformed", '[["BigInt",""]]'],
  ["a bigint of 10,001 digits", "too_large", `[["BigInt","${"9".repeat(10_001)}"]]`],
  ["a RegExp that does not parse", "malformed", '[["RegExp","("]]'],
  ["a RegExp with unknown flags", "malformed", '[["RegExp","a","q"]]'],
  ["a RegExp with a flag twice", "malformed", '[["RegExp","a","gg"]]'],
  ["a RegExp of 4,097 characters", "too_large", `[["RegExp","${"a".repeat(4097)}"]]`],
  ["a Map with a key alone", "malformed", '[["Map",1],1]'],
  ["an object without prototype with a key alone", "malformed", '[["null","a"]]'],
  ["a key that is no text", "malformed", '[["null",1,1],1]'],
  ["a sparse array without a length", "malformed", "[[-7]]"],
  ["a sparse array whose length is text", "malformed", '[[-7,"9"]]'],
  ["a sparse array whose place is beyond its length", "malformed", "[[-7,2,2,1],1]"],
  ["a sparse array whose places descend", "malformed", "[[-7,9,2,1,1,1],1]"],
  ["a sparse array of 4 Gi", "too_large", "[[-7,4294967295]]"],
  ["sparse arrays that are long together", "too_large", `[[${"1,".repeat(99)}1],[-7,100000]]`],
  [
    "references that unfold to 2^30",
    "too_large",
    `[${Array.from({ length: 30 }, (_, at) => `[${at + 1},${at + 1}]`).join(",")},1]`,
  ],
  [
    "references that unfold to 2^40 in objects",
    "too_large",
    `[${Array.from({ length: 40 }, (_, at) => `{"a":${at + 1},"b":${at + 1}}`).join(",")},1]`,
  ],
  [
    "a chain of 1,001 arrays",
    "too_large",
    `[${Array.from({ length: 1001 }, (_, at) => `[${at + 1}]`).join(",")},1]`,
  ],
  ["an error without its fields", "malformed", '[["Error",1],[2,2],"x"]'],
  ["an error whose name is a number", "malformed", '[["Error",1],[2,3,-2,-2,-2,-2],1,"x"]'],
  ["an error that is its own field list", "malformed", '[["Error",0]]'],
  ["an error whose errors are no array", "malformed", '[["Error",1],[2,2,-2,-2,3,-2],"x",{}]'],
  [
    "an error whose properties hide its message",
    "malformed",
    '[["Error",1],[2,2,-2,-2,-2,3],"x",{"message":2}]',
  ],
  ["bytes that are not there", "malformed", '[["Bytes",1],[2,3],"ArrayBuffer",0]'],
  ["bytes that nothing refers to", "malformed", "[1]", ["00"]],
  ["bytes beside undefined", "malformed", "-1", ["00"]],
  [
    "bytes that two buffers share",
    "malformed",
    '[[1,4],["Bytes",2],[3,5],"ArrayBuffer",["Bytes",6],0,[3,5]]',
    ["00"],
  ],
  ["an unknown kind of bytes", "malformed", '[["Bytes",1],[2,3],"SharedArrayBuffer",0]', ["00"]],
  ["a view of itself", "malformed", '[["Bytes",1],[2,0,3,3],"Uint8Array",0]'],
  ["a view of an array", "malformed", '[["Bytes",1],[2,3,4,4],"Uint8Array",[],0]'],
  [
    "a view beyond its buffer",
    "malformed",
    '[["Bytes",1],[2,3,6,7],"Uint8Array",["Bytes",4],[5,6],"ArrayBuffer",0,3]',
    ["0000"],
  ],
  [
    "a view that is not aligned",
    "malformed",
    '[["Bytes",1],[2,3,7,7],"Uint16Array",["Bytes",4],[5,6],"ArrayBuffer",0,1]',
    ["00000000"],
  ],
  [
    "a view with a length near 2^53",
    "malformed",
    '[["Bytes",1],[2,3,6,7],"Float64Array",["Bytes",4],[5,6],"ArrayBuffer",0,9007199254740991]',
    ["00000000"],
  ],
];

/** Expressions that no writer sends: code and the whole message. */
const unsendable = {
  "a function": ["(() => () => 1)()", "unsupported", "cannot send a function: the value itself"],
  "a function in a tree": [
    "({ rows: [1, 2, 3, { format() {} }] })",
    "unsupported",
    "cannot send a function: .rows[3].format",
  ],
  "a symbol": ["({ s: Symbol('x') })", "unsupported", "cannot send a symbol: .s"],
  "a symbol as key": [
    "({ a: { [Symbol.iterator]: 1 } })",
    "unsupported",
    "cannot send a property whose key is a symbol: .a",
  ],
  "an instance": [
    "(() => { class Point {} return { at: [new Point()] }; })()",
    "unsupported",
    "cannot send an instance of Point: .at[0]",
  ],
  "an instance of a subclass": [
    "(() => { class Bag extends Map {} return new Bag(); })()",
    "unsupported",
    "cannot send an instance of Bag: the value itself",
  ],
  "a boxed number": ["({ n: Object(1) })", "unsupported", "cannot send an instance of Number: .n"],
  "a promise": [
    "({ p: Promise.resolve(1) })",
    "unsupported",
    "cannot send a promise that was not awaited: .p",
  ],
  "a WeakMap under an odd key": [
    "({ 'a b': new WeakMap() })",
    "unsupported",
    'cannot send an instance of WeakMap: ["a b"]',
  ],
  "a function in a Map": [
    "(() => new Map([['k', () => 1]]))()",
    "unsupported",
    'cannot send a function: .get("k")',
  ],
  "a function as a key of a Map": [
    "(() => new Map([[() => 1, 1]]))()",
    "unsupported",
    "cannot send a function: .keys()[0]",
  ],
  "a function in a Set": [
    "(() => new Set([1, () => 1]))()",
    "unsupported",
    "cannot send a function: .values()[1]",
  ],
  "a getter that throws": [
    "({ a: { get x() { throw new Error('getter'); } } })",
    "unreadable",
    "cannot read a property whose getter throws: .a.x",
  ],
  "a bigint of 10,001 digits": [
    "10n ** 10000n",
    "too_large",
    "cannot send a bigint of more than 10000 digits: the value itself",
  ],
  "a sparse array of 4 Gi": [
    "(() => { const a = []; a[4294967290] = 1; return { a }; })()",
    "too_large",
    "cannot send an array with holes that is longer than 1048576: .a",
  ],
};

// With the constructors of this realm, which the encoder knows.
const evaluate = (expression) => runInThisContext(`(${expression})`);

const valueVectors = {
  values: Object.entries(values).map(([name, js]) => {
    const { text, devalue, attachments } = protocol.encodeValue(evaluate(js));
    return {
      name,
      js,
      devalue,
      text,
      attachments: attachments.map((bytes) => Buffer.from(bytes).toString("hex")),
    };
  }),
  readable: readable.map(([name, text, attachments, holds, devalue = true]) => ({
    name,
    devalue,
    text,
    attachments,
    holds,
  })),
  unreadable: unreadable.map(([name, code, text, attachments = []]) => ({
    name,
    devalue: true,
    text,
    attachments,
    code,
  })),
  unsendable: Object.entries(unsendable).map(([name, [js, code, message]]) => ({ name, js, code, message })),
};

const json = (value) => `${JSON.stringify(value, null, 1)}\n`;
const files = [
  ["test/vectors/frames.json", json({ generated: "scripts/generate-vectors.mjs", vectors: frameVectors })],
  ["test/vectors/values.json", json({ generated: "scripts/generate-vectors.mjs", ...valueVectors })],
];
process.exitCode = settle(files, process.argv.includes("--check")) ? 0 : 1;
