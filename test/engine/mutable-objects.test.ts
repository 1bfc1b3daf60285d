// Every mutable C object of the worker is known, and so is how it gets back to its state before an activation: an object that nobody
// resets is how one activation would reach the next.
//
// The objects come from the symbol tables of the worker's own object files. The engine's rows are those of the table in
// engine_state.h; the rest are listed here.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { build, root } from "./driver.js";

/** Object file → object → how it is reset. */
const elsewhere: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "start_linux.c": { __stack_chk_guard: "constant after start" },
  "confine_linux.c": { program: "the filter's instructions; used before confinement ends" },
  "startup_linux.c": {
    startup_done: "constant after start",
    parent: "constant after start",
    text: "what was read from /proc; used before confinement ends",
    chunk: "what was read from /proc; used before confinement ends",
  },
  "main.c": { welcome: "constant after Welcome has been sent" },
  "bridge.c": { bridge: "bridge_begin and bridge_set_budget overwrite all of it" },
  "input.c": {
    input_start: "moves over the bytes of the parent's frames; an activation cannot write it",
    input_end: "moves over the bytes of the parent's frames; an activation cannot write it",
    input_buffer: "bytes of the parent's frames",
  },
  "output.c": {
    output_length: "zero after the flush that ends each activation",
    output_buffer: "bytes that have been sent; never read again",
  },
};

interface WritableObject {
  readonly file: string;
  readonly name: string;
}

/** Objects in sections that stay writable after start-up. */
function writableObjects(objectFile: string): WritableObject[] {
  const table = execFileSync("objdump", ["-t", objectFile], { encoding: "utf8" });
  const found: WritableObject[] = [];
  for (const line of table.split("\n")) {
    // address, seven flag columns, section, size, name
    const match = /^[0-9a-f]+ .{7} (\.(?:bss|data|tbss|tdata)\S*)\t[0-9a-f]+ +(?:\.hidden )?(\S+)$/.exec(
      line,
    );
    if (match === null || match[1]?.startsWith(".data.rel.ro") || match[1] === match[2]) continue;
    // A static inside a function carries a number.
    found.push({ file: basename(objectFile, ".o"), name: (match[2] ?? "").replace(/\.\d+$/, "") });
  }
  return found;
}

function engineTable(): string[] {
  const header = readFileSync(`${root}worker-native/src/engine/engine_state.h`, "utf8");
  return [...header.matchAll(/^ \* \| (engine_\w+) \|/gm)].map((match) => match[1] ?? "");
}

let objects: WritableObject[];

beforeAll(async () => {
  objects = (await build(["worker-objects", "engine"])).flatMap(writableObjects);
});

describe("mutable objects", () => {
  it("of the engine are those of its table", () => {
    const engine = objects.filter((one) => one.name.startsWith("engine_")).map((one) => one.name);
    expect(engine.sort()).toEqual(engineTable().sort());
    expect(engine.length).toBeGreaterThan(4);
  });

  it("elsewhere in the worker are all listed, and no other", () => {
    const others = objects.filter((one) => !one.name.startsWith("engine_"));
    const listed = Object.entries(elsewhere).flatMap(([file, names]) =>
      Object.keys(names).map((name) => ({ file, name })),
    );
    const sorted = (list: readonly WritableObject[]): string[] =>
      list.map((one) => `${one.file} ${one.name}`).sort();
    expect(sorted(others)).toEqual(sorted(listed));
  });
});
