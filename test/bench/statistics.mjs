// Small statistics for the benchmark: percentiles over samples, in the unit of the samples.

/** The p-th percentile (0 … 100) of the samples, by the nearest rank. */
export function percentile(samples, p) {
  if (samples.length === 0) throw new Error("no samples");
  const sorted = [...samples].sort((a, b) => a - b);
  const rank = Math.max(1, Math.ceil((p / 100) * sorted.length));
  return sorted[rank - 1];
}

export function median(samples) {
  return percentile(samples, 50);
}

/** Times `work` in milliseconds. */
export async function timed(work) {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e6;
}

/** Runs `work` `count` times and returns the milliseconds of each. */
export async function samples(count, work) {
  const out = [];
  for (let i = 0; i < count; i += 1) out.push(await timed(() => work(i)));
  return out;
}

/**
 * Runs `work` over and over, `concurrency` at a time, until the parent's own code is compiled: what is promised of warm
 * activations is promised of a parent that has been at it for a moment, and with `--quick` most samples would be of Node
 * compiling.
 */
export async function warmUp(work, concurrency = 1, ms = 2000) {
  const end = performance.now() + ms;
  let next = 0;
  const loop = async () => {
    while (performance.now() < end) {
      next += 1;
      await work(next);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, loop));
}
