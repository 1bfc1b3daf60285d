/** What a thrown value looks like to a script. */

import { describe, expect, it } from "vitest";
import { deliverHeader } from "./headers.js";
import {
  HostError,
  hostErrorData,
  hostErrorMessageChars,
  hostErrorTable,
  isHostErrorCode,
} from "./host-error.js";
import { messageTable } from "./messages.js";

describe("HostError", () => {
  it("is retryable as its code's row says, unless the thrower knows better", () => {
    for (const code of Object.keys(hostErrorTable)) {
      if (!isHostErrorCode(code)) throw new Error("a key of the table is no code");
      expect(new HostError(code, "x").retryable).toBe(hostErrorTable[code].retryable);
      expect(new HostError(code, "x", { retryable: true }).retryable).toBe(true);
    }
  });
});

describe("hostErrorData", () => {
  it("sends a HostError's fields and keeps its cause here", () => {
    const thrown = new HostError("not_found", "no such key", {
      detail: { key: "k" },
      cause: new Error("/srv/secret"),
    });
    expect(hostErrorData(thrown)).toEqual({
      code: "not_found",
      message: "no such key",
      retryable: false,
      detail: { key: "k" },
    });
  });

  it("says nothing of an error that nobody vouches for", () => {
    const thrown = Object.assign(new Error("ENOENT: /srv/secret"), { code: "ENOENT", path: "/srv/secret" });
    expect(hostErrorData(thrown)).toEqual({
      code: "internal",
      message: "the host function failed",
      retryable: false,
    });
  });

  it("gives a tool's own error with its class and code, never its stack", () => {
    const thrown = Object.assign(new TypeError("boom"), { code: "E_BOOM" });
    expect(hostErrorData(thrown, true)).toEqual({
      code: "upstream",
      message: "boom",
      name: "TypeError",
      retryable: false,
      detail: { code: "E_BOOM" },
    });
  });

  it("survives whatever is thrown", () => {
    const bad = new Error("x");
    Object.defineProperty(bad, "message", {
      get() {
        throw new Error("getter");
      },
    });
    const thrown = [
      null,
      undefined,
      "text",
      1n,
      Symbol("s"),
      {},
      Object.create(null),
      () => 1,
      bad,
      new Proxy({}, {}),
    ];
    for (const value of thrown) {
      const data = hostErrorData(value, true);
      expect(data.code).toBe("upstream");
      expect(() => JSON.stringify(data)).not.toThrow();
    }
  });

  it("sends a detail only if JSON can carry it, and briefly", () => {
    const circular: { self?: object } = {};
    circular.self = circular;
    for (const detail of [1n, circular, () => 1, "x".repeat(10_000)]) {
      expect(hostErrorData(new HostError("conflict", "m", { detail }))).not.toHaveProperty("detail");
    }
    expect(hostErrorData(new HostError("conflict", "m", { detail: new Date(0) })).detail).toBe(
      "1970-01-01T00:00:00.000Z",
    );
  });

  it("fits the header of Deliver, whatever was thrown", () => {
    const worst = new HostError("conflict", "\0".repeat(100_000), { detail: "d".repeat(8000) });
    const header = deliverHeader({
      activation: 1,
      kind: "call",
      position: 1,
      ok: false,
      clock: 1,
      error: hostErrorData(worst),
    });
    expect(Buffer.byteLength(header)).toBeLessThan(messageTable.Deliver.text.fixed);
  });

  it("cuts messages to what a header may hold", () => {
    expect(hostErrorData(new HostError("io_error", "x".repeat(100_000))).message).toHaveLength(
      hostErrorMessageChars,
    );
    expect(hostErrorData(new Error("x".repeat(100_000)), true).message).toHaveLength(hostErrorMessageChars);
  });
});
