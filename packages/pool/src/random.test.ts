// Random pieces: never the same twice, never changed by a later one.
import { describe, expect, it } from "vitest";
import { freshBytes } from "./random.js";

describe("freshBytes", () => {
  it("gives pieces of the wanted length that are all different, over many refills", () => {
    const seen = new Set<string>();
    let count = 0;
    for (let round = 0; round < 400; round += 1) {
      for (const length of [16, 32, 33, 64, 65, 200]) {
        const piece = freshBytes(length);
        expect(piece.byteLength).toBe(length);
        // Every window of 16 bytes, so that an overlap of two pieces shows too.
        for (let from = 0; from + 16 <= length; from += 1) {
          seen.add(piece.toString("latin1", from, from + 16));
          count += 1;
        }
      }
    }
    expect(seen.size).toBe(count);
  });

  it("gives memory that nobody else writes to or reads", () => {
    const first = freshBytes(32);
    const kept = first.toString("hex");
    for (let index = 0; index < 1000; index += 1) freshBytes(32).fill(7);
    expect(first.toString("hex")).toBe(kept);
    expect(freshBytes(32).equals(Buffer.alloc(32, 7))).toBe(false);
  });
});
