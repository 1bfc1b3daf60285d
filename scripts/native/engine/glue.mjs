// Names for the engine's minified exports and imports, taken from the JavaScript that ships beside the .wasm.
//
// Called by engine/generate.mjs. That JavaScript is parsed, never run. Every needed name must be found exactly once
// and with the signature that our C was written for; a missing, doubled or additional one stops the build: it means
// that the engine's version changed and that somebody has to read what changed.

import { parse } from "acorn";
import { BuildError } from "../compile.mjs";

/**
 * The imports by their C name in imports.c: how the glue's implementation is recognised, and its signature.
 * The memory (`q` in the glue, imported under a name of its own) is not a function and not listed.
 */
const IMPORTS = [
  { name: "assert_fail", marker: /Assertion failed/, signature: "i32,i32,i32,i32->" },
  { name: "abort", marker: /^\(\)=>\w+\(""\)$/, signature: "->" },
  { name: "keepalive_clear", marker: /^\(\)=>\{\w+=!1;\w+=0\}$/, signature: "->" },
  { name: "localtime", marker: /getSeconds\(\)/, signature: "i64,i32->" },
  { name: "setitimer", marker: /clearTimeout\(/, signature: "i32,f64->i32" },
  {
    name: "tzset",
    marker: /^(?!.*getSeconds)(?=.*getTimezoneOffset\(\))/s,
    signature: "i32,i32,i32,i32->",
  },
  { name: "date_now", marker: /^\(\)=>Date\.now\(\)$/, signature: "->f64" },
  { name: "resize_heap", marker: /\.grow\(/, signature: "i32->i32" },
  { name: "environ_get", marker: /for\(\w+ of \w+\(\)\)/, signature: "i32,i32->i32" },
  { name: "environ_sizes_get", marker: /for\(var \w+ of \w+\)/, signature: "i32,i32->i32" },
  { name: "fd_close", marker: /^\(\)=>52$/, signature: "i32->i32" },
  { name: "fd_seek", marker: /^function\(\)\{return 70\}$/, signature: "i32,i64,i32,i32->i32" },
  { name: "fd_write", marker: /\.decode\(/, signature: "i32,i32,i32,i32->i32" },
  { name: "call_function", marker: /callbacks\.callFunction\(/, signature: "i32,i32,i32,i32,i32->i32" },
  { name: "should_interrupt", marker: /callbacks\.shouldInterrupt\(/, signature: "i32->i32" },
  { name: "load_module", marker: /callbacks\.loadModuleSource\(/, signature: "i32,i32,i32->i32" },
  {
    name: "normalize_module",
    marker: /callbacks\.normalizeModule\(/,
    signature: "i32,i32,i32,i32->i32",
  },
  { name: "free_host_ref", marker: /callbacks\.freeHostRef\(/, signature: "i32,i32->" },
];

/** The `proc_exit` import is a named function in the glue: the one import that is a plain identifier and no memory. */
const PROC_EXIT = { name: "proc_exit", signature: "i32->" };

/** Exports that our C calls; the others are named too, but may come and go. */
const NEEDED_EXPORTS = [
  "malloc",
  "free",
  "QTS_ArgvGetJSValueConstPointer",
  "QTS_Call",
  "QTS_DupValuePointer",
  "QTS_Eval",
  "QTS_ExecutePendingJob",
  "QTS_FreeCString",
  "QTS_FreeValuePointer",
  "QTS_GetArrayBuffer",
  "QTS_GetArrayBufferLength",
  "QTS_GetFalse",
  "QTS_GetFloat64",
  "QTS_GetGlobalObject",
  "QTS_GetProp",
  "QTS_GetString",
  "QTS_GetTrue",
  "QTS_GetUndefined",
  "QTS_IsJobPending",
  "QTS_NewArrayBuffer",
  "QTS_NewContext",
  "QTS_NewFloat64",
  "QTS_NewFunction",
  "QTS_NewObject",
  "QTS_NewRuntime",
  "QTS_NewString",
  "QTS_ResolveException",
  "QTS_RuntimeEnableInterruptHandler",
  "QTS_RuntimeSetMaxStackSize",
  "QTS_SetProp",
];

function fail(what) {
  throw new BuildError(
    `flowcell: the engine's JavaScript glue does not look as expected: ${what}. The engine package changed its version or layout; compare it with scripts/native/engine/glue.mjs.`,
  );
}

function* nodes(node) {
  if (Array.isArray(node)) {
    for (const one of node) yield* nodes(one);
  } else if (node !== null && typeof node === "object" && typeof node.type === "string") {
    yield node;
    for (const value of Object.values(node)) yield* nodes(value);
  }
}

/** `object.property` with plain identifiers, or undefined. */
function memberOf(node) {
  if (node.type !== "MemberExpression" || node.computed || node.object.type !== "Identifier")
    return undefined;
  return { object: node.object.name, property: node.property.name };
}

/** `c._QTS_Eval = b.pa`, for every such assignment: readable name → minified export. */
function readExports(all, wasm) {
  const exports = new Map();
  for (const node of all) {
    if (node.type !== "AssignmentExpression" || node.operator !== "=") continue;
    const to = memberOf(node.left);
    const from = memberOf(node.right);
    if (to === undefined || from === undefined || !to.property.startsWith("_")) continue;
    if (!wasm.exports.has(from.property)) fail(`${to.property} is said to be the export ${from.property}`);
    const name = to.property.slice(1);
    if (exports.has(name)) fail(`the export ${name} is named twice`);
    exports.set(name, from.property);
  }
  for (const name of NEEDED_EXPORTS) if (!exports.has(name)) fail(`there is no export ${name}`);
  return exports;
}

/** The one export without arguments and result that the glue calls on the instance: the module's constructors. */
function readConstructors(all, wasm) {
  const found = new Set();
  for (const node of all) {
    if (node.type !== "CallExpression" || node.arguments.length !== 0) continue;
    const callee = memberOf(node.callee);
    if (callee !== undefined && wasm.exports.get(callee.property)?.signature === "->")
      found.add(callee.property);
  }
  if (found.size !== 1) fail(`${found.size} exports look like the constructors`);
  return [...found][0];
}

/** The object literal whose keys are exactly the wasm's imports: key → source text of the value. */
function readImportObject(all, wasm, text) {
  const wanted = wasm.imports
    .map((one) => one.name)
    .sort()
    .join();
  const found = all.filter(
    (node) =>
      node.type === "ObjectExpression" &&
      node.properties
        .map((one) => one.key?.name)
        .sort()
        .join() === wanted,
  );
  if (found.length !== 1) fail(`${found.length} object literals have the keys ${wanted}`);
  return new Map(
    found[0].properties.map((one) => [
      one.key.name,
      {
        node: one.value,
        text: text.slice(one.value.start, one.value.end).replaceAll("\n", ""),
      },
    ]),
  );
}

function readImports(all, wasm, text) {
  const object = readImportObject(all, wasm, text);
  const imports = new Map();
  const claim = (wanted, keys) => {
    if (keys.length !== 1) fail(`${keys.length} imports look like ${wanted.name}`);
    const [key] = keys;
    if (imports.has(key)) fail(`the import ${key} looks like ${imports.get(key)} and ${wanted.name}`);
    const entry = wasm.imports.find((one) => one.name === key);
    if (entry.signature !== wanted.signature)
      fail(`the import ${wanted.name} has the signature ${entry.signature}, not ${wanted.signature}`);
    imports.set(key, wanted.name);
  };
  for (const wanted of IMPORTS) {
    claim(
      wanted,
      [...object].filter(([, value]) => wanted.marker.test(value.text)).map(([key]) => key),
    );
  }
  const memory = wasm.imports.filter((one) => one.kind === "memory").map((one) => one.name);
  claim(
    PROC_EXIT,
    [...object]
      .filter(([key, value]) => value.node.type === "Identifier" && !memory.includes(key))
      .map(([key]) => key),
  );
  for (const { name, module } of wasm.imports) {
    if (module !== "a") fail(`there is an import from module ${module}`);
    if (!imports.has(name) && !memory.includes(name)) fail(`the import ${name} is of an unknown kind`);
  }
  return imports;
}

/**
 * Parameter names of the exports from the package's type declarations: `QTS_Call: (ctx: JSContextPointer, …) => …`.
 * They only make the generated header readable.
 */
function readParameters(declarations) {
  const parameters = new Map();
  for (const [, name, list] of declarations.matchAll(/^\s+(QTS_\w+): \(([^)]*)\) =>/gm)) {
    const names = list === "" ? [] : list.split(",").map((one) => one.slice(0, one.indexOf(":")).trim());
    parameters.set(name, names);
  }
  return parameters;
}

/** Resolves to { exports: Map name → minified, constructors: minified, imports: Map minified → name, parameters }. */
export function readGlue({ text, declarations, wasm }) {
  const all = [...nodes(parse(text, { ecmaVersion: "latest", sourceType: "script" }))];
  return {
    exports: readExports(all, wasm),
    constructors: readConstructors(all, wasm),
    imports: readImports(all, wasm, text),
    parameters: readParameters(declarations),
  };
}
