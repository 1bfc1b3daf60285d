/** `console.table`: rows and columns as Node draws them. Data properties only; what is no table of objects is a column. */

import { ownData } from "./error-text.js";
import { inspect } from "./inspect.js";
import {
  ArrayIsArray,
  ObjectGetPrototypeOf,
  ObjectKeys,
  ObjectPrototype,
  record,
  StringPrototypeRepeat,
} from "./primordials.js";
import { proxyTarget } from "./proxies.js";

const rowsMost = 100;
const columnsMost = 20;
const cellChars = 60;

interface Row {
  readonly index: string;
  readonly cells: { [column: string]: string };
  value: string | undefined;
}

interface List<T> {
  [at: number]: T;
  count: number;
}

function list<T>(): List<T> {
  const made = record<unknown>() as unknown as List<T>; // given its count in the next line
  made.count = 0;
  return made;
}

/** Undefined if `data` is neither an array nor a plain object. */
export function tableText(data: object, columns: unknown): string | undefined {
  const target = proxyTarget(data);
  if (target === undefined || !isTabular(target)) return undefined;
  const names = list<string>();
  const rows = list<Row>();
  const known = record<boolean>();
  const wanted = wantedColumns(columns, names, known);
  const keys = ObjectKeys(target);
  let hasValues = false;
  for (let at = 0; at < keys.length && rows.count < rowsMost; at++) {
    const key = keys[at] as string; // below its length
    const row: Row = { index: key, cells: record(), value: undefined };
    const item = ownData(target, key);
    const inner = typeof item === "object" && item !== null ? proxyTarget(item) : undefined;
    if (inner !== undefined && isTabular(inner)) readCells(inner, row, names, known, wanted);
    else {
      hasValues = true;
      row.value = cell(item);
    }
    rows[rows.count++] = row;
  }
  return draw(names, rows, hasValues && !wanted);
}

function isTabular(value: object): boolean {
  if (ArrayIsArray(value)) return true;
  const prototype = ObjectGetPrototypeOf(value);
  return prototype === ObjectPrototype || prototype === null;
}

/** The columns that the caller asked for; false: all that there are. */
function wantedColumns(columns: unknown, names: List<string>, known: { [name: string]: boolean }): boolean {
  if (!ArrayIsArray(columns)) return false;
  for (let at = 0; at < columns.length && names.count < columnsMost; at++) {
    const name = ownData(columns, at);
    if (typeof name !== "string" || known[name] === true) continue;
    known[name] = true;
    names[names.count++] = name;
  }
  return true;
}

function readCells(
  item: object,
  row: Row,
  names: List<string>,
  known: { [name: string]: boolean },
  wanted: boolean,
): void {
  const keys = ObjectKeys(item);
  for (let at = 0; at < keys.length; at++) {
    const key = keys[at] as string; // below its length
    if (known[key] !== true) {
      if (wanted || names.count >= columnsMost) continue;
      known[key] = true;
      names[names.count++] = key;
    }
    row.cells[key] = cell(ownData(item, key));
  }
}

function cell(value: unknown): string {
  return inspect(value, cellChars, 0);
}

function draw(names: List<string>, rows: List<Row>, hasValues: boolean): string {
  const heads = list<string>();
  heads[heads.count++] = "(index)";
  for (let at = 0; at < names.count; at++) heads[heads.count++] = names[at] as string; // below the count
  if (hasValues) heads[heads.count++] = "Values";
  const cellOf = (row: Row, column: number): string => {
    if (column === 0) return row.index;
    if (hasValues && column === heads.count - 1) return row.value ?? "";
    return row.cells[heads[column] as string] ?? ""; // below the count
  };
  const widths = list<number>();
  for (let column = 0; column < heads.count; column++) {
    let width = (heads[column] as string).length; // below the count
    for (let at = 0; at < rows.count; at++) {
      const { length } = cellOf(rows[at] as Row, column); // below the count
      if (length > width) width = length;
    }
    widths[column] = width + 2;
  }
  widths.count = heads.count;
  let text = `${rule(widths, "┌", "┬", "┐")}\n`;
  text += `${line(widths, (column) => heads[column] as string)}\n`; // below the count
  text += `${rule(widths, "├", "┼", "┤")}\n`;
  for (let at = 0; at < rows.count; at++)
    text += `${line(widths, (column) => cellOf(rows[at] as Row, column))}\n`; // below the count
  return text + rule(widths, "└", "┴", "┘");
}

function rule(widths: List<number>, left: string, middle: string, right: string): string {
  let text = left;
  for (let column = 0; column < widths.count; column++) {
    text += (column === 0 ? "" : middle) + StringPrototypeRepeat("─", widths[column] as number); // below the count
  }
  return text + right;
}

function line(widths: List<number>, cellText: (column: number) => string): string {
  let text = "│";
  for (let column = 0; column < widths.count; column++) {
    const content = cellText(column);
    text += ` ${content}${StringPrototypeRepeat(" ", (widths[column] as number) - content.length - 1)}│`; // as wide as its widest
  }
  return text;
}
