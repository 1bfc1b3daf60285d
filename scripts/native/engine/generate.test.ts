// The engine's generator refuses what it was not written for: glue, module or wasm2c output that drifted stops the build
// with the name of what is missing, instead of giving an engine that nobody looked at.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const engine = `${root}node_modules/@jitl/quickjs-wasmfile-release-sync/dist/`;

interface Wasm {
  readonly imports: readonly { readonly name: string; readonly kind: string; readonly signature?: string }[];
  readonly types: readonly string[];
  readonly data: readonly { readonly offset: number; readonly bytes: Uint8Array }[];
}

interface Glue {
  readonly exports: ReadonlyMap<string, string>;
  readonly imports: ReadonlyMap<string, string>;
  readonly constructors: string;
}

const beside = (name: string): string => new URL(name, import.meta.url).href;

// Untyped JavaScript of the build.
const { readWasm } = (await import(beside("wasm-module.mjs"))) as {
  readWasm(bytes: Uint8Array, name: string): Wasm;
};
const { readGlue } = (await import(beside("glue.mjs"))) as {
  readGlue(input: { text: string; declarations: string; wasm: Wasm }): Glue;
};
const { noteFailures, threadDispatch, transformMemorySize, largestOffset } = (await import(
  beside("transform.mjs")
)) as {
  noteFailures(
    parts: string[],
    data: Wasm["data"],
    failures: readonly { message: string; failure: number; sites: number }[],
  ): void;
  threadDispatch(parts: string[]): void;
  transformMemorySize(parts: string[]): void;
  largestOffset(parts: readonly string[]): number;
};
const { cName, findWasm2c } = (await import(beside("generate.mjs"))) as {
  cName(name: string): string;
  findWasm2c(root: string, env: NodeJS.ProcessEnv): Promise<{ identity: string }>;
};

const bytes = readFileSync(`${engine}emscripten-module.wasm`);
const text = readFileSync(`${engine}emscripten-module.cjs`, "utf8");
const declarations = readFileSync(`${engine}ffi.d.ts`, "utf8");
const wasm = readWasm(bytes, "module");

describe("the module", () => {
  it("is read: its types, imports and data", () => {
    expect(wasm.types).toContain("i32,i64,i64,i32,i32->");
    expect(wasm.imports.filter((one) => one.kind === "function")).toHaveLength(19);
  });

  it.each([
    ["that is none", Buffer.from("not wasm at all"), /no WebAssembly module/],
    ["that is cut off", bytes.subarray(0, 5000), /ends early|another length/],
  ])("%s is refused", (_, given, message) => {
    expect(() => readWasm(given, "module")).toThrow(message);
  });
});

describe("the glue", () => {
  const read = (from: string, to: string): Glue => {
    expect(text).toContain(from);
    return readGlue({ text: text.replace(from, to), declarations, wasm });
  };

  it("gives every import and the exports their names", () => {
    const glue = readGlue({ text, declarations, wasm });
    expect(glue.exports.get("QTS_Eval")).toBe("pa");
    expect(glue.constructors).toBe("u");
    expect([...glue.imports.values()].sort()).toContain("call_function");
    expect(glue.imports.size).toBe(19);
  });

  it.each([
    ["an export is missing", "c._QTS_Eval=b.pa;", "", /no export QTS_Eval/],
    ["an export is named twice", "c._QTS_Eval=b.pa;", "c._QTS_Call=b.pa;", /QTS_Call is named twice/],
    [
      "an export does not exist",
      "c._QTS_Eval=b.pa;",
      "c._QTS_Eval=b.zzz;",
      /QTS_Eval is said to be the export zzz/,
    ],
    ["an import is unknown", "p:()=>Date.now()", "p:()=>performance.now()", /0 imports look like date_now/],
    ["two imports look alike", "d:()=>52", "d:()=>Date.now()", /2 imports look like date_now/],
    [
      "an import has another signature",
      'q:()=>M(""),l:()=>{Q=!1;S=0}',
      'l:()=>M(""),q:()=>{Q=!1;S=0},r2:1',
      /object literals have the keys/,
    ],
    ["the constructors are not called", "Z.u();", "", /0 exports look like the constructors/],
  ])("is refused when %s", (_, from, to, message) => {
    expect(() => read(from, to)).toThrow(message);
  });

  it("is refused when two imports of different signatures changed places", () => {
    expect(() => read("d:()=>52", "d:function(){return 70}")).toThrow(/0 imports look like fd_close/);
  });
});

describe("failures", () => {
  const data = [{ offset: 1000, bytes: Buffer.from("x\0stack overflow\0y\0\0\0") }];
  const site = "  var_i1 = 1002u;\n  var_i2 = 0u;\n  w2c_engine_f1(instance, var_i0, var_i1, var_i2);\n";
  const failure = (sites: number) => [{ message: "stack overflow", failure: 2, sites }];

  it("are noted where the message is loaded", () => {
    const parts = [site, `if (x) {\n${site}}\n`];
    noteFailures(parts, data, failure(2));
    expect(parts[0]).toContain("var_i1 = 1002u; engine_record_failure(2);");
    expect(parts[1]).toContain("engine_record_failure(2);");
  });

  it.each([
    ["in fewer places than known", [site], data, 2, /raised in 1 places instead of 2/],
    ["in more places than known", [site, site], data, 1, /raised in 2 places instead of 1/],
    ["when the message is gone", [site], [{ offset: 0, bytes: Buffer.from("nothing\0") }], 1, /0 strings/],
    ["when the message is there twice", [site], [...data, ...data], 1, /2 strings/],
    [
      "when a table holds its address",
      [site],
      [...data, { offset: 2000, bytes: Buffer.from([0xea, 3, 0, 0]) }],
      1,
      /also stands in a table/,
    ],
    ["when it is not given to a call", ["  var_i1 = 1002u;\n  }\n"], data, 1, /not an argument of a call/],
  ])("stop the build %s", (_, parts, given, sites, message) => {
    expect(() => noteFailures([...parts], given, failure(sites))).toThrow(message);
  });
});

describe("the interpreter's loop", () => {
  const cases = Array.from({ length: 243 }, (_, at) => `          case ${at}: goto var_B${at};`).join("\n");
  const loop = (
    label: string,
    again = label,
  ): string => `u64 w2c_engine_f1(w2c_engine* instance, u32 var_p0) {
  FUNC_PROLOGUE;
  u32 var_i0, var_i1;
      ${label}: 
        var_i0 = var_l21;
        var_i0 = i32_load8_u_default32(instance->w2c_a_a, (u64)(var_i0));
        var_l22 = var_i0;
        var_i1 = 1u;
        var_i0 -= var_i1;
        switch (var_i0) {
${cases}
          default: goto var_B300;
        }
        var_B0:;
        goto ${again};
        var_B300:;
}
`;

  it("gets a jump behind each instruction", () => {
    const parts = ["other", loop("var_L27")];
    threadDispatch(parts);
    expect(parts[1]).not.toContain("switch");
    expect(parts[1]).not.toContain("goto var_L27");
    expect(parts[1]?.match(/goto \*engine_dispatch\[var_l22\];/g)).toHaveLength(2);
    expect(parts[1]).toMatch(
      /engine_dispatch\[256\] = \{&&var_B300, &&var_B0, &&var_B1, .*&&var_B242, &&var_B300/,
    );
  });

  it.each([
    ["is not there", ["nothing"], /0 loops/],
    ["is there twice", [loop("var_L27"), loop("var_L28")], /2 loops/],
    ["is never closed", [loop("var_L27", "var_B0")], /not closed/],
  ])("stops the build when it %s", (_, parts, message) => {
    expect(() => threadDispatch([...parts])).toThrow(message);
  });
});

describe("the generated code", () => {
  it("must ask for the memory's size in the one known place", () => {
    const parts = ["x = (*instance->w2c_a_a).pages;"];
    transformMemorySize(parts);
    expect(parts).toEqual(["x = ((*instance->w2c_a_a).size >> 16);"]);
    expect(() => transformMemorySize(["nothing"])).toThrow(/asked for in 0 places/);
  });

  it("has its largest offset measured", () => {
    expect(largestOffset(["(u64)(var_i0) + 8u", "(u64)(var_i1) + 88564, var_i2"])).toBe(88564);
    expect(() => largestOffset(["none"])).toThrow(/no memory access/);
  });

  it("has names that C can read", () => {
    expect(
      [
        "QTS_RuntimeSetMaxStackSize",
        "QTS_GetOwnPropertyNames",
        "QTS_NewFloat64",
        "QTS_FreeCString",
        "malloc",
      ].map(cName),
    ).toEqual([
      "qts_runtime_set_max_stack_size",
      "qts_get_own_property_names",
      "qts_new_float64",
      "qts_free_c_string",
      "engine_malloc",
    ]);
  });

  it("comes from the pinned wasm2c, or from one that is named and new enough", async () => {
    expect((await findWasm2c(root, {})).identity).toBe("wabt 1.0.39");
    await expect(findWasm2c(root, { WASM2C: "/bin/false" })).rejects.toThrow();
    await expect(findWasm2c(root, { WASM2C: "/bin/echo" })).rejects.toThrow(/1.0.32 or later/);
  });
});
