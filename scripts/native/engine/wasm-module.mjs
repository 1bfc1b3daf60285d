// Reads what the build must know of the engine's .wasm: types, imports, exports, globals, table and data.
//
// Called by engine/generate.mjs. A small reader of the binary format that understands exactly what this module uses
// and refuses the rest, so that a new engine version with another shape stops the build instead of being half understood.

import { BuildError } from "../compile.mjs";

const VALUE_TYPES = new Map([
  [0x7f, "i32"],
  [0x7e, "i64"],
  [0x7d, "f32"],
  [0x7c, "f64"],
]);
const IMPORT_KIND = ["function", "table", "memory", "global"];
const SECTION = { type: 1, import: 2, function: 3, table: 4, global: 6, export: 7, element: 9, data: 11 };

class Reader {
  constructor(bytes, name) {
    this.bytes = bytes;
    this.name = name;
    this.at = 0;
  }

  fail(what) {
    throw new BuildError(`flowcell: ${this.name}: ${what} at byte ${this.at}`);
  }

  byte() {
    const value = this.bytes[this.at];
    if (value === undefined) this.fail("ends early");
    this.at += 1;
    return value;
  }

  /** An unsigned LEB128 number of at most 32 bits. */
  number() {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      if ((byte & 0x80) === 0) return value;
    }
    return this.fail("a number is too long");
  }

  /** `i32.const N; end`, as an unsigned number. */
  constant() {
    if (this.byte() !== 0x41) this.fail("an initial value is no i32.const");
    let value = 0;
    let shift = 0;
    let byte;
    do {
      byte = this.byte();
      value |= (byte & 0x7f) << shift;
      shift += 7;
    } while ((byte & 0x80) !== 0);
    if (shift < 32 && (byte & 0x40) !== 0) value |= -1 << shift;
    if (this.byte() !== 0x0b) this.fail("an initial value is no single constant");
    return value >>> 0;
  }

  text() {
    const length = this.number();
    const text = new TextDecoder("utf-8", { fatal: true }).decode(
      this.bytes.subarray(this.at, this.at + length),
    );
    this.at += length;
    return text;
  }

  list(read) {
    return Array.from({ length: this.number() }, () => read());
  }

  limits() {
    const flags = this.byte();
    const least = this.number();
    return { least, most: (flags & 1) === 1 ? this.number() : undefined };
  }

  valueType() {
    const type = VALUE_TYPES.get(this.byte());
    return type ?? this.fail("a value type is neither i32, i64, f32 nor f64");
  }

  skip(end) {
    this.at = end;
  }
}

/** "i32,i64->i32": one text per signature, for comparison. */
export function signatureText({ parameters, results }) {
  return `${parameters.join(",")}->${results.join(",")}`;
}

function readType(reader) {
  if (reader.byte() !== 0x60) reader.fail("a type is no function type");
  const parameters = reader.list(() => reader.valueType());
  const results = reader.list(() => reader.valueType());
  return signatureText({ parameters, results });
}

function readImport(reader, types) {
  const module = reader.text();
  const name = reader.text();
  const kind = IMPORT_KIND[reader.byte()];
  if (kind === "function") return { module, name, kind, signature: types[reader.number()] };
  if (kind === "memory") return { module, name, kind, limits: reader.limits() };
  return reader.fail(`import ${module}.${name} is neither a function nor a memory`);
}

function readGlobal(reader) {
  const type = reader.valueType();
  const mutable = reader.byte() === 1;
  if (type !== "i32") reader.fail("a global is not of type i32");
  return { mutable, initial: reader.constant() };
}

function readElements(reader) {
  if (reader.number() !== 0) reader.fail("an element segment is not a plain active one");
  return { offset: reader.constant(), functions: reader.list(() => reader.number()) };
}

function readData(reader) {
  if (reader.number() !== 0) reader.fail("a data segment is not a plain active one");
  const offset = reader.constant();
  const length = reader.number();
  const bytes = reader.bytes.subarray(reader.at, reader.at + length);
  reader.at += length;
  return { offset, bytes };
}

/**
 * Resolves to { types, imports, exports, globals, table, elements, data } of a module:
 *  types     signature texts by index
 *  imports   [{ module, name, kind, signature | limits }]
 *  exports   Map name → { signature } of the exported functions
 *  globals   [{ mutable, initial }]
 *  table     { least, most } of its only table
 *  elements  [{ offset, functions }]
 *  data      [{ offset, bytes }]
 */
export function readWasm(bytes, name) {
  const reader = new Reader(bytes, name);
  if (String.fromCharCode(...bytes.subarray(0, 4)) !== "\0asm" || bytes[4] !== 1)
    reader.fail("is no WebAssembly module of version 1");
  reader.at = 8;
  const module = {
    types: [],
    imports: [],
    exports: new Map(),
    globals: [],
    tables: [],
    elements: [],
    data: [],
  };
  let functions = [];
  let exported = [];
  while (reader.at < bytes.length) {
    const section = reader.byte();
    const size = reader.number();
    const end = reader.at + size;
    if (end > bytes.length) reader.fail(`section ${section} ends early`);
    if (section === SECTION.type) module.types = reader.list(() => readType(reader));
    else if (section === SECTION.import) module.imports = reader.list(() => readImport(reader, module.types));
    else if (section === SECTION.function) functions = reader.list(() => module.types[reader.number()]);
    else if (section === SECTION.table) {
      module.tables = reader.list(() => {
        if (reader.byte() !== 0x70) reader.fail("a table does not hold functions");
        return reader.limits();
      });
    } else if (section === SECTION.global) module.globals = reader.list(() => readGlobal(reader));
    else if (section === SECTION.export) {
      exported = reader.list(() => ({ name: reader.text(), kind: reader.byte(), index: reader.number() }));
    } else if (section === SECTION.element) module.elements = reader.list(() => readElements(reader));
    else if (section === SECTION.data) module.data = reader.list(() => readData(reader));
    else reader.skip(end);
    if (reader.at !== end) reader.fail(`section ${section} has another length than it says`);
  }
  const imported = module.imports.filter((one) => one.kind === "function").map((one) => one.signature);
  const signatures = [...imported, ...functions];
  for (const one of exported) {
    if (one.kind === 0) module.exports.set(one.name, { signature: signatures[one.index] });
  }
  if (module.tables.length !== 1) reader.fail(`has ${module.tables.length} tables instead of one`);
  return { ...module, table: module.tables[0] };
}
