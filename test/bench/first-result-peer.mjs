// The peer's process for "import → first result": quickjs-emscripten, from before its import to the first script's result,
// in the caller's own process and without confinement.
const start = process.hrtime.bigint();
const { getQuickJS } = await import("quickjs-emscripten");
const context = (await getQuickJS()).newContext();
const handle = context.unwrapResult(context.evalCode("1 + 1"));
const value = context.dump(handle);
const ms = Number(process.hrtime.bigint() - start) / 1e6;
if (value !== 2) throw new Error(String(value));
handle.dispose();
context.dispose();
process.stdout.write(String(ms));
