/**
 * Images, sound and resources that tools answered with, by the execution whose script called them, until its result is sent.
 * server.ts opens a box before a script runs; upstreams.ts puts in what servers send.
 *
 * Kept true: bounded in number and size for each execution; what has no room is counted, never dropped in silence.
 */

import type { ContentBlock } from "@modelcontextprotocol/sdk/types.js";

export interface Box {
  readonly kept: readonly ContentBlock[];
  /** That had no room. */
  readonly dropped: number;
}

const keptMost = 16;
const charsMost = 8 * 1024 * 1024;

interface OpenBox {
  readonly kept: ContentBlock[];
  chars: number;
  dropped: number;
}

export class Attachments {
  readonly #boxes = new Map<string, OpenBox>();

  open(runId: string): void {
    if (!this.#boxes.has(runId)) this.#boxes.set(runId, { kept: [], chars: 0, dropped: 0 });
  }

  /** Nothing happens for an execution whose result was sent. */
  add(runId: string, content: readonly ContentBlock[]): void {
    const box = this.#boxes.get(runId);
    if (box === undefined) return;
    for (const block of content) {
      const chars = JSON.stringify(block).length;
      if (box.kept.length >= keptMost || box.chars + chars > charsMost) {
        box.dropped += 1;
        continue;
      }
      box.kept.push(block);
      box.chars += chars;
    }
  }

  take(runId: string): Box {
    const box = this.#boxes.get(runId);
    this.#boxes.delete(runId);
    return box ?? { kept: [], dropped: 0 };
  }
}
