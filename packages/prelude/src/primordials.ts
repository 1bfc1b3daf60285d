/**
 * The intrinsics that the runtime uses, captured while the image is made: before any guest code, and before the polyfills.
 * Every other file of the core takes them from here, because a script may replace any of them, or anything that they look
 * up. What follows from that, in every file but those of `web/`:
 *
 * - no method of a built-in is called by property lookup on a value: `StringPrototypeSlice(text, 1)`, not `text.slice(1)`
 * - no iteration protocol: no `for…of`, no spread, no array destructuring; no regular expression literal's methods
 * - records that hold state have no prototype or have every field as an own one; array elements are never appended by
 *   index, because a setter on `Array.prototype` would see them (literals and rest parameters define own elements)
 * - a promise is waited for with `PromisePrototypeThen` as `guest-promise.ts` does it
 *
 * Statics are preferred over methods: a captured static is one native call, an uncurried method is two.
 */

const { bind, call } = Function.prototype;

/** `uncurryThis(method)(self, …args)` is `method.call(self, …args)` without looking `call` up. */
const uncurryThis = bind.bind(call);

/** The type is what the caller says about an intrinsic that the library types too loosely for this. */
function uncurry<F>(method: unknown): F {
  return uncurryThis(method as () => unknown) as F; // `method` is an intrinsic of this realm; the callers below name its type
}

/** The getter of an accessor that every engine of this build has. */
export function uncurriedGetter<F>(owner: object, key: PropertyKey): F {
  return uncurry<F>(Object.getOwnPropertyDescriptor(owner, key)?.get);
}

export const NativeArrayBuffer = ArrayBuffer;
export const NativeBigInt = BigInt;
export const NativeDate = Date;
export const NativeError = Error;
export const NativeEvalError = EvalError;
export const NativeInternalError = InternalError;
export const NativeMap = Map;
export const NativePromise = Promise;
export const NativeProxy = Proxy;
export const NativeRangeError = RangeError;
export const NativeReferenceError = ReferenceError;
export const NativeRegExp = RegExp;
export const NativeSet = Set;
export const NativeTypeError = TypeError;
export const NativeUint8Array = Uint8Array;
export const NativeUint32Array = Uint32Array;
export const NativeWeakMap = WeakMap;

export const ArrayPrototype: object = Array.prototype;
export const ArrayBufferPrototype: object = ArrayBuffer.prototype;
export const BigIntPrototype: object = BigInt.prototype;
export const BooleanPrototype: object = Boolean.prototype;
export const DataViewPrototype: object = DataView.prototype;
export const DatePrototype: object = Date.prototype;
export const ErrorPrototype: object = Error.prototype;
export const FunctionPrototype: object = Function.prototype;
export const MapPrototype: object = Map.prototype;
export const NumberPrototype: object = Number.prototype;
export const ObjectPrototype: object = Object.prototype;
export const PromisePrototype: object = Promise.prototype;
export const RegExpPrototype: object = RegExp.prototype;
export const SetPrototype: object = Set.prototype;
export const StringPrototype: object = String.prototype;
export const WeakMapPrototype: object = WeakMap.prototype;
export const WeakSetPrototype: object = WeakSet.prototype;
export const TypedArrayPrototype = Object.getPrototypeOf(Uint8Array.prototype) as object; // %TypedArray%.prototype

export const ArrayIsArray = Array.isArray;
export const ArrayBufferIsView = ArrayBuffer.isView;
export const DateParse = Date.parse;
export const DateUTC = Date.UTC;
export const ErrorIsError = Error.isError;
export const JSONParse = JSON.parse as (text: string) => unknown;
export const JSONStringify = JSON.stringify as (value: unknown) => string | undefined; // undefined for functions and symbols
export const MathMin = Math.min;
export const NumberIsNaN = Number.isNaN;
export const ObjectCreate = Object.create;
export const ObjectDefineProperty = Object.defineProperty;
export const ObjectFreeze = Object.freeze;
const ObjectGetOwnPropertyDescriptor = Object.getOwnPropertyDescriptor;
export const ObjectGetOwnPropertySymbols = Object.getOwnPropertySymbols;
export const ObjectGetPrototypeOf = Object.getPrototypeOf as (value: unknown) => object | null;
export const ObjectHasOwn = Object.hasOwn;
export const ObjectKeys = Object.keys;
export const ObjectSetPrototypeOf = Object.setPrototypeOf;
export const ReflectApply = Reflect.apply;
export const ReflectConstruct = Reflect.construct;
export const ReflectDefineProperty = Reflect.defineProperty;
export const ReflectDeleteProperty = Reflect.deleteProperty;
export const ReflectOwnKeys = Reflect.ownKeys;

export const SymbolSpecies: typeof Symbol.species = Symbol.species;

export const BigIntPrototypeToString = uncurry<(self: bigint) => string>(BigInt.prototype.toString);
export const BigIntPrototypeValueOf = uncurry<(self: unknown) => bigint>(BigInt.prototype.valueOf);
export const BooleanPrototypeValueOf = uncurry<(self: unknown) => boolean>(Boolean.prototype.valueOf);
export const DatePrototypeGetTime = uncurry<(self: unknown) => number>(Date.prototype.getTime);
export const DatePrototypeToISOString = uncurry<(self: Date) => string>(Date.prototype.toISOString);
export const DatePrototypeToString = uncurry<(self: Date) => string>(Date.prototype.toString);
export const FunctionPrototypeBind = uncurry<
  (self: unknown, receiver: unknown, ...args: unknown[]) => (...rest: unknown[]) => unknown
>(Function.prototype.bind);
export const NativeFunctionToString: object = Function.prototype.toString;
export const FunctionPrototypeToString = uncurry<(self: unknown) => string>(Function.prototype.toString);
export const NumberPrototypeToString = uncurry<(self: number, radix?: number) => string>(
  Number.prototype.toString,
);
export const NumberPrototypeValueOf = uncurry<(self: unknown) => number>(Number.prototype.valueOf);
export const StringPrototypeCharCodeAt = uncurry<(self: string, at: number) => number>(
  String.prototype.charCodeAt,
);
export const StringPrototypeEndsWith = uncurry<(self: string, part: string) => boolean>(
  String.prototype.endsWith,
);
export const StringPrototypeIncludes = uncurry<(self: string, part: string) => boolean>(
  String.prototype.includes,
);
export const StringPrototypeIndexOf = uncurry<(self: string, part: string, from?: number) => number>(
  String.prototype.indexOf,
);
export const StringPrototypeRepeat = uncurry<(self: string, count: number) => string>(
  String.prototype.repeat,
);
export const StringPrototypeSlice = uncurry<(self: string, from: number, to?: number) => string>(
  String.prototype.slice,
);
export const StringPrototypeStartsWith = uncurry<(self: string, part: string) => boolean>(
  String.prototype.startsWith,
);
export const StringPrototypeToLowerCase = uncurry<(self: string) => string>(String.prototype.toLowerCase);
export const StringPrototypeToUpperCase = uncurry<(self: string) => string>(String.prototype.toUpperCase);
export const StringPrototypeValueOf = uncurry<(self: unknown) => string>(String.prototype.valueOf);
export const SymbolPrototypeToString = uncurry<(self: symbol) => string>(Symbol.prototype.toString);

/** The getter of an accessor property on the chain, undefined for a data property: no guest code runs unless for a proxy. */
export const ObjectPrototypeLookupGetter = uncurry<(self: object, key: PropertyKey) => unknown>(
  (Object.prototype as unknown as { __lookupGetter__: unknown }).__lookupGetter__, // Annex B, absent from the library
);
export const ObjectPrototypeIsPrototypeOf = uncurry<(self: object, value: unknown) => boolean>(
  Object.prototype.isPrototypeOf,
);

export const PromisePrototypeThen = uncurry<
  (
    self: unknown,
    onFulfilled: ((value: unknown) => unknown) | undefined,
    onRejected?: (reason: unknown) => unknown,
  ) => Promise<unknown>
>(Promise.prototype.then);
export const PromiseResolve = bind.call(Promise.resolve, Promise) as (value?: unknown) => Promise<unknown>;

export const MapPrototypeDelete = uncurry<(self: unknown, key: unknown) => boolean>(Map.prototype.delete);
export const MapPrototypeForEach = uncurry<
  (self: unknown, visit: (value: unknown, key: unknown) => void) => void
>(Map.prototype.forEach);
export const MapPrototypeGet = uncurry<<V>(self: Map<unknown, V>, key: unknown) => V | undefined>(
  Map.prototype.get,
);
export const MapPrototypeSet = uncurry<(self: unknown, key: unknown, value: unknown) => unknown>(
  Map.prototype.set,
);
export const MapPrototypeGetSize = uncurriedGetter<(self: unknown) => number>(Map.prototype, "size");
export const SetPrototypeAdd = uncurry<(self: unknown, value: unknown) => unknown>(Set.prototype.add);
export const SetPrototypeDelete = uncurry<(self: unknown, value: unknown) => boolean>(Set.prototype.delete);
export const SetPrototypeForEach = uncurry<(self: unknown, visit: (value: unknown) => void) => void>(
  Set.prototype.forEach,
);
export const SetPrototypeGetSize = uncurriedGetter<(self: unknown) => number>(Set.prototype, "size");
export const WeakMapPrototypeGet = uncurry<
  <V extends object>(self: WeakMap<object, V>, key: object) => V | undefined
>(WeakMap.prototype.get);
export const WeakMapPrototypeHas = uncurry<(self: unknown, key: object) => boolean>(WeakMap.prototype.has);
export const WeakMapPrototypeSet = uncurry<(self: unknown, key: object, value: unknown) => unknown>(
  WeakMap.prototype.set,
);

export const RegExpPrototypeExec = uncurry<(self: RegExp, text: string) => RegExpExecArray | null>(
  RegExp.prototype.exec,
);
export const RegExpPrototypeGetSource = uncurriedGetter<(self: unknown) => string>(
  RegExp.prototype,
  "source",
);

export const ArrayBufferPrototypeGetByteLength = uncurriedGetter<(self: unknown) => number>(
  ArrayBuffer.prototype,
  "byteLength",
);
export const DataViewPrototypeGetBuffer = uncurriedGetter<(self: unknown) => ArrayBuffer>(
  DataView.prototype,
  "buffer",
);
export const DataViewPrototypeGetByteLength = uncurriedGetter<(self: unknown) => number>(
  DataView.prototype,
  "byteLength",
);
export const DataViewPrototypeGetByteOffset = uncurriedGetter<(self: unknown) => number>(
  DataView.prototype,
  "byteOffset",
);
export const TypedArrayPrototypeGetBuffer = uncurriedGetter<(self: unknown) => ArrayBuffer>(
  TypedArrayPrototype,
  "buffer",
);
export const TypedArrayPrototypeGetByteLength = uncurriedGetter<(self: unknown) => number>(
  TypedArrayPrototype,
  "byteLength",
);
export const TypedArrayPrototypeGetByteOffset = uncurriedGetter<(self: unknown) => number>(
  TypedArrayPrototype,
  "byteOffset",
);
export const TypedArrayPrototypeGetLength = uncurriedGetter<(self: unknown) => number>(
  TypedArrayPrototype,
  "length",
);
/** The class name of a typed array, undefined for every other value: a brand check that runs no guest code. */
export const TypedArrayPrototypeGetToStringTag = uncurriedGetter<(self: unknown) => string | undefined>(
  TypedArrayPrototype,
  Symbol.toStringTag,
);
export const TypedArrayPrototypeSet = uncurry<(self: unknown, source: unknown, offset?: number) => void>(
  Uint8Array.prototype.set,
);

/** True if the call did not throw: for brand checks, whose only answer is whether a native accessor accepts the value. */
export function accepts(check: (self: unknown) => unknown, value: unknown): boolean {
  try {
    check(value);
    return true;
  } catch {
    return false;
  }
}

/** An own property's descriptor that inherits nothing: `Object.prototype.get` may be the guest's. */
export function descriptorOf(owner: object, key: PropertyKey): PropertyDescriptor | undefined {
  const descriptor = ObjectGetOwnPropertyDescriptor(owner, key);
  if (descriptor !== undefined) ObjectSetPrototypeOf(descriptor, null);
  return descriptor;
}

/** Defines an own data property whatever the prototypes hold. Writable and configurable, as an assignment makes it. */
export function defineData(owner: object, key: PropertyKey, value: unknown, enumerable = true): void {
  const descriptor = { __proto__: null, value, writable: true, enumerable, configurable: true };
  ObjectDefineProperty(owner, key, descriptor as PropertyDescriptor); // its prototype is all that the type does not know
}

/** A record without a prototype: no key is inherited, no setter is met. */
export function record<V>(): { [key: PropertyKey]: V } {
  return ObjectCreate(null) as { [key: PropertyKey]: V }; // a fresh object without properties has any element type
}
