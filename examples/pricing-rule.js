// A pricing rule that a shop keeps outside its own program: quantity discounts, a member price, shipping.
//
//   flowcell run examples/pricing-rule.js
//   flowcell run examples/pricing-rule.js --input '{"member":true,"items":[{"sku":"tea","cents":450,"quantity":12}]}'
//
// Amounts are whole cents, so that nothing is lost to rounding twice. A mistake in the order is an error with a name.

const discounts = [
  { from: 100, percent: 15 },
  { from: 10, percent: 5 },
];
const memberPercent = 3;
const freeShippingFrom = 5000;
const shippingCents = 490;

const exampleOrder = {
  member: true,
  items: [
    { sku: "tea", cents: 450, quantity: 12 },
    { sku: "cup", cents: 1250, quantity: 2 },
  ],
};

class OrderError extends Error {
  constructor(message) {
    super(message);
    this.name = "OrderError";
  }
}

function whole(value, what) {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new OrderError(`${what} must be a whole number, not ${value}`);
  return value;
}

function priceLine({ sku, cents, quantity }) {
  const full = whole(cents, `the price of ${sku}`) * whole(quantity, `the quantity of ${sku}`);
  const percent = discounts.find(({ from }) => quantity >= from)?.percent ?? 0;
  const discount = Math.round((full * percent) / 100);
  return { sku, quantity, percent, cents: full - discount };
}

export default async function (order = exampleOrder) {
  const lines = order.items.map(priceLine);
  const goods = lines.reduce((sum, line) => sum + line.cents, 0);
  const member = order.member ? Math.round((goods * memberPercent) / 100) : 0;
  const shipping = goods - member >= freeShippingFrom ? 0 : shippingCents;
  return { lines, goods, member, shipping, total: goods - member + shipping };
}
