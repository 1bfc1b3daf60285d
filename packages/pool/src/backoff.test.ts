// The pause between failed starts.
import { describe, expect, it } from "vitest";
import { StartBackoff } from "./backoff.js";

describe("StartBackoff", () => {
  it("doubles from 250 ms to 30 s and stays there", () => {
    const backoff = new StartBackoff();
    const pauses: number[] = [];
    for (let i = 0; i < 10; i++) {
      const now = i * 100_000;
      backoff.failed(now);
      pauses.push(backoff.notBefore - now);
    }
    expect(pauses).toEqual([250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  });

  it("starts over after one success", () => {
    const backoff = new StartBackoff();
    backoff.failed(0);
    backoff.failed(0);
    backoff.succeeded();
    expect(backoff.notBefore).toBeLessThan(0);
    expect(backoff.failures).toBe(0);
    backoff.failed(1000);
    expect(backoff.notBefore).toBe(1250);
  });
});
