/**
 * From the names that tools have elsewhere to names that a script can write. tool-set.ts calls it for every tool and namespace,
 * adapters for names that they bring.
 *
 * Kept true: a name is an identifier that no object has by itself, so that `tools.constructor`, `tools.then` and the like are
 * never tools; a namespace never hides a global that scripts rely on.
 */

const nameCharsMax = 64;
const identifier = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

/** Words that cannot be the name of a variable in strict code. */
const reservedWords: ReadonlySet<string> = new Set(
  (
    "arguments await break case catch class const continue debugger default delete do else enum eval export extends false " +
    "finally for function if implements import in instanceof interface let new null package private protected public return " +
    "static super switch this throw true try typeof undefined var void while with yield NaN Infinity"
  ).split(" "),
);

/** Asked of any object by libraries and by the runtime; the worker answers these by itself. */
const askedOfAnything: ReadonlySet<string> = new Set([
  "inspect",
  "nodeType",
  "tagName",
  "$$typeof",
  "asymmetricMatch",
]);

/** Asked of any object by the language: an object with a `then` is a promise to `await`. */
const languageNames: ReadonlySet<string> = new Set([
  ...Object.getOwnPropertyNames(Object.prototype),
  "prototype",
  "then",
  "toJSON",
]);

/** Globals of a script, which a namespace must not hide. `tools` and `codemode` are the tools without a namespace. */
const globals: ReadonlySet<string> = new Set(
  (
    "zz$ask AbortController AbortSignal AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean Crypto CustomEvent " +
    "DOMException DataView Date Error EvalError Event EventTarget Float32Array Float64Array Function Headers HostError Int16Array " +
    "Int32Array Int8Array Intl Iterator JSON Map Math Number Object Performance Promise Proxy RangeError ReferenceError Reflect " +
    "RegExp Request Response Set String Symbol SyntaxError TextDecoder TextEncoder TypeError URIError URL URLSearchParams " +
    "Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakSet atob btoa clearInterval clearTimeout codemode console " +
    "crypto decodeURI decodeURIComponent encodeURI encodeURIComponent escape fetch globalThis host isFinite isNaN parseFloat " +
    "parseInt performance process queueMicrotask require setInterval setTimeout structuredClone tools unescape"
  ).split(" "),
);

export type NameResult =
  | { readonly ok: true; readonly name: string }
  /** What is wrong, to stand after the name. */
  | { readonly ok: false; readonly problem: string };

/**
 * `my-tool.v2` becomes `my_tool_v2`, `9lives` `_9lives`, `delete` `delete_`. A name without a letter, digit, `_` or `$`, one
 * that is too long and one that every object has are refused.
 */
export function toolName(original: string): NameResult {
  return identifierFor(original);
}

export function namespaceName(original: string): NameResult {
  const result = identifierFor(original);
  if (!result.ok || !globals.has(result.name)) return result;
  return { ok: false, problem: `is a name that scripts have already; choose another one for the namespace` };
}

function identifierFor(original: string): NameResult {
  if (original.length > 4 * nameCharsMax) return tooLong;
  const words = original
    .trim()
    .replaceAll(/[-.\s/:]+/g, "_")
    .replaceAll(/[^A-Za-z0-9_$]/g, "");
  if (!/[A-Za-z0-9$]/.test(words))
    return { ok: false, problem: "has no letter or digit that an identifier can have" };
  const name = /^[0-9]/.test(words) ? `_${words}` : words;
  if (languageNames.has(name))
    return { ok: false, problem: "is what JavaScript looks up on every object; rename it" };
  const usable = reservedWords.has(name) || askedOfAnything.has(name) ? `${name}_` : name;
  if (usable.length > nameCharsMax) return tooLong;
  return identifier.test(usable) ? { ok: true, name: usable } : { ok: false, problem: "is no identifier" };
}

const tooLong: NameResult = { ok: false, problem: `is longer than ${nameCharsMax} characters` };
