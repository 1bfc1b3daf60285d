// What the rows of keys and values ask the store to do, and what they refuse before it is asked.
import { applyLocal, decodeValue, type EncodedValue, encodeValue, type LocalTx } from "@flowcell/protocol";
import { describe, expect, test } from "vitest";
import { createRegistry, dispatch, kvFunctions } from "./index.js";

class MapTx implements LocalTx {
  readonly rows = new Map<string, EncodedValue>();

  get(key: string): EncodedValue | undefined {
    return this.rows.get(key);
  }
  put(key: string, value: EncodedValue): void {
    this.rows.set(key, value);
  }
  delete(key: string): boolean {
    return this.rows.delete(key);
  }
  list(prefix: string, after: string | null, limit: number): readonly string[] {
    const keys = [...this.rows.keys()].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    return keys.filter((key) => key.startsWith(prefix) && (after === null || key > after)).slice(0, limit);
  }
  bytes(): number {
    return 0;
  }
}

const registry = createRegistry(kvFunctions());

function kv(): (name: string, ...args: unknown[]) => Promise<unknown> {
  const tx = new MapTx();
  return async (name, ...args) => {
    const call = {
      position: 0,
      name: `kv.${name}`,
      args: encodeValue(args),
      signal: new AbortController().signal,
      idempotencyKey: "key",
    };
    const outcome = await dispatch(registry, call, {
      limits: { valueBytes: 1024 * 1024, bodyBytes: 1024 * 1024 },
      clock: "real",
      local: { tx, bytesMax: 1024 * 1024 },
    });
    return outcome.ok
      ? decodeValue(outcome.value)
      : { code: outcome.error.code, text: outcome.error.message };
  };
}

describe("keys and values", () => {
  test("come back as they were set, of every kind that travels", async () => {
    const call = kv();
    const value = {
      when: new Date(0),
      seen: new Set([1n]),
      pattern: /a/g,
      bytes: new Uint8Array([1, 2]),
      not: null,
    };
    expect(await call("set", "k", value)).toBeUndefined();
    expect(await call("get", "k")).toEqual(value);
  });

  test("an absent key is undefined, a null is a value", async () => {
    const call = kv();
    expect(await call("get", "k")).toBeUndefined();
    await call("set", "k", null);
    expect(await call("get", "k")).toBeNull();
  });

  test("delete says whether the key was there", async () => {
    const call = kv();
    await call("set", "k", 1);
    expect([await call("delete", "k"), await call("delete", "k")]).toEqual([true, false]);
  });

  test("list pages by prefix and key", async () => {
    const call = kv();
    for (const key of ["a", "b/1", "b/2", "b/3", "c"]) await call("set", key, 0);
    expect(await call("list")).toEqual(["a", "b/1", "b/2", "b/3", "c"]);
    expect(await call("list", { prefix: "b/", limit: 2 })).toEqual(["b/1", "b/2"]);
    expect(await call("list", { prefix: "b/", after: "b/2" })).toEqual(["b/3"]);
  });

  test("compareAndSet sets only over the expected value, and takes undefined for absence on both sides", async () => {
    const call = kv();
    expect(await call("compareAndSet", "k", 1, 2)).toBe(false);
    expect(await call("compareAndSet", "k", undefined, 1)).toBe(true);
    expect(await call("compareAndSet", "k", undefined, 2)).toBe(false);
    expect(await call("compareAndSet", "k", 1, { n: 2 })).toBe(true);
    expect(await call("compareAndSet", "k", { n: 2 }, undefined)).toBe(true);
    expect(await call("get", "k")).toBeUndefined();
  });
});

describe("refused", () => {
  test.each([
    ["an empty key", "get", [""], "invalid_arguments", "1 to 256 bytes"],
    ["a key of 257 bytes", "get", [`${"é".repeat(128)}x`], "invalid_arguments", "1 to 256 bytes"],
    ["a key that UTF-8 cannot hold", "get", ["\ud800"], "invalid_arguments", "lone surrogates"],
    ["a key that is no text", "get", [1], "invalid_arguments", "text"],
    ["a missing value", "set", ["k"], "invalid_arguments", "at least 2 arguments"],
    ["undefined as a value", "set", ["k", undefined], "invalid_arguments", "kv.delete removes a key"],
    ["a value beyond 64 KiB", "set", ["k", "x".repeat(65_536)], "too_large", "more than 65536 bytes"],
    ["bytes beyond 64 KiB", "set", ["k", new Uint8Array(65_500)], "too_large", "more than 65536 bytes"],
    ["a misspelt option", "list", [{ prefx: "a" }], "invalid_arguments", "did you mean prefix"],
    ["a limit beyond 1000", "list", [{ limit: 1001 }], "invalid_arguments", "from 1 to 1000"],
    ["a limit that is not whole", "list", [{ limit: 1.5 }], "invalid_arguments", "from 1 to 1000"],
    ["a comparison with one value", "compareAndSet", ["k", 1], "invalid_arguments", "at least 3 arguments"],
  ])("%s", async (_, name, args, code, text) => {
    expect(await kv()(name, ...args)).toEqual({ code, text: expect.stringContaining(text) });
  });

  test("a key of 256 bytes and a value of 64 KiB are let in", async () => {
    const call = kv();
    expect(await call("set", "é".repeat(128), "x".repeat(65_534))).toBeUndefined();
  });

  test("what the flow's grant does not hold, by the one meaning of the operation", () => {
    const operation = { kind: "kv.set", key: "k", value: encodeValue("abc") } as const;
    expect(applyLocal(new MapTx(), operation, 5)).toMatchObject({ ok: false, error: { code: "limit" } });
    expect(applyLocal(new MapTx(), operation, 6)).toMatchObject({ ok: true });
  });
});
