// Turns what wasm2c wrote into what the worker compiles: our runtime's macros, one read-only function table,
// and a note to the shim where the engine raises its errors for lack of memory or stack.
//
// Called by engine/generate.mjs. Each change names the text it replaces and how often that text must occur; anything
// else stops the build. So a new wasm2c or engine cannot slip through half transformed.

import { BuildError } from "../compile.mjs";

function fail(what) {
  throw new BuildError(
    `flowcell: the C that wasm2c made does not look as expected: ${what}. wabt or the engine changed; see scripts/native/engine/transform.mjs.`,
  );
}

function replaceOnce(text, from, to) {
  const parts = text.split(from);
  if (parts.length !== 2) fail(`${parts.length - 1} occurrences of ${JSON.stringify(from.slice(0, 90))}`);
  return parts.join(to);
}

/** Removes everything from the start of `from` up to the start of `to`. */
function cut(text, from, to, instead = "") {
  const start = text.indexOf(from);
  const end = text.indexOf(to, start);
  if (start < 0 || end < 0 || text.indexOf(from, start + 1) >= 0)
    fail(`no single part between ${JSON.stringify(from)} and ${JSON.stringify(to)}`);
  return text.slice(0, start) + instead + text.slice(end);
}

/** Public header: no function table in the instance, no look-up of function types. */
export function transformHeader(text) {
  const withoutTable = replaceOnce(text, "  wasm_rt_funcref_table_t w2c_T0;\n", "");
  return withoutTable.replace(/^wasm_rt_func_type_t wasm2c_engine_get_func_type\(.*\n/m, "");
}

/** The header of the generated parts: memory access, indirect calls and types as in our wasm-rt.h. */
export function transformImplementationHeader(input, { typeCount, tableRows }) {
  let text = cut(
    input,
    "#include <assert.h>",
    '#include "engine_module.h"',
    "#include <stdarg.h>\n#include <stddef.h>\n",
  );
  text = replaceOnce(
    text,
    "#define MEM_ADDR(mem, addr, n) &((mem)->data[addr])",
    "#define MEM_ADDR(mem, addr, n) ENGINE_ADDRESS(addr)",
  );
  // A load whose result is unused need not happen: an address that traps is an engine fault, not a feature.
  text = replaceOnce(
    text,
    '#define FORCE_READ_INT(var) __asm__("" ::"r"(var));',
    "#define FORCE_READ_INT(var)",
  );
  text = replaceOnce(
    text,
    '#define FORCE_READ_FLOAT(var) __asm__("" ::"r"(var));',
    "#define FORCE_READ_FLOAT(var)",
  );
  text = replaceOnce(
    text,
    `    wasm_rt_memcpy(&result, MEM_ADDR_MEMOP(mem, addr, sizeof(t1)),     \\
                   sizeof(t1));                                        \\
`,
    "    ENGINE_LOAD(t1, result, addr);                                     \\\n",
  );
  text = replaceOnce(
    text,
    `    wasm_rt_memcpy(MEM_ADDR_MEMOP(mem, addr, sizeof(t1)), &wrapped,    \\
                   sizeof(t1));                                        \\
`,
    "    ENGINE_STORE(t1, addr, wrapped);                                   \\\n",
  );
  // Without a population count instruction (plain x86-64) the compiler would call its own library.
  text = replaceOnce(
    text,
    "#define I32_POPCNT(x) (__builtin_popcount(x))",
    "#define I32_POPCNT(x) engine_popcount(x)",
  );
  text = replaceOnce(
    text,
    "#define I64_POPCNT(x) (__builtin_popcountll(x))",
    "#define I64_POPCNT(x) engine_popcount(x)",
  );
  text = cut(
    text,
    "static inline bool func_types_eq(",
    "static inline bool add_overflow(",
    `#define ENGINE_TABLE_ROWS ${tableRows}u\n#define CALL_INDIRECT ENGINE_CALL_INDIRECT\n\n`,
  );
  text = cut(
    text,
    "typedef enum { RefFunc, RefNull, GlobalGet }",
    "#if defined(__GNUC__) || defined(__clang__)\n#define FUNC_TYPE_DECL_EXTERN_T(x)",
  );
  let types = 0;
  text = text.replaceAll(/^FUNC_TYPE_DECL_EXTERN_T\(w2c_engine_t(\d+)\);$/gm, (_, index) => {
    types += 1;
    return `#define w2c_engine_t${index} ${Number(index) + 1}u`;
  });
  if (types !== typeCount) fail(`${types} function types are declared instead of ${typeCount}`);
  return text.replaceAll(
    /^extern const wasm_elem_segment_expr_t elem_segment_exprs_w2c_engine_e0\[\];$/gm,
    "",
  );
}

const TABLE_ROW =
  /^ {2}\{RefFunc, w2c_engine_t(\d+), \(wasm_rt_function_ptr_t\)wrap_(w2c_engine_\w+), \{NULL\}, 0\},$/;

/** The element segment as our function table: row 0 is empty, our own rows come last. */
function functionTable(segment, { elements, hostRows }) {
  const lines = segment.trimEnd().split("\n").slice(1, -1);
  const rows = lines.map((line) => {
    const match = TABLE_ROW.exec(line);
    if (match === null) fail(`a row of the function table reads ${JSON.stringify(line)}`);
    return `  {(wasm_rt_function_ptr_t)${match[2]}, w2c_engine_t${match[1]}},`;
  });
  if (rows.length !== elements) fail(`the function table has ${rows.length} rows instead of ${elements}`);
  const ours = hostRows.map((row) => `  {(wasm_rt_function_ptr_t)${row.name}, w2c_engine_t${row.type}},`);
  const declarations = hostRows.map((row) => `void ${row.name}(void);`);
  return [
    "/* Our own functions; their types are those of the rows below. */",
    ...declarations,
    "",
    "const wasm_rt_funcref_t engine_table[ENGINE_TABLE_ROWS] = {",
    "  {NULL, 0u},",
    ...rows,
    ...ours,
    "};",
    "",
    "",
  ].join("\n");
}

/** The part that holds types, data, table and exports. */
export function transformFirstPart(input, { typeCount, elements, hostRows }) {
  const hashes = [];
  let text = input.replaceAll(/^FUNC_TYPE_EXTERN_T\(w2c_engine_t\d+\) = "(.*)";\n/gm, (_, hash) => {
    hashes.push(hash);
    return "";
  });
  if (hashes.length !== typeCount || new Set(hashes).size !== typeCount)
    fail(`${new Set(hashes).size} of ${hashes.length} function types differ, instead of ${typeCount}`);
  const start = text.indexOf("const wasm_elem_segment_expr_t elem_segment_exprs_w2c_engine_e0[] = {");
  const end = text.indexOf("static void init_tables(", start);
  if (start < 0 || end < 0) fail("there is no element segment");
  text =
    text.slice(0, start) + functionTable(text.slice(start, end), { elements, hostRows }) + text.slice(end);
  text = cut(
    text,
    "  wasm_rt_allocate_funcref_table(&instance->w2c_T0,",
    "static void init_elem_instances(",
    "}\n\n",
  );
  text = replaceOnce(text, "  wasm_rt_free_funcref_table(&instance->w2c_T0);\n", "");
  const types = text.indexOf("wasm_rt_func_type_t wasm2c_engine_get_func_type(");
  if (types < 0) fail("there is no look-up of function types");
  const after = text.indexOf("\n}\n", types);
  return text.slice(0, types) + text.slice(after + 3);
}

const DISPATCH =
  / {2}var_i0 = i32_load8_u_default32\(instance->w2c_a_a, \(u64\)\(var_i0\)\);\n +(var_l\d+) = var_i0;\n +var_i1 = 1u;\n +var_i0 -= var_i1;\n +switch \(var_i0\) \{\n((?: +case \d+: goto var_\w+;\n)+) +default: goto (var_\w+);\n +\}\n/g;
const OPCODES_LEAST = 200;

/**
 * Gives the interpreter's loop a jump of its own behind each instruction. The loop loads an opcode, one byte from 1 on, and
 * switches on it; as one jump for all opcodes it is mispredicted for most of them. Copies of the loop's head, each with a
 * jump through a table, are predicted apart: 12 % less time over the compute benchmark, 30 % in a plain loop.
 */
export function threadDispatch(parts) {
  let found = 0;
  for (let at = 0; at < parts.length; at += 1) {
    const text = parts[at];
    const matches = [...text.matchAll(DISPATCH)].filter(
      (match) => match[2].split("\n").length > OPCODES_LEAST,
    );
    if (matches.length > 1) fail("two loops look like the interpreter's");
    if (matches.length === 0) continue;
    parts[at] = threadPart(text, matches[0]);
    found += 1;
  }
  if (found !== 1) fail(`${found} loops look like the interpreter's`);
}

function threadPart(text, match) {
  const [whole, opcode, cases, other] = match;
  const label = /\n {6}(var_L\d+): \n((?:(?!\n *var_[LB]).)*)$/s.exec(text.slice(0, match.index));
  if (label === null) fail("the interpreter's loop has no head");
  const start = text.lastIndexOf("  FUNC_PROLOGUE;\n", match.index);
  const end = text.indexOf("\n}\n", match.index);
  const targets = Array.from({ length: 256 }, () => other);
  for (const [, number, target] of cases.matchAll(/case (\d+): goto (var_\w+);/g))
    targets[Number(number) + 1] = target;
  const table = `  static const void *const engine_dispatch[256] = {${targets.map((name) => `&&${name}`).join(", ")}};\n`;
  const load = whole.slice(0, whole.indexOf("var_i1 = 1u;"));
  const head = `${label[2]}${load}goto *engine_dispatch[${opcode}];`;
  const copy = `{ ${head.replaceAll(/\s+/g, " ")} }`;
  const body = text.slice(match.index + whole.length, end);
  const again = `goto ${label[1]};`;
  if (!body.includes(again) || text.slice(start, match.index).includes(again))
    fail("the interpreter's loop is not closed from behind its head");
  return [
    text.slice(0, start),
    "  FUNC_PROLOGUE;\n",
    table,
    text.slice(start + "  FUNC_PROLOGUE;\n".length, label.index),
    `\n${label[1]}:\n${copy}\n`,
    body.replaceAll(again, copy),
    text.slice(end),
  ].join("");
}

/** The one place that asks for the number of pages: our memory knows its size only. */
export function transformMemorySize(parts) {
  let found = 0;
  for (let at = 0; at < parts.length; at += 1) {
    parts[at] = parts[at].replaceAll("(*instance->w2c_a_a).pages", () => {
      found += 1;
      return "((*instance->w2c_a_a).size >> 16)";
    });
  }
  if (found !== 1) fail(`the number of pages is asked for in ${found} places`);
}

/** Address of the one C string with exactly this text in the module's data. */
function addressOfString(data, message) {
  const wanted = Buffer.from(`${message}\0`);
  const found = [];
  for (const segment of data) {
    const bytes = Buffer.from(segment.bytes);
    for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, at + 1))
      found.push(segment.offset + at);
  }
  if (found.length !== 1) fail(`${found.length} strings "${message}" in the data`);
  return found[0];
}

/** True when some data word is this address: then code could reach the string without naming it. */
function isAddressInData(data, address) {
  const word = Buffer.alloc(4);
  word.writeUInt32LE(address);
  return data.some((segment) => {
    const bytes = Buffer.from(segment.bytes);
    for (let at = bytes.indexOf(word); at >= 0; at = bytes.indexOf(word, at + 1))
      if ((segment.offset + at) % 4 === 0) return true;
    return false;
  });
}

/**
 * Inserts engine_record_failure(failure) where the engine loads the address of the message with which it raises an
 * error. `parts` is a list of texts and is changed in place.
 */
export function noteFailures(parts, data, failures) {
  for (const { message, failure, sites } of failures) {
    const address = addressOfString(data, message);
    if (isAddressInData(data, address)) fail(`the address of "${message}" also stands in a table`);
    let found = 0;
    const load = new RegExp(`^ *var_i\\d+ = ${address}u;$`, "gm");
    for (let at = 0; at < parts.length; at += 1) {
      parts[at] = parts[at].replaceAll(load, (line, position, text) => {
        // The message is an argument of a call that follows within a few lines, in the same block.
        const next = text.slice(position + line.length, position + line.length + 300);
        const call = next.search(/w2c_engine_\w+\(instance, /);
        if (call < 0 || next.slice(0, call).includes("}")) fail(`"${message}" is not an argument of a call`);
        found += 1;
        return `${line} engine_record_failure(${failure});`;
      });
    }
    if (found !== sites)
      fail(
        `"${message}" is raised in ${found} places instead of ${sites}; read them, then correct the number in scripts/native/engine/generate.mjs`,
      );
  }
}

/** The largest constant that is added to an address. */
export function largestOffset(parts) {
  let largest = 0;
  for (const text of parts) {
    for (const [, offset] of text.matchAll(/\(u64\)\(var_\w+\) \+ (\d+)/g))
      largest = Math.max(largest, Number(offset));
  }
  if (largest === 0) fail("no memory access has an offset");
  return largest;
}

/** Export name → C prototype, from the comments in the generated header. */
export function readPrototypes(header) {
  const prototypes = new Map();
  for (const [, name, result, symbol] of header.matchAll(
    /^\/\* export: '(\S+)' \*\/\n(\w+) (w2c_engine_\w+)\(/gm,
  ))
    prototypes.set(name, { result, symbol });
  return prototypes;
}
