// One process of the benchmark's "import → first result": prints the milliseconds from before the import of the
// library to the first script's result.
const start = process.hrtime.bigint();
const { createRuntime } = await import("@flowcell/flowcell");
const runtime = createRuntime();
const result = await runtime.run({ source: "export default async () => 1 + 1" });
const ms = Number(process.hrtime.bigint() - start) / 1e6;
if (!result.ok || result.value !== 2) throw new Error(JSON.stringify(result));
await runtime.close();
process.stdout.write(String(ms));
