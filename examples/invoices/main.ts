// TypeScript in several files: types, an enum, a class, a JSON file and two modules beside this one.
//
//   flowcell run examples/invoices/main.ts
//   flowcell run examples/invoices/main.ts --input '{"country":"FR","items":[{"name":"Desk","unit":19900,"count":2}]}'
//
// Imports reach this folder only. Errors name the line here, not one of the bundle.

import countries from "./countries.json";
import { formatMoney, type Money, sum, taxOf } from "./money.js";

interface Item {
  readonly name: string;
  /** Price of one, in cents. */
  readonly unit: number;
  readonly count: number;
}

interface Order {
  readonly country: keyof typeof countries;
  readonly items: readonly Item[];
}

enum Rate {
  Full = "full",
  None = "none",
}

interface Invoice {
  readonly lines: readonly string[];
  readonly net: string;
  readonly tax: string;
  readonly total: string;
  readonly rate: Rate;
}

class UnknownCountry extends Error {
  override readonly name = "UnknownCountry";

  constructor(readonly country: string) {
    super(`no tax rate for ${country}; known: ${Object.keys(countries).join(", ")}`);
  }
}

const exampleOrder: Order = {
  country: "DE",
  items: [
    { name: "Lamp", unit: 4990, count: 3 },
    { name: "Cable", unit: 750, count: 10 },
  ],
};

export default async function (order: Order = exampleOrder): Promise<Invoice> {
  const country = countries[order.country];
  if (country === undefined) throw new UnknownCountry(order.country);
  const amounts = order.items.map(
    ({ unit, count }): Money => ({ cents: unit * count, currency: country.currency }),
  );
  const net = sum(amounts);
  const tax = taxOf(net, country.percent);
  return {
    lines: order.items.map(
      (item, index) => `${item.count} × ${item.name}: ${formatMoney(amounts[index] as Money)}`,
    ),
    net: formatMoney(net),
    tax: formatMoney(tax),
    total: formatMoney(sum([net, tax])),
    rate: country.percent === 0 ? Rate.None : Rate.Full,
  };
}
