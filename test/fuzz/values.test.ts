/**
 * Fuzzers of what is read as text: values and headers. Inputs are valid texts, structure-aware mutations of them, and
 * texts put together from the codec's own words. Whatever comes in, a reader returns or throws its own error class, keeps
 * its bounds, and leaves no trace on a prototype. FUZZ_SEED repeats a run, FUZZ_ROUNDS makes it long.
 */

import { readFileSync } from "node:fs";
import {
  decodeValue,
  type EncodedValue,
  encodeValue,
  ProtocolError,
  parseActivate,
  parseBlocked,
  parseCancelCall,
  parseConsole,
  parseDeliver,
  parseFinished,
  parseHostCall,
  parseRefused,
  parseWelcome,
  untrusted,
  ValueError,
} from "@flowcell/protocol";
import { describe, expect, it } from "vitest";
import { fuzzRounds, fuzzSeed, Random } from "../../packages/protocol/src/testing/random.js";
import { difference } from "../../packages/protocol/src/testing/same-value.js";

const file = new URL("../vectors/values.json", import.meta.url);
const vectors = JSON.parse(readFileSync(file, "utf8")) as {
  values: { text: string; attachments: string[] }[];
  unreadable: { text: string; attachments: string[] }[];
}; // our own file

const corpus = [...vectors.values, ...vectors.unreadable].filter(({ text }) => text.length < 4000);

const words = [
  "[",
  "]",
  "{",
  "}",
  ",",
  ":",
  '"',
  "\\",
  "0",
  "1",
  "2",
  "-1",
  "-2",
  "-7",
  "-8",
  "1e999",
  "0.5",
  "4294967295",
  "9007199254740993",
  '"__proto__"',
  '"constructor"',
  '"Map"',
  '"Set"',
  '"Date"',
  '"RegExp"',
  '"BigInt"',
  '"Error"',
  '"Bytes"',
  '"null"',
  '"ArrayBuffer"',
  '"Uint8Array"',
  '"Float64Array"',
  "null",
  "true",
  '""',
];

function mutatedText(random: Random, text: string): string {
  const at = random.below(text.length + 1);
  switch (random.below(6)) {
    case 0:
      return text.slice(0, at) + random.pick(words) + text.slice(at);
    case 1:
      return text.slice(0, at) + text.slice(at + 1 + random.below(4));
    case 2: {
      // Another reference in the place of one: mostly still well-formed, and full of cycles.
      const numbers = [...text.matchAll(/-?\d+/g)];
      if (numbers.length === 0) return text;
      const { 0: number, index } = random.pick(numbers);
      return text.slice(0, index) + String(random.below(14) - 8) + text.slice(index + number.length);
    }
    case 3: {
      const strings = [...text.matchAll(/"[^"\\]*"/g)];
      if (strings.length === 0) return text;
      const { 0: string, index } = random.pick(strings);
      return text.slice(0, index) + random.pick(words) + text.slice(index + string.length);
    }
    case 4: {
      const other = random.pick(corpus).text;
      return text.slice(0, at) + other.slice(random.below(other.length + 1));
    }
    default:
      return text.slice(0, at) + String.fromCharCode(random.below(0x250)) + text.slice(at + 1);
  }
}

/** A node list that is valid JSON: what a subverted encoder would send. */
function inventedText(random: Random): string {
  const count = 1 + random.below(12);
  const reference = (): string => String(random.below(count + 9) - 8);
  const list = (most: number): string => Array.from({ length: random.below(most) }, reference).join(",");
  const nodes = Array.from({ length: count }, () => {
    switch (random.below(9)) {
      case 0:
        return `[${list(6)}]`;
      case 1:
        return `{"a":${reference()},"__proto__":${reference()},"${random.below(9)}":${reference()}}`;
      case 2:
        return `["${random.pick(["Map", "Set", "Error", "Bytes", "Date", "BigInt", "RegExp"])}",${list(6) || "0"}]`;
      case 3:
        return `["null","k",${reference()}]`;
      case 4:
        return `[-7,${random.below(2000)},${random.below(5)},${reference()},${5 + random.below(5)},${reference()}]`;
      case 5:
        return `[${list(7)}]`;
      case 6:
        return random.pick(['"Error"', '"ArrayBuffer"', '"Uint8Array"', '"x"']);
      case 7:
        return random.pick(["0", "1", "8", "null", "true"]);
      default:
        return `[${Array.from({ length: 6 }, reference).join(",")}]`;
    }
  });
  return `[${nodes.join(",")}]`;
}

function hostileValue(random: Random): EncodedValue {
  const { text, attachments } = random.pick(corpus);
  let hostile = random.chance(3) ? inventedText(random) : text;
  for (let count = random.below(4); count > 0; count--) hostile = mutatedText(random, hostile);
  const bytes = attachments.map((hex) => Buffer.from(hex, "hex"));
  if (random.chance(6)) bytes.push(Buffer.alloc(random.below(20)));
  return { text: hostile, devalue: !random.chance(8), attachments: bytes };
}

/** Own keys of everything that a polluting reader could reach. */
function traces(): string {
  const places = [Object, Array, Map, Set, Date, RegExp, Error, Uint8Array, ArrayBuffer, Function].flatMap(
    (intrinsic) => [intrinsic, intrinsic.prototype],
  );
  return places.map((place) => Reflect.ownKeys(place).map(String).join()).join(";");
}

describe("decodeValue", () => {
  it("returns what can be written again, or throws ValueError, whatever the text is", () => {
    const seed = fuzzSeed();
    const random = new Random(seed);
    const before = traces();
    let read = 0;
    const rounds = fuzzRounds(30_000);
    for (let round = 0; round < rounds; round++) {
      const encoded = hostileValue(random);
      const where = `seed ${seed}, round ${round}: ${JSON.stringify(encoded.text)}`;
      let value: unknown;
      try {
        value = decodeValue(encoded, { nodes: 3000 });
      } catch (error) {
        if (!(error instanceof ValueError)) throw new Error(where, { cause: error });
        continue;
      }
      read++;
      // What was read is of the codec's set: it can be written, and reads back the same.
      expect(difference(decodeValue(encodeValue(value)), value), where).toBeUndefined();
    }
    expect(traces(), `seed ${seed}`).toBe(before);
    expect(read, `seed ${seed}: too few texts survive for the fuzzer to be worth much`).toBeGreaterThan(
      rounds / 20,
    );
  });
});

const headers: readonly (readonly [(header: ReturnType<typeof untrusted<string>>) => unknown, string])[] = [
  [parseHostCall, '{"position":1,"name":"sleep"}'],
  [parseCancelCall, '{"position":1}'],
  [parseConsole, '{"seq":0,"level":"log","timeMs":1,"text":"x"}'],
  [parseBlocked, '{"nextTimerAt":null,"openCalls":1,"delivered":0}'],
  [parseFinished, '{"status":"completed","warnings":[{"code":"a","message":"b"}],"hostCalls":1}'],
  [
    parseFinished,
    '{"status":"script_error","code":"denied","error":{"name":"E","message":"m","stack":"s","cause":{"name":"E","message":"m","stack":"s"}},"warnings":[],"hostCalls":1}',
  ],
  [parseFinished, '{"status":"budget_exceeded","reason":"cpu","limit":1,"used":2}'],
  [parseRefused, '{"error":{"name":"SyntaxError","message":"m","stack":""}}'],
  [parseWelcome, '{"protocol":1}'],
  [
    parseActivate,
    `{"activation":1,"clock":0,"seed":"${"0".repeat(64)}","names":["a"],"limits":{"hostCalls":1,"inFlight":1,"outputBytes":1,"resultBytes":1,"valueBytes":1,"bodyBytes":1},"codeGeneration":true}`,
  ],
  [
    parseDeliver,
    '{"activation":1,"kind":"call","position":1,"ok":false,"clock":1,"error":{"code":"denied","message":"m","retryable":false}}',
  ],
];

describe("the header parsers", () => {
  it("return the header or throw ProtocolError, whatever the text is", () => {
    const seed = fuzzSeed();
    const random = new Random(seed);
    const before = traces();
    for (let round = 0; round < fuzzRounds(30_000); round++) {
      const [parse, good] = random.pick(headers);
      let text = good;
      for (let count = 1 + random.below(3); count > 0; count--) text = mutatedText(random, text);
      const where = `seed ${seed}, round ${round}: ${JSON.stringify(text)}`;
      try {
        const header = parse(untrusted(text));
        expect(typeof header, where).toBe("object");
      } catch (error) {
        if (!(error instanceof ProtocolError) || error.name !== "bad_header")
          throw new Error(where, { cause: error });
      }
    }
    expect(traces(), `seed ${seed}`).toBe(before);
  });
});
