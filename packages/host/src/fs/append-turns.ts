/**
 * The order of appends to one file by this process. After a crash, whether an append happened is told by the size before
 * it and the bytes that follow; that proof holds only if no other append came in between. So appends to one file are made
 * in the order in which their sizes were noted, and one that was noted while another was open says so.
 *
 * Kept true: a turn ends with its handler, which may write on after its call was aborted; one whose handler has not begun
 * ends with the abortion of its call; nobody waits longer than `waitMs` for others.
 */

/** Longer than any append takes on a disk that works. */
const waitMs = 30_000;

interface Turn {
  readonly key: string;
  readonly ended: Promise<void>;
  readonly end: () => void;
  /** Its handler has begun, and ends it. */
  begun: boolean;
}

export class AppendTurns {
  readonly #open = new Map<string, Turn[]>();

  /** Takes a turn for a call. True when no other is open for this file. */
  take(file: string, key: string, signal: AbortSignal): boolean {
    const turns = this.#open.get(file) ?? [];
    this.#open.set(file, turns);
    const isAlone = turns.every((turn) => turn.key === key);
    let settle: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const onAbort = (): void => {
      if (!turn.begun) end();
    };
    const end = (): void => {
      signal.removeEventListener("abort", onAbort);
      const at = turns.indexOf(turn);
      if (at >= 0) turns.splice(at, 1);
      if (turns.length === 0 && this.#open.get(file) === turns) this.#open.delete(file);
      settle();
    };
    const turn: Turn = { key, ended, end, begun: false };
    turns.push(turn);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) end();
    return isAlone;
  }

  /**
   * The handler of a call begins: waits until every turn before that of this call has ended; at once for a call that took
   * none. `end` follows.
   */
  async wait(file: string, key: string): Promise<void> {
    const turns = this.#open.get(file) ?? [];
    for (const turn of turns) if (turn.key === key) turn.begun = true;
    const mine = turns.findIndex((turn) => turn.key === key);
    const before = turns.slice(0, Math.max(mine, 0)).map(({ ended }) => ended);
    if (before.length === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, waitMs);
    });
    try {
      await Promise.race([Promise.all(before), enough]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends the turn of a call, whatever file it was for. */
  end(key: string): void {
    for (const turns of [...this.#open.values()]) {
      for (const turn of [...turns]) if (turn.key === key) turn.end();
    }
  }
}
