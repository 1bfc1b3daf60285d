/**
 * `host.signal.wait(name)`: waits until somebody sends the run a signal of that name. One that was sent before is there
 * already; each is taken once, oldest first. The run ends the wait, so that it needs no worker meanwhile.
 */

import * as z from "zod/mini";
import { defineHostFunction, type HostFunction } from "./registry.js";
import { optionsArgument, textArgument, timeoutArgument } from "./row-arguments.js";

export const signalNameBytes = 128;

export const signalWait: HostFunction = defineHostFunction({
  name: "signal.wait",
  doc: "Waits for a signal to this run and returns its value; fails with timeout after timeoutMs.",
  effect: "wait",
  grant: null,
  signature: "(name: string, options?: { timeoutMs?: number }): Promise<unknown>",
  input: z.tuple([textArgument(1, signalNameBytes), optionsArgument({ timeoutMs: timeoutArgument })]),
  wait: ([name, options]) => ({ kind: "signal", name, timeoutMs: options?.timeoutMs ?? null }),
});
