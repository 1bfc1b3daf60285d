// Preloaded into the npm package's wasm2c (node --require): gives that tool a stack that holds this module.
//
// The wasm2c of npm is itself WebAssembly with a stack of 64 KiB and dies of "memory access out of bounds" on deeply
// nested blocks, of which the engine has many. The instance's memory is grown and its stack pointer moved to the new
// top, through the tool's own exported stack allocation (a negative size moves the pointer up). The two minified
// export names are those of wabt 1.0.39 and are checked by what they are and do.

const MEMORY_EXPORT = "o";
const STACK_ALLOCATE_EXPORT = "r";
const STACK_BYTES = 256 * 1024 * 1024;
const PAGE_BYTES = 65536;

const instantiate = WebAssembly.instantiate;

WebAssembly.instantiate = async (source, imports) => {
  const result = await instantiate(source, imports);
  const memory = result.instance.exports[MEMORY_EXPORT];
  const allocate = result.instance.exports[STACK_ALLOCATE_EXPORT];
  const isExpected =
    memory instanceof WebAssembly.Memory && typeof allocate === "function" && allocate.length === 1;
  const before = isExpected ? allocate(0) : -1;
  if (!isExpected || before <= 0 || before >= memory.buffer.byteLength || allocate(16) !== before - 16) {
    throw new Error(
      `wasm2c: its exports ${MEMORY_EXPORT} (memory) and ${STACK_ALLOCATE_EXPORT} (stack allocation) are not what wabt 1.0.39 has; adapt scripts/native/engine/wasm2c-stack.cjs to the installed wabt`,
    );
  }
  memory.grow(STACK_BYTES / PAGE_BYTES);
  const top = memory.buffer.byteLength - PAGE_BYTES;
  if (allocate((before - 16 - top) | 0) !== top) throw new Error("wasm2c: its stack pointer does not move");
  return result;
};
