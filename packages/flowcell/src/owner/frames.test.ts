// Frames of the owner's socket: whole messages from any split, and bytes that are none.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FrameError, FrameReader, frameOf } from "./frames.js";

describe("frames", () => {
  test("messages come out as they went in, however the bytes are split", () => {
    fc.assert(
      fc.property(
        fc.array(fc.jsonValue(), { maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 40 })),
        (messages, cuts) => {
          const bytes = Buffer.concat(messages.map((message) => frameOf(message, 1 << 20)));
          const reader = new FrameReader(1 << 20);
          const got: unknown[] = [];
          let at = 0;
          for (const cut of [...cuts, bytes.length]) {
            got.push(...reader.push(bytes.subarray(at, at + cut)));
            at = Math.min(bytes.length, at + cut);
          }
          expect(got).toEqual(JSON.parse(JSON.stringify(messages)));
          expect(reader.partial).toBe(false);
        },
      ),
    );
  });

  test("a length above the bound is refused from its head alone", () => {
    expect(() => new FrameReader(10).push(Buffer.from([0, 0, 0, 11]))).toThrow(FrameError);
    expect(() => frameOf("12345678901", 10)).toThrow(FrameError);
  });

  test.each([
    ["no JSON", Buffer.from("{")],
    ["no UTF-8", Buffer.from([0x22, 0xff, 0x22])],
    ["nothing", Buffer.alloc(0)],
  ])("a frame that holds %s is refused", (_what, body) => {
    const head = Buffer.alloc(4);
    head.writeUInt32BE(body.length);
    expect(() => new FrameReader(100).push(Buffer.concat([head, body]))).toThrow(FrameError);
  });
});
