// One host call from encoded arguments to encoded outcome, whatever script and handler do.
import { decodeValue, type EncodedValue, encodeValue, HostError } from "@flowcell/protocol";
import { describe, expect, test, vi } from "vitest";
import * as z from "zod/mini";
import {
  builtIns,
  type CallOutcome,
  createRegistry,
  defineHostFunction,
  dispatch,
  type HostFunction,
  type IncomingCall,
  sleepMsMax,
} from "./index.js";

const limits = { valueBytes: 1024 * 1024, bodyBytes: 1024 * 1024 };
const anything = z.array(z.unknown());

function row(name: string, handler: NonNullable<HostFunction["call"]>, more: object = {}): HostFunction {
  return defineHostFunction({
    name,
    doc: "test",
    effect: "read",
    grant: null,
    input: anything,
    handler,
    ...more,
  });
}

interface Options {
  readonly args?: unknown;
  readonly encoded?: EncodedValue;
  readonly signal?: AbortSignal;
  readonly clock?: "real" | "virtual";
}

async function call(rows: readonly HostFunction[], name: string, options: Options = {}): Promise<unknown> {
  const incoming = {
    position: 0,
    name,
    args: options.encoded ?? encodeValue(options.args ?? []),
    signal: options.signal ?? new AbortController().signal,
    idempotencyKey: "key-0",
  };
  const outcome = await dispatch(createRegistry(rows), incoming, { limits, clock: options.clock ?? "real" });
  return outcome.ok ? { value: decodeValue(outcome.value) } : outcome.error;
}

describe("arguments", () => {
  const add = defineHostFunction({
    name: "add",
    doc: "Adds two numbers.",
    effect: "read",
    grant: null,
    input: z.tuple([z.number(), z.number()]),
    handler: ([a, b]) => a + b,
  });
  const rows = [
    add,
    defineHostFunction({
      name: "sum",
      doc: "Adds rows.",
      effect: "read",
      grant: null,
      input: z.tuple([z.object({ rows: z.array(z.number()) })]),
      handler: ([{ rows: numbers }]) => numbers.reduce((sum, n) => sum + n, 0),
    }),
  ];

  test("reach the handler typed and checked", async () => {
    expect(await call(rows, "add", { args: [1, 2] })).toEqual({ value: 3 });
    expect(await call(rows, "sum", { args: [{ rows: [1, 2, 3] }] })).toEqual({ value: 6 });
  });

  test.each([
    ["too few", "add", [], "add: takes at least 2 arguments", []],
    ["too many", "add", [1, 2, 3], "add: takes at most 2 arguments", []],
    ["of the wrong type", "add", [1, "2"], "add: argument 2: expected number", [1]],
    [
      "wrong deep inside",
      "sum",
      [{ rows: [1, "x"] }],
      "sum: argument 1 .rows[1]: expected number",
      [0, "rows", 1],
    ],
  ])("that are %s are refused with their path", async (_what, name, args, message, path) => {
    expect(await call(rows, name, { args })).toEqual({
      code: "invalid_arguments",
      message,
      detail: { path },
      retryable: false,
    });
  });

  test("that are no list, malformed, or regular expressions are refused", async () => {
    const handler = vi.fn();
    const spy = [row("spy", handler)];
    expect(await call(spy, "spy", { args: { a: 1 } })).toMatchObject({ code: "invalid_arguments" });
    const malformed = { text: "[1", devalue: false, attachments: [] };
    expect(await call(spy, "spy", { encoded: malformed })).toMatchObject({ code: "invalid_arguments" });
    expect(await call(spy, "spy", { args: [{ x: /(a+)+$/ }] })).toMatchObject({
      code: "invalid_arguments",
      message: expect.stringContaining("RegExp"),
    });
    expect(handler).not.toHaveBeenCalled();
    expect(
      await call([row("spy", handler, { acceptsRegExps: true })], "spy", { args: [/a/] }),
    ).toHaveProperty("value");
    expect(handler).toHaveBeenCalledOnce();
  });

  test("larger than the row allows are refused, smaller ones are not", async () => {
    const small = [row("small", ([text]) => String(text).length, { limits: { inputBytes: 100 } })];
    expect(await call(small, "small", { args: ["x".repeat(200)] })).toMatchObject({ code: "too_large" });
    expect(await call(small, "small", { args: ["x".repeat(50)] })).toEqual({ value: 50 });
  });

  test("keep awkward keys, all positions and binary data", async () => {
    const rows = [row("echo", ([value]) => value), row("two", (args) => args.length)];
    const awkward = JSON.parse('{"constructor":1,"prototype":2,"__proto__":5,"hasOwnProperty":3}');
    const answer = await call(rows, "echo", { args: [awkward] });
    expect(JSON.stringify(answer)).toBe(JSON.stringify({ value: awkward }));
    expect(await call(rows, "two", { args: [1, { a: 2 }, undefined] })).toEqual({ value: 3 });
    expect(await call(rows, "echo", { args: [new Uint8Array([0, 255, 128])] })).toEqual({
      value: new Uint8Array([0, 255, 128]),
    });
  });
});

describe("results", () => {
  test.each([
    ["a function", () => ({ a: { f: () => 1 } }), "internal", ".a.f"],
    ["a class instance", () => ({ list: [new (class Account {})()] }), "internal", ".list[0]"],
    [
      "a getter that throws",
      () => ({
        get x() {
          throw new Error("getter /home/me");
        },
      }),
      "internal",
      ".x",
    ],
    ["too much", () => "x".repeat(2 * 1024 * 1024), "result_too_large", "bytes"],
  ])("that hold %s end the call with a message that says where", async (_what, handler, code, text) => {
    const error = await call([row("f", handler)], "f");
    expect(error).toMatchObject({ code, message: expect.stringContaining(text) });
    expect(JSON.stringify(error)).not.toContain("/home");
  });

  test("are checked against the row's output schema, whose value is sent", async () => {
    const output = z.object({ id: z.number() });
    expect(await call([row("f", () => ({ id: 1, secret: 2 }), { output })], "f")).toEqual({
      value: { id: 1 },
    });
    expect(await call([row("f", () => ({ id: "x" }), { output })], "f")).toMatchObject({
      code: "internal",
      message: "f: the host function returned what its row does not allow at id",
    });
  });

  test("may be undefined", async () => {
    expect(await call([row("f", () => undefined)], "f")).toEqual({ value: undefined });
  });
});

describe("errors", () => {
  test("a HostError reaches the script as it is", async () => {
    const handler = (): never => {
      throw new HostError("not_found", "no such price", { detail: { id: 7 } });
    };
    expect(await call([row("f", handler)], "f")).toEqual({
      code: "not_found",
      message: "no such price",
      detail: { id: 7 },
      retryable: false,
    });
  });

  test("another error keeps its class and message, without stack or cause", async () => {
    const boom = Object.assign(new TypeError("boom", { cause: new Error("inner") }), { code: "E_BOOM" });
    const error = await call([row("boom", () => Promise.reject(boom))], "boom");
    expect(error).toEqual({
      code: "upstream",
      name: "TypeError",
      message: "boom",
      detail: { code: "E_BOOM" },
      retryable: false,
    });
  });

  test("an error of the operating system shows its name only", async () => {
    const { readFile } = await import("node:fs/promises");
    const error = await call([row("f", () => readFile("/nonexistent/secret-folder/x"))], "f");
    expect(error).toEqual({
      code: "io_error",
      message: "the operating system answered ENOENT",
      retryable: false,
    });
  });

  test.each([
    ["cannot open /home/ada/keys.txt", "cannot open (path)"],
    [`bad file:///etc/app/x.json here`, "bad (path) here"],
    [`in ${process.cwd()}/src/x.ts`, "in (path)"],
    ["C:\\Users\\ada\\x is locked", "(path) is locked"],
    ["GET /v1/prices answered 500", "GET /v1/prices answered 500"],
    ["see https://example.com/home/x", "see https://example.com/home/x"],
  ])("the message %j is sent as %j", async (message, sent) => {
    const handler = (): never => {
      throw new Error(message);
    };
    expect(await call([row("f", handler)], "f")).toMatchObject({ code: "upstream", message: sent });
  });

  test.each([
    ["null", null],
    ["a text", "no"],
    [
      "an error with getters that throw",
      Object.defineProperty(new Error("x"), "message", {
        get: () => {
          throw 1;
        },
      }),
    ],
  ])("a handler that throws %s is answered", async (_what, thrown) => {
    const handler = (): never => {
      throw thrown;
    };
    expect(await call([row("f", handler)], "f")).toMatchObject({ code: "upstream" });
  });

  test("an unknown name is answered by name", async () => {
    expect(await call([], "nope")).toMatchObject({
      code: "not_found",
      message: "there is no host function nope",
    });
  });
});

describe("the end of a call", () => {
  test("the script's cancellation ends it even if the handler does not listen", async () => {
    const controller = new AbortController();
    const answer = call([row("never", () => new Promise(() => {}))], "never", { signal: controller.signal });
    controller.abort();
    expect(await answer).toMatchObject({ code: "cancelled" });
  });

  test("the handler's signal is aborted with it", async () => {
    const controller = new AbortController();
    const seen = vi.fn();
    const rows = [
      row("wait", (_args, context) => {
        context.signal.addEventListener("abort", seen);
        return new Promise(() => {});
      }),
    ];
    const answer = call(rows, "wait", { signal: controller.signal });
    await new Promise(setImmediate);
    controller.abort();
    await answer;
    expect(seen).toHaveBeenCalledOnce();
  });

  test("a call that was cancelled before it began does not run", async () => {
    const handler = vi.fn();
    expect(await call([row("f", handler)], "f", { signal: AbortSignal.abort() })).toMatchObject({
      code: "cancelled",
    });
    expect(handler).not.toHaveBeenCalled();
  });

  test("the row's wallMs ends it as timeout and aborts the handler", async () => {
    let aborted = false;
    const rows = [
      row(
        "slow",
        (_args, { signal }) => {
          signal.addEventListener("abort", () => {
            aborted = true;
          });
          return new Promise(() => {});
        },
        { limits: { wallMs: 10 } },
      ),
    ];
    expect(await call(rows, "slow")).toMatchObject({ code: "timeout", retryable: true });
    expect(aborted).toBe(true);
  });

  test("a handler that fails afterwards disturbs nobody", async () => {
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    const controller = new AbortController();
    const rows = [
      row("late", () => new Promise((_, reject) => setTimeout(() => reject(new Error("late")), 5))),
    ];
    const answer = call(rows, "late", { signal: controller.signal });
    controller.abort();
    await answer;
    await new Promise((resolve) => setTimeout(resolve, 20));
    process.off("unhandledRejection", unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });
});

describe("a call that makes its signal on demand", () => {
  /** Counts how often a signal was asked for, and holds the listener. */
  class OnDemand implements IncomingCall {
    readonly position = 3;
    readonly name = "f";
    readonly args = encodeValue([]);
    readonly idempotencyKey = "key-3";
    readonly controller = new AbortController();
    asked = 0;
    listener: (() => void) | null = null;

    get signal(): AbortSignal {
      this.asked += 1;
      return this.controller.signal;
    }

    get aborted(): boolean {
      return this.controller.signal.aborted;
    }

    whenAborted(listener: (() => void) | null): void {
      this.listener = listener;
    }
  }
  const options = { limits, clock: "real", runId: "run-1" } as const;
  const send = async (call: OnDemand, handler: NonNullable<HostFunction["call"]>): Promise<CallOutcome> =>
    await dispatch(createRegistry([row("f", handler)]), call, options);

  test("makes none for a handler that does not look, and is left without a listener", async () => {
    const call = new OnDemand();
    expect(await send(call, () => Promise.resolve(1))).toMatchObject({ ok: true });
    expect(await send(call, () => 1)).toMatchObject({ ok: true });
    expect(await send(call, () => Promise.reject(new Error("no")))).toMatchObject({ ok: false });
    expect(call).toMatchObject({ asked: 0, listener: null });
  });

  test("gives it to a handler that reads its context or spreads it", async () => {
    const call = new OnDemand();
    const seen: unknown[] = [];
    await send(call, (_args, context) => seen.push(context.signal, { ...context }));
    expect(seen[0]).toBe(call.controller.signal);
    expect(seen[1]).toEqual({
      name: "f",
      position: 3,
      idempotencyKey: "key-3",
      clock: "real",
      runId: "run-1",
      signal: call.controller.signal,
    });
  });

  test("is ended by its listener alone", async () => {
    const call = new OnDemand();
    const answer = send(call, () => new Promise(() => {}));
    call.controller.abort();
    call.listener?.();
    expect(await answer).toMatchObject({ ok: false, error: { code: "cancelled" } });
    expect(call).toMatchObject({ asked: 0, listener: null });
    const handler = vi.fn();
    expect(await send(call, handler)).toMatchObject({ ok: false, error: { code: "cancelled" } });
    expect(handler).not.toHaveBeenCalled();
  });

  test("answers in the same turn when nothing is waited for", () => {
    const outcome = dispatch(createRegistry([row("f", () => 1)]), new OnDemand(), options);
    expect(outcome).toMatchObject({ ok: true });
  });
});

describe("the end of a call that changes something outside", () => {
  /** Aborts it once it has begun. */
  async function aborted(
    handler: (signal: AbortSignal) => Promise<unknown>,
    effect: "keyed" | "once" | "read",
  ): Promise<unknown> {
    const controller = new AbortController();
    let begin = (): void => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const rows = [
      row(
        "f",
        (_args, { signal }) => {
          begin();
          return handler(signal);
        },
        { effect },
      ),
    ];
    const answer = call(rows, "f", { signal: controller.signal });
    await begun;
    controller.abort();
    return await answer;
  }
  const onAbort = (
    signal: AbortSignal,
    settle: (reject: (error: unknown) => void) => void,
  ): Promise<unknown> => new Promise((_, reject) => signal.addEventListener("abort", () => settle(reject)));
  const never = (): Promise<unknown> => new Promise(() => {});

  test.each(["keyed", "once"] as const)(
    "%s: unknown when the handler does not say how it ended",
    async (effect) => {
      expect(await aborted(never, effect)).toMatchObject({
        code: "outcome_unknown",
        message: expect.stringContaining("may have taken effect"),
      });
    },
  );

  test("unknown when the handler only passes the interruption on", async () => {
    const passes = (signal: AbortSignal): Promise<unknown> =>
      onAbort(signal, (reject) => reject(new DOMException("This operation was aborted", "AbortError")));
    expect(await aborted(passes, "once")).toMatchObject({ code: "outcome_unknown" });
    // The control: a read that is interrupted was only a read.
    expect(await aborted(passes, "read")).toMatchObject({ code: "cancelled" });
  });

  test("cancelled when the handler says that nothing happened, its result when it happened", async () => {
    const nothing = (signal: AbortSignal): Promise<unknown> =>
      onAbort(signal, (reject) => reject(new HostError("cancelled", "not sent yet")));
    expect(await aborted(nothing, "once")).toMatchObject({ code: "cancelled", message: "not sent yet" });
    const done = (signal: AbortSignal): Promise<unknown> =>
      new Promise((resolve) => signal.addEventListener("abort", () => setTimeout(() => resolve("done"), 5)));
    expect(await aborted(done, "once")).toEqual({ value: "done" });
  });

  test("unknown when the row's wallMs passes; a timeout that the handler itself reports stays one", async () => {
    const late = row("late", never, { effect: "once", limits: { wallMs: 10 } });
    expect(await call([late], "late")).toMatchObject({ code: "outcome_unknown" });
    const refused = row("refused", () => Promise.reject(new HostError("timeout", "no connection")), {
      effect: "once",
      limits: { wallMs: 60_000 },
    });
    expect(await call([refused], "refused")).toMatchObject({ code: "timeout" });
  });

  test("unknown when the handler answers what its row does not allow or what cannot be sent", async () => {
    const output = z.object({ id: z.number() });
    const answers = [{ id: "x" }, { id: 1n, f: () => 1 }];
    for (const answer of answers) {
      for (const effect of ["keyed", "once"] as const) {
        const broken = row("f", () => answer, { effect, output });
        expect(await call([broken], "f")).toMatchObject({
          code: "outcome_unknown",
          retryable: false,
          detail: { cause: "internal" },
        });
      }
    }
    const unsent = row("f", () => () => 1, { effect: "once" });
    expect(await call([unsent], "f")).toMatchObject({ code: "outcome_unknown" });
    const large = row("f", () => "x".repeat(2 * 1024 * 1024), { effect: "once" });
    expect(await call([large], "f")).toMatchObject({ code: "result_too_large" });
  });

  test("cancelled when it was aborted before it began", async () => {
    const handler = vi.fn();
    const rows = [row("f", handler, { effect: "once" })];
    expect(await call(rows, "f", { signal: AbortSignal.abort() })).toMatchObject({ code: "cancelled" });
    expect(handler).not.toHaveBeenCalled();
  });
});

describe("sleep", () => {
  test("waits and answers nothing", async () => {
    const start = performance.now();
    expect(await call(builtIns, "sleep", { args: [20] })).toEqual({ value: undefined });
    expect(performance.now() - start).toBeGreaterThan(15);
  });

  test("does not wait in virtual time", async () => {
    expect(await call(builtIns, "sleep", { args: [sleepMsMax], clock: "virtual" })).toEqual({
      value: undefined,
    });
  });

  test("ends at once when it is cancelled", async () => {
    const controller = new AbortController();
    const answer = call(builtIns, "sleep", { args: [sleepMsMax], signal: controller.signal });
    controller.abort();
    expect(await answer).toMatchObject({ code: "cancelled" });
  });

  test.each([[[]], [[-1]], [[sleepMsMax + 1]], [["1"]], [[Number.NaN]], [[1, 2]]])(
    "refuses %j",
    async (args) => {
      expect(await call(builtIns, "sleep", { args })).toMatchObject({ code: "invalid_arguments" });
    },
  );
});
