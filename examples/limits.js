// What happens at a limit: the script cannot catch the end of its CPU time, and everything else is told in the result.
//
//   flowcell run examples/limits.js --limit cpuMs=200
//   flowcell run examples/limits.js --input '"memory"'
//   flowcell run examples/limits.js --input '"stack"'
//   flowcell run examples/limits.js --input '"wait"' --limit wallMs=300
//
// Each ends with exit code 4 and names the limit, except the caught ones, which show what a script may handle itself.

const ways = {
  /** Never ends and swallows every exception it can. */
  cpu() {
    for (;;) {
      try {
        while (true);
      } catch {
        console.log("never printed: the end of the budget is not an exception");
      }
    }
  },
  /** Fills the memory. */
  memory() {
    const kept = [];
    for (;;) kept.push(new Array(10_000).fill("x"));
  },
  /** Calls itself for ever. */
  stack() {
    const dive = () => dive() + 1;
    return dive();
  },
  /** Waits longer than the run may last; waiting costs no CPU time. */
  async wait(host) {
    await host.sleep(60_000);
  },
  /** Runs out of stack, catches it and goes on: that is allowed. */
  caught() {
    const dive = () => dive() + 1;
    try {
      return dive();
    } catch (error) {
      return `caught: ${error.message}`;
    }
  },
};

export default async function (way = "cpu", host) {
  const run = ways[way];
  if (run === undefined)
    throw new RangeError(`no such way: ${way}; there are ${Object.keys(ways).join(", ")}`);
  console.log(`trying ${way}`);
  return await run(host);
}
