/**
 * Randomness from the 32 bytes of seed in the header of Activate, so that a run repeats exactly: `Math.random` and `crypto`.
 * Both come from ChaCha20 (RFC 8439) keyed with the seed, under different nonces: bytes that a script hands out tell nothing
 * about those it keeps. `Math.random` draws from sfc32, a small generator seeded by the first block of its stream, because
 * a block of ChaCha costs some forty microseconds here. Nothing is computed before the first use.
 */

import { defineMethods } from "./define.js";
import {
  NativeUint8Array,
  NativeUint32Array,
  NumberPrototypeToString,
  StringPrototypeSlice,
  TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetByteLength,
  TypedArrayPrototypeGetByteOffset,
  TypedArrayPrototypeGetToStringTag,
} from "./primordials.js";
import { seed } from "./state.js";
import { DOMException } from "./web/dom-exception.js";

/** One word of the seed, little-endian as ChaCha reads its key. */
function seedWord(index: number): number {
  let word = 0;
  for (let byte = 3; byte >= 0; byte--) {
    const from = (index * 4 + byte) * 2;
    word = (word << 8) | +`0x${StringPrototypeSlice(seed, from, from + 2)}`;
  }
  return word;
}

const initial = new NativeUint32Array(16);
const block = new NativeUint32Array(16);

/** Which stream of the seed: the words of the nonce. */
const mathStream = 1;
const cryptoStream = 2;

/** Fills `block` with block `counter` of a stream. */
function chacha(stream: number, counter: number): void {
  initial[0] = 0x61707865;
  initial[1] = 0x3320646e;
  initial[2] = 0x79622d32;
  initial[3] = 0x6b206574;
  for (let word = 0; word < 8; word++) initial[4 + word] = seedWord(word);
  initial[12] = counter;
  initial[13] = 0;
  initial[14] = 0;
  initial[15] = stream;
  for (let word = 0; word < 16; word++) block[word] = initial[word] as number; // both have 16
  for (let round = 0; round < 10; round++) {
    quarter(0, 4, 8, 12);
    quarter(1, 5, 9, 13);
    quarter(2, 6, 10, 14);
    quarter(3, 7, 11, 15);
    quarter(0, 5, 10, 15);
    quarter(1, 6, 11, 12);
    quarter(2, 7, 8, 13);
    quarter(3, 4, 9, 14);
  }
  for (let word = 0; word < 16; word++) block[word] = word32(block, word) + word32(initial, word);
}

function word32(words: Uint32Array, index: number): number {
  return words[index] as number; // indices here are constants below 16
}

function quarter(at: number, bt: number, ct: number, dt: number): void {
  let a = word32(block, at) | 0;
  let b = word32(block, bt) | 0;
  let c = word32(block, ct) | 0;
  let d = word32(block, dt) | 0;
  a = (a + b) | 0;
  d ^= a;
  d = (d << 16) | (d >>> 16);
  c = (c + d) | 0;
  b ^= c;
  b = (b << 12) | (b >>> 20);
  a = (a + b) | 0;
  d ^= a;
  d = (d << 8) | (d >>> 24);
  c = (c + d) | 0;
  b ^= c;
  b = (b << 7) | (b >>> 25);
  block[at] = a;
  block[bt] = b;
  block[ct] = c;
  block[dt] = d;
}

// ------------------------------------------------------------------------------------------------------------ Math.random

let mathSeeded = false;
let a = 0;
let b = 0;
let c = 0;
let n = 0;

function next32(): number {
  const sum = (((a + b) | 0) + n) | 0;
  n = (n + 1) | 0;
  a = b ^ (b >>> 9);
  b = (c + (c << 3)) | 0;
  c = (c << 21) | (c >>> 11);
  c = (c + sum) | 0;
  return sum;
}

const random = (): number => {
  if (!mathSeeded) {
    mathSeeded = true;
    chacha(mathStream, 0);
    a = word32(block, 0) | 0;
    b = word32(block, 1) | 0;
    c = word32(block, 2) | 0;
    n = word32(block, 3) | 0;
  }
  // 53 bits.
  return ((next32() >>> 5) * 0x400_0000 + (next32() >>> 6)) / 0x20_0000_0000_0000;
};

// ----------------------------------------------------------------------------------------------------------------- crypto

let cryptoCounter = 0;
const pool = new NativeUint8Array(64);
let poolAt = 64;

function nextByte(): number {
  if (poolAt === 64) {
    chacha(cryptoStream, cryptoCounter++);
    for (let word = 0; word < 16; word++) {
      const value = word32(block, word);
      pool[word * 4] = value;
      pool[word * 4 + 1] = value >>> 8;
      pool[word * 4 + 2] = value >>> 16;
      pool[word * 4 + 3] = value >>> 24;
    }
    poolAt = 0;
  }
  return pool[poolAt++] as number; // below 64
}

const quotaBytes = 65_536;

const getRandomValues = (view: ArrayBufferView): ArrayBufferView => {
  const kind = TypedArrayPrototypeGetToStringTag(view);
  if (kind === undefined || kind === "Float16Array" || kind === "Float32Array" || kind === "Float64Array") {
    throw new DOMException("crypto.getRandomValues takes an array of integers", "TypeMismatchError");
  }
  const length = TypedArrayPrototypeGetByteLength(view);
  if (length > quotaBytes) {
    throw new DOMException(
      `crypto.getRandomValues fills at most ${quotaBytes} bytes, not ${length}`,
      "QuotaExceededError",
    );
  }
  const bytes = new NativeUint8Array(
    TypedArrayPrototypeGetBuffer(view),
    TypedArrayPrototypeGetByteOffset(view),
    length,
  );
  for (let at = 0; at < length; at++) bytes[at] = nextByte();
  return view;
};

function hexByte(byte: number): string {
  return NumberPrototypeToString(byte + 0x100, 16);
}

const randomUUID = (): string => {
  let text = "";
  for (let at = 0; at < 16; at++) {
    let byte = nextByte();
    if (at === 6) byte = (byte & 0x0f) | 0x40;
    if (at === 8) byte = (byte & 0x3f) | 0x80;
    if (at === 4 || at === 6 || at === 8 || at === 10) text += "-";
    text += StringPrototypeSlice(hexByte(byte), 1, 3);
  }
  return text;
};

const token = {};

export class Crypto {
  constructor(given?: unknown) {
    if (given !== token) throw new TypeError("Illegal constructor");
  }
}

export function installRandom(): object {
  defineMethods(Math, { random });
  defineMethods(Crypto.prototype, { getRandomValues, randomUUID });
  return new Crypto(token);
}
