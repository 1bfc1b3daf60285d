// A FlowcellExecutor for @cloudflare/codemode, on Node: the package makes the tool, flowcell runs what a model writes.
//   node --import @flowcell/flowcell/cloudflare-node examples/codemode/cloudflare.mjs
// No network, no key, no model: the last lines do what a model would.
import { createCodeTool } from "@cloudflare/codemode/ai";
import { FlowcellExecutor, reportOf } from "@flowcell/flowcell/cloudflare";
import { z } from "zod";

const orders = [
  { id: 1, customer: "Ada", cents: 1250 },
  { id: 2, customer: "Bob", cents: 900 },
  { id: 3, customer: "Ada", cents: 3000 },
];
const tools = {
  listOrders: {
    description: "Ids of all orders",
    inputSchema: z.object({}),
    execute: async () => orders.map(({ id }) => id),
  },
  getOrder: {
    description: "One order",
    inputSchema: z.object({ id: z.number() }),
    execute: async ({ id }) => orders.find((order) => order.id === id),
  },
};

const executor = new FlowcellExecutor({ limits: { wallMs: 10_000 }, onReport });
const codemode = createCodeTool({ tools, executor });

/** What the package has no place for: which processes confined it how, what it used, which calls were made. */
function onReport({ status, usage, calls }) {
  console.error(`${status}: ${calls.length} calls, ${Math.ceil(usage.cpuMs)} ms of CPU time`);
}

const code = `async () => {
  const ids = await codemode.listOrders({});
  const orders = await Promise.all(ids.map((id) => codemode.getOrder({ id })));
  console.log("orders:", orders.length);
  const totals = {};
  for (const { customer, cents } of orders) totals[customer] = (totals[customer] ?? 0) + cents;
  return totals;
}`;
console.log(await codemode.execute({ code }, { toolCallId: "1", messages: [] }));

// A script that fails, without the package around the executor.
const failed = await executor.execute("async () => {\n  return missing.value;\n}", []);
console.log(failed.error, reportOf(failed).error.place);
await executor.close();
