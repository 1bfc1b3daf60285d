// Tools for `flowcell exec --tools examples/codemode/tools.mjs`. This module is loaded into flowcell's own process and trusted;
// scripts see nothing of it but what these functions answer.

const prices = new Map([
  ["tea", 450],
  ["coffee", 520],
  ["sugar", 120],
]);

/** tools.add(1, 2): a function takes its arguments as they come. */
export const add = (a, b) => a + b;

/** tools.price({ sku }): one input, checked against the schema before `execute` is called. */
export const price = {
  description: "The price of an article in cents.",
  inputSchema: {
    type: "object",
    properties: { sku: { type: "string", minLength: 1 } },
    required: ["sku"],
    additionalProperties: false,
  },
  execute: ({ sku }) => {
    const cents = prices.get(sku);
    if (cents === undefined) throw new RangeError(`there is no article ${sku}`);
    return { sku, cents };
  },
};

/** orders.list(): an object of functions is a namespace. */
export const orders = {
  list: () => [
    { sku: "tea", quantity: 2 },
    { sku: "coffee", quantity: 1 },
    { sku: "sugar", quantity: 4 },
  ],
};
