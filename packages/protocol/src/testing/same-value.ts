/**
 * Whether two values are the same to everybody who can look at them: types, prototypes, own keys and their order, holes,
 * -0, and which parts are one object. Returns the path of the first difference, undefined if there is none.
 * Typed arrays are compared by kind and elements; their buffers only where a buffer is itself part of the value.
 */

type Pairs = Map<object, object>;

export function difference(a: unknown, b: unknown): string | undefined {
  return compare(a, b, "", new Map(), new Map());
}

function compare(a: unknown, b: unknown, path: string, forth: Pairs, back: Pairs): string | undefined {
  if (typeof a !== "object" || a === null || typeof b !== "object" || b === null) {
    return Object.is(a, b) ? undefined : `${path}: ${String(a)} and ${String(b)}`;
  }
  const known = forth.get(a);
  if (known !== undefined || back.has(b)) {
    return known === b && back.get(b) === a ? undefined : `${path}: shared differently`;
  }
  forth.set(a, b);
  back.set(b, a);
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return `${path}: other prototypes`;
  if (a instanceof Date && b instanceof Date)
    return Object.is(a.getTime(), b.getTime()) ? undefined : `${path}: dates`;
  if (a instanceof RegExp && b instanceof RegExp)
    return String(a) === String(b) ? undefined : `${path}: regexps`;
  if (a instanceof ArrayBuffer && b instanceof ArrayBuffer) {
    return Buffer.from(a).equals(Buffer.from(b)) ? undefined : `${path}: bytes`;
  }
  if (ArrayBuffer.isView(a) && ArrayBuffer.isView(b)) {
    const bytes = (view: ArrayBufferView): Buffer =>
      Buffer.from(view.buffer, view.byteOffset, view.byteLength);
    return bytes(a).equals(bytes(b)) ? undefined : `${path}: bytes of views`;
  }
  if (a instanceof Map && b instanceof Map)
    return compareLists([...a].flat(), [...b].flat(), path, forth, back);
  if (a instanceof Set && b instanceof Set) return compareLists([...a], [...b], path, forth, back);
  if (a instanceof Error && b instanceof Error) return compareErrors(a, b, path, forth, back);
  if (Array.isArray(a) && Array.isArray(b) && a.length !== b.length) return `${path}: lengths`;
  return compareProperties(a, b, Object.keys(a), Object.keys(b), path, forth, back);
}

function compareLists(
  a: readonly unknown[],
  b: readonly unknown[],
  path: string,
  forth: Pairs,
  back: Pairs,
): string | undefined {
  if (a.length !== b.length) return `${path}: sizes`;
  for (let index = 0; index < a.length; index++) {
    const found = compare(a[index], b[index], `${path}<${index}>`, forth, back);
    if (found !== undefined) return found;
  }
  return undefined;
}

function compareErrors(a: Error, b: Error, path: string, forth: Pairs, back: Pairs): string | undefined {
  if (a.name !== b.name || a.message !== b.message) return `${path}: errors`;
  const keys = (error: Error): string[] => [
    ...["cause", "errors"].filter((key) => Object.hasOwn(error, key)),
    ...Object.keys(error).filter((key) => !["name", "message", "stack", "cause", "errors"].includes(key)),
  ];
  return compareProperties(a, b, keys(a), keys(b), path, forth, back);
}

function compareProperties(
  a: object,
  b: object,
  aKeys: readonly string[],
  bKeys: readonly string[],
  path: string,
  forth: Pairs,
  back: Pairs,
): string | undefined {
  if (aKeys.length !== bKeys.length || aKeys.some((key, index) => key !== bKeys[index]))
    return `${path}: other keys`;
  for (const key of aKeys) {
    const mine = Object.getOwnPropertyDescriptor(a, key);
    const theirs = Object.getOwnPropertyDescriptor(b, key);
    if (theirs === undefined || "get" in theirs) return `${path}.${key}: no data property`;
    const found = compare(mine?.value, theirs.value, `${path}.${key}`, forth, back);
    if (found !== undefined) return found;
  }
  return undefined;
}
