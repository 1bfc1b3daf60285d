// What an error looks like: the author's own lines, the cause, and the lines that were logged before.
//
//   flowcell run examples/trace-an-error.ts
//
// It ends with exit code 1. `--json` has the same as data: error.place, error.stack, error.cause, logs.

interface Reading {
  readonly sensor: string;
  readonly celsius: string;
}

const readings: readonly Reading[] = [
  { sensor: "roof", celsius: "21.5" },
  { sensor: "cellar", celsius: "n/a" },
];

function parse(reading: Reading): number {
  const value = Number(reading.celsius);
  if (Number.isNaN(value)) {
    throw new TypeError(`"${reading.celsius}" is not a temperature`);
  }
  return value;
}

export default async function (): Promise<number> {
  let sum = 0;
  for (const reading of readings) {
    console.log("reading", reading);
    try {
      sum += parse(reading);
    } catch (cause) {
      throw new Error(`sensor ${reading.sensor} is unusable`, { cause });
    }
  }
  return sum / readings.length;
}
