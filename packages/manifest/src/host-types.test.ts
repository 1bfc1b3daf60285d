/** The text of host.d.ts, judged by the compiler: what is granted type-checks, what is not does not. */

import { globalsAdded } from "@flowcell/prelude";
import { describe, expect, test } from "vitest";
import { fetchGlobal, guestGlobals } from "./guest-globals.js";
import { type GrantedFunction, hostTypes } from "./host-types.js";
import { checkFlow } from "./testing/type-check.js";

const manifest = {
  id: "orders",
  input: {
    type: "object",
    properties: {
      symbol: { type: "string", description: "Which one." },
      lines: { type: "array", items: { $ref: "#/$defs/line" } },
    },
    required: ["symbol", "lines"],
    $defs: {
      line: {
        type: "object",
        properties: {
          quantity: { type: "integer" },
          parts: { type: "array", items: { $ref: "#/$defs/line" } },
        },
        required: ["quantity"],
      },
    },
  },
  output: { type: "object", properties: { total: { type: "number" } }, required: ["total"] },
};

const functions: readonly GrantedFunction[] = [
  { name: "sleep", doc: "Waits.", signature: "(ms: number): Promise<void>" },
  { name: "kv.get", doc: "Reads a value.", signature: "(key: string): Promise<unknown>" },
  {
    name: "kv.set",
    doc: "Writes a value. */ declare const evil: 1; /*",
    signature: "(key: string, value: unknown): Promise<void>",
  },
  { name: "fetch", doc: "A request.", signature: "(url: string): Promise<Response>" },
  {
    name: "tools.calendar.list",
    doc: "Lists.",
    signature: "<T>(args: { day: string; as: T }): Promise<T[]>",
  },
  { name: "tools.my-tool", doc: "Loosely typed." },
  { name: "tools.broken", doc: "A signature that is none.", signature: "(a: string): Promise<void> }" },
];

const types = hostTypes({ manifest, functions });

describe("a flow with its types", () => {
  test("is content with what is granted", async () => {
    const flow = `
      import { double } from "./lib/math.js";
      export default async function (input: Input, host: Host): Promise<Output> {
        await host.sleep(5);
        await host.kv.set("last", input.symbol.toUpperCase());
        const seen: unknown = await host.kv.get("last");
        const response = await host.fetch("https://api.example.com/", { method: "POST", idempotencyKey: "k", body: "x" });
        const same: Response = await fetch(new URL("https://api.example.com/"));
        if (!same.ok || response.status !== 200) throw new HostError("no", { code: "unavailable" });
        const days: string[] = await host.tools.calendar.list({ day: "today", as: "x" });
        const loose: unknown = await host.tools["my-tool"](1, { a: 2 });
        await host.tools.broken("anything");
        host.log(seen, days, loose);
        console.log(input.lines[0]?.parts?.[0]?.quantity.toFixed());
        try {
          await host.sleep(1);
        } catch (error) {
          if (error instanceof HostError && error.code === "denied") console.warn(error.detail, error.retryable);
          else throw error;
        }
        return { total: double(input.lines.reduce((sum, line) => sum + line.quantity, 0)) };
      }
    `;
    const lib = "export const double = (n: number): number => n * 2;";
    expect(await checkFlow({ "host.d.ts": types, "flow.ts": flow, "lib/math.ts": lib })).toEqual([]);
  });

  test("is told of every call that is not granted, wrong argument and wrong result", async () => {
    const flow = `export default async function (input: Input, host: Host): Promise<Output> {
      await host.fs.read("/data/x");
      await host.kv.delete("x");
      await host.sleep("5");
      input.symbl;
      input.lines[0].quantity;
      process.exit(1);
      require("fs");
      document.title;
      Buffer.from("x");
      new Blob([]);
      return { totl: 1 };
    }`;
    const errors = await checkFlow({ "host.d.ts": types, "flow.ts": flow });
    const lines = errors.map((error) => Number(/^flow\.ts\((\d+),/.exec(error)?.[1]));
    expect([...new Set(lines)]).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  });

  test("in JavaScript has the same types by its comments", async () => {
    const good = `/** @param {Input} input @param {Host} host @returns {Promise<Output>} */
      export default async function (input, host) { await host.sleep(1); return { total: input.lines.length }; }`;
    const bad = good.replace("host.sleep", "host.nap");
    expect(await checkFlow({ "host.d.ts": types, "flow.js": good })).toEqual([]);
    expect((await checkFlow({ "host.d.ts": types, "flow.js": bad }))[0]).toMatch(
      /^flow\.js\(2,\d+\): error TS2339/,
    );
  });

  test("without grants has no fetch and only the log", async () => {
    const bare = hostTypes({ manifest: { id: "a" }, functions: [] });
    const good = `export default async function (input: Input, host: Host): Promise<Output> {
      host.log(input); new Request("https://a.example"); return { anything: [1] };
    }`;
    const bad = `export default async function (input: Input, host: Host): Promise<Output> {
      await host.fetch("https://a.example");
      await fetch("https://a.example");
      return input.symbol;
    }`;
    expect(await checkFlow({ "host.d.ts": bare, "flow.ts": good })).toEqual([]);
    expect(
      (await checkFlow({ "host.d.ts": bare, "flow.ts": bad })).map((error) => error.slice(0, 9)),
    ).toEqual(["flow.ts(2", "flow.ts(3", "flow.ts(4"]);
  });
});

describe("globals", () => {
  /** They exist to say what to use instead. */
  const throwers = ["Intl", "process", "require"];

  test("exactly those that scripts find are declared", () => {
    const declared = [...`${guestGlobals}${fetchGlobal}`.matchAll(/^declare (?:var|function) (\w+)/gm)].map(
      ([, name]) => name,
    );
    const own = hostTypes({ manifest, functions: [] }).includes("declare var HostError") ? ["HostError"] : [];
    expect([...new Set([...declared, ...own])].sort()).toEqual(
      globalsAdded.filter((name) => !throwers.includes(name)).sort(),
    );
  });

  test("type-check in use", async () => {
    const flow = `
      const url: URL = new URL("a?b=c", "https://example.com");
      for (const [name, value] of url.searchParams) console.log(name.length, value.length);
      const text: string = new TextDecoder().decode(new TextEncoder().encode("x")) + atob(btoa("x"));
      const bytes: Uint8Array = Uint8Array.fromBase64("AA==");
      const hex: string = bytes.toHex() + new Uint8Array(2).toBase64();
      const copy: { a: number } = structuredClone({ a: 1 });
      const timer: number = setTimeout((a: string) => a, 5, "a");
      clearTimeout(timer); clearInterval(setInterval(() => {}, 5)); queueMicrotask(() => {});
      const list: Promise<number[]> = Array.fromAsync([Promise.resolve(1)]);
      const target = new EventTarget();
      target.addEventListener("x", (event) => event.preventDefault(), { once: true });
      target.dispatchEvent(new CustomEvent("x", { detail: 1 }));
      const controller = new AbortController();
      const signal: AbortSignal = AbortSignal.any([controller.signal, AbortSignal.timeout(5)]);
      const headers = new Headers({ a: "b" });
      const request: Request = new Request("https://example.com", { headers, signal, method: "POST", body: bytes });
      const response: Response = Response.json({ a: 1 });
      const parsed: Promise<{ a: number }> = response.json();
      const id: string = crypto.randomUUID() + crypto.getRandomValues(new Uint8Array(4)).length;
      const now: number = performance.now() + performance.timeOrigin;
      const wrong: Error = new DOMException("x", "AbortError");
      console.table([{ a: 1 }]); console.assert(true, "x");
      const grouped = Object.groupBy([1], (n) => String(n));
      export { text, hex, copy, list, request, parsed, id, now, wrong, grouped };
    `;
    expect(await checkFlow({ "host.d.ts": types, "use.ts": flow })).toEqual([]);
  });
});

describe("the text", () => {
  test("does not depend on the order of the functions", () => {
    expect(hostTypes({ manifest, functions: [...functions].reverse() })).toBe(types);
  });

  test("is refused for functions that clash", () => {
    const twice = [...functions, { name: "sleep", doc: "Again." }];
    expect(() => hostTypes({ manifest, functions: twice })).toThrow("sleep stands there twice");
    expect(() => hostTypes({ manifest, functions: [{ name: "log", doc: "x" }] })).toThrow("console");
  });

  test("a name can be a function and hold others", async () => {
    const both = hostTypes({
      manifest: { id: "a" },
      functions: [
        { name: "fs", doc: "Both.", signature: "(): Promise<string>" },
        { name: "fs.read", doc: "Reads.", signature: "(path: string): Promise<number>" },
      ],
    });
    const flow = `export default async (_input: Input, host: Host): Promise<Output> => {
      const text: string = await host.fs(); const number: number = await host.fs.read(text); return number;
    };`;
    expect(await checkFlow({ "host.d.ts": both, "flow.ts": flow })).toEqual([]);
  });

  test("documentation stands above each call and stays inside its comment", () => {
    expect(types).toContain("/** Waits. */\n  sleep(ms: number): Promise<void>;");
    expect(types).toContain("Writes a value. *\\/ declare const evil: 1; /* */");
  });
});
