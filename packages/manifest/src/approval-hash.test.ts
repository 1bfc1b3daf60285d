/** The approval hash: fixed vectors made by other tools, and that nothing can change without changing it. */

import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ApprovalInput, type ApprovalParts, approvalHash } from "./approval-hash.js";

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function input(path: string, content: string): ApprovalInput {
  return { path, bytes: bytes(content) };
}

const example: ApprovalParts = {
  manifestBytes: bytes('{"format":1,"id":"a"}'),
  inputs: [input("flow.ts", "export default async () => 1;\n"), input("node_modules/ms/index.js", "x")],
  bundleBytes: bytes("bundle"),
};

describe("vectors", () => {
  // The hexadecimal text is what the head of approval-hash.ts describes, written out by hand.
  test("nothing at all", () => {
    const empty = { manifestBytes: bytes(""), inputs: [], bundleBytes: bytes("") };
    const written = `0000000000000013${hex("flowcell-approval-1")}${"00".repeat(8)}${"00".repeat(8)}${"00".repeat(8)}`;
    expect(approvalHash(empty)).toBe(sha256(written));
    expect(approvalHash(empty)).toBe("d7ed8766a05216733e1ad328fc4fe5b42bf7dfff3bb2994dd3ae09891553510c");
  });

  test("a manifest, two inputs and a bundle", () => {
    const written = [
      `0000000000000013${hex("flowcell-approval-1")}`,
      `0000000000000015${hex('{"format":1,"id":"a"}')}`,
      "0000000000000002",
      `0000000000000007${hex("flow.ts")}`,
      `000000000000001e${hex("export default async () => 1;\n")}`,
      `0000000000000018${hex("node_modules/ms/index.js")}`,
      `0000000000000001${hex("x")}`,
      `0000000000000006${hex("bundle")}`,
    ].join("");
    expect(approvalHash(example)).toBe(sha256(written));
    expect(approvalHash(example)).toBe("660a716e411cf559708ed61078dc1157a8dc18a31958d1c5ad6e0e60ffad0060");
  });

  test("paths are sorted by their bytes, not by UTF-16 units", () => {
    // U+FF5E is above U+1F4A7 in UTF-16 units and below it in UTF-8.
    const inputs = [input("\u{1f4a7}", "1"), input("\uff5e", "2"), input("a", "3"), input("B", "4")];
    const written = [
      `0000000000000013${hex("flowcell-approval-1")}`,
      "0000000000000000",
      "0000000000000004",
      `0000000000000001${hex("B")}0000000000000001${hex("4")}`,
      `0000000000000001${hex("a")}0000000000000001${hex("3")}`,
      `0000000000000003${hex("\uff5e")}0000000000000001${hex("2")}`,
      `0000000000000004${hex("\u{1f4a7}")}0000000000000001${hex("1")}`,
      "0000000000000000",
    ].join("");
    expect(approvalHash({ manifestBytes: bytes(""), inputs, bundleBytes: bytes("") })).toBe(sha256(written));
  });
});

function hex(text: string): string {
  return Buffer.from(text, "utf8").toString("hex");
}

function sha256(hexText: string): string {
  return createHash("sha256").update(Buffer.from(hexText, "hex")).digest("hex");
}

const content = fc.uint8Array({ maxLength: 8 });
const name = fc
  .string({ unit: fc.constantFrom("a", "b", "ä", "."), minLength: 1, maxLength: 4 })
  .map((text) => `${text}x`);
const parts: fc.Arbitrary<ApprovalParts> = fc.record({
  manifestBytes: content,
  inputs: fc.uniqueArray(
    fc.record({
      path: fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join("/")),
      bytes: content,
    }),
    { maxLength: 4, selector: (each) => each.path },
  ),
  bundleBytes: content,
});

/** The parts as one list of byte strings, in the order in which they are hashed. */
function flat(from: ApprovalParts): Buffer[] {
  const sorted = from.inputs
    .map(({ path, bytes: inside }) => [Buffer.from(path), Buffer.from(inside)])
    .sort(([a = Buffer.alloc(0)], [b = Buffer.alloc(0)]) => a.compare(b));
  return [Buffer.from(from.manifestBytes), ...sorted.flat(), Buffer.from(from.bundleBytes)];
}

function unflat(list: readonly Buffer[]): ApprovalParts {
  const inner = list.slice(1, -1);
  const inputs = inner.flatMap((path, index) => {
    return index % 2 === 0 ? [{ path: path.toString(), bytes: inner[index + 1] ?? Buffer.alloc(0) }] : [];
  });
  return { manifestBytes: list[0] ?? Buffer.alloc(0), inputs, bundleBytes: list.at(-1) ?? Buffer.alloc(0) };
}

describe("properties", () => {
  test("the order in which inputs are given does not matter", () => {
    fc.assert(
      fc.property(parts, (each) => {
        expect(approvalHash({ ...each, inputs: [...each.inputs].reverse() })).toBe(approvalHash(each));
      }),
    );
  });

  test("moving a byte between any two neighbouring parts changes the hash", () => {
    let moved = 0;
    const check = (each: ApprovalParts): void => {
      const list = flat(each);
      for (let index = 0; index + 1 < list.length; index++) {
        const left = list[index] ?? Buffer.alloc(0);
        const right = list[index + 1] ?? Buffer.alloc(0);
        const forward = [left.subarray(0, -1), Buffer.concat([left.subarray(-1), right])];
        const backward = [Buffer.concat([left, right.subarray(0, 1)]), right.subarray(1)];
        for (const [pair, empty] of [
          [forward, left.length === 0],
          [backward, right.length === 0],
        ] as const) {
          if (empty) continue;
          const other = unflat([...list.slice(0, index), ...pair, ...list.slice(index + 2)]);
          let hash: string;
          try {
            hash = approvalHash(other);
          } catch (error) {
            // A byte moved into or out of a path can make it none, which is refused.
            expect(error).toBeInstanceOf(RangeError);
            continue;
          }
          moved++;
          expect(hash).not.toBe(approvalHash(each));
        }
      }
    };
    check(example);
    fc.assert(fc.property(parts, check));
    expect(moved).toBeGreaterThan(100);
  });

  test("different parts have different hashes", () => {
    fc.assert(
      fc.property(parts, parts, (a, b) => {
        const same = JSON.stringify(flat(a)) === JSON.stringify(flat(b));
        expect(approvalHash(a) === approvalHash(b)).toBe(same);
      }),
    );
  });

  test("any flipped bit of any part changes the hash", () => {
    const list = flat(example);
    for (const [index, part] of list.entries()) {
      const changed = Buffer.from(part);
      changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
      expect(approvalHash(unflat(list.with(index, changed)))).not.toBe(approvalHash(example));
    }
  });
});

test.each([
  "",
  "/etc/passwd",
  "../x",
  "a/../b",
  "a/..",
  "./a",
  "a/./b",
  "a//b",
  "a/",
  "a\\b",
  "C:/x",
  "c:x",
  "a\0b",
  "a\ud800",
])("the path %j is refused", (path) => {
  expect(() => approvalHash({ ...example, inputs: [input(path, "x")] })).toThrow(RangeError);
});

test("a path that stands there twice is refused", () => {
  const inputs = [input("a", "1"), input("b", "1"), input("a", "1")];
  expect(() => approvalHash({ ...example, inputs })).toThrow('two inputs have the path "a"');
});
