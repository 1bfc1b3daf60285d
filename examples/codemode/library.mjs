// Codemode in a program of your own: a checked tool, a call that a person approves, and a store that keeps the script meanwhile.
//   node examples/codemode/library.mjs
// No model and no key: `code` is what a model would write after it read codemode.prompt.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCodemode, openSqliteStore } from "@flowcell/flowcell/codemode";
import { z } from "zod";

const orders = [
  { id: 7, customer: "Ada", cents: 1250 },
  { id: 8, customer: "Bob", cents: 300 },
];
const tools = {
  findOrders: {
    description: "Open orders from an amount on",
    inputSchema: z.object({ fromCents: z.number() }),
    execute: async ({ fromCents }) => orders.filter(({ cents }) => cents >= fromCents),
    effect: "read",
  },
  mail: {
    send: {
      description: "Sends a mail",
      inputSchema: z.object({ to: z.string(), text: z.string() }),
      needsApproval: true,
      execute: async ({ to }) => `sent to ${to}`,
    },
  },
};
const code = `
  const orders = await tools.findOrders({ fromCents: 1000 });
  console.log("orders:", orders.length);
  return Promise.all(orders.map(({ customer, id }) => mail.send({ to: customer, text: "Order " + id })));`;

// The store has a folder of its own; in a program of yours for example state/runs.sqlite.
const home = mkdtempSync(join(tmpdir(), "codemode-"));
const open = async () => {
  const store = await openSqliteStore({ path: join(home, "state/runs.sqlite") });
  const codemode = await createCodemode({ tools, store, keepRuns: 1000 });
  return { codemode, close: () => codemode.close().then(() => store.close()) };
};

const first = await open();
const suspended = await first.codemode.execute(code);
console.log(suspended.status, suspended.logs[0].text);
await first.close();

// Perhaps another process, perhaps tomorrow: what waits is in the store, and nothing done before is done again.
const second = await open();
for (const { runId, pending } of await second.codemode.pending()) {
  for (const { name, args } of pending) console.log("approve?", name, JSON.stringify(args));
  const answers = pending.map(({ callId }) => ({ callId, approve: true }));
  const result = await second.codemode.resume(runId, answers);
  console.log(result.ok ? result.value : result.error.message);
}
await second.close();
rmSync(home, { recursive: true });
