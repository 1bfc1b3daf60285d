// A process that owns a store. Arguments: mode, path of the store, path of the store's thread. Modes:
//   loop    takes four runs and advances each, unit after unit; prints "ok RUN N" for each acknowledged unit, or
//           "failed NAME MESSAGE" when the store fails, then what a later commit and read say, and ends with 75
//   hold    opens the store, prints "open" and stays
//   idle    commits 50 units without waiting, prints each acknowledgement, and has nothing else to do
//   slow    advances one run while it counts turns of its event loop; prints "turns N" for each acknowledged unit
//   load    prints which libraries the process has loaded before and after the store is opened

import { writeSync } from "node:fs";
import { type Fence, openSqliteStore, type Store } from "../../packages/journal/src/index.js";
import { runIds, unitOf } from "./shape.js";

const [mode = "", path = "", threadPath = ""] = process.argv.slice(2);

function say(line: string): void {
  writeSync(1, `${line}\n`);
}

/** Makes the run when it is not there, and takes it; answers the hold and the next unit. */
async function take(store: Store, runId: string): Promise<{ readonly fence: Fence; readonly next: number }> {
  const owner = `process ${process.pid}`;
  if ((await store.run(runId)) === null) {
    const run = {
      runId,
      flow: `flow of ${runId}`,
      versionHash: "v",
      trigger: { kind: "manual", by: "test" },
      deduplicationKey: runId,
      concurrencyKey: "",
      input: { text: "1", devalue: false, attachments: [] },
      seed: "s",
      guestStartMs: 0,
      createdAt: 0,
      notBefore: 0,
      deadlineMs: 1,
      attempt: 1,
    } as const;
    await store.commit({ operations: [{ kind: "createRun", run }] });
  }
  const claimed = await store.commit({ operations: [{ kind: "claim", runId, owner }] });
  const result = claimed.ok ? claimed.results[0] : undefined;
  if (result?.kind !== "claim") throw new Error("the run cannot be taken");
  const next = (await store.run(runId))?.nextOrder ?? 0;
  return { fence: { runId, owner, generation: result.generation }, next };
}

async function advance(store: Store, runId: string, acknowledged: (n: number) => void): Promise<never> {
  const { fence, next } = await take(store, runId);
  for (let n = next; ; n += 1) {
    const result = await store.commit(unitOf(fence, n));
    if (!result.ok) throw new Error(`unit ${n} was refused: ${result.message}`);
    acknowledged(n);
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name} ${error.message}` : String(error);
}

async function loop(): Promise<void> {
  const store = await openSqliteStore({ path, threadPath });
  const ends = await Promise.allSettled(
    runIds.map((runId) => advance(store, runId, (n) => say(`ok ${runId} ${n}`))),
  );
  for (const end of ends) if (end.status === "rejected") say(`failed ${describe(end.reason)}`);
  for (const later of [store.commit({ operations: [] }), store.run("run_0")]) {
    await later.then(
      () => say("later ok"),
      (error: unknown) => say(`later ${describe(error)}`),
    );
  }
  await store.close();
  process.exitCode = 75;
}

async function main(): Promise<void> {
  switch (mode) {
    case "loop":
      return loop();
    case "hold": {
      await openSqliteStore({ path, threadPath });
      say("open");
      setInterval(() => undefined, 60_000);
      return;
    }
    case "idle": {
      const store = await openSqliteStore({ path, threadPath });
      const { fence } = await take(store, "run_0");
      for (let n = 0; n < 50; n += 1) {
        void store.commit(unitOf(fence, n)).then((result) => say(result.ok ? `ok run_0 ${n}` : "refused"));
      }
      return;
    }
    case "slow": {
      const store = await openSqliteStore({ path, threadPath });
      let turns = 0;
      setInterval(() => {
        turns += 1;
      }, 10);
      await advance(store, "run_0", () => {
        say(`turns ${turns}`);
        turns = 0;
      });
      return;
    }
    case "load": {
      const loaded = (): string => {
        // Node's own report, whose format is documented.
        const { sharedObjects } = process.report.getReport() as { readonly sharedObjects: readonly string[] };
        return sharedObjects.some((name) => name.includes("sqlite")) ? "sqlite" : "none";
      };
      say(`before ${loaded()}`);
      const store = await openSqliteStore({ path, threadPath });
      say(`after ${loaded()}`);
      await store.close();
      return;
    }
    default:
      throw new Error(`unknown mode ${mode}`);
  }
}

main().catch((error: unknown) => {
  say(`refused ${describe(error)}`);
  process.exitCode = 1;
});
