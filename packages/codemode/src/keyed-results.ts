/**
 * Results under idempotency keys, where nothing is journaled: a second execution under a key is the first one. execute.ts asks
 * for each execution that has a key.
 *
 * Kept true: what never started is not remembered, so that the key can be tried again; what is remembered is bounded in number
 * and in bytes, the oldest goes first; whoever waits for somebody else's execution may give up without ending it.
 */

import { createHash } from "node:crypto";
import { notStarted } from "@flowcell/bundle";
import { encodeValue, ValueError } from "@flowcell/protocol";
import type { ExecuteResult } from "./result.js";
import { newRunId } from "./run-id.js";

interface Kept {
  readonly codeHash: string;
  readonly result: Promise<ExecuteResult>;
  bytes: number;
}

export interface KeyedBounds {
  readonly keys?: number;
  readonly bytes?: number;
}

const keysDefault = 1024;
const bytesDefault = 64 * 1024 * 1024;
/** Of a result without its value, texts and lines. */
const resultBytes = 1024;

/** What an execution is told whose key belongs to another script. */
export const otherScript = "the idempotencyKey was used for another script; use one key for one script";

export class KeyedResults {
  readonly #byKey = new Map<string, Kept>();
  readonly #keysMost: number;
  readonly #bytesMost: number;
  #bytes = 0;

  constructor(bounds: KeyedBounds = {}) {
    this.#keysMost = bounds.keys ?? keysDefault;
    this.#bytesMost = bounds.bytes ?? bytesDefault;
  }

  /** Undefined when the key was used for another script. */
  once(
    key: string,
    code: string,
    signal: AbortSignal | undefined,
    run: () => Promise<ExecuteResult>,
  ): Promise<ExecuteResult> | undefined {
    const codeHash = createHash("sha256").update(code).digest("base64url");
    const known = this.#byKey.get(key);
    if (known !== undefined) return known.codeHash === codeHash ? watched(known.result, signal) : undefined;
    const kept: Kept = { codeHash, result: run(), bytes: 0 };
    this.#byKey.set(key, kept);
    this.#shrink(key);
    void kept.result.then(
      (result) => this.#ended(key, kept, result),
      () => this.#forget(key, kept),
    );
    return kept.result;
  }

  #ended(key: string, kept: Kept, result: ExecuteResult): void {
    if (this.#byKey.get(key) !== kept) return;
    if (!result.started) {
      this.#forget(key, kept);
      return;
    }
    kept.bytes = heldBytes(result);
    this.#bytes += kept.bytes;
    this.#shrink(key);
  }

  /** The one that was just used stays, whatever it holds. */
  #shrink(used: string): void {
    for (const [oldest, kept] of this.#byKey) {
      if (this.#byKey.size <= this.#keysMost && this.#bytes <= this.#bytesMost) break;
      if (oldest !== used) this.#forget(oldest, kept);
    }
  }

  #forget(key: string, kept: Kept): void {
    if (this.#byKey.get(key) !== kept) return;
    this.#byKey.delete(key);
    this.#bytes -= kept.bytes;
  }
}

/** What a result holds, near enough: its texts as they crossed. */
function heldBytes(result: ExecuteResult): number {
  let bytes = resultBytes + result.calls.length * resultBytes;
  for (const { text } of result.logs) bytes += text.length;
  if (!result.ok) return bytes + (result.error.stack?.length ?? 0);
  try {
    const { text, attachments } = encodeValue(result.value, encodingBounds);
    return attachments.reduce((sum, part) => sum + part.byteLength, bytes + text.length);
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    // It came from a worker, so that nothing else is larger than this.
    return bytes + result.usage.bytesIn;
  }
}

const encodingBounds = {
  textBytes: 256 * 1024 * 1024,
  attachmentBytes: 256 * 1024 * 1024,
  nodes: 64 * 1024 * 1024,
};

/** The result of somebody else's execution, which goes on when this caller gives up. */
export async function watched(
  result: Promise<ExecuteResult>,
  signal: AbortSignal | undefined,
): Promise<ExecuteResult> {
  if (signal === undefined) return await result;
  let gaveUp = (): void => undefined;
  const left = new Promise<ExecuteResult>((resolve) => {
    gaveUp = () => {
      const message = "the caller gave up; the execution under this idempotencyKey goes on";
      resolve(notStarted(newRunId(), "cancelled", { code: "caller", message }));
    };
  });
  if (signal.aborted) gaveUp();
  else signal.addEventListener("abort", gaveUp, { once: true });
  try {
    return await Promise.race([result, left]);
  } finally {
    signal.removeEventListener("abort", gaveUp);
  }
}
