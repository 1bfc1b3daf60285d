// What this machine charges for what a cell is made of, so that the figures beside it can be read: a first touch of a page,
// a process that does nothing. On a virtual machine without nested paging a page costs some fifty times what it costs on
// plain hardware, and a fresh process touches a few hundred.
import { spawnSync } from "node:child_process";
import { median, samples } from "./statistics.mjs";

const PAGE = 4096;

/** Microseconds for the first write to a page of fresh memory. */
function pageFaultUs() {
  const pages = 4096;
  const times = [];
  for (let round = 0; round < 5; round += 1) {
    const memory = new Uint8Array(new SharedArrayBuffer(pages * PAGE));
    const start = process.hrtime.bigint();
    for (let at = 0; at < memory.length; at += PAGE) memory[at] = 1;
    times.push(Number(process.hrtime.bigint() - start) / 1000 / pages);
  }
  return median(times);
}

/** Milliseconds to start /bin/true with Node's own means and wait for its end. */
async function processMs() {
  return median(
    await samples(30, () => {
      spawnSync("/bin/true");
    }),
  );
}

/** Milliseconds for a Node that does nothing, from outside. */
async function nodeMs() {
  return median(
    await samples(10, () => {
      spawnSync(process.execPath, ["-e", "0"]);
    }),
  );
}

export async function machine() {
  return { pageFaultUs: pageFaultUs(), processMs: await processMs(), nodeMs: await nodeMs() };
}
