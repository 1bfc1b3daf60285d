/**
 * The thread of a store: the only one that touches the disk, so that the event loop of the process never waits for it.
 * Started by `store.ts`; trusts its messages. Everything that waits when it looks is taken into one transaction, at most
 * `batchMax` requests at a time.
 */

import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { StoreFailure, StoreHeld, StoreUnreadable } from "../store.js";
import { openDatabase } from "./database.js";
import { sqliteCode } from "./driver.js";
import type { Reply, Request, ThreadData } from "./messages.js";
import { StoreWorker } from "./worker.js";

const batchMax = 1024;

const port = parentPort;
if (port === null) throw new Error("thread.ts is not a program; a store starts it as its thread");

function reply(message: Reply): void {
  port?.postMessage(message);
}

function describe(error: unknown): string {
  const code = sqliteCode(error);
  const text = error instanceof Error ? error.message : String(error);
  return code === null ? text : `${text} (${code})`;
}

function refusalOf(error: unknown): Reply {
  for (const known of [StoreHeld, StoreUnreadable, StoreFailure]) {
    if (error instanceof known) {
      const name = error.name as Extract<Reply, { readonly kind: "refused" }>["error"]; // the three classes' own names
      return { kind: "refused", error: name, message: error.message };
    }
  }
  return { kind: "refused", error: "StoreFailure", message: describe(error) };
}

async function serve(data: ThreadData, messages: NonNullable<typeof port>): Promise<void> {
  const db = await openDatabase(data);
  const worker = new StoreWorker(db);
  let failed = false;

  const fail = (error: unknown): void => {
    failed = true;
    reply({ kind: "failed", message: describe(error) });
  };

  messages.on("message", (first: readonly Request[]) => {
    if (failed) return;
    let waiting = [...first];
    try {
      while (waiting.length > 0) {
        while (waiting.length < batchMax) {
          const more = receiveMessageOnPort(messages) as { readonly message: readonly Request[] } | undefined; // from store.ts
          if (more === undefined) break;
          waiting.push(...more.message);
        }
        const batch = waiting.slice(0, batchMax);
        waiting = waiting.slice(batchMax);
        const answers = worker.work(batch);
        const closing = batch.some(({ question }) => question.kind === "close");
        if (closing) worker.close();
        reply({ kind: "answers", answers });
        if (closing) {
          messages.close();
          return;
        }
        worker.tidy(waiting.length === 0);
      }
    } catch (error) {
      fail(error);
    }
  });
  reply({ kind: "open" });
}

serve(workerData as ThreadData, port).catch((error: unknown) => {
  // what store.ts started it with
  reply(refusalOf(error));
  port.close();
});
