/**
 * Results as JSON text for `--json`: what JSON can say is written plainly, what it cannot say as an object with the key
 * `$type`. A script's own object that has a key `$type` is written as `{"$type": "object", "entries": […]}`, so a reader
 * is never misled.
 *
 *   undefined, hole          {"$type": "undefined"}, {"$type": "hole"}
 *   NaN, ±Infinity, -0       {"$type": "number", "value": "NaN"}
 *   bigint                   {"$type": "bigint", "value": "123"}
 *   Date                     {"$type": "Date", "value": "2025-01-01T00:00:00.000Z"}, null when invalid
 *   Map, Set                 {"$type": "Map", "entries": [[key, value], …]}, {"$type": "Set", "values": [value, …]}
 *   RegExp                   {"$type": "RegExp", "source": "a+", "flags": "g"}
 *   an error                 {"$type": "Error", "name": …, "message": …, "cause": …, "errors": […], "properties": {…}}
 *   bytes                    {"$type": "Uint8Array", "base64": "AAE="}; the kind is ArrayBuffer, DataView, Float64Array …
 *   a cycle                  {"$type": "cycle", "path": "$.a[0]"}, the path of the enclosing value that it refers to
 *
 * Values are those that `decodeValue` makes: no getters, no foreign prototypes, bounded also when shared parts are
 * visited each time, which is what this does.
 */

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A JSON value with tags in it. */
export function taggedJson(value: unknown): Json {
  return tag(value, "$", new Map());
}

/** `path` of every value that is being written, to name cycles. */
function tag(value: unknown, path: string, open: Map<object, string>): Json {
  switch (typeof value) {
    case "undefined":
      return { $type: "undefined" };
    case "boolean":
    case "string":
      return value;
    case "number":
      return tagNumber(value);
    case "bigint":
      return { $type: "bigint", value: value.toString() };
    case "object":
      return value === null ? null : tagOnce(value, path, open);
    default:
      throw new TypeError(`a ${typeof value} is no value of a result`);
  }
}

function tagNumber(value: number): Json {
  if (Object.is(value, -0)) return { $type: "number", value: "-0" };
  return Number.isFinite(value) ? value : { $type: "number", value: String(value) };
}

function tagOnce(value: object, path: string, open: Map<object, string>): Json {
  const enclosing = open.get(value);
  if (enclosing !== undefined) return { $type: "cycle", path: enclosing };
  open.set(value, path);
  const tagged = tagObject(value, path, open);
  open.delete(value);
  return tagged;
}

function tagObject(value: object, path: string, open: Map<object, string>): Json {
  if (Array.isArray(value)) return tagArray(value, path, open);
  if (value instanceof Date) {
    return { $type: "Date", value: Number.isNaN(value.getTime()) ? null : value.toISOString() };
  }
  if (value instanceof RegExp) return { $type: "RegExp", source: value.source, flags: value.flags };
  if (value instanceof Map) {
    const entries = [...value].map(([key, inner], index) => [
      tag(key, `${path}.keys[${index}]`, open),
      tag(inner, `${path}.values[${index}]`, open),
    ]);
    return { $type: "Map", entries };
  }
  if (value instanceof Set) {
    return { $type: "Set", values: [...value].map((inner, index) => tag(inner, `${path}[${index}]`, open)) };
  }
  if (value instanceof Error) return tagError(value, path, open);
  if (value instanceof ArrayBuffer)
    return { $type: "ArrayBuffer", base64: Buffer.from(value).toString("base64") };
  if (ArrayBuffer.isView(value)) {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    return { $type: value.constructor.name, base64: bytes.toString("base64") };
  }
  return tagPlain(value, path, open);
}

function tagArray(value: readonly unknown[], path: string, open: Map<object, string>): Json {
  return Array.from(value, (inner, index) =>
    index in value ? tag(inner, `${path}[${index}]`, open) : { $type: "hole" },
  );
}

function tagError(error: Error, path: string, open: Map<object, string>): Json {
  const properties = Object.entries(error).filter(
    ([key]) => !["name", "message", "stack", "cause", "errors"].includes(key),
  );
  return {
    $type: "Error",
    name: error.name,
    message: error.message,
    ...("cause" in error ? { cause: tag(error.cause, `${path}.cause`, open) } : {}),
    ...(error instanceof AggregateError ? { errors: tag(error.errors, `${path}.errors`, open) } : {}),
    ...(properties.length === 0
      ? {}
      : { properties: tag(Object.fromEntries(properties), `${path}.properties`, open) }),
  };
}

function tagPlain(value: object, path: string, open: Map<object, string>): Json {
  const entries = Object.entries(value).map(
    ([key, inner]) => [key, tag(inner, `${path}.${key}`, open)] as const, // a pair, which map widens to an array
  );
  // fromEntries defines own properties, `__proto__` among them.
  return Object.hasOwn(value, "$type") ? { $type: "object", entries } : Object.fromEntries(entries);
}
