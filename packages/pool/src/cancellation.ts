/**
 * One listener for each AbortSignal, however many activations carry it: Node warns of a leak from the eleventh listener on,
 * and one signal for a whole batch is what callers naturally pass.
 */

interface Watch {
  readonly cancels: Set<() => void>;
  readonly listener: () => void;
}

const watches = new WeakMap<AbortSignal, Watch>();

/** Calls `cancel` when the signal is aborted, once; the same function is what `unwatch` takes. */
export function watch(signal: AbortSignal, cancel: () => void): void {
  let known = watches.get(signal);
  if (known === undefined) {
    const cancels = new Set<() => void>();
    const listener = (): void => {
      watches.delete(signal);
      for (const each of cancels) each();
    };
    known = { cancels, listener };
    watches.set(signal, known);
    signal.addEventListener("abort", listener, { once: true });
  }
  known.cancels.add(cancel);
}

export function unwatch(signal: AbortSignal, cancel: () => void): void {
  const known = watches.get(signal);
  if (known === undefined) return;
  known.cancels.delete(cancel);
  if (known.cancels.size > 0) return;
  watches.delete(signal);
  signal.removeEventListener("abort", known.listener);
}
