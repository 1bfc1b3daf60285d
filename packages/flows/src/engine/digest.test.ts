// The digest of a call against its layout, written out by hand.
import { createHash } from "node:crypto";
import type { EncodedValue } from "@flowcell/protocol";
import { describe, expect, test } from "vitest";
import { callDigest } from "./digest.js";

function value(text: string, devalue = false, ...attachments: Uint8Array[]): EncodedValue {
  return { text, devalue, attachments };
}

function u32(n: number): Buffer {
  return Buffer.from([n & 255, (n >> 8) & 255, (n >> 16) & 255, n >>> 24]);
}

function byLayout(name: string, { text, devalue, attachments }: EncodedValue): string {
  const part = (bytes: Uint8Array): Buffer => Buffer.concat([u32(bytes.byteLength), bytes]);
  const bytes = Buffer.concat([
    part(Buffer.from(name)),
    Buffer.from([devalue ? 1 : 0]),
    part(Buffer.from(text)),
    u32(attachments.length),
    ...attachments.map(part),
  ]);
  return createHash("sha256").update(bytes).digest("hex");
}

const bytes = new Uint8Array([0, 1, 255]);

describe("the digest of a call", () => {
  test.each([
    ["short", "kv.get", value('["a"]')],
    ["empty", "f", value("")],
    ["devalue", "f", value("[[1],-1]", true)],
    ["beyond ASCII", "f", value('["é😀"]')],
    ["with attachments", "f", value('["a"]', true, bytes, new Uint8Array())],
    ["as long as the scratch buffer", "f", value("x".repeat(21_800))],
    ["longer than the scratch buffer", "f", value("é".repeat(60_000))],
  ])("%s: is that of its layout", (_, name, args) => {
    expect(callDigest(name, args)).toBe(byLayout(name, args));
  });

  test("tells apart what only its lengths and marks tell apart", () => {
    const digests = [
      callDigest("ab", value("c")),
      callDigest("a", value("bc")),
      callDigest("ab", value("c", true)),
      callDigest("ab", value("c", false, new Uint8Array())),
      callDigest("ab", value("c", false, bytes)),
      callDigest("ab", value("c", false, bytes.subarray(0, 1), bytes.subarray(1))),
    ];
    expect(new Set(digests).size).toBe(digests.length);
  });

  test("a stored history can be checked for ever: a known value", () => {
    expect(callDigest("kv.get", value('["a"]'))).toBe(
      "c956b8fcb62227583232aeac441d83be09ef1379f3e241cb242f9dfed1c08c5e",
    );
  });
});
