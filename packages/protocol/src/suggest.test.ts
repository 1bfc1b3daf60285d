/** "Did you mean". */

import { describe, expect, it } from "vitest";
import { didYouMean } from "./suggest.js";

const names = ["cpuMs", "wallMs", "heapBytes", "stackBytes"] as const;

describe("didYouMean", () => {
  it("finds the nearest name within a third of the word", () => {
    expect(didYouMean("cpums", names)).toBe("cpuMs");
    expect(didYouMean("wallMS", names)).toBe("wallMs");
    expect(didYouMean("heapBtyes", names)).toBe("heapBytes");
    expect(didYouMean("stackByte", names)).toBe("stackBytes");
  });

  it("finds nothing for what is near to nothing", () => {
    for (const word of ["", "x", "timeout", "banana", "y".repeat(10_000)])
      expect(didYouMean(word, names)).toBeUndefined();
  });
});
