/**
 * The digest of a host call: what a replay compares with what was recorded. Computed once for each call, by the engine.
 *
 * SHA-256, hexadecimal, over, all integers unsigned and little-endian:
 *   u32  bytes of the name           then the name, UTF-8
 *   u8   0: the text is JSON, 1: it is devalue
 *   u32  bytes of the text           then the text, UTF-8
 *   u32  number of attachments, and for each
 *   u32  its bytes                   then the bytes
 * Every part is behind its length, so no two calls share an encoding. A lone surrogate is U+FFFD in UTF-8: names never have
 * one, and encoders escape them in texts.
 */

import { createHash, hash } from "node:crypto";
import type { EncodedValue } from "@flowcell/protocol";

/** Almost every call fits; it is filled and hashed before anything else can run. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024);
const numbersBytes = 4 + 1 + 4 + 4;

export function callDigest(name: string, args: EncodedValue): string {
  const { text, devalue, attachments } = args;
  // Three bytes for each UTF-16 unit at most.
  if (attachments.length === 0 && numbersBytes + 3 * (name.length + text.length) <= scratch.length) {
    const nameBytes = scratch.write(name, 4);
    scratch.writeUInt32LE(nameBytes, 0);
    let at = 4 + nameBytes;
    scratch[at] = devalue ? 1 : 0;
    const textBytes = scratch.write(text, at + 5);
    scratch.writeUInt32LE(textBytes, at + 1);
    at += 5 + textBytes;
    scratch.writeUInt32LE(0, at);
    return hash("sha256", scratch.subarray(0, at + 4), "hex");
  }
  const digest = createHash("sha256");
  const u32 = Buffer.alloc(4);
  const put = (bytes: Uint8Array): void => {
    u32.writeUInt32LE(bytes.byteLength);
    digest.update(u32);
    digest.update(bytes);
  };
  put(Buffer.from(name));
  digest.update(devalue ? "\x01" : "\x00");
  put(Buffer.from(text));
  u32.writeUInt32LE(attachments.length);
  digest.update(u32);
  for (const part of attachments) put(part);
  return digest.digest("hex");
}
