/** Whole cents of one currency. */
export interface Money {
  readonly cents: number;
  readonly currency: string;
}

export function sum(amounts: readonly Money[]): Money {
  const currency = amounts[0]?.currency ?? "EUR";
  return { cents: amounts.reduce((total, amount) => total + amount.cents, 0), currency };
}

export function taxOf(amount: Money, percent: number): Money {
  return { ...amount, cents: Math.round((amount.cents * percent) / 100) };
}

export function formatMoney({ cents, currency }: Money): string {
  return `${(cents / 100).toFixed(2)} ${currency}`;
}
