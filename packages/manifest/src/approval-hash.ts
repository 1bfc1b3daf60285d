/**
 * The hash that an approval binds to: what a reviewer saw, and nothing else, may run. Called when a flow is installed, when
 * it is approved, and before every activation.
 *
 * The hash is SHA-256, written as 64 hexadecimal digits in lower case, of these bytes in this order:
 *
 *     part(tag)            tag = "flowcell-approval-1" in ASCII
 *     part(manifest)       the bytes of flow.json as they are in the file, comments and all
 *     u64(count)           how many inputs follow
 *     count times:
 *       part(path)         relative to the flow's folder, POSIX, in UTF-8
 *       part(content)      the bytes of that file
 *     part(bundle)         the bytes of the script that runs
 *
 *     part(x) = u64(length of x in bytes) followed by x
 *     u64(n)  = n as eight bytes, the highest first
 *
 * The inputs are every file that went into the bundle, those of node_modules included, in ascending order of the bytes of
 * their paths. The function puts them into that order; it throws for paths that would let one set of files have two
 * descriptions or two sets have one.
 *
 * Kept true: every part says its length before its bytes, so that no byte can be moved from one part to a neighbour without
 * changing what is hashed, and the tag changes when this layout does.
 */

import { createHash } from "node:crypto";

export interface ApprovalInput {
  /** Such as "lib/prices.ts" or "node_modules/ms/index.js". */
  readonly path: string;
  readonly bytes: Uint8Array;
}

export interface ApprovalParts {
  readonly manifestBytes: Uint8Array;
  readonly inputs: readonly ApprovalInput[];
  readonly bundleBytes: Uint8Array;
}

const tag = "flowcell-approval-1";

/** Throws a RangeError for a path that is not relative and in normal form, or that stands there twice. */
export function approvalHash(parts: ApprovalParts): string {
  const inputs = parts.inputs.map(({ path, bytes }) => ({ path: pathBytes(path), bytes }));
  inputs.sort((a, b) => Buffer.compare(a.path, b.path));
  inputs.forEach(({ path }, index) => {
    const next = inputs[index + 1];
    if (next?.path.equals(path))
      throw new RangeError(`two inputs have the path ${JSON.stringify(path.toString())}`);
  });
  const hash = createHash("sha256");
  const part = (bytes: Uint8Array): void => {
    hash.update(u64(bytes.byteLength));
    hash.update(bytes);
  };
  part(Buffer.from(tag, "ascii"));
  part(parts.manifestBytes);
  hash.update(u64(inputs.length));
  for (const { path, bytes } of inputs) {
    part(path);
    part(bytes);
  }
  part(parts.bundleBytes);
  return hash.digest("hex");
}

function pathBytes(path: string): Buffer {
  const components = path.split("/");
  const normal = components.every((name) => name !== "" && name !== "." && name !== "..");
  // A drive letter is absolute on Windows; a lone surrogate has no UTF-8 and would be hashed as another character.
  if (!normal || /[\\\0]|^[A-Za-z]:|\p{Surrogate}/u.test(path)) {
    throw new RangeError(`${JSON.stringify(path)} is not a relative POSIX path in normal form`);
  }
  return Buffer.from(path, "utf8");
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}
