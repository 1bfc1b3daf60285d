/**
 * How large a result is that is larger than its limit, and where: for the message, so it may be rough and must be cheap. It
 * reads data properties only and looks at the length of strings, not at their characters.
 */

import { type PathPiece, pathText } from "./path-text.js";
import {
  ArrayBufferIsView,
  ArrayBufferPrototype,
  ArrayBufferPrototypeGetByteLength,
  ArrayIsArray,
  accepts,
  descriptorOf,
  ObjectGetPrototypeOf,
  ObjectKeys,
  record,
  TypedArrayPrototypeGetByteLength,
} from "./primordials.js";
import { isProxy } from "./proxies.js";

/** Properties looked at in all; beyond them the sum is a lower bound. */
const looksMost = 200_000;
const depthMost = 32;

let looks = 0;

export interface Measured {
  /** About the bytes that the value needs; at least, when it is very large. */
  readonly used: number;
  /** The innermost place that makes up most of it, "" for the value itself. */
  readonly path: string;
}

export function measureResult(value: unknown): Measured {
  looks = 0;
  const used = sizeOf(value, 0);
  const path = record<PathPiece>();
  let depth = 0;
  let holder = value;
  let size = used;
  for (; depth < depthMost && looks < looksMost * 2; depth++) {
    const key = largestKey(holder, size);
    if (key === undefined) break;
    path[depth] = key;
    holder = dataOf(holder as object, key); // only objects have a largest key
    size = sizeOf(holder, depth + 1);
  }
  return { used, path: pathText(path, depth) };
}

function dataOf(holder: object, key: PathPiece): unknown {
  return descriptorOf(holder, key as PropertyKey)?.value; // only keys and indices are used here
}

function sizeOf(value: unknown, depth: number): number {
  switch (typeof value) {
    case "string":
      return value.length + 2;
    case "object":
      return value === null ? 4 : sizeOfObject(value, depth);
    default:
      return 5;
  }
}

function sizeOfObject(value: object, depth: number): number {
  if (isProxy(value) || depth > depthMost) return 2;
  if (ArrayBufferIsView(value))
    return accepts(TypedArrayPrototypeGetByteLength, value) ? TypedArrayPrototypeGetByteLength(value) : 2;
  if (
    ObjectGetPrototypeOf(value) === ArrayBufferPrototype &&
    accepts(ArrayBufferPrototypeGetByteLength, value)
  ) {
    return ArrayBufferPrototypeGetByteLength(value);
  }
  const isArray = ArrayIsArray(value);
  const keys = ObjectKeys(value);
  const { length } = keys;
  let size = 2;
  for (let at = 0; at < length && looks++ < looksMost; at++) {
    const key = keys[at] as string; // below its length
    size += sizeOf(dataOf(value, key), depth + 1) + (isArray ? 1 : key.length + 4);
  }
  return size;
}

/** The key of the child that makes up more than half of `size`, if there is one. */
function largestKey(holder: unknown, size: number): string | number | undefined {
  if (typeof holder !== "object" || holder === null || isProxy(holder) || ArrayBufferIsView(holder))
    return undefined;
  const keys = ObjectKeys(holder);
  // A long list of like things has no largest.
  if (keys.length > 1_000) return undefined;
  for (let at = 0; at < keys.length; at++) {
    const key = keys[at] as string; // below its length
    if (sizeOf(dataOf(holder, key), 1) * 2 > size) return ArrayIsArray(holder) ? +key : key;
  }
  return undefined;
}
