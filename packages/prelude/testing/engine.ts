/**
 * The engine's own WebAssembly, driven as the worker's C drives it, for the prelude's tests: the same exports, the same
 * hooks (senders, interrupts, rejections, refused memory growth), a snapshot of the memory after the prelude was evaluated
 * and every activation from it. Runs in Node's wasm, so the stack limit is lower than the worker's.
 */

/// <reference path="./webassembly.d.ts" />

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const packageFolder = dirname(
  createRequire(import.meta.url).resolve("@jitl/quickjs-wasmfile-release-sync/package.json"),
);

type Export = (...args: (number | bigint)[]) => number;

/** Names of the engine's exports, from the glue that ships beside it. */
function exportNames(): ReadonlyMap<string, string> {
  const glue = readFileSync(join(packageFolder, "dist/emscripten-module.mjs"), "utf8");
  const names = new Map<string, string>();
  for (const [, name, short] of glue.matchAll(/d\.(_\w+)=b\.([\w$]+)/g)) names.set(name ?? "", short ?? "");
  return names;
}

/** The module with one more export: its table, so that a function can be put into it. */
function withExportedTable(wasm: Uint8Array): Uint8Array {
  let at = 8;
  const parts: Uint8Array[] = [wasm.subarray(0, 8)];
  while (at < wasm.length) {
    const id = wasm[at] ?? 0;
    const [size, start] = readLeb(wasm, at + 1);
    const body = wasm.subarray(start, start + size);
    parts.push(
      id === 7 ? exportSection(body) : id === 4 ? growableTable(body) : wasm.subarray(at, start + size),
    );
    at = start + size;
  }
  return Buffer.concat(parts);
}

function readLeb(bytes: Uint8Array, at: number): [value: number, next: number] {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++] ?? 0;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return [value >>> 0, at];
  }
}

function leb(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  do {
    const more = rest >= 0x80;
    bytes.push((rest & 0x7f) | (more ? 0x80 : 0));
    rest >>>= 7;
  } while (rest > 0);
  return bytes;
}

function section(id: number, body: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.from([id, ...leb(body.length)]), body]);
}

function exportSection(body: Uint8Array): Uint8Array {
  const [count, next] = readLeb(body, 0);
  const name = Buffer.from("table");
  const table = Uint8Array.from([name.length, ...name, 1, 0]);
  return section(7, Buffer.concat([Uint8Array.from(leb(count + 1)), body.subarray(next), table]));
}

/** One table of functions; a maximum, if it has one, is taken away. */
function growableTable(body: Uint8Array): Uint8Array {
  const [count, type] = readLeb(body, 0);
  const flags = type + 1;
  if (count !== 1 || (body[flags] ?? 9) > 1) throw new Error("the engine's table section is not what it was");
  const [minimum] = readLeb(body, flags + 1);
  return section(4, Uint8Array.from([1, body[type] ?? 0, 0, ...leb(minimum)]));
}

/** (i32, i64, i64, i32, i32) → (), imported and exported again: a function that fits the engine's table. */
const trackerShim = Uint8Array.from([
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 9, 1, 0x60, 5, 0x7f, 0x7e, 0x7e, 0x7f, 0x7f, 0, 2, 7, 1, 1, 0x65, 1,
  0x66, 0, 0, 7, 5, 1, 1, 0x66, 0, 0,
]);

export interface EngineHooks {
  /** A sender was called: its name, the text and the attachments. */
  send(name: string, text: string, attachments: Uint8Array | undefined): void;
  /** Nonzero stops the script. */
  interrupt(): number;
  lastFailure(): string;
  memoryRefused(): void;
}

const senderNames = [
  "hostCall0",
  "hostCall1",
  "cancelCall",
  "console",
  "blocked",
  "finished0",
  "finished1",
  "refused",
] as const;
const lastFailureId = 100;
/** What the engine's own Date would show: scripts must never see it. */
const engineClock = 12_345;

/** A value's pointer in the engine's memory. */
export type Pointer = number;

export class Engine {
  readonly #memory = new WebAssembly.Memory({ initial: 256, maximum: 32_768 });
  readonly #call: (name: string, ...args: number[]) => number;
  #hooks: EngineHooks;
  #runtime = 0;
  #context = 0;
  #image: Uint8Array = new Uint8Array(0);
  #stackPointer = 0;
  readonly #functions = new Map<string, Pointer>();
  heapBytes = 2 ** 31;

  private constructor(
    call: (name: string, ...args: number[]) => number,
    memory: WebAssembly.Memory,
    hooks: EngineHooks,
  ) {
    this.#call = call;
    this.#memory = memory;
    this.#hooks = hooks;
  }

  /** An engine whose image holds the prelude. */
  static async create(prelude: string, hooks: EngineHooks, stackBytes = 200 * 1024): Promise<Engine> {
    const names = exportNames();
    const memory = new WebAssembly.Memory({ initial: 256, maximum: 32_768 });
    let engine: Engine | undefined;
    const current = (): Engine => {
      if (engine === undefined) throw new Error("the engine called out before it was made");
      return engine;
    };
    const fail = (what: string) => (): never => {
      throw new Error(`the engine called ${what}`);
    };
    const imports = {
      a: memory,
      b: fail("assert"),
      c: () => 0,
      d: () => 52,
      e: () => 0,
      f: () => 0,
      g: () => 0,
      h: () => 0,
      i: () => current().#hooks.interrupt(),
      j: () => 0,
      k: (bytes: number) => current().#grow(bytes >>> 0),
      l: () => undefined,
      m: (_time: bigint, into: number) => new Uint8Array(memory.buffer, into, 44).fill(0),
      n: () => undefined,
      o: () => 70,
      p: () => engineClock,
      q: fail("abort"),
      r: fail("exit"),
      s: (context: number, _receiver: number, count: number, args: number, id: number) =>
        current().#callOut(context, count, args, id),
      t: () => undefined,
    };
    const wasm = withExportedTable(readFileSync(join(packageFolder, "dist/emscripten-module.wasm")));
    const { instance } = await WebAssembly.instantiate(wasm, { a: imports });
    const exports = instance.exports as Record<string, Export>; // all but the table are functions
    const call = (name: string, ...args: number[]): number => {
      const found = exports[names.get(name) ?? name];
      if (found === undefined) throw new Error(`the engine exports no ${name}`);
      return found(...args);
    };
    engine = new Engine(call, memory, hooks);
    exports["u"]?.();
    await engine.#makeImage(prelude, instance.exports["table"] as WebAssembly.Table, stackBytes); // exported above
    return engine;
  }

  #grow(bytes: number): number {
    if (bytes > this.heapBytes) {
      this.#hooks.memoryRefused();
      return 0;
    }
    try {
      this.#memory.grow(Math.ceil((bytes - this.#memory.buffer.byteLength) / 65_536));
      return 1;
    } catch {
      return 0;
    }
  }

  #callOut(context: number, count: number, args: number, id: number): number {
    if (id === lastFailureId) return this.#newString(this.#hooks.lastFailure());
    const name = senderNames[id - 1];
    if (name === undefined || count < 1)
      throw new Error(`the prelude called the native function ${id} with ${count} arguments`);
    const text = this.#call("_QTS_ArgvGetJSValueConstPointer", args, 0);
    if (this.typeOf(text) !== "string") throw new Error(`the prelude sent a ${this.typeOf(text)} as ${name}`);
    let attachments: Uint8Array | undefined;
    if (count > 1) {
      const buffer = this.#call("_QTS_ArgvGetJSValueConstPointer", args, 1);
      const length = this.#call("_QTS_GetArrayBufferLength", context, buffer);
      const data = this.#call("_QTS_GetArrayBuffer", context, buffer);
      attachments = new Uint8Array(this.#memory.buffer.slice(data, data + length));
    }
    this.#hooks.send(name, this.stringOf(text), attachments);
    return 0;
  }

  async #makeImage(prelude: string, table: WebAssembly.Table, stackBytes: number): Promise<void> {
    this.#runtime = this.#call("_QTS_NewRuntime");
    this.#call("_QTS_RuntimeSetMaxStackSize", this.#runtime, stackBytes);
    await this.#trackRejections(table);
    this.#context = this.#call("_QTS_NewContext", this.#runtime, 0);
    this.#installNative();
    const exports = this.evaluate(prelude, "prelude.js");
    for (const name of ["activate", "start", "refuse", "deliver", "idle", "rejection"]) {
      this.#functions.set(name, this.#property(exports, name));
    }
    this.drain();
    this.#stackPointer = this.#call("Oa");
    this.#image = new Uint8Array(this.#memory.buffer.slice(0));
  }

  /** The tracker's field lies behind the interrupt handler's two, whose place shows when one is set. */
  async #trackRejections(table: WebAssembly.Table): Promise<void> {
    const words = (): Uint32Array =>
      new Uint32Array(this.#memory.buffer.slice(this.#runtime, this.#runtime + 512));
    const before = words();
    this.#call("_QTS_RuntimeEnableInterruptHandler", this.#runtime);
    const changed = words().findIndex((word, index) => word !== before[index]);
    if (changed < 0) throw new Error("the interrupt handler's field was not found");
    const hook = (_context: number, promise: bigint, reason: bigint, handled: number): void =>
      this.#rejected(promise, reason, handled);
    const shim = await WebAssembly.instantiate(trackerShim, { e: { f: hook } });
    const index = table.grow(1);
    table.set(index, shim.instance.exports["f"]);
    new Uint32Array(this.#memory.buffer)[this.#runtime / 4 + changed + 2] = index;
  }

  #rejected(promise: bigint, reason: bigint, handled: number): void {
    const slots = this.#call("_malloc", 16);
    new BigUint64Array(this.#memory.buffer, slots, 2).set([
      BigInt.asUintN(64, reason),
      BigInt.asUintN(64, promise),
    ]);
    this.invoke("rejection", [slots, slots + 8, this.boolean(handled !== 0)]);
    this.#call("_free", slots);
  }

  #installNative(): void {
    const native = this.#call("_QTS_NewObject", this.#context);
    const send = this.#call("_QTS_NewObject", this.#context);
    senderNames.forEach((name, index) => {
      this.#setProperty(send, name, this.#newFunction(name, index + 1));
    });
    this.#setProperty(native, "send", send);
    this.#setProperty(native, "lastFailure", this.#newFunction("lastFailure", lastFailureId));
    this.#setProperty(this.#call("_QTS_GetGlobalObject", this.#context), "__flowcell_native", native);
  }

  #newFunction(name: string, id: number): Pointer {
    return this.#withText(name, (text) => this.#call("_QTS_NewFunction", this.#context, text, 2, 0, id));
  }

  #setProperty(owner: Pointer, name: string, value: Pointer): void {
    this.#call("_QTS_SetProp", this.#context, owner, this.#newString(name), value);
  }

  #property(owner: Pointer, name: string): Pointer {
    return this.#call("_QTS_GetProp", this.#context, owner, this.#newString(name));
  }

  #withText<T>(text: string, use: (pointer: number, length: number) => T): T {
    const bytes = Buffer.from(text, "utf8");
    const pointer = this.#call("_malloc", bytes.length + 1);
    if (pointer === 0) throw new EngineError("no memory for a text");
    const memory = new Uint8Array(this.#memory.buffer);
    memory.set(bytes, pointer);
    memory[pointer + bytes.length] = 0;
    try {
      return use(pointer, bytes.length);
    } finally {
      this.#call("_free", pointer);
    }
  }

  #newString(text: string): Pointer {
    return this.#withText(text, (pointer) => this.#call("_QTS_NewString", this.#context, pointer));
  }

  boolean(value: boolean): Pointer {
    return this.#call(value ? "_QTS_GetTrue" : "_QTS_GetFalse");
  }

  typeOf(value: Pointer): string {
    const text = this.#call("_QTS_Typeof", this.#context, value);
    const type = this.#cString(text);
    this.#call("_free", text);
    return type;
  }

  #cString(pointer: number): string {
    const memory = new Uint8Array(this.#memory.buffer);
    return Buffer.from(memory.subarray(pointer, memory.indexOf(0, pointer))).toString("utf8");
  }

  stringOf(value: Pointer): string {
    const text = this.#call("_QTS_GetString", this.#context, value);
    const copy = this.#cString(text);
    this.#call("_QTS_FreeCString", this.#context, text);
    return copy;
  }

  /** Back to the image, as after every activation. */
  reset(): void {
    const memory = new Uint8Array(this.#memory.buffer);
    memory.set(this.#image);
    memory.fill(0, this.#image.length);
    this.#call("Ma", this.#stackPointer);
  }

  /** Throws EngineError for an exception; its `value` is the thrown value. */
  evaluate(source: string, file: string): Pointer {
    return this.#withText(source, (text, length) =>
      this.#withText(file, (name) =>
        this.#result(this.#call("_QTS_Eval", this.#context, text, length, name, 0, 0)),
      ),
    );
  }

  /** Calls one of the prelude's functions. Strings and bytes become values of the engine. */
  invoke(name: string, args: readonly (string | Uint8Array | undefined | Pointer)[]): Pointer {
    const pointer = this.#functions.get(name);
    if (pointer === undefined) throw new Error(`the prelude has no ${name}`);
    const list = this.#call("_malloc", 4 * args.length + 4);
    const values = args.map((arg) => {
      if (typeof arg === "string") return this.#newString(arg);
      if (arg === undefined) return this.#call("_QTS_GetUndefined");
      return typeof arg === "number" ? arg : this.#newBuffer(arg);
    });
    new Uint32Array(this.#memory.buffer, list, args.length).set(values);
    const undefinedValue = this.#call("_QTS_GetUndefined");
    const result = this.#call("_QTS_Call", this.#context, pointer, undefinedValue, args.length, list);
    this.#call("_free", list);
    return this.#result(result);
  }

  #newBuffer(bytes: Uint8Array): Pointer {
    const data = this.#call("_malloc", bytes.length + 1);
    new Uint8Array(this.#memory.buffer).set(bytes, data);
    return this.#call("_QTS_NewArrayBuffer", this.#context, data, bytes.length);
  }

  #result(value: Pointer): Pointer {
    const error = this.#call("_QTS_ResolveException", this.#context, value);
    if (error === 0) return value;
    const text = this.#call("_QTS_Dump", this.#context, error);
    throw new EngineError(this.#cString(text), error);
  }

  /** Runs all pending jobs. */
  drain(): void {
    const context = this.#call("_malloc", 4);
    while (this.#call("_QTS_IsJobPending", this.#runtime) === 1) {
      const result = this.#call("_QTS_ExecutePendingJob", this.#runtime, 1, context);
      if (this.typeOf(result) !== "number") this.#result(result);
      this.#call("_QTS_FreeValuePointer", this.#context, result);
    }
    this.#call("_free", context);
  }
}

/** An exception that came out of the engine. */
export class EngineError extends Error {
  override readonly name = "EngineError";
  readonly value: Pointer;

  constructor(text: string, value: Pointer = 0) {
    super(text);
    this.value = value;
  }
}
