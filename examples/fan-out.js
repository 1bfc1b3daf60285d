// Many host calls at once: Promise.all starts twenty, each answered on its own; the first answers, a failing one and a
// late one are handled with the same tools as anywhere.
//
//   flowcell run examples/fan-out.js
//   flowcell run examples/fan-out.js --trace
//
// host.sleep stands for any call that waits for something outside. While a script waits it uses no CPU time.

async function job(host, id, ms) {
  await host.sleep(ms);
  return { id, ms };
}

export default async function (input, host) {
  const count = input?.count ?? 20;
  const begun = Date.now();
  const jobs = Array.from({ length: count }, (_, id) => job(host, id, 20 + (id % 5) * 10));

  const first = await Promise.race(jobs);
  console.log(`first answer: job ${first.id}`);

  const results = await Promise.all(jobs);
  const together = Date.now() - begun;
  const oneByOne = results.reduce((sum, { ms }) => sum + ms, 0);

  const [refused] = await Promise.allSettled([host.sleep(-1)]);
  console.warn(`refused on purpose: ${refused.reason.code}`);

  const late = await Promise.race([
    host.sleep(60_000).then(() => "slow"),
    new Promise((resolve) => setTimeout(resolve, 10, "gave up")),
  ]);
  return {
    jobs: results.length,
    oneByOneMs: oneByOne,
    faster: together < oneByOne,
    refused: refused.reason.code,
    late,
  };
}
