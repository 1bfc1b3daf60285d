const lines = await orders.list();
const priced = await Promise.all(
  lines.map(async ({ sku, quantity }) => ({ sku, cents: (await tools.price({ sku })).cents * quantity })),
);
console.log(priced);
priced.reduce((total, { cents }) => total + cents, 0);
