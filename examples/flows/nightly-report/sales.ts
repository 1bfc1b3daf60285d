export interface Sale {
  readonly sku: string;
  readonly cents: number;
  readonly quantity: number;
}

/** `sku,cents,quantity` with a heading; the first line that is none of that is an error with its place. */
export function parseSales(text: string, file: string): readonly Sale[] {
  const lines = text
    .split("\n")
    .slice(1)
    .filter((line) => line.trim() !== "");
  return lines.map((line, index) => {
    const [sku = "", cents = "", quantity = ""] = line.trim().split(",");
    const sale = { sku, cents: Number(cents), quantity: Number(quantity) };
    if (sku === "" || !Number.isInteger(sale.cents) || !Number.isInteger(sale.quantity)) {
      throw new Error(`${file}:${index + 2}: ${JSON.stringify(line)} is no sale`);
    }
    return sale;
  });
}
