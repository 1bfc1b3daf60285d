// A Node process with a pool in it, for lifecycle.test.ts: what becomes of the process, and of the workers, when it ends
// in the way that its argument names. Prints the workers' pids, one line.
import { Pool } from "../../packages/pool/src/index.js";
import { Liars, request } from "./liars.js";

const liars = new Liars();
const how = process.argv[2];
const pool = new Pool(liars.backend("honest"), { spares: 2, workersMax: 4 });

async function main(): Promise<void> {
  await pool.ready();
  const first = await pool.activate(request("return 1"));
  await pool.ready();
  const spares = await Promise.all(["b", "c"].map((flow) => pool.activate(request("return 1", { flow }))));
  process.stdout.write(`${[first, ...spares].map(({ worker }) => worker?.pid).join(" ")}\n`);
  // A symbolic link is all that is needed while the workers run.
  liars.remove();
  switch (how) {
    case "idle":
      return; // nothing keeps the process
    case "exit":
      process.exit(0);
      break;
    case "throw":
      setImmediate(() => {
        throw new Error("uncaught");
      });
      break;
    case "waits":
      // The one thing that may keep it: somebody waits for an answer.
      void pool.activate(request("pause 300\nreturn 1", { flow: "b" })).then(({ status }) => {
        process.stdout.write(`${status}\n`);
      });
      break;
    case "spins":
      void pool.activate(request("spin", { flow: "b" }));
      process.stdout.write("spinning\n");
      break;
    default:
      await pool.close();
      process.stdout.write(
        `${process
          .getActiveResourcesInfo()
          .filter((name) => name !== "PipeWrap")
          .join(" ")}\n`,
      );
  }
}

await main();
