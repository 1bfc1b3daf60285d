// The benchmark's side of codemode: what an agent pays for one script, measured through the library as its users call it.
// Also a program: `node codemode.mjs` prints the figures that the peers are compared by, measured the same way in a process
// of its own.
import { pathToFileURL } from "node:url";
import { createCodemode } from "@flowcell/codemode";
import { median, percentile, samples, timed, warmUp } from "./statistics.mjs";

const tools = { echo: async (value) => value };

async function completed(codemode, code) {
  const result = await codemode.execute(code);
  if (!result.ok) throw new Error(`${result.status}: ${result.error.message}`);
  return result;
}

/** Time between two scripts of an agent: the spares are there again, as they are when a model writes in between. */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function warm(isolation, count, restMs) {
  const codemode = await createCodemode({ tools, isolation });
  await warmUp(async () => {
    await completed(codemode, "return 1+1");
    if (restMs > 0) await pause(restMs);
  });
  const times = [];
  for (let i = 0; i < count; i += 1) {
    times.push(await timed(() => completed(codemode, "return 1+1")));
    if (restMs > 0) await pause(restMs);
  }
  await codemode.close();
  return { p50: median(times), p99: percentile(times, 99) };
}

export const warmSingleUse = (count) => warm("process", count, 30);
export const warmReset = (count) => warm("reset", count, 0);

async function calls(code, count) {
  const codemode = await createCodemode({ tools, isolation: "reset" });
  await warmUp(() => completed(codemode, code));
  const times = await samples(count, () => completed(codemode, code));
  await codemode.close();
  return { p50: median(times), p99: percentile(times, 99) };
}

export const sequentialCalls = (count) =>
  calls("for (let i = 0; i < 100; i++) await tools.echo(i); return 1", count);
export const parallelCalls = (count) =>
  calls("return (await Promise.all(Array.from({length: 500}, (_, i) => tools.echo(i)))).length", count);

/** Sixty scripts at the same time on a fresh runtime: a full pool is a queue, not an error. */
export async function atOnce() {
  const codemode = await createCodemode({ tools });
  const results = [];
  const ms = await timed(async () => {
    const asked = Array.from({ length: 60 }, (_, i) => codemode.execute(`return await tools.echo(${i})`));
    results.push(...(await Promise.all(asked)));
  });
  await codemode.close();
  return { succeeded: results.filter(({ ok }) => ok).length, ms };
}

async function throughput(isolation, total) {
  const codemode = await createCodemode({ tools, isolation });
  await warmUp(() => completed(codemode, "return 1+1"), 4);
  let next = 0;
  const loop = async () => {
    while (next < total) {
      next += 1;
      await completed(codemode, "return 1+1");
    }
  };
  const ms = await timed(() => Promise.all(Array.from({ length: 4 }, loop)));
  await codemode.close();
  return { perSecond: (total * 1000) / ms };
}

export const singleUsePerSecond = (total) => throughput("process", total);
export const resetPerSecond = (total) => throughput("reset", total);

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const codemode = await createCodemode({ tools, isolation: "process" });
  const execute = (code) => completed(codemode, code);
  for (let i = 0; i < 10; i += 1) {
    await execute("return 1+1");
    await pause(30);
  }
  const times = [];
  for (let i = 0; i < 50; i += 1) {
    times.push(await timed(() => execute("return 1+1")));
    await pause(30);
  }
  const hundred = await samples(20, () =>
    execute("for (let i = 0; i < 100; i++) await tools.echo(i); return 1"),
  );
  await codemode.close();
  process.stdout.write(JSON.stringify({ warmP50: median(times), hundredCallsP50: median(hundred) }));
}
