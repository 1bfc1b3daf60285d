/** Lists for people: columns that line up, times, ages, short hashes. */

import { printable } from "@flowcell/bundle";

/** Rows of cells under a heading; trailing blanks are cut. Cells may hold what a flow's author chose. */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [heading, ...rows].map((row) => row.map(printable));
  const widths = heading.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** Local time as people write it, to the second. */
export function timeText(epochMs: number | null): string {
  if (epochMs === null) return "-";
  const date = new Date(epochMs);
  const two = (number: number): string => String(number).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** Enough of a hash to name it. */
export function short(hash: string | null): string {
  return hash === null ? "-" : hash.slice(0, 12);
}

export function plural(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? "" : "s"}`;
}

/** A block of text under a heading, indented; nothing for no lines. */
export function block(heading: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [heading, ...lines.map((line) => `  ${line}`)];
}
