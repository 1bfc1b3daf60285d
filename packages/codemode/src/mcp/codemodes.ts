/**
 * The codemode of an MCP server whose tools change while it serves: a codemode's tools are fixed, so other tools are another one.
 * server.ts runs scripts through it.
 *
 * Without a store the earlier codemode goes on beside the new one for as long as scripts wait in it, since their journal is its
 * own. A store has one owner: there the earlier one ends first, as soon as nothing runs, and the new one takes up what waits,
 * as after a restart; requests that come in between wait.
 * Kept true: no script is ended by a change of tools; a set of tools that cannot be offered changes nothing; at most
 * `retiredMost` earlier ones are open, and nothing is after `close`.
 */

import type { Codemode } from "../codemode.js";
import type { ExecuteResult } from "../result.js";
import type { ToolSet } from "../tools.js";

export interface CodemodesParts {
  /** Makes one for the tools of the moment. */
  readonly make: () => Promise<Codemode>;
  /** Throws when the tools of the moment cannot be offered. */
  readonly check: () => void;
  /** Whether the codemodes keep executions in the same store. */
  readonly stored: boolean;
  /** Told of other tools when scripts have them. Must not throw. */
  readonly onTools: (tools: ToolSet) => void;
  /** For the operator. Must not throw. */
  readonly onNote: (text: string) => void;
}

interface Opened {
  readonly codemode: Codemode;
  running: number;
  over: boolean;
  whenIdle: (() => void) | undefined;
}

const retiredMost = 4;

export class Codemodes {
  readonly #parts: CodemodesParts;
  #current: Promise<Opened>;
  #retired: Opened[] = [];
  /** Where executions wait that were suspended here. */
  readonly #waiting = new Map<string, Opened>();
  #asked = false;
  #renewing: Promise<void> | undefined;
  #closed = false;

  private constructor(parts: CodemodesParts, first: Promise<Opened>) {
    this.#parts = parts;
    this.#current = first;
  }

  static async open(parts: CodemodesParts): Promise<Codemodes> {
    const first = await opened(parts);
    return new Codemodes(parts, Promise.resolve(first));
  }

  async tools(): Promise<ToolSet> {
    return (await this.#current).codemode.tools;
  }

  /** `runId`: of an execution that `work` goes on with. */
  async use(
    runId: string | undefined,
    work: (codemode: Codemode) => Promise<ExecuteResult>,
  ): Promise<ExecuteResult> {
    const one = await this.#enter(runId);
    try {
      const result = await work(one.codemode);
      if (result.status === "suspended") this.#waiting.set(result.runId, one);
      // An earlier codemode still knows how it ended, for who asks again.
      else if (!this.#retired.includes(one)) this.#waiting.delete(result.runId);
      return result;
    } finally {
      one.running -= 1;
      if (one.running === 0) one.whenIdle?.();
    }
  }

  /** The tools are others now. */
  renew(): void {
    this.#asked = true;
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    const current = await this.#current.catch(() => undefined);
    await Promise.all([...this.#retired, current].map((one) => one?.codemode.close()));
    await this.#renewing;
  }

  async #enter(runId: string | undefined): Promise<Opened> {
    for (;;) {
      const one = (runId === undefined ? undefined : this.#waiting.get(runId)) ?? (await this.#current);
      // It may have ended while this waited for its turn.
      if (one.over && !this.#closed) {
        if (runId !== undefined) this.#waiting.delete(runId);
        continue;
      }
      one.running += 1;
      return one;
    }
  }

  async #renew(): Promise<void> {
    while (this.#asked && !this.#closed) {
      this.#asked = false;
      try {
        this.#parts.check();
        const old = await this.#current;
        await (this.#parts.stored ? this.#replace(old) : this.#addBeside(old));
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        this.#parts.onNote(`the tools changed and cannot be offered: ${reason}`);
      }
    }
  }

  async #replace(old: Opened): Promise<void> {
    if (old.running > 0)
      await new Promise<void>((resolve) => {
        old.whenIdle = resolve;
      });
    if (this.#closed) return;
    // In the same turn as what was looked at: nothing enters the old one from here.
    old.over = true;
    this.#current = old.codemode.close().then(() => opened(this.#parts));
    this.#parts.onTools((await this.#current).codemode.tools);
  }

  async #addBeside(old: Opened): Promise<void> {
    const next = await opened(this.#parts);
    if (this.#closed) {
      await next.codemode.close();
      return;
    }
    this.#current = Promise.resolve(next);
    this.#parts.onTools(next.codemode.tools);
    this.#retired.push(old);
    await this.#endRetired();
  }

  async #endRetired(): Promise<void> {
    const retired = this.#retired;
    const kept: Opened[] = [];
    for (const [index, one] of retired.entries()) {
      const waits = (await one.codemode.pending()).length > 0;
      const isOld = index < retired.length - retiredMost;
      if (one.running > 0 || (waits && !isOld)) {
        kept.push(one);
        continue;
      }
      if (waits)
        this.#parts.onNote("scripts that waited since before several changes of the tools are given up");
      one.over = true;
      await one.codemode.close();
    }
    this.#retired = kept;
    for (const [runId, one] of this.#waiting) if (one.over) this.#waiting.delete(runId);
  }
}

async function opened({ make }: CodemodesParts): Promise<Opened> {
  return { codemode: await make(), running: 0, over: false, whenIdle: undefined };
}
