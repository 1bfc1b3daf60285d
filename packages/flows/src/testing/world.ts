/**
 * The world outside a run, with one function of every effect, and a flow that uses them all. What happened in the world is
 * counted there, so that tests can tell whether an effect happened once.
 */

import type { HostFunction } from "@flowcell/host";
import { HostError } from "@flowcell/host";
import { row } from "./engine-harness.js";
import type { ScriptHost } from "./scripted-pool.js";

export class World {
  /** By idempotency key: what a service that knows its keys keeps. */
  readonly orders = new Map<string, number>();
  /** How often each effect of `once` happened. */
  readonly printed = new Map<string, number>();
  readonly appended = new Map<string, number>();
  reads = 0;

  functions(): readonly HostFunction[] {
    const bump = (counts: Map<string, number>, key: string): number => {
      const count = (counts.get(key) ?? 0) + 1;
      counts.set(key, count);
      return count;
    };
    const pause = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    return [
      row("world.read", "read", async ([what]) => {
        this.reads += 1;
        await pause();
        return `read ${String(what)}`;
      }),
      row("world.order", "keyed", async ([what], { idempotencyKey }) => {
        bump(this.orders, idempotencyKey);
        await pause();
        return `ordered ${String(what)}`;
      }),
      /** Nobody can tell afterwards whether it happened. */
      row("world.print", "once", async ([what]) => {
        bump(this.printed, String(what));
        await pause();
        return `printed ${String(what)}`;
      }),
      /** It can be looked at afterwards. */
      row(
        "world.append",
        "once",
        async ([what]) => {
          await pause();
          bump(this.appended, String(what));
          return `appended ${String(what)}`;
        },
        {
          prepare: async () => ({ size: this.appended.size }),
          recover: async ([what], note) => {
            if (note === null) throw new HostError("internal", "the note is lost");
            return this.appended.has(String(what))
              ? { state: "applied", value: `appended ${String(what)}` }
              : { state: "not_applied" };
          },
        },
      ),
      row("world.fail", "read", () => {
        throw new Error("the world says no");
      }),
    ];
  }
}

export async function reference(host: ScriptHost): Promise<unknown> {
  host.log("begin");
  const first = await host.call("world.read", "a");
  const counts = [];
  for (let n = 0; n < 3; n++) {
    const count = ((await host.call("kv.get", "count")) as number | undefined) ?? 0;
    counts.push(await host.call("kv.compareAndSet", "count", count === 0 ? undefined : count, count + 1));
  }
  const ordered = await host.call("world.order", "x");
  const printed = await host.call("world.print", "p");
  await host.call("sleep", 15);
  const [appended, second, failed] = await Promise.all([
    host.call("world.append", "q"),
    host.call("world.read", "b"),
    host.call("world.fail").catch((error: Error) => error.message),
  ]);
  await host.sleep(15);
  const signal = await host.call("signal.wait", "go");
  host.log("end");
  const last = await Promise.all([host.call("world.order", "y"), host.call("kv.get", "count")]);
  return [first, counts, ordered, printed, appended, second, failed, signal, last];
}

export const referenceResult: readonly unknown[] = [
  "read a",
  [true, true, true],
  "ordered x",
  "printed p",
  "appended q",
  "read b",
  "the world says no",
  "went",
  ["ordered y", 3],
];
